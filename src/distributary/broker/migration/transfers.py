"""A client that leaves a broker, and one that comes to it: states, and what is kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from distributary.broker.addresses import Address, Blob
from distributary.broker.core import Transitions
from distributary.broker.deliveries.deliveries import ClientDeliveries
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import since, wire
from distributary.broker.publishing.publishing import ClientPublications
from distributary.broker.subscriptions.subscription import LocalSubscription, SubscriptionRecord

__all__ = [
    "ARRIVING",
    "LEAVING",
    "Arrival",
    "ArrivalRecord",
    "Arriving",
    "Coming",
    "Departure",
    "DepartureRecord",
    "Going",
    "HeldRecord",
    "Leaving",
    "Place",
    "blobs_in",
]


class Leaving(Enum):
    """How far a client has left its home."""

    RESERVING = auto()
    ASKED = auto()
    REPLICATING = auto()
    REDIRECTING = auto()
    DRAINING = auto()
    LEFT = auto()
    STAYING = auto()
    FORGOTTEN = auto()


class Going(Enum):
    """What can happen to a client that is to leave."""

    GRANTED = auto()
    REFUSED = auto()
    ACCEPTED = auto()
    DECLINED = auto()
    SILENT = auto()
    REPLICATED = auto()
    ARRIVED = auto()
    DRAINED = auto()
    RETURNED = auto()
    EXPIRED = auto()
    TARGET_LOST = auto()


# Room is reserved at the target before the client is asked, so that its consent is enough.
# From `accept` on the old home answers the client no more. What still comes for it is kept
# here, and passed on as well once the target has stored the rest: should the target be lost,
# or not take the client, nothing is missing. The client has come to the target, and its
# subscriptions are registered from there, when the target says so. Then they are withdrawn
# here, and when no root owes this broker anything for them any more, the target is told that
# nothing follows. What is reserved or asked is forgotten in a crash, and the client stays;
# from `accept` on everything is durable.
LEAVING: Transitions[Leaving, Going] = Transitions(
    "client that leaves",
    Leaving.RESERVING,
    {
        (Leaving.RESERVING, Going.GRANTED): Leaving.ASKED,
        (Leaving.RESERVING, Going.REFUSED): Leaving.STAYING,
        (Leaving.RESERVING, Going.SILENT): Leaving.STAYING,
        (Leaving.RESERVING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.ASKED, Going.ACCEPTED): Leaving.REPLICATING,
        (Leaving.ASKED, Going.DECLINED): Leaving.STAYING,
        (Leaving.ASKED, Going.SILENT): Leaving.STAYING,
        (Leaving.ASKED, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.REPLICATING, Going.REPLICATED): Leaving.REDIRECTING,
        (Leaving.REPLICATING, Going.REFUSED): Leaving.STAYING,
        (Leaving.REPLICATING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.REDIRECTING, Going.ARRIVED): Leaving.DRAINING,
        (Leaving.REDIRECTING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.DRAINING, Going.DRAINED): Leaving.LEFT,
        (Leaving.DRAINING, Going.TARGET_LOST): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.RETURNED): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.EXPIRED): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.TARGET_LOST): Leaving.FORGOTTEN,
    },
)


class Arriving(Enum):
    """How far a client has come to its new home."""

    RESERVED = auto()
    REGISTERING = auto()
    TAKING_OVER = auto()
    SETTLED = auto()
    FORGOTTEN = auto()


class Coming(Enum):
    """What can happen to a client that is to come."""

    REPLICATED = auto()
    REGISTERED = auto()
    ENDED = auto()
    RELEASED = auto()
    REFUSED = auto()
    HOME_LOST = auto()


# What roots send for the client while its subscriptions are registered in both places waits
# until the old home has redirected the last of what it was sent before: only then is the
# order of each publisher kept.
ARRIVING: Transitions[Arriving, Coming] = Transitions(
    "client that arrives",
    Arriving.RESERVED,
    {
        (Arriving.RESERVED, Coming.REPLICATED): Arriving.REGISTERING,
        (Arriving.RESERVED, Coming.RELEASED): Arriving.FORGOTTEN,
        (Arriving.RESERVED, Coming.REFUSED): Arriving.FORGOTTEN,
        (Arriving.RESERVED, Coming.HOME_LOST): Arriving.FORGOTTEN,
        (Arriving.REGISTERING, Coming.REGISTERED): Arriving.TAKING_OVER,
        (Arriving.REGISTERING, Coming.HOME_LOST): Arriving.SETTLED,
        (Arriving.TAKING_OVER, Coming.ENDED): Arriving.SETTLED,
        (Arriving.TAKING_OVER, Coming.HOME_LOST): Arriving.SETTLED,
    },
)


@wire(660)
@dataclass(frozen=True, slots=True)
class DepartureRecord:
    """A client that leaves, as it is kept.

    Attributes
    ----------
    state
        The number of a state of `Leaving`.
    redirected
        How much was redirected.
    since_ns
        When the client accepted.
    arrived
        Whether the target has said that the client has.
    subscriptions
        Those that it had here.
    passed
        The number of the last delivery of each subscription that the target has, or was sent.
    given_up
        The subscriptions of which something could not be passed on.
    """

    client: str
    target: str
    state: int
    redirected: int
    since_ns: int
    arrived: bool
    prices: tuple[tuple[str, float], ...]
    subscriptions: tuple[SubscriptionRecord, ...]
    passed: tuple[tuple[str, int], ...]
    given_up: tuple[str, ...] = since(2, ())


class Departure:
    """A client that leaves.

    Attributes
    ----------
    asked
        How often it, or the target, was asked.
    traffic, rates
        What it sends and is sent, and what it publishes by cell, in bytes per second.
    ghosts
        Subscriptions that are withdrawn, and may still be sent something.
    client, target, state, redirected, since_ns, arrived, prices, subscriptions, passed, given_up
        As in `DepartureRecord`.
    """

    def __init__(self, client: Address, target: str) -> None:
        self.client = client
        self.target = target
        self.state = LEAVING.initial
        self.redirected = 0
        self.since_ns = 0
        self.arrived = False
        self.asked = 0
        self.traffic = 0.0
        self.rates: tuple[tuple[int, float], ...] = ()
        self.prices: tuple[tuple[str, float], ...] = ()
        self.subscriptions: tuple[SubscriptionRecord, ...] = ()
        self.passed: dict[str, int] = {}
        self.given_up: set[str] = set()
        self.ghosts: list[LocalSubscription] = []

    def record(self) -> DepartureRecord:
        """Return it as it is kept."""
        return DepartureRecord(
            self.client,
            self.target,
            self.state.value,
            self.redirected,
            self.since_ns,
            self.arrived,
            self.prices,
            self.subscriptions,
            tuple(sorted(self.passed.items())),
            tuple(sorted(self.given_up)),
        )

    @classmethod
    def from_record(cls, record: DepartureRecord) -> Departure:
        """Return it as it was kept."""
        departure = cls(record.client, record.target)
        departure.state = Leaving(record.state)
        departure.redirected = record.redirected
        departure.since_ns = record.since_ns
        departure.arrived = record.arrived
        departure.prices = record.prices
        departure.subscriptions = record.subscriptions
        departure.passed = dict(record.passed)
        departure.given_up = set(record.given_up)
        if departure.state is Leaving.DRAINING:
            departure.haunt()
        return departure

    def haunt(self) -> None:
        """Have its subscriptions stay as ghosts; those to streams are not redirected."""
        found = [LocalSubscription.from_record(record) for record in self.subscriptions]
        self.ghosts = [local for local in found if local.subscription.tolerance is None]


def blobs_in(
    deliveries: ClientDeliveries, publications: ClientPublications
) -> Iterator[Blob | None]:
    """Go through all content that a client takes along, as often as something refers to it."""
    for *_, waiting in deliveries.queues:
        yield from (queued.blob for queued in waiting)
    yield from (kept.blob for kept in publications.kept)


Place = tuple[int, int, int, int]
"""Where an item stands: cell, publisher, series and number."""


@wire(661)
@dataclass(frozen=True, slots=True)
class ArrivalRecord:
    """A client that comes, as it is kept.

    Attributes
    ----------
    state
        The number of a state of `Arriving`.
    taken
        How much of what was redirected has been handed on, in order.
    count
        How much there is; -1 while the old home has not said.
    stored
        Whether all that the old home had kept is stored here.
    connected
        Whether the client itself has come.
    moved_ns
        As in `Replicate`.
    """

    client: str
    home: str
    state: int
    taken: int
    count: int
    stored: bool
    connected: bool
    moved_ns: int = since(2, 0)


@wire(662)
@dataclass(frozen=True, slots=True)
class HeldRecord:
    """Something for a client that waits for its turn.

    Attributes
    ----------
    doubtful
        Whether it was published about when the subscription came.
    registration, published_ns
        As in `Redirect`; empty for what a root has sent.
    """

    client: str
    subscription: str
    parcel: Queued
    cell: int
    publisher: int
    series: int
    place: int
    doubtful: bool = False
    registration: str = since(2, "")
    published_ns: int = since(2, 0)

    @property
    def name(self) -> tuple[str, ItemId]:
        """What tells it from others that wait: the subscription, and the item."""
        return self.subscription, self.parcel.identity

    def precedes(self, other: HeldRecord) -> bool:
        """Whether it is for the same subscription, and was published before."""
        return (
            (self.subscription, self.publisher, self.cell)
            == (other.subscription, other.publisher, other.cell)
            and self.place > 0
            and (self.series, self.place) < (other.series, other.place)
        )


class Arrival:
    """A client that comes.

    Attributes
    ----------
    traffic
        For how many bytes per second room is kept.
    size_bytes
        What all that waits takes.
    early
        What was redirected before its turn, by number.
    held, names
        What roots have sent meanwhile, in order, and what tells that from others.
    client, home, state, taken, count, stored, connected, moved_ns
        As in `ArrivalRecord`.
    """

    def __init__(self, client: Address, home: str, traffic: float = 0.0) -> None:
        self.client = client
        self.home = home
        self.traffic = traffic
        self.state = ARRIVING.initial
        self.taken = 0
        self.count = -1
        self.stored = False
        self.connected = False
        self.moved_ns = 0
        self.early: dict[int, HeldRecord] = {}
        self.held: dict[int, HeldRecord] = {}
        self.names: set[tuple[str, ItemId]] = set()
        self.size_bytes = 0

    def record(self) -> ArrivalRecord:
        """Return it as it is kept."""
        return ArrivalRecord(
            self.client,
            self.home,
            self.state.value,
            self.taken,
            self.count,
            self.stored,
            self.connected,
            self.moved_ns,
        )

    @classmethod
    def from_record(cls, record: ArrivalRecord) -> Arrival:
        """Return it as it was kept."""
        arrival = cls(record.client, record.home)
        arrival.state = Arriving(record.state)
        arrival.taken, arrival.count = record.taken, record.count
        arrival.stored, arrival.connected = record.stored, record.connected
        arrival.moved_ns = record.moved_ns
        return arrival
