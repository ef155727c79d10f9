"""What brokers say to each other about content: from a publisher's home to subscribers' homes.

The publisher's home offers an item to the root of its cell. The root sends portions of it
along a tree, and every home on the tree tells the root that it has been served. When all
have, the root tells the publisher's home that the item is settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from distributary.broker.addresses import Blob, Speaker
from distributary.broker.encoding import since, wire
from distributary.broker.plan_part import After, PlanPart

__all__ = [
    "HOPS_SINCE",
    "PRESSURE_SINCE",
    "AskOwed",
    "AskServed",
    "ContentLost",
    "ConversionLost",
    "Deferred",
    "Item",
    "ItemId",
    "Missed",
    "NextHops",
    "Offer",
    "Owed",
    "Portion",
    "Probe",
    "ProbeAnswer",
    "SequenceName",
    "Served",
    "Settled",
    "Taken",
    "in_order",
    "offered",
]


PRESSURE_SINCE = 2
"""The version with which roots defer items, and tell homes what they have missed."""

HOPS_SINCE = 2
"""The version with which relays tell roots how they pass messages on."""


class ItemId(NamedTuple):
    """What tells an item from others: those of two tenants are never the same."""

    tenant: str
    source: str
    id: str

    def __str__(self) -> str:
        return f"{self.source} {self.id}{self.tenant and f' of {self.tenant}'}"


SequenceName: TypeAlias = tuple[str, int, int, int]
"""(tenant, publisher, cell, series): what the numbers of items count in."""


class Item(NamedTuple):
    """A publication on its way.

    Attributes
    ----------
    source, id
        As its publisher says.
    cell
        Where it lies in the content space.
    series, number
        The publisher's home numbers what a session publishes in a cell from 1. A series is
        one such count, named after the time at which it began: a home that has forgotten
        how far it was begins another.
    home
        The publisher's home.
    published_ns
        When it was accepted, by the home's clock.
    event
        JSON of the event as published.
    media_type, size_bytes
        The format and the size of its content.
    inline
        Whether the content is in the event itself, and not in a blob beside it.
    tenant
        Whose it is: its publisher's. Nobody else ever hears of it.
    publisher
        Who has published it, as `publisher_of` names clients. What one publishes in a cell
        comes in order.
    """

    source: str
    id: str
    cell: int
    series: int
    number: int
    home: str
    published_ns: int
    event: str
    media_type: str
    size_bytes: int
    inline: bool
    tenant: str = ""
    publisher: int = 0

    @property
    def identity(self) -> ItemId:
        """What tells it from others."""
        return ItemId(self.tenant, self.source, self.id)

    @property
    def sequence(self) -> SequenceName:
        """What its number counts in."""
        return self.tenant, self.publisher, self.cell, self.series


class _HasItem(Protocol):
    @property
    def item(self) -> Item:
        """The item that it is about."""


_Thing = TypeVar("_Thing", bound=_HasItem)
_NUMBER = attrgetter("item.number")


def in_order(things: Iterable[_Thing]) -> list[_Thing]:
    """Return what is about items in the order of their series and numbers.

    Series by series: there may be thousands of each, and numbers are quicker to sort than
    texts with them.
    """
    series: dict[SequenceName, list[_Thing]] = {}
    for thing in things:
        series.setdefault(thing.item.sequence, []).append(thing)
    return [thing for key in sorted(series) for thing in sorted(series[key], key=_NUMBER)]


def offered(identity: ItemId, root: str) -> object:
    """Return by what the own outbox is asked whether an item is on its way to a root."""
    return identity, root


@wire(70, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Offer:
    """An item for the root of its cell.

    Attributes
    ----------
    blob
        What refers to its content, if that is not in the event. Its home has the bytes.
    root
        Whom the home takes for the root. Where brokers do not agree, another may get it.
    first
        The lowest number of the series that this root has not settled: everything from there
        on is offered to it.
    served
        The registrations, (home, id), that another root is known to have served.
    settled
        How many of the numbers right before it are not offered any more: another root has
        settled them, and they are not kept. What is before these may be open for much longer.
    """

    item: Item
    blob: Blob | None
    root: str
    first: int
    served: tuple[tuple[str, str], ...]
    settled: int = since(2, 0)

    @property
    def about(self) -> tuple[object, ...]:
        """What waits for it, as `Links.carries` is asked."""
        return (offered(self.item.identity, self.root),)


@wire(71, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Taken:
    """A root has stored an item, and will see to it."""

    identity: ItemId


@wire(431, Speaker.BROKER, since=PRESSURE_SINCE)
@dataclass(frozen=True, slots=True)
class Deferred:
    """A root has no room for an item; it is to be offered again after some time."""

    identity: ItemId
    wait_ns: int


@wire(72, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Settled:
    """Everybody who is to get an item has got it: these registrations, (home, id)."""

    identity: ItemId
    served: tuple[tuple[str, str], ...]


@wire(73, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Portion:
    """What one hop needs of an item: the formats that it gets, and the plan for its subtree.

    Attributes
    ----------
    root, attempt
        Who planned it, and how often that broker had planned the item by then.
    original
        The format, as the plan calls it, in which the item was published.
    plan
        Its first node is the broker that the portion is for.
    blobs
        What refers to the formats that the first node receives, in their order; None for the
        one that is in the event. Whoever sends the portion has the bytes.
    """

    item: Item
    root: str
    attempt: int
    original: str
    plan: PlanPart
    blobs: tuple[Blob | None, ...]


@wire(74, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Served:
    """A home has stored an item for its clients, as an attempt asked it to.

    Attributes
    ----------
    served
        The registrations that the item was kept for, in this attempt or before, and those to
        which it is not owed: they are younger than it. What is not named here is not served.
    unknown
        The registrations that it was asked for and does not have: their clients have moved
        or have unsubscribed, and the root has not heard of it.
    """

    identity: ItemId
    attempt: int
    served: tuple[str, ...]
    unknown: tuple[str, ...] = ()


@wire(75, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class AskServed:
    """A root asks a home from which it has not heard whether an attempt has reached it."""

    identity: ItemId
    attempt: int


@wire(79, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class AskOwed:
    """A home asks about an item that has come so late that it may have had and forgotten it."""

    identity: ItemId
    attempt: int


@wire(80, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Owed:
    """The registrations of a home for which the root still waits; none, when it does not.

    Attributes
    ----------
    after
        As in `plan_part.Home`, and as it is by now.
    """

    identity: ItemId
    attempt: int
    registrations: tuple[str, ...]
    after: After


@wire(76, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Probe:
    """Finds the way to some homes, splitting up where their ways part.

    Attributes
    ----------
    steps
        The brokers passed after the root: (broker, link cost of the hop to it, node cost).
    padding
        Makes it as large as probes are agreed to be.
    """

    identity: ItemId
    attempt: int
    root: str
    homes: tuple[str, ...]
    steps: tuple[tuple[str, float, float], ...]
    padding: bytes


@wire(77, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The way on which a probe came to a home."""

    identity: ItemId
    attempt: int
    steps: tuple[tuple[str, float, float], ...]


@wire(460, Speaker.BROKER, since=HOPS_SINCE)
@dataclass(frozen=True, slots=True)
class NextHops:
    """How a relay passes on what its root has planned otherwise.

    Attributes
    ----------
    node_cost
        The cost of converting at the relay.
    row
        (prefix, broker, link cost): what is for brokers whose names begin so goes to this one.
    """

    node_cost: float
    row: tuple[tuple[str, str, float], ...]


@wire(78, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ConversionLost:
    """Formats of an item cannot be made, and some homes do not get what they should.

    Attributes
    ----------
    lost
        (format, reason).
    homes
        Those that an attempt leaves without.
    """

    identity: ItemId
    attempt: int
    lost: tuple[tuple[str, str], ...]
    homes: tuple[str, ...]


@wire(430, Speaker.BROKER, since=PRESSURE_SINCE)
@dataclass(frozen=True, slots=True)
class Missed:
    """A root has given up what was for a home, which was away: it kept too much for it.

    Attributes
    ----------
    registrations
        Those that have missed something, each with how many items at least.
    given_up_ns
        When. What is in force since later has missed nothing.
    """

    registrations: tuple[tuple[str, int], ...]
    given_up_ns: int


@wire(376, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ContentLost:
    """Formats of an item cannot be fetched, and some homes do not get what they should.

    Nothing says that they could not be had on another way, or made anew. `lost` and `homes` are
    as in `ConversionLost`.
    """

    identity: ItemId
    attempt: int
    lost: tuple[tuple[str, str], ...]
    homes: tuple[str, ...]
