"""Notices: what clients are told when a subscription has ended by itself.

A notice is kept until its client has taken it, which is when it answers with `Unsubscribe` or
subscribes anew. One whose client stays away is not kept for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.client import Ended
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, since, wire
from distributary.broker.settings import ns
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.broker.timers import Backoff

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["EXPIRED", "MISSED", "TOO_MANY_BYTES", "TOO_OLD", "NoticeRecord", "Notices"]

EXPIRED = "expired"
TOO_MANY_BYTES = "bytes"
TOO_OLD = "age"
MISSED = "missed"


@wire(664)
@dataclass(frozen=True, slots=True)
class NoticeRecord:
    """A notice that its client has not taken, as it is kept; the fields are those of `Ended`."""

    client: str
    id: str
    reason: str
    count: int
    first: int
    last: int
    ended_ns: int
    missed: int = since(2, 0)

    @property
    def name(self) -> str:
        """What brokers call the subscription."""
        return scoped_id(self.client, self.id)

    def message(self) -> Ended:
        """Return it as the client is told."""
        return Ended(self.id, self.reason, self.count, self.first, self.last, self.missed)


class Notices:
    """The notices that clients of one broker have not taken."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._by_name: dict[str, NoticeRecord] = {}
        self._counts: dict[Address, int] = {}
        links, subscriptions = core.settings.links, core.settings.subscriptions
        self._backoff = Backoff(ns(links.retry_s), ns(links.retry_s_max))
        self._kept_ns = ns(subscriptions.queue_s)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def load(self, record: NoticeRecord) -> None:
        """Take back what was kept."""
        self._enter(record)

    def start(self, turn: Turn) -> None:
        """Go on telling."""
        for name in sorted(self._by_name):
            self._tell(turn, self._by_name[name], 0)

    def add(self, notice: NoticeRecord, turn: Turn) -> None:
        """Tell a client until it has taken it."""
        self._enter(notice)
        turn.persist(_key(notice.name), notice)
        self._tell(turn, notice, 0)

    def take(self, name: str, turn: Turn) -> None:
        """Forget a notice, if there is one, which its client has taken."""
        notice = self._by_name.pop(name, None)
        if notice is not None:
            self._counts[notice.client] -= 1
            if not self._counts[notice.client]:
                del self._counts[notice.client]
            turn.erase(_key(name))

    def _enter(self, notice: NoticeRecord) -> None:
        if notice.name not in self._by_name:
            self._counts[notice.client] = self.count(notice.client) + 1
        self._by_name[notice.name] = notice

    def of_client(self, client: Address) -> tuple[NoticeRecord, ...]:
        """Return those of a client, in order."""
        own = (self._by_name[name] for name in sorted(self._by_name))
        return tuple(notice for notice in own if notice.client == client)

    def count(self, client: Address) -> int:
        """Return how many notices a client has to take."""
        return self._counts.get(client, 0)

    def knows(self, client: Address) -> bool:
        """Whether a client has notices to take."""
        return client in self._counts

    def _tell(self, turn: Turn, notice: NoticeRecord, attempts: int) -> None:
        if self._by_name.get(notice.name) is not notice:
            return
        if turn.now_ns >= notice.ended_ns + self._kept_ns:
            self.take(notice.name, turn)
            return
        if not self._core.migration.has_left(notice.client):
            turn.send(notice.client, notice.message())
        at_ns = turn.now_ns + self._backoff.after(attempts)
        self._core.timers.at(at_ns, self._tell, notice, attempts + 1)


def _key(name: str) -> str:
    return f"subscriptions/n/{journal_key(name)}"
