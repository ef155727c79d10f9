"""The protocol of adaptation, in every order in which its messages can arrive."""

from tests.explorer.adapting import AdaptingBrokers
from tests.explorer.literal import LiteralBrokers
from tests.explorer.search import Exploration, Fault, explore
from tests.explorer.walks import wander

__all__ = ["AdaptingBrokers", "Exploration", "Fault", "LiteralBrokers", "explore", "wander"]
