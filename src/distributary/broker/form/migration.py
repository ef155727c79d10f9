"""The form of what is said about clients that move."""

from __future__ import annotations

from distributary.broker.addresses import is_client
from distributary.broker.deliveries.deliveries import ClientDeliveries
from distributary.broker.deliveries.queue import Queued
from distributary.broker.encoding import decode
from distributary.broker.form.content import check_item
from distributary.broker.form.rules import Rules
from distributary.broker.messages.migration import (
    Redirect,
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
from distributary.broker.subscriptions.reading import read
from distributary.broker.subscriptions.subscriptions import ClientSubscriptions
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "check_client",
    "check_prices",
    "check_redirect",
    "check_replicate",
    "check_summarize",
]

_RECORDS: dict[str, type] = {
    "advertisements": ClientAdvertisements,
    "deliveries": ClientDeliveries,
    "publishing": ClientPublications,
    "subscriptions": ClientSubscriptions,
}


def check_prices(message: RegisterClient | Replicate, rules: Rules) -> None:
    """Refuse prices that are none."""
    rules.amounts(price for _, price in message.prices)


def check_summarize(message: Summarize, rules: Rules) -> None:
    """Refuse what no clients publish, want and pay."""
    rules.cells(message.interests)
    rules.cells(cell for cell, _ in message.publishes)
    rules.amounts(rate for _, rate in message.publishes)
    rules.amounts(price for _, price in message.prices)


def check_redirect(message: Redirect, rules: Rules) -> None:
    """Refuse what is not for a client."""
    parcel = decode(message.parcel)
    if not isinstance(parcel, Queued):
        raise PeerMisbehaved(f"a redirected {type(parcel).__name__}")
    check_client(message, rules)


def check_client(
    message: Reserve | Reserved | Release | Replicate | Replicated | Redirect, rules: Rules
) -> None:
    """Refuse to hear of a client that is none."""
    if not is_client(message.client):
        raise PeerMisbehaved(f"{quoted(message.client)} is not a client")


def check_replicate(message: Replicate, rules: Rules) -> None:
    """Refuse a client of which something is missing, or belongs to another."""
    check_client(message, rules)
    check_prices(message, rules)
    records = {name: decode(data) for name, data in message.parts}
    if {name: type(record) for name, record in records.items()} != _RECORDS:
        raise PeerMisbehaved("a client was replicated in part")
    if any(record.client != message.client for record in records.values()):
        raise PeerMisbehaved(f"{quoted(message.client)} was replicated with others' belongings")
    _check_publications(records["publishing"], rules)
    for record in records["subscriptions"].subscriptions:
        read(record.text)
    for record in records["advertisements"].advertisements:
        rules.cells(cell for cell, _ in record.rates)
        rules.amounts(rate for _, rate in record.rates)


def _check_publications(record: ClientPublications, rules: Rules) -> None:
    counted = {(count.source, count.cell) for count in record.counts}
    for kept in record.kept:
        check_item(kept.item, rules)
        if (kept.item.source, kept.item.cell) not in counted:
            raise PeerMisbehaved("a publication in a series that is not there")
