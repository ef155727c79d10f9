"""The form of what is said about clients that move."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from distributary.broker.addresses import is_client, tenant_of
from distributary.broker.content.messages import check_blob
from distributary.broker.deliveries.deliveries import ClientDeliveries
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.validation import check_item, check_item_blob
from distributary.broker.encoding import decode
from distributary.broker.host import OrderMove
from distributary.broker.migration.messages import (
    REFUSALS,
    Arrived,
    Connect,
    Redirect,
    RedirectEnd,
    RegisterClient,
    Release,
    Replicate,
    Replicated,
    Reserve,
    Reserved,
    Summarize,
)
from distributary.broker.publishing.publishing import ClientPublications
from distributary.broker.rendezvous.advertisements import ClientAdvertisements
from distributary.broker.subscriptions.subscription import is_scoped, read
from distributary.broker.subscriptions.subscriptions import ClientSubscriptions
from distributary.broker.validation import NUMBER_MAX, Check, Rules
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
]

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
    _check_client(message, rules)
    rules.amounts((message.traffic,), _TRAFFIC_MAX)


def _check_reserved(message: Reserved, rules: Rules) -> None:
    """Refuse a reason that is none."""
    _check_client(message, rules)
    if message.refusal and message.refusal not in REFUSALS:
        raise PeerMisbehaved(f"{quoted(message.refusal)} is no reason to refuse a client")


def _check_redirect(message: Redirect, rules: Rules) -> None:
    """Refuse what is not for the client."""
    parcel = decode(message.parcel)
    if not isinstance(parcel, Queued):
        raise PeerMisbehaved(f"a redirected {type(parcel).__name__}")
    _check_client(message, rules)
    _check_owners((parcel.client,), message.client)
    _check_queued(parcel, message.subscription, rules)
    rules.numbers((message.number, message.publisher, message.place))
    rules.cells((message.cell,))
    rules.times((message.series, message.published_ns))


def _check_redirect_end(message: RedirectEnd, rules: Rules) -> None:
    """Refuse that a number of parcels is none."""
    _check_client(message, rules)
    rules.numbers((message.count,))


def _check_connect(message: Connect, rules: Rules) -> None:
    """Refuse that more was received than anybody can send."""
    rules.numbers((number for _, number in message.received), _RECEIVED_MAX)
    rules.numbers((message.epoch,))


def _check_client(
    message: (
        Reserve | Reserved | Release | Replicate | Replicated | Redirect | RedirectEnd | Arrived
    ),
    rules: Rules,
) -> None:
    """Refuse to hear of a client that is none."""
    if not is_client(message.client):
        raise PeerMisbehaved(f"{quoted(message.client)} is not a client")


def _check_replicate(message: Replicate, rules: Rules) -> None:
    """Refuse a client of which something is missing, or belongs to another."""
    _check_client(message, rules)
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
        rules.numbers((notice.count, notice.first, notice.last))
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
    Release: _check_client,
    Replicate: _check_replicate,
    Replicated: _check_client,
    Redirect: _check_redirect,
    RedirectEnd: _check_redirect_end,
    Arrived: _check_client,
    Connect: _check_connect,
}
"""What must hold of messages beyond the types of their fields."""
