"""What brokers say to each other so that nothing gets lost on the way."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.encoding import wire

__all__ = ["Hop", "HopAck", "Routed", "Step"]


@wire(30)
@dataclass(frozen=True, slots=True)
class Hop:
    """A message that is sent until it is acknowledged.

    Attributes
    ----------
    number
        Tells it from others of the same sender to the same receiver; later ones are larger.
    lowest
        Nothing with a smaller number is on its way any more.
    message
        The message itself, encoded.
    """

    number: int
    lowest: int
    message: bytes


@wire(31)
@dataclass(frozen=True, slots=True)
class HopAck:
    """A message has arrived, and all that came of it is durable."""

    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """One broker on the way of a message.

    Attributes
    ----------
    link_cost
        The cost of the link over which the message came to it; 0 where it began.
    node_cost
        The cost of converting there.
    """

    broker: str
    link_cost: float
    node_cost: float


@wire(32)
@dataclass(frozen=True, slots=True)
class Routed:
    """A message on its way to the root of a key.

    Attributes
    ----------
    origin
        Who sent it.
    message
        The message itself, encoded.
    path
        The brokers that it has passed, the origin first.
    """

    key: str
    origin: str
    message: bytes
    path: tuple[Step, ...]
