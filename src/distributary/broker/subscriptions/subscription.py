"""Reading subscriptions: JSON from clients, and the same texts again from peers and disks.

What a text means is worked out once; brokers that share a process share the result.

One subscription at its home broker, and the states it passes through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from distributary.broker.addresses import CLIENT_SIGN, Address
from distributary.broker.core import Transitions
from distributary.broker.encoding import cached_by_text, since, wire
from distributary.broker.settings import ns
from distributary.broker.timers import Timer
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
    "subscription_of",
]

_REMEMBERED_MAX = 65_536
# Between the number of a generation and the id that brokers use, which begins with digits.
_GENERATION = "+"


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


@cached_by_text(_REMEMBERED_MAX)
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


@cached_by_text(_REMEMBERED_MAX)
def filter_of(filters: str) -> Filter:
    """Return the filter that a text of JSON says.

    Raises
    ------
    BadInput
        When it says none.
    """
    return Filter.parse(parse_document(filters))


@cached_by_text(_REMEMBERED_MAX)
def cells_of(filters: str, space: ContentSpace) -> tuple[int, ...]:
    """Return the cells in which a filter can match."""
    return tuple(int(cell) for cell in cells(filter_of(filters), space))


@cached_by_text(_REMEMBERED_MAX)
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
    """Return what its client calls a subscription that brokers or roots call so."""
    digits, _, rest = scoped.partition(CLIENT_SIGN)
    return rest[int(digits.rpartition(_GENERATION)[2]) - 1 :]


@lru_cache(maxsize=16_384)
def subscription_of(registration: str) -> str:
    """Return what brokers call the subscription that roots call so, in any generation."""
    number, sign, scoped = registration.partition(_GENERATION)
    return scoped if sign and number.isdigit() else registration


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
    coverer: str | None
    claim: int
    revision: int
    generation: int
    until_ns: int
    epoch: int = since(2, 0)
    vouched: tuple[tuple[tuple[str, int], tuple[int, ...]], ...] = since(2, ())


class LocalSubscription:
    """A subscription of a client of this broker, or one generation of it.

    Whoever changes its filter or its device has two generations for a while, each with a
    registration of its own: what was published before is owed by the older one.

    Attributes
    ----------
    client
        Whose it is.
    id
        What brokers call it; `subscription.id` is what its client does.
    registration
        What roots call it; other than the id where it has been changed.
    text, revision
        What the client sent, and the number that it has given that.
    version
        Orders what is said about its registration.
    since_ns
        From when on publications are owed: when it was confirmed to its client, or asked for
        while it has not been.
    confirmed
        Whether it has been.
    until_ns
        Up to when publications are owed, if it has been changed; 0 if it has not.
    coverer
        What roots call the subscription in whose registration it is included, or was until its
        own is confirmed.
    claim
        As in `messages.subscriptions.Register`.
    epoch
        As in `client.Subscribe`.
    vouched
        Who had vouched for it when it was confirmed, and from when on, by cell, as in `Register`.
    watch
        When it is looked at whether it has expired, or is needed no more.
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
        "epoch",
        "generation",
        "id",
        "registration",
        "revision",
        "since_ns",
        "state",
        "text",
        "until_ns",
        "version",
        "vouched",
        "watch",
    )

    def __init__(
        self,
        client: Address,
        text: str,
        *,
        version: int,
        now_ns: int,
        revision: int = 0,
        generation: int = 0,
        claim: int | None = None,
        epoch: int = 0,
    ) -> None:
        self.client = client
        self.text = text
        self._reading = read(text)
        self.id = scoped_id(client, self._reading.subscription.id)
        self.registration = f"{generation}{_GENERATION}{self.id}" if generation else self.id
        self.revision = revision
        self.generation = generation
        self.epoch = epoch
        self.version = version
        self.state = TRANSITIONS.initial
        self.since_ns = now_ns
        self.until_ns = 0
        self.confirmed = False
        self.coverer: str | None = None
        self.claim = now_ns if claim is None else claim
        self.cells: tuple[int, ...] = ()
        self.cell_mask = 0
        self.vouched: dict[int, tuple[str, int]] = {}
        self.watch: Timer | None = None

    @classmethod
    def from_record(cls, record: SubscriptionRecord) -> LocalSubscription:
        """Return a subscription as it was kept."""
        local = cls.moved(record, record.version)
        local.state = State(record.state)
        local.coverer = record.coverer
        local.claim = record.claim
        local.vouched = {c: who for who, cells in record.vouched for c in cells}
        return local

    @classmethod
    def moved(cls, record: SubscriptionRecord, version: int) -> LocalSubscription:
        """Return a subscription that was kept elsewhere, and is to be registered from here."""
        local = cls(
            record.client,
            record.text,
            version=version,
            now_ns=record.since_ns,
            revision=record.revision,
            generation=record.generation,
            epoch=record.epoch,
        )
        local.confirmed = record.confirmed
        local.until_ns = record.until_ns
        local.claim = record.claim - 1
        return local

    def record(self) -> SubscriptionRecord:
        """Return it as it is kept."""
        by_root: dict[tuple[str, int], list[int]] = {}
        for cell, who in sorted(self.vouched.items()):
            by_root.setdefault(who, []).append(cell)
        return SubscriptionRecord(
            self.client,
            self.text,
            self.version,
            self.state.value,
            self.since_ns,
            self.confirmed,
            self.coverer,
            self.claim,
            self.revision,
            self.generation,
            self.until_ns,
            self.epoch,
            tuple((who, tuple(cells)) for who, cells in by_root.items()),
        )

    def vouched_in(self, cells: Iterable[int]) -> tuple[tuple[str, int], ...]:
        """Return who had vouched for any of some cells, and from when on."""
        return tuple(sorted({self.vouched[cell] for cell in cells if cell in self.vouched}))

    def owes(self, published_ns: int, skew_ns: int) -> bool:
        """Whether what was published at a time counts, as far as clocks can tell.

        Clocks that differ count at its beginning, and not at its end. A root that was away may
        know what a subscription was before a change, and not yet what it is now: it sends item 5
        for the old generation, and item 4, which only the new one asks for, behind it. Were 5
        taken though it was published after the change, 4 would be owed all the same, and late.
        """
        if self.since_ns > published_ns + skew_ns:
            return False
        return self.until_ns == 0 or published_ns < self.until_ns

    def may_follow(self, published_ns: int) -> bool:
        """Whether clocks leave open if it or what was published at a time came first."""
        return self.since_ns > published_ns

    @property
    def expires_ns(self) -> int | None:
        """When it ends by itself, if its client has said so."""
        config = self.subscription.config
        return None if config is None or config.expires_s is None else ns(config.expires_s)

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

    def replace_text(self, text: str, revision: int) -> None:
        """Put another text in place, which differs in nothing that roots are told."""
        self.text = text
        self.revision = revision
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
