"""The protocol of adaptation, in every order in which its messages can arrive."""

from distributary.simulator.explorer.adapting import AdaptingBrokers
from distributary.simulator.explorer.literal import LiteralBrokers
from distributary.simulator.explorer.search import Exploration, Fault, explore
from distributary.simulator.explorer.walks import wander

__all__ = ["AdaptingBrokers", "Exploration", "Fault", "LiteralBrokers", "explore", "wander"]
