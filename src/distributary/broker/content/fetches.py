"""Fetches: content that a broker's host is to get from others, and who waits for it.

Content is fetched once, however many wait for it. Each of them may name a broker that has it: the
sender of a portion, or the home of a publication. One of these is asked, the next one when that
fails for good, and when it fails for now they are asked in turn, with growing pauses. Whoever
waits is told when the bytes are there, or when nobody is left who could have them.

Whoever leaves in good order stays until others have what only it has. So it may be asked, but
one that does not answer a few times is not there any more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributary.broker.blob import Blob
from distributary.broker.effects import Fetch, Fetched, FetchFailed, Turn
from distributary.broker.encoding import wire
from distributary.broker.membership.messages import Status
from distributary.broker.timers import Backoff, Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["FetchRecord", "Fetches"]


@wire(561)
@dataclass(frozen=True, slots=True)
class FetchRecord:
    """Content that is being fetched for a record that does not say from whom, as it is kept.

    Attributes
    ----------
    owed
        The brokers that have lent it, and are to be told once for each entry that it has come.
    """

    blob: Blob
    holders: tuple[str, ...]
    owed: tuple[str, ...]


_RETRY_NS = 500_000_000
_RETRY_NS_MAX = 16_000_000_000
# How often one who is leaving may fail for now before it counts as gone.
_LEFT_FAILURES_MAX = 4
_LOST = "every broker that had it is lost"

Call = Callable[..., None]
"""Called with (turn, failure, *arguments); the failure is empty when the content is there."""


class _Fetch:
    """Content that is being fetched.

    Attributes
    ----------
    holders
        Who may have it; the first one is asked.
    waiting
        Who is told, by a name of its own.
    owed
        As in `FetchRecord`.
    kept
        Whether there is a record of it.
    ticket, timer
        What the host was asked, or when it is asked again.
    failures, reason
        How often it has failed since somebody new was named, and how last.
    """

    __slots__ = (
        "blob",
        "failures",
        "holders",
        "kept",
        "owed",
        "reason",
        "ticket",
        "timer",
        "waiting",
    )

    def __init__(self, blob: Blob) -> None:
        self.blob = blob
        self.holders: list[str] = []
        self.waiting: dict[Hashable, tuple[Call, tuple[Any, ...]]] = {}
        self.owed: list[str] = []
        self.kept = False
        self.ticket: int | None = None
        self.timer: Timer | None = None
        self.failures = 0
        self.reason = _LOST

    def record(self) -> FetchRecord:
        """Return it as it is kept."""
        return FetchRecord(self.blob, tuple(self.holders), tuple(self.owed))


class Fetches:
    """What the host of one broker is to get from others.

    Parameters
    ----------
    ended
        Called with (digest, brokers that are owed an answer, turn) when one is over,
        before those are told who wait for it.
    """

    def __init__(self, core: Core, ended: Callable[[str, Iterable[str], Turn], None]) -> None:
        self._core = core
        self._ended = ended
        self._fetches: dict[str, _Fetch] = {}
        self._backoff = Backoff(_RETRY_NS, _RETRY_NS_MAX)
        self._most = core.settings.content.content_bytes_max

    def __contains__(self, digest: str) -> bool:
        """Whether content is being fetched."""
        return digest in self._fetches

    def __iter__(self) -> Iterator[str]:
        """Go through what is being fetched, in order."""
        return iter(sorted(self._fetches))

    def load(self, record: FetchRecord) -> None:
        """Take back what was being fetched."""
        fetch = self._fetches[record.blob.digest] = _Fetch(record.blob)
        fetch.holders, fetch.owed, fetch.kept = list(record.holders), list(record.owed), True

    def start(self, turn: Turn) -> None:
        """Ask again for what was being fetched."""
        for digest in self:
            self._ask(turn, digest)

    def want(
        self,
        blob: Blob,
        holder: str | None,
        turn: Turn,
        waiting: tuple[Hashable, Call, tuple[Any, ...]] | None = None,
        *,
        owed: bool = False,
    ) -> None:
        """Have content fetched; nobody is told in this turn.

        Parameters
        ----------
        holder
            Who has it; None when only those can that were named before.
        waiting
            A name, whom to tell, and with what. Who waits already under that name does not wait
            twice.
        owed
            Whether the holder is to be told when it has come. That is for what no other record
            says where to get, and so is kept.
        """
        fetch = self._fetches.get(blob.digest)
        if fetch is None:
            fetch = self._fetches[blob.digest] = _Fetch(blob)
        if waiting is not None:
            name, call, arguments = waiting
            fetch.waiting[name] = (call, arguments)
        new = holder is not None and holder not in fetch.holders and self._may_have(holder)
        if holder is not None and new:
            fetch.holders.append(holder)
        if holder is not None and owed:
            fetch.owed.append(holder)
            fetch.kept = True
        if fetch.kept:
            turn.persist(_key(blob.digest), fetch.record())
        if fetch.ticket is None and fetch.timer is None:
            if fetch.holders and blob.size_bytes <= self._most:
                self._ask(turn, blob.digest)
            else:
                # Not at once: who waits has not finished what it is at.
                self._later(fetch, turn.now_ns)
        elif new and self._is_stuck(fetch):
            assert holder is not None
            self._turn_to(fetch, holder, turn)

    def forget(self, digest: str, turn: Turn) -> None:
        """Fetch something no longer, and tell nobody."""
        fetch = self._fetches.pop(digest, None)
        if fetch is not None:
            self._stop(fetch)
            if fetch.kept:
                turn.erase(_key(digest))

    def asked(self, digest: str, ticket: int) -> str | None:
        """Return the broker that was asked for content by a ticket of this life."""
        fetch = self._fetches.get(digest)
        if fetch is None or fetch.ticket is None or fetch.ticket != ticket:
            return None
        return fetch.holders[0]

    def arrived(self, digest: str, turn: Turn) -> None:
        """Tell those who wait that content is there, wherever it came from."""
        self._end(digest, "", turn)

    def gone(self, brokers: Iterable[str], turn: Turn) -> None:
        """Ask nobody who is lost for ever; who leaves may still have what it has said it has."""
        status = self._core.membership.status
        lost = {broker for broker in brokers if status(broker) is not Status.LEFT}
        for digest in list(self):
            fetch = self._fetches[digest]
            asked = fetch.holders[:1]
            left = [holder for holder in fetch.holders if holder not in lost]
            if len(left) == len(fetch.holders):
                continue
            fetch.holders = left
            if not left:
                fetch.reason = _LOST
                self._stop(fetch)
                self._later(fetch, turn.now_ns)
            elif left[:1] != asked:
                self._turn_to(fetch, left[0], turn)

    def _may_have(self, holder: str) -> bool:
        if holder == self._core.identity:
            return False
        return self._core.membership.status(holder) is not Status.LOST

    def _has_left(self, fetch: _Fetch, holder: str) -> bool:
        """Whether one who fails for now will do so for ever."""
        left = self._core.membership.status(holder) is Status.LEFT
        return left and fetch.failures >= _LEFT_FAILURES_MAX

    def _is_stuck(self, fetch: _Fetch) -> bool:
        """Whether there is reason to try somebody else than who is asked."""
        there = bool(fetch.holders) and self._core.membership.is_alive(fetch.holders[0])
        return fetch.failures > 0 or not there

    def _turn_to(self, fetch: _Fetch, holder: str, turn: Turn) -> None:
        """Ask another one, and whoever was asked after all others."""
        self._stop(fetch)
        fetch.holders.remove(holder)
        fetch.holders.insert(0, holder)
        fetch.failures = 0
        self._later(fetch, turn.now_ns)

    def _later(self, fetch: _Fetch, at_ns: int) -> None:
        fetch.timer = self._core.timers.at(at_ns, self._ask, fetch.blob.digest)

    def _ask(self, turn: Turn, digest: str) -> None:
        fetch = self._fetches[digest]
        fetch.timer = None
        if fetch.blob.size_bytes > self._most:
            too_much = f"it has {fetch.blob.size_bytes:,} bytes; at most {self._most:,} are taken"
            fetch.reason = too_much
            fetch.holders.clear()
        if not fetch.holders:
            self._end(digest, fetch.reason, turn)
            return
        blob, holder = fetch.blob, fetch.holders[0]
        fetch.ticket = self._core.tickets.ask(
            turn, lambda ticket: Fetch(ticket, blob, holder), self._answered, (digest,)
        )

    def _answered(self, turn: Turn, answer: Fetched | FetchFailed, digest: str) -> None:
        fetch = self._fetches[digest]
        fetch.ticket = None
        if isinstance(answer, Fetched):
            self._end(digest, "", turn)
            return
        asked = fetch.holders.pop(0)
        fetch.reason = answer.reason
        if answer.lasting or self._has_left(fetch, asked):
            self._later(fetch, turn.now_ns)
            return
        fetch.holders.append(asked)
        self._later(fetch, turn.now_ns + self._backoff.after(fetch.failures))
        fetch.failures += 1

    def _end(self, digest: str, failure: str, turn: Turn) -> None:
        fetch = self._fetches.pop(digest, None)
        if fetch is None:
            return
        self._stop(fetch)
        if fetch.kept:
            turn.erase(_key(digest))
        self._ended(digest, fetch.owed, turn)
        for call, arguments in fetch.waiting.values():
            call(turn, failure, *arguments)

    def _stop(self, fetch: _Fetch) -> None:
        if fetch.timer is not None:
            fetch.timer.cancel()
            fetch.timer = None
        if fetch.ticket is not None:
            self._core.tickets.withdraw(fetch.ticket)
            fetch.ticket = None


def _key(digest: str) -> str:
    return f"content/fetch/{digest}"
