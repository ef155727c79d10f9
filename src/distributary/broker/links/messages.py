"""What brokers say to each other so that nothing gets lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from distributary.broker.addresses import Speaker
from distributary.broker.encoding import since, wire
from distributary.broker.validation import Check, Rules
from distributary.errors import PeerMisbehaved

__all__ = ["CHECKS", "Acknowledgement", "Gathered", "Hop", "HopAck", "Routed", "Step"]


@wire(30, Speaker.BROKER)
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
    sent_ns
        When it was sent this time, by the sender's clock.
    kept
        Whether its sender has it on disk under this number. Otherwise it is made anew after a
        crash, with another number, and whoever handles it tells by what is in it that he had it.
    """

    number: int
    lowest: int
    message: bytes
    sent_ns: int = 0
    kept: bool = since(2, True)


@wire(31, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class HopAck:
    """A message has arrived, and all that came of it is durable, here or further on.

    Attributes
    ----------
    sent_ns
        As the `Hop` said: it tells which of several sendings is acknowledged.
    """

    number: int
    sent_ns: int = 0


class Acknowledgement(NamedTuple):
    """That a message has arrived, as `HopAck` says.

    Attributes
    ----------
    held_ns
        How long the receiver has waited with it, until others had the message or for more to
        go with it. Hops are as fast as they are without it.
    """

    number: int
    sent_ns: int
    held_ns: int


@wire(410, Speaker.BROKER, since=2)
@dataclass(frozen=True, slots=True)
class Gathered:
    """What a broker has to say that could wait for a moment.

    Attributes
    ----------
    acknowledgements
        Messages that have arrived.
    messages
        Others, encoded.
    """

    acknowledgements: tuple[Acknowledgement, ...]
    messages: tuple[bytes, ...]


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


@wire(32, Speaker.BROKER)
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


def check_path(path: tuple[Step, ...], origin: str, rules: Rules) -> None:
    """Refuse a way that leads over nobody, or does not begin where its message does.

    Whoever turns it round must get there: plans are made on such ways.
    """
    if not path:
        raise PeerMisbehaved("a way that begins nowhere")
    if path[0].broker != origin:
        raise PeerMisbehaved(f"a way from {path[0].broker} of what comes from {origin}")
    rules.brokers(step.broker for step in path)
    for step in path:
        rules.amounts((step.link_cost, step.node_cost))


def _check_routed(message: Routed, rules: Rules) -> None:
    """Refuse a message that comes from nowhere."""
    rules.brokers((message.key, message.origin))
    check_path(message.path, message.origin, rules)


CHECKS: Mapping[type, Check] = {
    Routed: _check_routed,
}
"""What must hold of messages beyond the types of their fields."""
