"""Content: which bytes a broker's host has, who refers to them, and when they are freed.

Messages and records only refer to content. Its bytes are in the content store of the broker's
host, once, whoever has brought them: clients put them there before they publish, others' hosts
send them, converters leave their results there. What is there the host says when the broker
starts. What refers to it are records of other parts: each says so when it makes a record or takes
it back from the disk, and again when it erases it. So no count is ever kept, and none can be
wrong after a crash. Content to which nothing refers is freed when `retention_s` has passed since
it was last used: until then others may still come for it.

A reference counts only for a tenant that has put those bytes, or was sent them. A digest that
somebody has heard of gives no right to the content.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import Address, Blob, Speaker, is_digest, tenant_of
from distributary.broker.core import Check, Core, Handler, Part, Rules, check_client
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import (
    ContentHeld,
    ContentPut,
    Fetch,
    Fetched,
    FetchFailed,
    Free,
    Turn,
)
from distributary.broker.membership.roster import MembersChanged, MemberStatus
from distributary.broker.settings import ns
from distributary.broker.timers import Backoff, Retention, Timer
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import PeerMisbehaved, quoted

__all__ = ["Content", "ContentArrived", "FetchRecord", "LentRecord", "PutRecord", "check_blob"]


# Fetches: content that a broker's host is to get from others, and who waits for it.
#
# Content is fetched once, however many wait for it. Each of them may name a broker that has it: the
# sender of a portion, or the home of a publication. One of these is asked, the next one when that
# fails for good, and when it fails for now they are asked in turn, with growing pauses. Whoever
# waits is told when the bytes are there, or when nobody is left who could have them.
#
# Whoever leaves in good order stays until others have what only it has. So it may be asked, but
# one that does not answer a few times is not there any more.


@encodable(561)
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
        """Fetch something no longer, and tell only those who keep it until it has come."""
        fetch = self._fetches.pop(digest, None)
        if fetch is not None:
            self._stop(fetch)
            if fetch.kept:
                turn.erase(_key(digest))
            self._ended(digest, fetch.owed, turn)

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
        lost = {broker for broker in brokers if status(broker) is not MemberStatus.LEFT}
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
        return self._core.membership.status(holder) is not MemberStatus.LOST

    def _has_left(self, fetch: _Fetch, holder: str) -> bool:
        """Whether one who fails for now will do so for ever."""
        left = self._core.membership.status(holder) is MemberStatus.LEFT
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


@encodable(377, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ContentArrived:
    """The content of something that a client took along to its new home is there.

    Once for every message that referred to it, so that the old home knows when nobody will
    ask for it any more.
    """

    digest: str


@encodable(560)
@dataclass(frozen=True, slots=True)
class PutRecord:
    """Content that a client of a tenant has put, and nobody has published, as it is kept."""

    tenant: str
    blob: Blob
    put_ns: int


@encodable(562)
@dataclass(frozen=True, slots=True)
class LentRecord:
    """Content that another broker is to fetch, which alone has what refers to it, as it is kept.

    Attributes
    ----------
    count
        How many messages to it refer to the content, and are not answered.
    """

    tenant: str
    blob: Blob
    peer: str
    count: int


def check_blob(blob: Blob) -> None:
    """Refuse what refers to no content.

    A size above the own limit is none of the sender's faults: its settings may be others.
    """
    if not 0 <= blob.size_bytes <= CONTENT_BYTES_MAX:
        raise PeerMisbehaved(f"content of {blob.size_bytes} bytes")
    check_digest(blob.digest)


def check_digest(digest: str) -> None:
    """Refuse what is no digest."""
    if not is_digest(digest):
        raise PeerMisbehaved(f"{quoted(digest)} is not the digest of content")


def _check_put(message: ContentPut, rules: Rules) -> None:
    check_client(message, rules)
    check_blob(message.blob)
    most = rules.settings.content.content_bytes_max
    if message.blob.size_bytes > most:
        raise PeerMisbehaved(f"content of {message.blob.size_bytes:,} bytes; at most {most:,}")


def _check_held(message: ContentHeld, rules: Rules) -> None:
    for digest, size_bytes in message.contents:
        check_digest(digest)
        rules.numbers((size_bytes,))


def _check_named(message: ContentArrived, rules: Rules) -> None:
    check_digest(message.digest)


CHECKS: Mapping[type, Check] = {
    ContentArrived: _check_named,
    ContentHeld: _check_held,
    ContentPut: _check_put,
}
"""What must hold of messages beyond the types of their fields."""


class _Known:
    """Content that is in the store, or that something refers to.

    Attributes
    ----------
    size_bytes
        How large it is, if it is in the store; else None.
    references
        How many records refer to it, by tenant. A tenant without any has had some, and could
        have the bytes.
    used_ns
        When it was last used.
    """

    __slots__ = ("references", "size_bytes", "used_ns")

    def __init__(self) -> None:
        self.size_bytes: int | None = None
        self.references: dict[str, int] = {}
        self.used_ns = 0


class Content(Part):
    """What one broker knows of content."""

    name = "content"
    uses = ("membership", "links")
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings.content
        self._known: dict[str, _Known] = {}
        self._fetches = Fetches(core, self._fetch_ended)
        self._puts: dict[tuple[str, str], PutRecord] = {}
        self._lent: dict[tuple[str, str], LentRecord] = {}
        self._kept_ns = ns(settings.retention_s)
        self._put_ns = ns(settings.put_s)
        self._aging = Retention(core.timers, self._review)
        self._expiring = Retention(core.timers, self._expire)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            ContentHeld: self._told,
            ContentPut: self._put,
            ContentArrived: self._returned,
            Fetched: self._fetched,
            FetchFailed: self._fetch_failed,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back what was put, what was being fetched, or what was lent."""
        if isinstance(record, FetchRecord):
            self._fetches.load(record)
        elif isinstance(record, PutRecord):
            self._puts[record.tenant, record.blob.digest] = record
            self.refer(record.tenant, record.blob)
        else:
            assert isinstance(record, LentRecord)
            self._lent[record.peer, record.blob.digest] = record
            self.refer(record.tenant, record.blob)

    def start(self, turn: Turn) -> None:
        """Go on fetching, and free what nothing refers to any more."""
        for key, put in sorted(self._puts.items()):
            self._expiring.keep(key, put.put_ns + self._put_ns)
        for digest in list(self._fetches):
            if self.has_digest(digest):
                self._fetches.arrived(digest, turn)
        self._fetches.start(turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Ask nobody who is lost for ever, and keep nothing for them."""
        if change.gone:
            self._fetches.gone(change.gone, turn)
            for peer, digest in sorted(self._lent):
                if peer in change.gone:
                    self._take_back(peer, digest, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return how much is held, what is being fetched, and what waits to be published."""
        sizes = [one.size_bytes for one in self._known.values() if one.size_bytes is not None]
        return {
            "held": len(sizes),
            "bytes": sum(sizes),
            "fetching": list(self._fetches),
            "put": len(self._puts),
            "lent": len(self._lent),
        }

    # What other parts ask.

    def has(self, blob: Blob) -> bool:
        """Whether the bytes are here."""
        known = self._known.get(blob.digest)
        return known is not None and known.size_bytes is not None

    def has_digest(self, digest: str) -> bool:
        """Whether content with this digest is here."""
        known = self._known.get(digest)
        return known is not None and known.size_bytes is not None

    def awaits(self, digest: str) -> bool:
        """Whether content is still to come."""
        return digest in self._fetches

    def size_for(self, tenant: str, digest: str) -> int | None:
        """Return how large content is that is here, and that a tenant has a right to."""
        known = self._known.get(digest)
        return None if known is None or tenant not in known.references else known.size_bytes

    def unused_ns(self, digest: str, now_ns: int) -> int | None:
        """Return for how long nothing has referred to content; None while something does."""
        known = self._known.get(digest)
        if known is None:
            return now_ns
        return None if any(known.references.values()) else now_ns - known.used_ns

    @property
    def idle(self) -> bool:
        """Whether nobody is waited for to fetch what is only here."""
        return not self._lent

    def refer(self, tenant: str, blob: Blob | None) -> None:
        """Note that a record of something of a tenant refers to content."""
        if blob is not None:
            references = self._known_of(blob.digest).references
            references[tenant] = references.get(tenant, 0) + 1

    def release(self, tenant: str, blob: Blob | None, turn: Turn) -> None:
        """Note that a record that did refers to content no longer."""
        if blob is None:
            return
        known = self._known[blob.digest]
        assert known.references[tenant] > 0, "released more often than referred to"
        known.references[tenant] -= 1
        known.used_ns = turn.now_ns
        if not any(known.references.values()):
            self._aging.keep(blob.digest, turn.now_ns + self._kept_ns)

    def use(self, blobs: Iterable[Blob | None], turn: Turn) -> None:
        """Note that others will come for content."""
        for blob in blobs:
            known = None if blob is None else self._known.get(blob.digest)
            if known is not None:
                known.used_ns = turn.now_ns

    def used(self, digest: str, now_ns: int) -> None:
        """Note that the host has given content to somebody."""
        known = self._known.get(digest)
        if known is not None:
            known.used_ns = now_ns

    def decline(self, blob: Blob | None, holder: str, turn: Turn) -> None:
        """Tell who has lent content that nothing here refers to it."""
        if blob is not None:
            self.core.links.send(holder, ContentArrived(blob.digest), turn)

    def published(self, tenant: str, blob: Blob, turn: Turn) -> None:
        """Note that what was put is published, and so referred to by another record."""
        if (tenant, blob.digest) in self._puts:
            self._drop_put(tenant, blob.digest, turn)

    def converted(self, blob: Blob, turn: Turn) -> None:
        """Note that the result of a conversion is in the store."""
        self._store(blob.digest, blob.size_bytes, turn)

    def fetch(
        self,
        blob: Blob,
        holder: str | None,
        turn: Turn,
        name: Hashable,
        call: Callable[..., None],
        *arguments: Any,
    ) -> None:
        """Have content fetched that is not here and that something refers to.

        In a later turn `call(turn, failure, *arguments)` is called: with an empty text when the
        bytes are there, else with the reason why they will not be. Who fetches again
        under the same name is called once.

        Parameters
        ----------
        holder
            Who has it; None when only those can that were named before.
        """
        self._fetches.want(blob, holder, turn, (name, call, arguments))

    # What moves with a client: nobody else could serve it, so it is lent until it has arrived.

    def lend(self, tenant: str, blob: Blob | None, peer: str, turn: Turn) -> None:
        """Keep content until another broker, which is sent what refers to it, has fetched it."""
        if blob is None:
            return
        known = self._lent.get((peer, blob.digest))
        if known is None:
            self.refer(tenant, blob)
        count = 1 if known is None else known.count + 1
        record = self._lent[peer, blob.digest] = LentRecord(tenant, blob, peer, count)
        turn.persist(_lent_key(peer, blob.digest), record)

    def borrow(self, blob: Blob | None, holder: str, turn: Turn) -> None:
        """Fetch what another broker has lent, and tell it when that is done.

        What refers to it is on the disk in this turn. After a crash it is fetched all the same.
        """
        if blob is None:
            return
        if self.has(blob):
            self.core.links.send(holder, ContentArrived(blob.digest), turn)
        else:
            self._fetches.want(blob, holder, turn, owed=True)

    def _returned(self, message: ContentArrived, sender: Address, turn: Turn) -> None:
        lent = self._lent.get((sender, message.digest))
        if lent is None:
            return
        if lent.count > 1:
            record = LentRecord(lent.tenant, lent.blob, lent.peer, lent.count - 1)
            self._lent[sender, message.digest] = record
            turn.persist(_lent_key(sender, message.digest), record)
        else:
            self._take_back(sender, message.digest, turn)

    def _take_back(self, peer: str, digest: str, turn: Turn) -> None:
        lent = self._lent.pop((peer, digest))
        turn.erase(_lent_key(peer, digest))
        self.release(lent.tenant, lent.blob, turn)

    # What the host says.

    def _told(self, message: ContentHeld, sender: Address, turn: Turn) -> None:
        for digest, size_bytes in message.contents:
            known = self._known_of(digest)
            known.size_bytes, known.used_ns = size_bytes, turn.now_ns
            if not any(known.references.values()):
                self._aging.keep(digest, turn.now_ns + self._kept_ns)

    def _put(self, message: ContentPut, sender: Address, turn: Turn) -> None:
        tenant, blob = tenant_of(message.client), message.blob
        self._store(blob.digest, blob.size_bytes, turn)
        if (tenant, blob.digest) not in self._puts:
            self.refer(tenant, blob)
        record = self._puts[tenant, blob.digest] = PutRecord(tenant, blob, turn.now_ns)
        turn.persist(_put_key(tenant, blob.digest), record)
        self._expiring.keep((tenant, blob.digest), turn.now_ns + self._put_ns)

    def _fetched(self, message: Fetched, sender: Address, turn: Turn) -> None:
        holder = self._fetches.asked(message.blob.digest, message.ticket)
        if holder is not None and message.came_bytes:
            self.core.measured.transfer(holder, message.seconds, message.came_bytes)
        # Also if another life of the broker has asked: then it is here, and may have to be freed.
        self._store(message.blob.digest, message.blob.size_bytes, turn)
        self.core.tickets.answer(message.ticket, message, turn=turn)

    def _fetch_failed(self, message: FetchFailed, sender: Address, turn: Turn) -> None:
        self.core.tickets.answer(message.ticket, message, turn=turn)

    def _fetch_ended(self, digest: str, owed: Iterable[str], turn: Turn) -> None:
        """Tell those who have lent something that it is here, or that it is not missed."""
        for holder in owed:
            if not self.core.membership.is_gone(holder):
                self.core.links.send(holder, ContentArrived(digest), turn)

    # What is known.

    def _known_of(self, digest: str) -> _Known:
        known = self._known.get(digest)
        if known is None:
            known = self._known[digest] = _Known()
        return known

    def _store(self, digest: str, size_bytes: int, turn: Turn) -> None:
        """Note that bytes are in the store, and tell who waits for them."""
        known = self._known_of(digest)
        known.size_bytes = size_bytes
        known.used_ns = turn.now_ns
        if not any(known.references.values()):
            self._aging.keep(digest, turn.now_ns + self._kept_ns)
        self._fetches.arrived(digest, turn)

    def _review(self, digest: str, turn: Turn) -> None:
        """Free content to which nothing has referred for long enough."""
        known = self._known.get(digest)
        if known is None or any(known.references.values()):
            return
        until_ns = known.used_ns + self._kept_ns
        if until_ns > turn.now_ns:
            self._aging.keep(digest, until_ns)
            return
        del self._known[digest]
        self._fetches.forget(digest, turn)
        if known.size_bytes is not None:
            turn.effects.append(Free(digest))

    def _expire(self, key: tuple[str, str], turn: Turn) -> None:
        """Forget what was put and not published."""
        put = self._puts.get(key)
        if put is not None and put.put_ns + self._put_ns <= turn.now_ns:
            self._drop_put(*key, turn)

    def _drop_put(self, tenant: str, digest: str, turn: Turn) -> None:
        put = self._puts.pop((tenant, digest))
        turn.erase(_put_key(tenant, digest))
        self.release(tenant, put.blob, turn)


def _put_key(tenant: str, digest: str) -> str:
    return f"content/put/{journal_key(tenant)}/{digest}"


def _lent_key(peer: str, digest: str) -> str:
    return f"content/lent/{peer}/{digest}"
