"""Reading subscriptions: JSON from clients, and the same texts again from peers and disks.

What a text means is worked out once; brokers that share a process share the result.

One subscription at its home broker, and the states it passes through.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from distributary.broker.addresses import CLIENT_SIGN, Address
from distributary.broker.encoding import wire
from distributary.broker.transitions import Transitions
from distributary.content import ContentSpace, Subscription
from distributary.content.documents import parse_document
from distributary.errors import BadInput
from distributary.filters import Filter, cells
from distributary.filters.index import ID_CHARACTERS_MAX

__all__ = [
    "TRANSITIONS",
    "Event",
    "LocalSubscription",
    "Reading",
    "State",
    "SubscriptionRecord",
    "cell_mask_of",
    "cells_of",
    "filter_of",
    "is_scoped",
    "own_id",
    "read",
    "scoped_id",
]

_REMEMBERED_MAX = 65_536


@dataclass(frozen=True)
class Reading:
    """A subscription with everything that follows from its text.

    Attributes
    ----------
    subscription, filter
        What it says.
    filters, profile
        JSON, equal for equal ones.
    """

    subscription: Subscription
    filter: Filter
    filters: str
    profile: str | None


@lru_cache(maxsize=_REMEMBERED_MAX)
def read(text: str) -> Reading:
    """Return the subscription in a client's text.

    Raises
    ------
    BadInput
        When it is not JSON, or breaks the rules.
    """
    subscription = Subscription.parse(parse_document(text))
    if len(subscription.id) > ID_CHARACTERS_MAX:
        raise BadInput("id", f"has more than {ID_CHARACTERS_MAX:,} characters")
    Filter.parse(list(subscription.filters))
    filters = _written(list(subscription.filters))
    profile = subscription.profile
    return Reading(
        subscription,
        filter_of(filters),
        filters,
        None if profile is None else _written(profile.document()),
    )


@lru_cache(maxsize=_REMEMBERED_MAX)
def filter_of(filters: str) -> Filter:
    """Return the filter that a text of JSON says.

    Raises
    ------
    BadInput
        When it says none.
    """
    return Filter.parse(parse_document(filters))


@lru_cache(maxsize=_REMEMBERED_MAX)
def cells_of(filters: str, space: ContentSpace) -> tuple[int, ...]:
    """Return the cells in which a filter can match."""
    return tuple(int(cell) for cell in cells(filter_of(filters), space))


@lru_cache(maxsize=_REMEMBERED_MAX)
def cell_mask_of(filters: str, space: ContentSpace) -> int:
    """Return the cells in which a filter can match, as the bits of a number."""
    return sum(1 << cell for cell in cells_of(filters, space))


def scoped_id(client: Address, own: str) -> str:
    """Return what brokers call a subscription, unlike that of any other client.

    The length comes first because both texts are clients' own: no sign would set them apart.
    """
    return f"{len(client)}{client}{own}"


def is_scoped(text: str, client: Address) -> bool:
    """Whether brokers may call a subscription of a client so."""
    return text.startswith(scoped_id(client, ""))


def own_id(scoped: str) -> str:
    """Return what its client calls a subscription that brokers call so."""
    digits, _, rest = scoped.partition(CLIENT_SIGN)
    return rest[int(digits) - 1 :]


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class State(Enum):
    """How far a subscription is registered."""

    REGISTERING = auto()
    REGISTERED = auto()
    COVERED = auto()
    ENDING = auto()
    ENDED = auto()


class Event(Enum):
    """What can happen to a subscription."""

    CONFIRMED = auto()
    COVERED = auto()
    UNCOVERED = auto()
    ENDED = auto()
    RELEASED = auto()


# A subscription is registered in all its cells, unless one that is registered already covers
# it: then nothing is sent, and it is as good as registered. When the one that covers ends,
# those it covered are registered first. Until all of them are confirmed it is ending: its
# client gets nothing more, and its registration stays for the others. Then it is withdrawn.
TRANSITIONS: Transitions[State, Event] = Transitions(
    "subscription",
    State.REGISTERING,
    {
        (State.REGISTERING, Event.CONFIRMED): State.REGISTERED,
        (State.REGISTERING, Event.COVERED): State.COVERED,
        (State.REGISTERING, Event.ENDED): State.ENDING,
        (State.REGISTERED, Event.ENDED): State.ENDING,
        (State.COVERED, Event.UNCOVERED): State.REGISTERING,
        (State.COVERED, Event.ENDED): State.ENDED,
        (State.ENDING, Event.RELEASED): State.ENDED,
    },
)


@wire(540)
@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A subscription as it is kept; `text` is what its client sent."""

    client: str
    text: str
    version: int
    state: int
    since_ns: int
    confirmed: bool
    expires_ns: int
    coverer: str | None
    claim: int


class LocalSubscription:
    """A subscription of a client of this broker.

    Attributes
    ----------
    client
        Whose it is.
    id
        What brokers call it; `subscription.id` is what its client does.
    text
        What the client sent.
    version
        Orders what is said about its registration.
    since_ns
        From when on publications are owed: when it was confirmed to its client, or asked for
        while it has not been.
    confirmed
        Whether it has been.
    expires_ns
        When it ends unless the client renews it.
    coverer
        The id of the subscription in whose registration it is included, or was until its
        own is confirmed.
    claim
        As in `messages.subscriptions.Register`.
    cells, cell_mask
        Where it is registered, or would be: in order, and as bits.
    """

    __slots__ = (
        "_reading",
        "cell_mask",
        "cells",
        "claim",
        "client",
        "confirmed",
        "coverer",
        "expires_ns",
        "id",
        "since_ns",
        "state",
        "text",
        "version",
    )

    def __init__(
        self, client: Address, text: str, *, version: int, now_ns: int, expires_ns: int
    ) -> None:
        self.client = client
        self.text = text
        self._reading = read(text)
        self.id = scoped_id(client, self._reading.subscription.id)
        self.version = version
        self.state = TRANSITIONS.initial
        self.since_ns = now_ns
        self.confirmed = False
        self.expires_ns = expires_ns
        self.coverer: str | None = None
        self.claim = now_ns
        self.cells: tuple[int, ...] = ()
        self.cell_mask = 0

    @classmethod
    def from_record(cls, record: SubscriptionRecord) -> LocalSubscription:
        """Return a subscription as it was kept."""
        local = cls(
            record.client,
            record.text,
            version=record.version,
            now_ns=record.since_ns,
            expires_ns=record.expires_ns,
        )
        local.state = State(record.state)
        local.confirmed = record.confirmed
        local.coverer = record.coverer
        local.claim = record.claim
        return local

    def record(self) -> SubscriptionRecord:
        """Return it as it is kept."""
        return SubscriptionRecord(
            self.client,
            self.text,
            self.version,
            self.state.value,
            self.since_ns,
            self.confirmed,
            self.expires_ns,
            self.coverer,
            self.claim,
        )

    @property
    def subscription(self) -> Subscription:
        """What the client asked for."""
        return self._reading.subscription

    @property
    def filter(self) -> Filter:
        """What it asks for, compiled."""
        return self._reading.filter

    @property
    def reading(self) -> Reading:
        """Everything that follows from its text."""
        return self._reading

    def replace_text(self, text: str) -> None:
        """Put another text in place, which differs in nothing that roots are told."""
        self.text = text
        self._reading = read(text)

    @property
    def live(self) -> bool:
        """Whether its client still gets something."""
        return self.state is not State.ENDING and self.state is not State.ENDED

    @property
    def forwarded(self) -> bool:
        """Whether it has a registration of its own, or is getting one."""
        return self.state is not State.COVERED and self.state is not State.ENDED

    def step(self, event: Event) -> bool:
        """Change its state; False when the event means nothing to it."""
        following = TRANSITIONS.step(self.state, event)
        if following is None:
            return False
        self.state = following
        return True
