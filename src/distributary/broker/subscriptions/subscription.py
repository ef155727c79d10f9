"""Reading subscriptions: JSON from clients, and the same texts again from peers and disks.

What a text means is worked out once; brokers that share a process share the result.

One subscription at its home broker, and the states it passes through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from distributary.broker.addresses import CLIENT_SIGN, Address, tenant_of
from distributary.broker.core import Transitions
from distributary.broker.encoding import cached_by_text, encodable, journal_key, since
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.broker.timers import Timer
from distributary.content import ContentSpace, Publication, Subscription
from distributary.content.documents import parse_document
from distributary.errors import BadInput
from distributary.filters import Filter, Index, cells, covers
from distributary.filters.index import ID_CHARACTERS_MAX

if TYPE_CHECKING:
    from distributary.content.reading import PublicationView

__all__ = [
    "INDEXED_MIN",
    "TRANSITIONS",
    "Covering",
    "Ledger",
    "LocalSubscription",
    "Matcher",
    "Reading",
    "SubscriptionEvent",
    "SubscriptionRecord",
    "SubscriptionState",
    "VersionRecord",
    "WithdrawalRecord",
    "cells_of",
    "filter_of",
    "is_scoped",
    "own_id",
    "read",
    "scoped_id",
    "subscription_of",
    "superseded",
    "superseded_in",
]


_REMEMBERED_MAX = 65_536
# Between the number of a generation and the id that brokers use, which begins with digits.
_GENERATION = "+"
# Between the claim of a registration that is superseded and what roots call it else.
_SUPERSEDED = "-"
_CLAIM_DIGITS_MAX = 19


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


def superseded(registration: str, claim: int) -> str:
    """Return what a root calls a registration whose client has begun anew at another home.

    What the client wants there goes by the same name, and may be something else. So those that the
    registration covers, whose clients are still here, are served under a name that only they
    answer to. It has the claim in it: what is said late of an earlier one does not end a later one.
    """
    return f"{claim}{_SUPERSEDED}{registration}"


def superseded_in(name: str) -> tuple[str, int] | None:
    """Return the registration and its claim if a name is one of `superseded`."""
    digits, sign, registration = name.partition(_SUPERSEDED)
    is_claim = sign and digits.isdecimal() and len(digits) <= _CLAIM_DIGITS_MAX
    return (registration, int(digits)) if is_claim else None


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class SubscriptionState(Enum):
    """How far a subscription is registered."""

    REGISTERING = auto()
    REGISTERED = auto()
    COVERED = auto()
    ENDING = auto()
    ENDED = auto()


class SubscriptionEvent(Enum):
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
TRANSITIONS: Transitions[SubscriptionState, SubscriptionEvent] = Transitions(
    "subscription",
    SubscriptionState.REGISTERING,
    {
        (SubscriptionState.REGISTERING, SubscriptionEvent.CONFIRMED): SubscriptionState.REGISTERED,
        (SubscriptionState.REGISTERING, SubscriptionEvent.COVERED): SubscriptionState.COVERED,
        (SubscriptionState.REGISTERING, SubscriptionEvent.ENDED): SubscriptionState.ENDING,
        (SubscriptionState.REGISTERED, SubscriptionEvent.ENDED): SubscriptionState.ENDING,
        (SubscriptionState.COVERED, SubscriptionEvent.UNCOVERED): SubscriptionState.REGISTERING,
        (SubscriptionState.COVERED, SubscriptionEvent.ENDED): SubscriptionState.ENDED,
        (SubscriptionState.ENDING, SubscriptionEvent.RELEASED): SubscriptionState.ENDED,
    },
)


@encodable(540)
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
        local.state = SubscriptionState(record.state)
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

    def may_follow(self, published_ns: int, skew_ns: int) -> bool:
        """Whether clocks leave open if it or what was published at a time came first."""
        return self.since_ns + skew_ns > published_ns

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
        return (
            self.state is not SubscriptionState.ENDING and self.state is not SubscriptionState.ENDED
        )

    @property
    def forwarded(self) -> bool:
        """Whether it has a registration of its own, or is getting one."""
        return (
            self.state is not SubscriptionState.COVERED
            and self.state is not SubscriptionState.ENDED
        )

    def step(self, event: SubscriptionEvent) -> bool:
        """Change its state; False when the event means nothing to it."""
        following = TRANSITIONS.step(self.state, event)
        if following is None:
            return False
        self.state = following
        return True


# Matching: which of some filters does a publication pass?
#
# An index costs about a tenth of a millisecond to ask and a fifteenth of one for every filter
# it is built of; asking one filter after the other costs half a microsecond each. Most brokers
# have a handful. The answer is the same either way.
#
# Covering: a subscription included in another's registration needs none of its own.
#
# What matches the narrower one matches the wider one, is sent to the same broker and, as both
# devices are alike, in the same format. Roots do not look at how large a tolerance is, only at
# whether there is one.

INDEXED_MIN = 256
"""From how many filters on an index is quicker; measured."""

_Key = TypeVar("_Key", str, tuple[str, str])


class Matcher(Generic[_Key]):
    """Filters by key, and which of them a publication passes.

    Parameters
    ----------
    indexed_min
        From how many filters on an index is used.
    """

    def __init__(self, *, indexed_min: int = INDEXED_MIN) -> None:
        self._indexed_min = indexed_min
        self._filters: dict[_Key, Filter] = {}
        self._index: Index | None = None
        # Keys are numbered for the index, which is told of changes when it is asked next.
        self._numbers: dict[_Key, str] = {}
        self._keys: dict[str, _Key] = {}
        self._changed: dict[_Key, None] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._filters)

    def put(self, key: _Key, filter_: Filter) -> None:
        """Add a filter, in place of the one with that key if there is one."""
        self._filters[key] = filter_
        if self._index is not None:
            self._changed[key] = None

    def discard(self, key: _Key) -> None:
        """Remove a filter, if it is there."""
        if self._filters.pop(key, None) is not None and self._index is not None:
            self._changed[key] = None

    def match(self, publication: PublicationView) -> list[_Key]:
        """Return the keys of the filters that a publication passes, in order."""
        if len(self._filters) < self._indexed_min:
            self._index = None
            # Filters of the same text are the same object, and many clients ask for the same.
            tested: dict[int, bool] = {}
            passed: list[_Key] = []
            for key, filter_ in self._filters.items():
                found = tested.get(id(filter_))
                if found is None:
                    found = tested[id(filter_)] = filter_.matches(publication)
                if found:
                    passed.append(key)
            passed.sort()
            return passed
        return sorted(self._keys[number] for number in self._current().match(publication))

    def _current(self) -> Index:
        if self._index is None:
            self._index = Index()
            self._numbers.clear()
            self._keys.clear()
            self._changed = dict.fromkeys(self._filters)
        added: list[tuple[str, Filter]] = []
        for key in self._changed:
            number = self._numbers.pop(key, None)
            if number is not None:
                self._index.remove(number)
                del self._keys[number]
            filter_ = self._filters.get(key)
            if filter_ is not None:
                self._count += 1
                number = self._numbers[key] = str(self._count)
                self._keys[number] = key
                added.append((number, filter_))
        self._changed = {}
        if added:
            self._index.add_all(added)
        return self._index


# Telling takes a tenth of a millisecond for each pair, and a registration too many is no loss
# but of memory: only so many are tried.
_TRIED_MAX = 16

_Alike = tuple[str, str | None, bool]


class Covering:
    """Which subscriptions have registrations, and which are included in those."""

    def __init__(self) -> None:
        self._wide: dict[_Alike, dict[str, LocalSubscription]] = {}
        self._covered: dict[str, set[str]] = {}

    def find(
        self, narrow: LocalSubscription, arrives: Callable[[Address], bool] = lambda _: False
    ) -> LocalSubscription | None:
        """Return a registered subscription that covers another one, if there is any.

        It has been registered at least as long: whatever is owed to the narrower one, and may
        still be on its way, was sent on account of it too. Not one whose client `arrives`: roots
        serve its old home until that withdraws, and nothing is sent here on account of it.
        """
        tried = 0
        for wide in self._wide.get(_alike(narrow), {}).values():
            if (
                wide.id == narrow.id
                or wide.since_ns > narrow.since_ns
                or narrow.cell_mask & ~wide.cell_mask
                or arrives(wide.client)
            ):
                continue
            if tried == _TRIED_MAX:
                return None
            tried += 1
            if _covers(wide.reading.filters, narrow.reading.filters):
                return wide
        return None

    def changed(self, local: LocalSubscription) -> None:
        """Note a subscription's state, whenever it has changed."""
        alike = self._wide.setdefault(_alike(local), {})
        # One that has been changed is withdrawn before long.
        if local.state is SubscriptionState.REGISTERED and not local.until_ns:
            alike[local.registration] = local
        else:
            alike.pop(local.registration, None)

    def cover(self, local: LocalSubscription, coverer: str | None) -> None:
        """Note in whose registration a subscription is included, if in any."""
        if local.coverer is not None:
            covered = self._covered.get(local.coverer, set())
            covered.discard(local.registration)
            if not covered:
                self._covered.pop(local.coverer, None)
        local.coverer = coverer
        if coverer is not None:
            self._covered.setdefault(coverer, set()).add(local.registration)

    def covered_by(self, registration: str) -> list[str]:
        """Return those included in a registration, in order, as roots would call them."""
        return sorted(self._covered.get(registration, ()))


def _alike(local: LocalSubscription) -> _Alike:
    tenant = tenant_of(local.client)
    return tenant, local.reading.profile, local.subscription.tolerance is not None


@lru_cache(maxsize=65_536)
def _covers(wide: str, narrow: str) -> bool:
    return covers(filter_of(wide), filter_of(narrow))


@encodable(541)
@dataclass(frozen=True, slots=True)
class VersionRecord:
    """The last version that was used."""

    version: int


@encodable(542)
@dataclass(frozen=True, slots=True)
class WithdrawalRecord:
    """A registration that not all roots have forgotten yet.

    Attributes
    ----------
    changed
        The generation that had it, if its subscription has been changed since: roots may still
        owe it something that was published before. One at most.
    """

    id: str
    version: int
    cells: tuple[int, ...]
    changed: tuple[SubscriptionRecord, ...] = since(2, ())


class Ledger:
    """Subscriptions with all their generations: by id, by client and by what they match.

    Attributes
    ----------
    covering
        Which of them are included in others' registrations.
    withdrawals
        Registrations that not all roots have forgotten yet, by version.
    """

    def __init__(self, space: ContentSpace) -> None:
        self._space = space
        self._by_registration: dict[str, LocalSubscription] = {}
        self._generations: dict[str, dict[int, LocalSubscription]] = {}
        self._by_client: dict[Address, dict[str, LocalSubscription]] = {}
        self._streams: Matcher[str] = Matcher()
        self._version = 0
        self.covering = Covering()
        self.withdrawals: dict[int, WithdrawalRecord] = {}
        self._ghosts: dict[int, LocalSubscription] = {}

    def __iter__(self) -> Iterator[LocalSubscription]:
        """Go through all, those that are ending included; changes do not matter."""
        return iter([self._by_registration[key] for key in sorted(self._by_registration)])

    def load(self, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, VersionRecord):
            self._version = record.version
        elif isinstance(record, WithdrawalRecord):
            self._enter_withdrawal(record)
        else:
            assert isinstance(record, SubscriptionRecord)
            self.enter(LocalSubscription.from_record(record))

    def get(self, subscription_id: str) -> LocalSubscription | None:
        """Return the last generation of a subscription, which may be ending."""
        generations = self._generations.get(subscription_id)
        return None if generations is None else generations[max(generations)]

    def generations(self, subscription_id: str) -> list[LocalSubscription]:
        """Return all generations of a subscription, the first one first."""
        generations = self._generations.get(subscription_id, {})
        return [generations[number] for number in sorted(generations)]

    def registered(self, registration: str) -> LocalSubscription | None:
        """Return what roots call so, or would, which may be ending."""
        return self._by_registration.get(registration)

    def clients(self) -> list[Address]:
        """Return the clients that have subscriptions, in order."""
        return sorted(client for client in self._by_client if self.of_client(client))

    def of_client(self, client: Address) -> list[LocalSubscription]:
        """Return the subscriptions of a client that have not ended, with all generations."""
        own = self._by_client.get(client, {})
        return [own[key] for key in sorted(own) if own[key].live]

    def count(self, client: Address) -> int:
        """Return how many subscriptions a client has."""
        return len({local.id for local in self._by_client.get(client, {}).values()})

    def streaming(self, publication: Publication) -> list[LocalSubscription]:
        """Return the subscriptions with a tolerance that a publication passes, by id.

        Of each it is the last generation that does.
        """
        passed = (self._by_registration[key] for key in self._streams.match(publication))
        last: dict[str, LocalSubscription] = {}
        for local in sorted(passed, key=lambda one: (one.id, one.generation)):
            last[local.id] = local
        return list(last.values())

    def enter(self, local: LocalSubscription) -> None:
        """Add a subscription."""
        local.cells = cells_of(local.reading.filters, self._space)
        local.cell_mask = cell_mask_of(local.reading.filters, self._space)
        self._by_registration[local.registration] = local
        self._generations.setdefault(local.id, {})[local.generation] = local
        self._by_client.setdefault(local.client, {})[local.registration] = local
        self.covering.cover(local, local.coverer)
        self.changed(local)

    def changed(self, local: LocalSubscription) -> None:
        """Note a subscription's state: which streams it follows, and whom it covers."""
        self.covering.changed(local)
        if not local.live:
            self._streams.discard(local.registration)
        elif local.subscription.tolerance is not None:
            self._streams.put(local.registration, local.filter)

    def keep(self, local: LocalSubscription, turn: Turn) -> None:
        """Make durable what is known of a subscription now."""
        self.changed(local)
        turn.persist(_key(local), local.record())

    def forget(self, local: LocalSubscription, turn: Turn) -> None:
        """Remove a subscription."""
        self.changed(local)
        self.covering.cover(local, None)
        del self._by_registration[local.registration]
        generations = self._generations[local.id]
        del generations[local.generation]
        if not generations:
            del self._generations[local.id]
        own = self._by_client[local.client]
        del own[local.registration]
        if not own:
            del self._by_client[local.client]
        turn.erase(_key(local))

    def next_version(self, turn: Turn) -> int:
        """Return a version that is later than all before."""
        self._version += 1
        turn.persist("subscriptions/version", VersionRecord(self._version))
        return self._version

    def withdraw(self, local: LocalSubscription, turn: Turn) -> WithdrawalRecord:
        """Put a withdrawal in the place of a subscription that has ended."""
        version = self.next_version(turn)
        changed = (local.record(),) if local.until_ns else ()
        withdrawal = WithdrawalRecord(local.registration, version, local.cells, changed)
        self._enter_withdrawal(withdrawal)
        turn.persist(f"subscriptions/w/{version}", withdrawal)
        self.forget(local, turn)
        return withdrawal

    def _enter_withdrawal(self, withdrawal: WithdrawalRecord) -> None:
        self.withdrawals[withdrawal.version] = withdrawal
        for record in withdrawal.changed:
            self._ghosts[withdrawal.version] = LocalSubscription.from_record(record)

    def ghosts(self, registration: str) -> list[LocalSubscription]:
        """Return generations that are withdrawn, and may still be owed something.

        Those that had the registration, or were included in it, of subscriptions that go on.
        """
        return [
            ghost
            for ghost in self._ghosts.values()
            if registration in (ghost.registration, ghost.coverer) and self._goes_on(ghost)
        ]

    def haunted(self, client: Address) -> bool:
        """Whether there are such generations of any subscription of a client."""
        return any(
            ghost.client == client and self._goes_on(ghost) for ghost in self._ghosts.values()
        )

    def _goes_on(self, ghost: LocalSubscription) -> bool:
        """Whether the subscription of a generation that is withdrawn is still the same."""
        now = self.get(ghost.id)
        if now is None or not now.live:
            return False
        return (now.claim, now.epoch) == (ghost.claim, ghost.epoch)

    def withdrawing(self, registrations: set[str]) -> bool:
        """Whether some of these are ending, or not all roots have forgotten them."""
        ending = (self._by_registration.get(key) for key in registrations)
        return any(local is not None and not local.live for local in ending) or any(
            withdrawal.id in registrations for withdrawal in self.withdrawals.values()
        )

    def withdrawn(self, version: int, turn: Turn) -> None:
        """Note that all roots have forgotten a registration."""
        del self.withdrawals[version]
        self._ghosts.pop(version, None)
        turn.erase(f"subscriptions/w/{version}")


def _key(local: LocalSubscription) -> str:
    return f"subscriptions/s/{journal_key(local.registration)}"
