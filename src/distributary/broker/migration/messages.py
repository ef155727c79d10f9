"""What is said when a client moves to another home broker.

The seven calls are `register`, `summarize`, `request_to_move`, `accept`, `replicate`, `connect`
and `redirect` (Zhao and Wu, section V); the others make them safe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from distributary.broker.addresses import Blob, Speaker, tenant_of
from distributary.broker.content import check_blob
from distributary.broker.core import NUMBER_MAX, Check, Rules, check_client
from distributary.broker.deliveries.deliveries import ClientDeliveries
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import check_item, check_item_blob
from distributary.broker.encoding import decode, encodable, since
from distributary.broker.host import OrderMove
from distributary.broker.publishing.publishing import ClientPublications
from distributary.broker.rendezvous.advertisements import ClientAdvertisements
from distributary.broker.subscriptions.subscription import is_scoped, read
from distributary.broker.subscriptions.subscriptions import ClientSubscriptions
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
    "IDS",
    "MOVING",
    "REFUSALS",
    "TOO_MANY_CLIENTS",
    "TOO_MUCH_TRAFFIC",
    "AcceptMove",
    "Arrived",
    "Connect",
    "Connected",
    "MoveNow",
    "Place",
    "Redirect",
    "RedirectEnd",
    "RegisterClient",
    "Release",
    "Replicate",
    "Replicated",
    "RequestToMove",
    "Reserve",
    "Reserved",
    "Summarize",
    "blobs_in",
]

TOO_MANY_CLIENTS = "clients"
TOO_MUCH_TRAFFIC = "traffic"
IDS = "ids"
MOVING = "moving"
REFUSALS = (TOO_MANY_CLIENTS, TOO_MUCH_TRAFFIC, IDS, MOVING)
"""Why a broker keeps no room: it has as many clients, or as much traffic, as it takes; one of the
client's subscriptions is still ending there; or the client is coming from elsewhere."""


@encodable(160, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class RegisterClient:
    """`register`: a client tells its home what a unit of traffic costs it at each broker."""

    prices: tuple[tuple[str, float], ...]


@encodable(161, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Summarize:
    """`summarize`: what the clients of a broker publish and want, and its prices to others.

    Attributes
    ----------
    publishes
        Bytes per second by cell.
    interests
        Cells that some client subscribes to, ascending.
    prices
        What a unit of traffic costs on the way to each other broker.
    """

    publishes: tuple[tuple[int, float], ...]
    interests: tuple[int, ...]
    prices: tuple[tuple[str, float], ...]


@encodable(162, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Reserve:
    """Ask a broker to keep room for a client, and for its subscriptions of these ids.

    Attributes
    ----------
    traffic
        What the client sends and is sent, in bytes per second.
    """

    client: str
    subscriptions: tuple[str, ...]
    traffic: float


@encodable(163, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Reserved:
    """Whether there is room for a client.

    Attributes
    ----------
    refusal
        What there is no room for, one of `REFUSALS`; empty when there is room.
    """

    client: str
    refusal: str


@encodable(164, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Release:
    """The room kept for a client is not needed."""

    client: str


@encodable(165, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RequestToMove:
    """`request_to_move`: ask a client whether it would rather attach to another broker."""

    target: str


@encodable(166, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class AcceptMove:
    """`accept`: what the client says to that."""

    target: str
    accepted: bool


@encodable(167, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Replicate:
    """`replicate`: all that is kept for a client, encoded, by the part that keeps it.

    Attributes
    ----------
    rates
        Bytes per second that it publishes, by cell, as its old home has measured.
    moved_ns
        As in `MoveNow`.
    """

    client: str
    prices: tuple[tuple[str, float], ...]
    rates: tuple[tuple[int, float], ...]
    parts: tuple[tuple[str, bytes], ...]
    moved_ns: int = since(2, 0)


@encodable(168, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Replicated:
    """Whether all that was kept for a client is stored at its new home now.

    It is not while one of its subscriptions is still ending there.
    """

    client: str
    stored: bool


@encodable(169, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class MoveNow:
    """Tell a client where its home is now.

    Attributes
    ----------
    moved_ns
        When it agreed to move, by its old home's clock, which tells one move from another.
    """

    target: str
    moved_ns: int = since(2, 0)


@encodable(170, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Connect:
    """`connect`: a client comes to its new home, and says what it has received.

    Attributes
    ----------
    received
        The number of the last delivery of each subscription; none when the client begins anew.
    epoch
        As in `Subscribe`.
    moved_ns
        As in `MoveNow`; 0 when nobody has told it to come.
    wanted
        All subscriptions that a client which begins anew still has, with their revisions. One
        that does not say, or has never begun anew, has ended nothing that a home does not know.
    """

    received: tuple[tuple[str, int], ...]
    epoch: int = since(2, 0)
    moved_ns: int = since(2, 0)
    wanted: tuple[tuple[str, int], ...] | None = since(2, None)


@encodable(171, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Connected:
    """The new home serves the client.

    Attributes
    ----------
    received
        Up to which number each subscription counts as received here; those that are not
        named begin with 1.
    """

    received: tuple[tuple[str, int], ...]


@encodable(172, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Redirect:
    """`redirect`: something for a client that still came to its old home.

    Attributes
    ----------
    number
        Counts what is redirected for the client from 1; hops do not keep order.
    parcel
        What it is, encoded.
    cell, publisher, series, place
        Where it stands among what its publisher has published; `place` is 0 when that is
        not known any more.
    registration, published_ns
        For which generation of the subscription it came, and when it was published: a change
        that the client has asked for since may be known to the new home alone. Empty if it came
        before the client left.
    """

    client: str
    number: int
    subscription: str
    parcel: bytes
    cell: int
    publisher: int
    series: int
    place: int
    registration: str = since(2, "")
    published_ns: int = since(2, 0)


@encodable(173, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Arrived:
    """The subscriptions of a client are registered everywhere under its new home.

    Attributes
    ----------
    moved_ns
        By which move, as in `MoveNow`.
    connected
        Whether the client has come itself.
    """

    client: str
    moved_ns: int = since(2, 0)
    connected: bool = since(2, False)


@encodable(174, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RedirectEnd:
    """Nothing more is redirected for a client than this many.

    Attributes
    ----------
    moved_ns
        In which move, as in `MoveNow`.
    """

    client: str
    count: int
    moved_ns: int = since(2, 0)


_RECORDS: dict[str, type] = {
    "advertisements": ClientAdvertisements,
    "deliveries": ClientDeliveries,
    "publishing": ClientPublications,
    "subscriptions": ClientSubscriptions,
}

# Bytes per second: the largest content there is, a billion times.
_TRAFFIC_MAX = 1e24
# A client must not bring its home to pass on numbers that are too large.
_RECEIVED_MAX = NUMBER_MAX // 2


Place = tuple[int, int, int, int]
"""Where an item stands: cell, publisher, series and number."""


def blobs_in(
    deliveries: ClientDeliveries, publications: ClientPublications
) -> Iterator[Blob | None]:
    """Go through all content that a client takes along, as often as something refers to it."""
    for *_, waiting in deliveries.queues:
        yield from (queued.blob for queued in waiting)
    yield from (kept.blob for kept in publications.kept)


def _check_prices(message: RegisterClient | Replicate, rules: Rules) -> None:
    """Refuse prices that are none."""
    rules.amounts(price for _, price in message.prices)


def _check_summarize(message: Summarize, rules: Rules) -> None:
    """Refuse what no clients publish, want and pay."""
    rules.cells(message.interests)
    _check_rates(message.publishes, rules)
    rules.amounts(price for _, price in message.prices)


def _check_reserve(message: Reserve, rules: Rules) -> None:
    """Refuse traffic that nobody has."""
    check_client(message, rules)
    rules.amounts((message.traffic,), _TRAFFIC_MAX)


def _check_reserved(message: Reserved, rules: Rules) -> None:
    """Refuse a reason that is none."""
    check_client(message, rules)
    if message.refusal and message.refusal not in REFUSALS:
        raise PeerMisbehaved(f"{quoted(message.refusal)} is no reason to refuse a client")


def _check_redirect(message: Redirect, rules: Rules) -> None:
    """Refuse what is not for the client."""
    parcel = decode(message.parcel)
    if not isinstance(parcel, Queued):
        raise PeerMisbehaved(f"a redirected {type(parcel).__name__}")
    check_client(message, rules)
    _check_owners((parcel.client,), message.client)
    _check_queued(parcel, message.subscription, rules)
    rules.numbers((message.number, message.publisher, message.place))
    rules.cells((message.cell,))
    rules.times((message.series, message.published_ns))


def _check_arrived(message: Arrived, rules: Rules) -> None:
    """Refuse a time that is none."""
    check_client(message, rules)
    rules.times((message.moved_ns,))


def _check_redirect_end(message: RedirectEnd, rules: Rules) -> None:
    """Refuse that a number of parcels is none."""
    check_client(message, rules)
    rules.numbers((message.count,))
    rules.times((message.moved_ns,))


def _check_connect(message: Connect, rules: Rules) -> None:
    """Refuse that more was received than anybody can send."""
    rules.numbers((number for _, number in message.received), _RECEIVED_MAX)
    rules.numbers((message.epoch, *(revision for _, revision in message.wanted or ())))


def _check_replicate(message: Replicate, rules: Rules) -> None:
    """Refuse a client of which something is missing, or belongs to another."""
    check_client(message, rules)
    _check_prices(message, rules)
    _check_rates(message.rates, rules)
    records = {name: decode(data) for name, data in message.parts}
    if {name: type(record) for name, record in records.items()} != _RECORDS:
        raise PeerMisbehaved("a client was replicated in part")
    _check_owners((record.client for record in records.values()), message.client)
    _check_publications(records["publishing"], rules)
    _check_deliveries(records["deliveries"], rules)
    _check_subscriptions(records["subscriptions"], rules)
    advertisements = records["advertisements"].advertisements
    _check_owners((record.client for record in advertisements), message.client)
    for record in advertisements:
        rules.cells(cell for cell, _ in record.rates)
        # Clients say what they like.
        rules.amounts((rate for _, rate in record.rates), sys.float_info.max)


def _check_rates(rates: Iterable[tuple[int, float]], rules: Rules) -> None:
    """Refuse what nobody publishes in a second."""
    for cell, rate in rates:
        rules.cells((cell,))
        rules.amounts((rate,), _TRAFFIC_MAX)


def _check_owners(owners: Iterable[str], client: str) -> None:
    if any(owner != client for owner in owners):
        raise PeerMisbehaved(f"{quoted(client)} was sent others' belongings")


def _check_queued(queued: Queued, subscription: str, rules: Rules) -> None:
    if queued.subscription != subscription or not is_scoped(subscription, queued.client):
        raise PeerMisbehaved(f"something for {quoted(queued.subscription)} among what is another's")
    rules.numbers((queued.number,))
    if queued.blob is not None:
        check_blob(queued.blob)


def _check_deliveries(record: ClientDeliveries, rules: Rules) -> None:
    for subscription, last, acknowledged, waiting in record.queues:
        if not is_scoped(subscription, record.client):
            raise PeerMisbehaved(f"{quoted(subscription)} among what is {quoted(record.client)}'s")
        rules.numbers((last, acknowledged))
        _check_owners((queued.client for queued in waiting), record.client)
        for queued in waiting:
            _check_queued(queued, subscription, rules)
    tenant = tenant_of(record.client)
    _check_owners((one.identity.tenant for one in record.finished), tenant)
    for finished in record.finished:
        rules.cells((finished.cell,))
        rules.times((finished.series,))
        rules.numbers((finished.publisher, finished.number, finished.attempt))


def _check_subscriptions(record: ClientSubscriptions, rules: Rules) -> None:
    _check_owners((kept.client for kept in record.subscriptions), record.client)
    for kept in record.subscriptions:
        read(kept.text)
        rules.numbers((kept.version, kept.revision, kept.generation, kept.epoch))
        rules.times((kept.since_ns, kept.until_ns, kept.claim))
    _check_owners((notice.client for notice in record.notices), record.client)
    for notice in record.notices:
        rules.numbers((notice.count, notice.first, notice.last, notice.epoch))
        rules.times((notice.ended_ns,))


def _check_publications(record: ClientPublications, rules: Rules) -> None:
    for part in (record.counts, record.kept, record.remembered, record.sessions):
        _check_owners((one.client for one in part), record.client)
    for count in record.counts:
        rules.cells((count.cell,))
        rules.times((count.series,))
        rules.numbers((count.last,))
    _check_owners((kept.item.tenant for kept in record.kept), tenant_of(record.client))
    rules.numbers(session.last for session in record.sessions)
    rules.numbers(remembered.number for remembered in record.remembered)
    counted = {(count.session, count.cell) for count in record.counts}
    for kept in record.kept:
        rules.numbers((kept.number,))
        check_item(kept.item, rules)
        check_item_blob(kept.item, kept.blob)
        rules.brokers(home for home, _ in kept.served)
        if kept.settled_by is not None:
            rules.brokers((kept.settled_by,))
        if (kept.session, kept.item.cell) not in counted:
            raise PeerMisbehaved("a publication in a series that is not there")


def _check_move_order(message: OrderMove, rules: Rules) -> None:
    rules.brokers((message.target,))


CHECKS: Mapping[type, Check] = {
    OrderMove: _check_move_order,
    RegisterClient: _check_prices,
    Summarize: _check_summarize,
    Reserve: _check_reserve,
    Reserved: _check_reserved,
    Release: check_client,
    Replicate: _check_replicate,
    Replicated: check_client,
    Redirect: _check_redirect,
    RedirectEnd: _check_redirect_end,
    Arrived: _check_arrived,
    Connect: _check_connect,
}
"""What must hold of messages beyond the types of their fields."""
