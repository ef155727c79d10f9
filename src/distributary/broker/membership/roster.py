"""The roster: what one broker thinks of every other, how that changes, and what is kept of it."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from hashlib import blake2b

from distributary.broker.addresses import Speaker
from distributary.broker.core import Transitions
from distributary.broker.encoding import OLDEST, encodable, since
from distributary.broker.settings import Digests

__all__ = [
    "GONE",
    "LIFE",
    "MEMBER",
    "Gossip",
    "Join",
    "Known",
    "Member",
    "MemberEvent",
    "MemberStatus",
    "Members",
    "MembersChanged",
    "News",
    "Ping",
    "PingFor",
    "Pong",
    "Reached",
    "Roster",
    "digest_of_one",
]


# What brokers say to each other to know who is there.


NO_DIGESTS = Digests(0, 0)


class MemberStatus(Enum):
    """What a broker thinks of another one."""

    UNKNOWN = 0
    ALIVE = 1
    SUSPECT = 2
    DOWN = 3
    LOST = 4
    LEFT = 5


@dataclass(frozen=True, slots=True)
class News:
    """What is told about a broker.

    Attributes
    ----------
    incarnation
        Only the broker itself raises it; what is said of a smaller one is out of date.
    version
        Which it speaks, at least: others may not have heard of a newer one.
    """

    identity: str
    incarnation: int
    status: MemberStatus
    version: int = since(2, OLDEST)


@encodable(10, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Ping:
    """A broker asks whether another one is there.

    Attributes
    ----------
    number
        Tells its answer from other answers.
    incarnation
        The sender's.
    digest
        Of all that the sender takes for alive, so that two who disagree notice.
    news
        What may be new to the other.
    settings
        Digests of the sender's settings, so that two who do not have the same notice.
    version
        Which the sender speaks.
    """

    number: int
    incarnation: int
    digest: int
    news: tuple[News, ...] = ()
    settings: Digests = NO_DIGESTS
    version: int = since(2, OLDEST)


@encodable(11, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Pong:
    """A broker is there."""

    number: int
    incarnation: int
    digest: int
    news: tuple[News, ...] = ()
    settings: Digests = NO_DIGESTS
    version: int = since(2, OLDEST)


@encodable(12, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class PingFor:
    """A broker asks others whether they reach one that does not answer it."""

    number: int
    target: str


@encodable(13, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Reached:
    """A broker that was asked has got an answer from the one in question."""

    number: int


@encodable(14, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Join:
    """A broker is new, or was away, and asks who is there."""

    incarnation: int
    version: int = since(2, OLDEST)


@encodable(15, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Members:
    """All that a broker knows about all others, and itself.

    Attributes
    ----------
    answer
        Whether the receiver is to answer with what the sender does not know.
    after, upto
        Where there are too many for one message each has those with identifiers above the
        one and up to the other; empty where there is no such limit.
    """

    members: tuple[News, ...]
    answer: bool = False
    after: str = since(2, "")
    upto: str = since(2, "")

    def covers(self, identity: str) -> bool:
        """Whether it would have told of a broker."""
        return self.after < identity and (not self.upto or identity <= self.upto)


@encodable(16, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Gossip:
    """What a broker has just learnt, passed on."""

    news: tuple[News, ...]


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """What has changed about the brokers of the overlay, as far as this one knows.

    Attributes
    ----------
    came
        Brokers that are there now and were not, or were down or have started anew.
    down
        Brokers that do not answer any more, and may come back.
    gone
        Brokers that have left, or are lost for ever; the own one when it leaves.
    """

    came: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@encodable(510)
@dataclass(frozen=True, slots=True)
class Known:
    """What a broker keeps about itself and others.

    Attributes
    ----------
    incarnation
        Its own; the next life begins above it.
    members
        Everybody who has not gone for ever, in ascending order.
    version
        The lowest that any of them speaks.
    """

    incarnation: int
    members: tuple[str, ...]
    version: int = since(2, OLDEST)


LIFE = 1 << 20
"""An incarnation counts restarts in its upper digits, and denials in those below."""


class MemberEvent(Enum):
    """What happens to a member in the eyes of another."""

    RENEWED = "renewed"
    DOUBTED = "doubted"
    REPORTED = "reported down"
    EXPIRED = "expired"
    SAID_GOODBYE = "said goodbye"


# A broker counts as there until it leaves a ping, and those of others on our behalf,
# without answer. It is then suspect, and has some time to deny it: by a new incarnation,
# which only the broker itself can begin, so that news of an old one are known to be old.
# Then it is down: nothing is routed by way of it any more. When it has been down for long it
# is lost, and everybody gives up what waits for it. Lost ones and those that have left are
# remembered for a while, so that late news of them are not taken for somebody new.
#
# Being told that a broker is down is not believed at once, but makes it suspect. Otherwise
# two halves of an overlay that find each other again would take each other's word for it
# that everybody is down.
MEMBER: Transitions[MemberStatus, MemberEvent] = Transitions(
    "member",
    MemberStatus.UNKNOWN,
    {
        (MemberStatus.UNKNOWN, MemberEvent.RENEWED): MemberStatus.ALIVE,
        (MemberStatus.UNKNOWN, MemberEvent.REPORTED): MemberStatus.DOWN,
        (MemberStatus.UNKNOWN, MemberEvent.SAID_GOODBYE): MemberStatus.LEFT,
        (MemberStatus.ALIVE, MemberEvent.RENEWED): MemberStatus.ALIVE,
        (MemberStatus.ALIVE, MemberEvent.DOUBTED): MemberStatus.SUSPECT,
        (MemberStatus.ALIVE, MemberEvent.REPORTED): MemberStatus.SUSPECT,
        (MemberStatus.ALIVE, MemberEvent.SAID_GOODBYE): MemberStatus.LEFT,
        (MemberStatus.SUSPECT, MemberEvent.RENEWED): MemberStatus.ALIVE,
        (MemberStatus.SUSPECT, MemberEvent.EXPIRED): MemberStatus.DOWN,
        (MemberStatus.SUSPECT, MemberEvent.SAID_GOODBYE): MemberStatus.LEFT,
        (MemberStatus.DOWN, MemberEvent.RENEWED): MemberStatus.ALIVE,
        (MemberStatus.DOWN, MemberEvent.EXPIRED): MemberStatus.LOST,
        (MemberStatus.DOWN, MemberEvent.SAID_GOODBYE): MemberStatus.LEFT,
        (MemberStatus.LOST, MemberEvent.RENEWED): MemberStatus.ALIVE,
        (MemberStatus.LOST, MemberEvent.SAID_GOODBYE): MemberStatus.LEFT,
        (MemberStatus.LOST, MemberEvent.EXPIRED): MemberStatus.UNKNOWN,
        (MemberStatus.LEFT, MemberEvent.RENEWED): MemberStatus.ALIVE,
        (MemberStatus.LEFT, MemberEvent.EXPIRED): MemberStatus.UNKNOWN,
    },
)

_NO_CHANGE = MembersChanged()

_THERE = (MemberStatus.ALIVE, MemberStatus.SUSPECT)
GONE = (MemberStatus.LOST, MemberStatus.LEFT)

_EVENT_OF_NEWS = {
    MemberStatus.SUSPECT: MemberEvent.DOUBTED,
    MemberStatus.DOWN: MemberEvent.REPORTED,
    MemberStatus.LEFT: MemberEvent.SAID_GOODBYE,
}


@dataclass(slots=True)
class Member:
    """What is thought of one broker.

    Attributes
    ----------
    deadline_ns
        When `EXPIRED` happens to it, unless something else does before.
    warned
        Whether a suspect one has been asked a last time.
    """

    incarnation: int = 0
    status: MemberStatus = MemberStatus.UNKNOWN
    deadline_ns: int | None = None
    warned: bool = False


@dataclass(slots=True)
class Changes:
    """Who has come, gone quiet or is gone since the roster was last looked at."""

    came: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    news: set[str] = field(default_factory=set)
    noted: bool = False


class Roster:
    """What one broker thinks of all others.

    Brokers that start together know each other; as long as nothing is said about one of
    them, it takes no memory here beyond the tuple that they all share.

    Parameters
    ----------
    founders
        Other brokers that are there from the beginning, in ascending order; the own one may
        be among them.
    """

    def __init__(
        self,
        own: str,
        founders: tuple[str, ...],
        *,
        version: int,
        suspicion_ns: int,
        lost_ns: int,
    ) -> None:
        self._own = own
        self._version = version
        self._versions: dict[str, int] = {}
        self.lowest: int | None = None
        """The lowest version that any other speaks, if it is known; see `lowest_version`."""
        self._founders = set_of(founders)
        self._members: dict[str, Member] = {}
        self._patience_ns = {
            MemberStatus.SUSPECT: suspicion_ns,
            MemberStatus.DOWN: lost_ns,
            MemberStatus.LOST: 4 * lost_ns,
            MemberStatus.LEFT: 4 * lost_ns,
        }
        self._deadlines: list[tuple[int, str]] = []
        self._changes = Changes()
        self.there: tuple[str, ...] = founders
        """Those to whom messages are passed, in ascending order, with the own broker."""
        if own not in founders:
            self.there = tuple(sorted((own, *founders)))
        # Of the others only: the own incarnation is not the roster's.
        self.digest = _digest_of(self.there) ^ digest_of_one(own, 0)

    def get(self, identity: str) -> Member:
        """Return what is thought of a broker; to be looked at only."""
        member = self._members.get(identity)
        if member is None:
            return Member(0, self.status(identity))
        return member

    def status(self, identity: str) -> MemberStatus:
        """Return what is thought of a broker, in a word."""
        member = self._members.get(identity)
        if member is not None:
            return member.status
        return MemberStatus.ALIVE if identity in self._founders else MemberStatus.UNKNOWN

    def is_plain(self, identity: str, incarnation: int, version: int) -> bool:
        """Whether a broker is there as it has been from the beginning."""
        return (
            incarnation == 0
            and identity not in self._members
            and identity in self._founders
            and version <= self._version_of(identity)
        )

    @property
    def lowest_version(self) -> int | None:
        """The lowest version that any of the others speaks who is there or may come back."""
        if self.lowest is None:
            # All brokers of a large overlay that start at once look at all others.
            others = {*self.there, *self.away(MemberStatus.DOWN)} - {self._own}
            spoken = {self._versions[one] for one in others & self._versions.keys()}
            others -= self._versions.keys()
            if not others.isdisjoint(self._founders):
                spoken.add(self._version)
            if not self._founders.issuperset(others):
                spoken.add(OLDEST)
            self.lowest = min(spoken, default=None)
        return self.lowest

    def _version_of(self, identity: str) -> int:
        founded = self._version if identity in self._founders else OLDEST
        return self._versions.get(identity, founded)

    def news_of(self, identity: str) -> News:
        """Return what is to be told others about a broker."""
        member = self.get(identity)
        status = MemberStatus.DOWN if member.status is MemberStatus.LOST else member.status
        return News(identity, member.incarnation, status, self._version_of(identity))

    def known(self) -> Iterator[str]:
        """Go through all others of whom anything is known, in ascending order."""
        for identity in sorted({*self._founders, *self._members}):
            if identity != self._own and self.status(identity) is not MemberStatus.UNKNOWN:
                yield identity

    def away(self, status: MemberStatus) -> list[str]:
        """Return who is down, or lost, in ascending order."""
        return sorted(
            identity for identity, member in self._members.items() if member.status is status
        )

    def hear(self, news: News, *, now_ns: int) -> None:
        """Believe what is said of another broker, if it is not out of date."""
        identity = news.identity
        if news.version > self._version_of(identity):
            # It never falls: who has heard of it from a broker of the version before, which
            # does not tell, must not take it back.
            self._versions[identity] = news.version
            self.lowest = None
            self._changes.noted = True
            if self.status(identity) in _THERE:
                self._changes.news.add(identity)
        member = self.get(identity)
        newer = news.incarnation > member.incarnation or member.status is MemberStatus.UNKNOWN
        if not newer and (
            news.status is MemberStatus.ALIVE or news.incarnation < member.incarnation
        ):
            return
        if newer and news.status in _THERE:
            self._step(identity, MemberEvent.RENEWED, now_ns, news.incarnation)
        if news.status is not MemberStatus.ALIVE:
            self._step(identity, _EVENT_OF_NEWS[news.status], now_ns, news.incarnation)

    def doubt(self, identity: str, *, now_ns: int) -> None:
        """Take a broker for suspect, because it does not answer."""
        self._step(identity, MemberEvent.DOUBTED, now_ns, self.get(identity).incarnation)

    def spare(self, identity: str, *, until_ns: int) -> None:
        """Give a suspect one more time, once."""
        member = self._members[identity]
        member.warned = True
        self._set_deadline(identity, member, until_ns)

    def expire(self, identity: str, *, now_ns: int) -> None:
        """Let happen what happens to a broker from which nothing has been heard in time."""
        self._step(identity, MemberEvent.EXPIRED, now_ns, self.get(identity).incarnation)

    def renew_deadlines(self, *, now_ns: int) -> None:
        """Have every deadline begin anew, also those that have passed unnoticed."""
        for identity, member in sorted(self._members.items()):
            patience_ns = self._patience_ns.get(member.status)
            if patience_ns is not None:
                self._set_deadline(identity, member, now_ns + patience_ns)

    def due(self, now_ns: int) -> list[str]:
        """Return, and forget the deadlines of, those whose deadline has come."""
        due = []
        while (deadline_ns := self.next_deadline_ns()) is not None and deadline_ns <= now_ns:
            _, identity = heapq.heappop(self._deadlines)
            self._members[identity].deadline_ns = None
            due.append(identity)
        return due

    def next_deadline_ns(self) -> int | None:
        """Return the next deadline of anybody."""
        deadlines = self._deadlines
        while deadlines:
            deadline_ns, identity = deadlines[0]
            member = self._members.get(identity)
            if member is not None and member.deadline_ns == deadline_ns:
                return deadline_ns
            heapq.heappop(deadlines)
        return None

    def take_changes(self) -> tuple[MembersChanged, list[str]]:
        """Return what has changed since the last call, and of whom there are news to tell."""
        changes = self._changes
        if not changes.noted:
            return _NO_CHANGE, []
        self._changes = Changes()
        self.lowest = None
        if changes.came or changes.down or changes.gone:
            self._update_there(changes)
        change = MembersChanged(
            came=tuple(sorted(changes.came)),
            down=tuple(sorted(changes.down)),
            gone=tuple(sorted(changes.gone)),
        )
        return change, sorted(changes.news)

    def _step(self, identity: str, event: MemberEvent, now_ns: int, incarnation: int) -> None:
        member = self.get(identity)
        before = member.status
        following = MEMBER.step(before, event)
        if following is None:
            # It changes nothing, but what is said later must not be older.
            self._set_incarnation(identity, member, incarnation)
            return
        self._members[identity] = member
        life = member.incarnation // LIFE
        self._set_incarnation(identity, member, incarnation)
        if (before in _THERE) != (following in _THERE):
            self.digest ^= digest_of_one(identity, member.incarnation)
        member.status = following
        member.warned = False
        self._note(identity, before, following, restarted=member.incarnation // LIFE > life)
        patience_ns = self._patience_ns.get(following)
        member.deadline_ns = None
        if patience_ns is not None:
            self._set_deadline(identity, member, now_ns + patience_ns)
        if following is MemberStatus.UNKNOWN:
            del self._members[identity]
            self._versions.pop(identity, None)
            self._founders -= {identity}

    def _set_incarnation(self, identity: str, member: Member, incarnation: int) -> None:
        if incarnation > member.incarnation:
            if member.status in _THERE:
                self.digest ^= digest_of_one(identity, member.incarnation)
                self.digest ^= digest_of_one(identity, incarnation)
            member.incarnation = incarnation

    def _note(
        self, identity: str, before: MemberStatus, after: MemberStatus, *, restarted: bool
    ) -> None:
        changes = self._changes
        changes.noted = True
        if after in _THERE and (before not in _THERE or restarted):
            changes.came.add(identity)
            changes.down.discard(identity)
            changes.gone.discard(identity)
        elif after is MemberStatus.DOWN and before in _THERE:
            changes.down.add(identity)
            changes.came.discard(identity)
        elif after in GONE and before not in GONE:
            # Also of one that was not known: a broker that starts does not know who has left,
            # and what it takes for them meanwhile would wait for ever.
            changes.gone.add(identity)
            changes.came.discard(identity)
            changes.down.discard(identity)
        if after not in (MemberStatus.LOST, MemberStatus.UNKNOWN):
            changes.news.add(identity)

    def _set_deadline(self, identity: str, member: Member, deadline_ns: int) -> None:
        member.deadline_ns = deadline_ns
        heapq.heappush(self._deadlines, (deadline_ns, identity))

    def _update_there(self, changes: Changes) -> None:
        away = changes.down | changes.gone
        there = [one for one in self.there if one not in away]
        for identity in changes.came:
            if not _is_in(there, identity):
                insort(there, identity)
        self.there = tuple(there)


@lru_cache(maxsize=16)
def set_of(identities: tuple[str, ...]) -> frozenset[str]:
    """Return the same set for all brokers of a process that know the same others."""
    return frozenset(identities)


def _is_in(identities: list[str], identity: str) -> bool:
    place = bisect_left(identities, identity)
    return place < len(identities) and identities[place] == identity


def digest_of_one(identity: str, incarnation: int) -> int:
    """Return what a broker that is there adds to a digest."""
    data = f"{identity} {incarnation}".encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


@lru_cache(maxsize=16)
def _digest_of(identities: tuple[str, ...]) -> int:
    """Return the digest of brokers of whom nothing has been said; many start with the same."""
    digest = 0
    for identity in identities:
        digest ^= digest_of_one(identity, 0)
    return digest
