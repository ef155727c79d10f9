"""Listing: what clients are told of how their subscriptions stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from distributary.broker.client import SubscriptionsListed, SubscriptionStatus
from distributary.broker.encoding import MESSAGE_BYTES_MAX
from distributary.broker.subscriptions.subscription import LocalSubscription

__all__ = ["NOTHING_QUEUED", "Depth", "listed", "status_of"]

# More than all but the id of a status takes, and than all of a message but what it lists.
_STATUS_BYTES = 96
_MESSAGE_BYTES = 64


class Depth(NamedTuple):
    """How much waits in a queue; the fields are those of `client.SubscriptionStatus`."""

    waiting: int
    waiting_bytes: int
    acknowledged: int
    last: int
    oldest_s: float


NOTHING_QUEUED = Depth(0, 0, 0, 0, 0.0)


def status_of(local: LocalSubscription, depth: Depth) -> SubscriptionStatus:
    """Return how a subscription stands, in its client's words."""
    state = local.state.name.lower()
    own = local.subscription.id
    return SubscriptionStatus(own, local.revision, state, local.confirmed, *depth)


def listed(request: int, standing: Iterable[SubscriptionStatus]) -> list[SubscriptionsListed]:
    """Return the answer to a client, in as many parts as it takes; one when there is nothing."""
    parts: list[list[SubscriptionStatus]] = [[]]
    room = MESSAGE_BYTES_MAX - _MESSAGE_BYTES
    left = room
    for status in standing:
        size = _STATUS_BYTES + len(status.id.encode())
        if size > left:
            parts.append([])
            left = room
        parts[-1].append(status)
        left -= size
    return [
        SubscriptionsListed(request, number, len(parts), tuple(part))
        for number, part in enumerate(parts, 1)
    ]
