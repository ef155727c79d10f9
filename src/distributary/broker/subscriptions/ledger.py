"""The ledger: all subscriptions of a broker's clients, kept and found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire
from distributary.broker.subscriptions.matching import Covering, Matcher
from distributary.broker.subscriptions.subscription import (
    LocalSubscription,
    SubscriptionRecord,
    cell_mask_of,
    cells_of,
)
from distributary.content import ContentSpace, Publication

__all__ = ["Ledger", "VersionRecord", "WithdrawalRecord"]


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

    Parameters
    ----------
    space
        The content space.

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
