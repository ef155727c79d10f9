"""What came of it: deliveries in the overlay of real processes, the map, the prices, the kill."""

from __future__ import annotations

from dataclasses import dataclass, field

from examples.whole_story.prices import Followed

__all__ = ["DeliveredMap", "Kill", "Overlay"]


@dataclass
class DeliveredMap:
    """What happened to the map.

    Attributes
    ----------
    links
        (from, to, formats) of the tree that it took.
    conversions
        (broker, from, to) of every conversion.
    homes
        The broker of every device that asked for maps, by client.
    formats
        The format in which each of them got it.
    received
        (format, content, seconds since it was published) by client, for those shown.
    cost
        What sending and converting it cost, as it was planned.
    simple
        What it costs on the same tree without a plan, by the way it is done.
    """

    links: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    conversions: list[tuple[str, str, str]] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    received: dict[str, tuple[str, bytes, float]] = field(default_factory=dict)
    cost: float = 0.0
    simple: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Kill:
    """The broker that was killed, how many devices it had, and for how many seconds it was away."""

    broker: str
    devices: int
    away_s: float


@dataclass
class Overlay:
    """What happened in the overlay.

    Attributes
    ----------
    names
        The names of the brokers by identifier.
    replayed
        How many publications of the history were published again.
    predicted, agreed, others
        How many deliveries Spark had worked out for them, how many came about as it had said,
        in the same format, and how many came about that it had not said.
    owed, made
        Of all deliveries: how many there should be, and how many were made once and in a format
        that the device accepts.
    duplicates
        How many came twice.
    waiting
        How many waited for somebody in the end.
    """

    names: dict[str, str]
    map: DeliveredMap = field(default_factory=DeliveredMap)
    prices: Followed = field(default_factory=Followed)
    kill: Kill | None = None
    replayed: int = 0
    predicted: int = 0
    agreed: int = 0
    others: int = 0
    owed: int = 0
    made: int = 0
    duplicates: int = 0
    waiting: int = 0

    @property
    def proven(self) -> bool:
        """Whether everybody got what they were owed, once, and the broker came back."""
        return (
            self.kill is not None
            and self.agreed == self.predicted
            and self.made == self.owed
            and not (self.others or self.duplicates or self.waiting)
            and self.prices.within
        )
