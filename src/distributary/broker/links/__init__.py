"""Links: messages between brokers that arrive, and the way to the root of a key."""

from distributary.broker.links.links import Links
from distributary.broker.messages.links import Step

__all__ = ["Links", "Step"]
