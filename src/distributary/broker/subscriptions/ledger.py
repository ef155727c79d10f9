"""The ledger: all subscriptions of a broker's clients, kept, found and matched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.encoding import journal_key, wire
from distributary.broker.host import Turn
from distributary.broker.subscriptions.subscription import (
    LocalSubscription,
    State,
    SubscriptionRecord,
    cell_mask_of,
    cells_of,
    filter_of,
)
from distributary.content import ContentSpace, Publication
from distributary.filters import Filter, Index, covers

if TYPE_CHECKING:
    from distributary.content.reading import PublicationView

__all__ = ["INDEXED_MIN", "Covering", "Ledger", "Matcher", "VersionRecord", "WithdrawalRecord"]

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

    def find(self, narrow: LocalSubscription) -> LocalSubscription | None:
        """Return a registered subscription that covers another one, if there is any.

        It has been registered at least as long: whatever is owed to the narrower one, and may
        still be on its way, was sent on account of it too.
        """
        tried = 0
        for wide in self._wide.get(_alike(narrow), {}).values():
            if (
                wide.id == narrow.id
                or wide.since_ns > narrow.since_ns
                or narrow.cell_mask & ~wide.cell_mask
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
        if local.state is State.REGISTERED and not local.until_ns:
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


@wire(541)
@dataclass(frozen=True, slots=True)
class VersionRecord:
    """The last version that was used."""

    version: int


@wire(542)
@dataclass(frozen=True, slots=True)
class WithdrawalRecord:
    """A registration that not all roots have forgotten yet."""

    id: str
    version: int
    cells: tuple[int, ...]


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

    def __iter__(self) -> Iterator[LocalSubscription]:
        """Go through all, those that are ending included; changes do not matter."""
        return iter([self._by_registration[key] for key in sorted(self._by_registration)])

    def load(self, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, VersionRecord):
            self._version = record.version
        elif isinstance(record, WithdrawalRecord):
            self.withdrawals[record.version] = record
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
        withdrawal = WithdrawalRecord(local.registration, version, local.cells)
        self.withdrawals[version] = withdrawal
        turn.persist(f"subscriptions/w/{version}", withdrawal)
        self.forget(local, turn)
        return withdrawal

    def withdrawing(self, registrations: set[str]) -> bool:
        """Whether some of these are ending, or not all roots have forgotten them."""
        ending = (self._by_registration.get(key) for key in registrations)
        return any(local is not None and not local.live for local in ending) or any(
            withdrawal.id in registrations for withdrawal in self.withdrawals.values()
        )

    def withdrawn(self, version: int, turn: Turn) -> None:
        """Note that all roots have forgotten a registration."""
        del self.withdrawals[version]
        turn.erase(f"subscriptions/w/{version}")


def _key(local: LocalSubscription) -> str:
    return f"subscriptions/s/{journal_key(local.registration)}"
