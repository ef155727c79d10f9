"""Clients that come to this broker from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.core import Core, Transitions
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import decode, encodable, journal_key, since
from distributary.broker.host import Turn
from distributary.broker.migration.messages import (
    IDS,
    MOVING,
    TOO_MANY_CLIENTS,
    TOO_MUCH_TRAFFIC,
    Arrived,
    Place,
    RedirectEnd,
    Replicate,
    Replicated,
    Reserve,
    blobs_in,
)
from distributary.broker.settings import ns
from distributary.broker.subscriptions.lifecycle import TOO_MANY_BYTES
from distributary.broker.telemetry import Migrated

__all__ = ["ARRIVING", "Arrival", "ArrivalRecord", "Arrivals", "Arriving", "Coming", "HeldRecord"]

_LOOK_S = 0.5
# How long room is kept for a client that does not come.
_RESERVED_S = 60.0


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


@encodable(661)
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


@encodable(662)
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


class Arrivals:
    """The clients that come to one broker."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._by_client: dict[Address, Arrival] = {}

    # What is kept: the client, what was redirected too early, and what roots sent meanwhile.

    def load(self, key: str, record: ArrivalRecord | HeldRecord) -> None:
        """Take back a client that was coming, or after it something that waited for it."""
        if isinstance(record, ArrivalRecord):
            self._by_client[record.client] = Arrival.from_record(record)
            return
        arrival = self._by_client[record.client]
        kind, _, number = key.rpartition("/")
        if kind.startswith("early/"):
            arrival.early[int(number)] = record
        else:
            arrival.held[int(number)] = record
            arrival.names.add(record.name)
        arrival.size_bytes += record.parcel.size_bytes
        self._core.content.refer(tenant_of(record.client), record.parcel.blob)

    def start(self, turn: Turn) -> None:
        """Go on where a crash has stopped it."""
        for client in sorted(self._by_client):
            self._look_later(client, turn)

    def snapshot(self) -> list[dict[str, str]]:
        """Return who comes, from where, and how far that is."""
        return [
            {"client": client, "from": one.home, "state": one.state.name.lower()}
            for client, one in sorted(self._by_client.items())
        ]

    # What other parts ask.

    def __len__(self) -> int:
        """How many clients room is kept for."""
        return sum(arrival.state is Arriving.RESERVED for arrival in self._by_client.values())

    def holds(self, client: Address) -> bool:
        """Whether what roots send for a client has to wait."""
        arrival = self._by_client.get(client)
        return arrival is not None and arrival.state in (
            Arriving.REGISTERING,
            Arriving.TAKING_OVER,
        )

    def hold(
        self, subscription: str, parcel: Queued, place: Place, turn: Turn, *, doubtful: bool
    ) -> None:
        """Keep what a root has sent for a client until its old home has sent the last."""
        client = parcel.client
        arrival = self._by_client[client]
        held = HeldRecord(client, subscription, parcel, *place, doubtful)
        if held.name in arrival.names:
            # Whoever restarts a root has everything sent again, and content may be large.
            return
        number = max(arrival.held, default=0) + 1
        arrival.held[number] = held
        self._core.content.refer(tenant_of(client), parcel.blob)
        arrival.names.add(held.name)
        turn.persist(f"migration/held/{journal_key(client)}/{number:09d}", held)
        self._count(arrival, held, turn)

    # The steps.

    def reserve(
        self, message: Reserve, home: str, *, clients: int, traffic: float, turn: Turn
    ) -> str:
        """Keep room for a client, if there is some; asked again, say the same.

        Parameters
        ----------
        clients, traffic
            How many clients this broker has, and what they send and are sent.

        Returns
        -------
        str
            What there is no room for; empty when room is kept.
        """
        client, settings = message.client, self._core.settings.migration
        known = self._by_client.get(client)
        if known is not None:
            return "" if known.home == home and known.state is Arriving.RESERVED else MOVING
        kept = [a.traffic for a in self._by_client.values() if a.state is Arriving.RESERVED]
        if clients + len(kept) >= settings.capacity:
            return TOO_MANY_CLIENTS
        if traffic + sum(kept) + message.traffic > settings.traffic_capacity:
            return TOO_MUCH_TRAFFIC
        if not self._core.subscriptions.can_adopt(message.subscriptions):
            return IDS
        self._by_client[client] = Arrival(client, home, message.traffic)
        self._core.timers.at(turn.now_ns + ns(_RESERVED_S), self._expire, client, home)
        return ""

    def release(self, client: Address, home: str) -> None:
        """Keep no room for a client any more."""
        arrival = self._by_client.get(client)
        if arrival is not None and arrival.home == home and self._step(arrival, Coming.RELEASED):
            del self._by_client[client]

    def _expire(self, turn: Turn, client: Address, home: str) -> None:
        self.release(client, home)

    def replicate(self, message: Replicate, home: str, turn: Turn) -> bool:
        """Take over all that was kept for a client, if its subscriptions can be entered here."""
        core = self._core
        records = {name: decode(data) for name, data in message.parts}
        client, moved = message.client, records["subscriptions"]
        known = self._by_client.get(client)
        if known is not None and known.home == home and known.stored:
            # A crash has kept us from noting that it was here before.
            self._decline(records, home, turn)
            core.links.send(home, Replicated(client, stored=True), turn)
            return True
        # The reservation may have run out; whoever has been promised a place gets one.
        arrival = self._by_client[client] = Arrival(client, home)
        if not core.subscriptions.make_way(moved, turn):
            self._step(arrival, Coming.REFUSED)
            del self._by_client[client]
            self._decline(records, home, turn)
            core.links.send(home, Replicated(client, stored=False), turn)
            return False
        self._step(arrival, Coming.REPLICATED)
        arrival.moved_ns = message.moved_ns
        self._keep(arrival, turn)
        core.deliveries.adopt_client(records["deliveries"], home, turn)
        core.publishing.adopt_client(records["publishing"], home, turn)
        core.rendezvous.advertisements.adopt_client(records["advertisements"], turn)
        core.subscriptions.adopt_client(moved, turn)
        arrival.stored = True
        self._keep(arrival, turn)
        self._look_later(client, turn)
        core.links.send(home, Replicated(client, stored=True), turn)
        return True

    def _decline(self, records: Mapping[str, Any], home: str, turn: Turn) -> None:
        for blob in blobs_in(records["deliveries"], records["publishing"]):
            self._core.content.decline(blob, home, turn)

    def connected(self, client: Address, moved_ns: int, turn: Turn, *, anew: bool) -> None:
        """Note that a client has come itself.

        What it said when it came here before, and left again, may come twice and late. Whoever
        believed that would have its last home withdraw, and tell it no more where to go.

        Parameters
        ----------
        moved_ns
            By which move, as it says itself.
        anew
            Whether it begins anew, wherever it was to go.
        """
        arrival = self._by_client.get(client)
        if arrival is None or arrival.state is Arriving.RESERVED:
            return
        if anew or arrival.moved_ns in (0, moved_ns):
            arrival.connected = True
            self._keep(arrival, turn)

    def redirected(self, number: int, record: HeldRecord, home: str, turn: Turn) -> None:
        """Hand on what the old home has redirected, in its order."""
        client, blob = record.client, record.parcel.blob
        arrival = self._by_client.get(client)
        if arrival is None:
            self._core.content.decline(blob, home, turn)
            return
        if number <= arrival.taken or number in arrival.early:
            self._core.content.decline(blob, home, turn)
        else:
            if self._core.subscriptions.get(record.subscription) is None:
                # Only its number matters.
                self._core.content.decline(blob, home, turn)
                blob = None
                record = replace(record, parcel=replace(record.parcel, event="", blob=None))
            arrival.early[number] = record
            self._core.content.refer(tenant_of(client), blob)
            self._core.content.borrow(blob, home, turn)
            turn.persist(f"migration/early/{journal_key(client)}/{number:09d}", record)
            self._count(arrival, record, turn)
        # Also when it was here before: a crash may have come after it was taken, and before
        # what had waited for it was.
        while arrival.taken + 1 in arrival.early:
            self._take_redirected(arrival, arrival.taken + 1, turn)
        self._settle(arrival, turn)

    def _count(self, arrival: Arrival, record: HeldRecord, turn: Turn) -> None:
        """End a subscription for which too much waits, as if it were in its queue."""
        arrival.size_bytes += record.parcel.size_bytes
        if arrival.size_bytes > self._core.settings.subscriptions.queue_bytes:
            local = self._core.subscriptions.get(record.subscription)
            if local is not None:
                self._core.subscriptions.give_up(local, TOO_MANY_BYTES, turn)

    def _take_redirected(self, arrival: Arrival, number: int, turn: Turn) -> None:
        record = arrival.early.pop(number)
        arrival.size_bytes -= record.parcel.size_bytes
        # A root that has taken over from another may serve the old home once more, when the
        # other one had begun to serve this one.
        for held in sorted(arrival.held):
            if arrival.held[held].precedes(record):
                self._take_held(arrival, held, turn)
        self._hand(record, turn)
        self._release(record, turn)
        arrival.taken = number
        self._keep(arrival, turn)
        turn.erase(f"migration/early/{journal_key(arrival.client)}/{number:09d}")

    def _take_held(self, arrival: Arrival, number: int, turn: Turn) -> None:
        record = arrival.held.pop(number)
        arrival.size_bytes -= record.parcel.size_bytes
        arrival.names.discard(record.name)
        self._hand(record, turn)
        self._release(record, turn)
        turn.erase(f"migration/held/{journal_key(arrival.client)}/{number:09d}")

    def _release(self, record: HeldRecord, turn: Turn) -> None:
        self._core.content.release(tenant_of(record.client), record.parcel.blob, turn)

    def ended(self, message: RedirectEnd, home: Address, turn: Turn) -> None:
        """Know how much the old home has redirected in all."""
        arrival = self._by_client.get(message.client)
        if arrival is None:
            return
        if arrival.moved_ns and message.moved_ns not in (0, arrival.moved_ns):
            # It is said without a link too, and comes late. Which move it is may not be known, if
            # somebody of the version before was there when it began.
            return
        if message.count < max((arrival.taken, *arrival.early)):
            # It does not remember what it has redirected.
            self._take_early(arrival, turn)
        arrival.count = max(message.count, arrival.taken)
        self._keep(arrival, turn)
        self._settle(arrival, turn)

    def home_lost(self, broker: str, turn: Turn) -> None:
        """Wait no longer for a home that is lost for ever."""
        for client in sorted(self._by_client):
            arrival = self._by_client[client]
            if arrival.home != broker or not self._step(arrival, Coming.HOME_LOST):
                continue
            if arrival.state is Arriving.FORGOTTEN:
                del self._by_client[client]
                continue
            self._take_early(arrival, turn)
            self._finish(arrival, turn)

    def _take_early(self, arrival: Arrival, turn: Turn) -> None:
        """Do without what should have come before."""
        for number in sorted(arrival.early):
            self._take_redirected(arrival, number, turn)

    def _hand(self, record: HeldRecord, turn: Turn) -> None:
        """Deliver something, unless the client has ended the subscription meanwhile, or changed it.

        Its old home does not know of a change, and redirects what was published after it too.
        """
        subscriptions = self._core.subscriptions
        skew_ns = ns(self._core.settings.subscriptions.clock_skew_s)
        local = subscriptions.get(record.subscription)
        if local is not None and record.registration:
            local = subscriptions.registered(record.registration)
            if local is not None and not local.owes(record.published_ns, skew_ns):
                local = None
        if local is not None and local.client == record.client:
            place = (record.cell, record.publisher, record.series, record.place)
            self._core.deliveries.hand(
                record.subscription, record.parcel, place, turn, doubtful=record.doubtful
            )

    def _settle(self, arrival: Arrival, turn: Turn) -> None:
        if arrival.taken == arrival.count and self._step(arrival, Coming.ENDED):
            self._finish(arrival, turn)

    def _finish(self, arrival: Arrival, turn: Turn) -> None:
        """Hand on what has waited, and forget that the client came from elsewhere."""
        for number in sorted(arrival.held):
            self._take_held(arrival, number, turn)
        del self._by_client[arrival.client]
        turn.erase(f"migration/arriving/{journal_key(arrival.client)}")
        turn.report(Migrated(arrival.client, self._core.identity))

    def _look_later(self, client: Address, turn: Turn) -> None:
        self._core.timers.at(turn.now_ns + ns(_LOOK_S), self._look, client)

    def _look(self, turn: Turn, client: Address) -> None:
        arrival = self._by_client.get(client)
        if arrival is None:
            return
        if self._core.membership.is_gone(arrival.home):
            # It had left before the client came from there, and nobody says that once more.
            self.home_lost(arrival.home, turn)
            return
        if arrival.state is Arriving.REGISTERING:
            subscriptions = self._core.subscriptions
            # One that never comes loses its subscriptions in time, here and there.
            here = arrival.connected or not subscriptions.of_client(client)
            if here and subscriptions.settled(client):
                self._step(arrival, Coming.REGISTERED)
                self._keep(arrival, turn)
                self._core.links.send(arrival.home, self._arrived(arrival), turn)
                self._settle(arrival, turn)
                return
        elif arrival.state is Arriving.TAKING_OVER:
            # After a restart. The old home may have taken this one for lost, and have kept the
            # client; until it has heard that this one is back it can say nothing over a link.
            turn.send(arrival.home, self._arrived(arrival))
        self._look_later(client, turn)

    def _arrived(self, arrival: Arrival) -> Arrived:
        return Arrived(arrival.client, arrival.moved_ns, arrival.connected)

    def _keep(self, arrival: Arrival, turn: Turn) -> None:
        turn.persist(f"migration/arriving/{journal_key(arrival.client)}", arrival.record())

    def _step(self, arrival: Arrival, event: Coming) -> bool:
        following = ARRIVING.step(arrival.state, event)
        if following is None:
            return False
        arrival.state = following
        return True
