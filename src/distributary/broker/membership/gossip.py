"""Gossip and the failure detector: how brokers notice who is there, and tell each other.

Gossip: what brokers tell each other about each other, what comes of it, and what to pass on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address, is_broker
from distributary.broker.core import Core
from distributary.broker.host import Turn
from distributary.broker.membership.roster import (
    LIFE,
    Gossip,
    Join,
    Members,
    MembersChanged,
    MemberStatus,
    News,
    Ping,
    PingFor,
    Pong,
    Reached,
    Roster,
    digest_of_one,
)
from distributary.broker.settings import ns
from distributary.broker.timers import Timer
from distributary.errors import PeerMisbehaved

if TYPE_CHECKING:
    from distributary.broker.membership.membership import Membership

__all__ = ["Detector", "GossipExchange", "GossipQueue"]


# The failure detector: pings others in turn, and notices who does not answer.
#
# In every period it asks one other broker, each once in a round, in random order, so that the
# load is the same however large the overlay is. Who does not answer is asked again, and by way
# of some others, before it is held suspect. What comes back also measures the delay.


# How many others are asked to ping on our behalf.
_HELPERS = 3

# Delays that nobody knows are measured this many at a time.
_MEASURED_PER_PERIOD = 8

# Lost brokers are looked for, in case they are not lost, but not often.
_PERIODS_PER_LOST = 8


class _Question:
    """A ping that has not been answered."""

    __slots__ = ("asked_by", "asked_number", "peer", "sent_ns", "timer")

    def __init__(self, peer: str, sent_ns: int) -> None:
        self.peer = peer
        self.sent_ns: int | None = sent_ns
        self.asked_by: Address | None = None
        self.asked_number = 0
        self.timer: Timer | None = None


class Detector:
    """The pings of one broker."""

    def __init__(self, membership: Membership) -> None:
        settings = membership.core.settings.membership
        self._membership = membership
        self._core = membership.core
        self._period_ns = ns(settings.period_s)
        self._answer_ns = ns(settings.answer_s)
        self._questions: dict[int, _Question] = {}
        self._probed: set[str] = set()
        self._round: list[str] = []
        self._place = 0
        self._periods = 0
        self._number = 0
        self._unmeasured: dict[str, None] = {}

    def start(self, turn: Turn) -> None:
        """Begin somewhere within the first period, so that not all ping at once."""
        first_ns = round(self._core.rng.random() * self._period_ns)
        self._core.timers.at(turn.now_ns + first_ns, self._period)

    def came(self, peer: str) -> None:
        """Have a new one pinged in its turn."""
        if not self._membership.distances.expect(peer):
            self._unmeasured[peer] = None
        if self._round:
            self._round.append(peer)

    def ping(self, peer: str, turn: Turn) -> None:
        """Ping a peer without drawing a conclusion from silence."""
        self._ask(_Question(peer, turn.now_ns), turn)

    def probe(self, peer: str, turn: Turn) -> None:
        """Ping a peer, and hold it suspect if neither it nor others on our behalf answer."""
        if peer in self._probed or self._membership.detached:
            return
        self._probed.add(peer)
        question = _Question(peer, turn.now_ns)
        number = self._ask(question, turn)
        at_ns = turn.now_ns + self._answer_ns
        question.timer = self._core.timers.at(at_ns, self._unanswered, number)

    def suspend(self) -> None:
        """Expect no answers."""
        for number, question in list(self._questions.items()):
            self._close(number, question)

    def ping_for(self, message: PingFor, sender: Address, turn: Turn) -> None:
        """Ping somebody on behalf of another broker."""
        if not self._membership.is_alive(message.target):
            return
        question = _Question(message.target, turn.now_ns)
        question.asked_by = sender
        question.asked_number = message.number
        self._ask(question, turn)

    def answered(self, message: Pong, sender: Address, turn: Turn) -> None:
        """Take an answer: measure the way, and tell whom the question was asked for."""
        question = self._questions.get(message.number)
        if question is None or question.peer != sender:
            return
        self._close(message.number, question)
        if question.sent_ns is not None:
            self._membership.distances.measure(sender, turn.now_ns - question.sent_ns)
        self._unmeasured.pop(sender, None)
        if question.asked_by is not None:
            turn.send(question.asked_by, Reached(question.asked_number))

    def reached(self, message: Reached) -> None:
        """Be told that somebody who does not answer us answers others."""
        question = self._questions.get(message.number)
        if question is not None and question.timer is not None:
            self._close(message.number, question)

    def _ask(self, question: _Question, turn: Turn) -> int:
        self._number += 1
        self._questions[self._number] = question
        self._send_ping(self._number, question.peer, turn)
        return self._number

    def _send_ping(self, number: int, peer: str, turn: Turn) -> None:
        gossip = self._membership.gossip
        news = gossip.news_for(peer)
        digests, version = self._core.settings.digests, self._core.version
        turn.send(peer, Ping(number, gossip.incarnation, gossip.digest, news, digests, version))

    def _close(self, number: int, question: _Question) -> None:
        del self._questions[number]
        if question.timer is not None:
            question.timer.cancel()
            self._probed.discard(question.peer)

    def _period(self, turn: Turn) -> None:
        self._core.timers.at(turn.now_ns + self._period_ns, self._period)
        if self._membership.detached:
            return
        self._periods += 1
        self._drop_old(turn.now_ns)
        peer = self._next_in_round()
        if peer is not None:
            self.probe(peer, turn)
        self._look_for_lost(turn)
        for peer in list(self._unmeasured)[:_MEASURED_PER_PERIOD]:
            del self._unmeasured[peer]
            if self._membership.is_alive(peer):
                self._unmeasured[peer] = None
                self.ping(peer, turn)
        self._membership.refresh(turn)

    def _next_in_round(self) -> str | None:
        """Draw the next of the round, without shuffling all of it beforehand."""
        membership = self._membership
        for _ in range(2):
            while self._place < len(self._round):
                drawn = self._core.rng.randrange(self._place, len(self._round))
                peers, place = self._round, self._place
                peers[place], peers[drawn] = peers[drawn], peers[place]
                self._place += 1
                if peers[place] != self._core.identity and membership.is_alive(peers[place]):
                    return peers[place]
            self._round = list(membership.alive())
            self._place = 0
        return None

    def _look_for_lost(self, turn: Turn) -> None:
        roster = self._membership.gossip.roster
        away = roster.away(MemberStatus.DOWN)
        if not away and self._periods % _PERIODS_PER_LOST == 0:
            away = roster.away(MemberStatus.LOST)
        if away:
            self.ping(self._core.rng.choice(away), turn)

    def _drop_old(self, now_ns: int) -> None:
        """Forget pings without consequence that nobody will answer any more."""
        old_ns = now_ns - max(2 * self._period_ns, 4 * self._answer_ns)
        for number, question in list(self._questions.items()):
            if question.sent_ns is not None and question.sent_ns > old_ns:
                break
            if question.timer is None:
                del self._questions[number]

    def _unanswered(self, turn: Turn, number: int) -> None:
        question = self._questions[number]
        # Which of two pings an answer is to cannot be told, so it measures nothing.
        question.sent_ns = None
        self._send_ping(number, question.peer, turn)
        for helper in self._membership.gossip.some_others(_HELPERS, without=question.peer):
            turn.send(helper, PingFor(number, question.peer))
        at_ns = turn.now_ns + 2 * self._answer_ns
        question.timer = self._core.timers.at(at_ns, self._unreached, number)

    def _unreached(self, turn: Turn, number: int) -> None:
        question = self._questions.pop(number)
        self._probed.discard(question.peer)
        self._membership.gossip.suspect(question.peer, turn)


# As many as fit in a datagram beside everything else.
_NEWS_PER_PING = 16


class _Rumour:
    __slots__ = ("left", "news")

    def __init__(self, news: News, left: int) -> None:
        self.news = news
        self.left = left


class GossipQueue:
    """The latest news of each broker, as long as they have to be passed on.

    News are passed on twice over: at once, to a few others, which reaches most of an overlay
    within a few delays; and with pings and their answers, some logarithm of times, which
    reaches those that were left out.
    """

    def __init__(self) -> None:
        self._rumours: dict[str, _Rumour] = {}
        self._fresh: dict[str, News] = {}

    def __bool__(self) -> bool:
        return bool(self._rumours)

    @property
    def has_fresh(self) -> bool:
        """Whether there are news that have not been passed on at all."""
        return bool(self._fresh)

    def add(self, news: News, *, member_count: int) -> None:
        """Pass on news, in place of older ones of the same broker."""
        self._rumours[news.identity] = _Rumour(news, 3 * (member_count + 1).bit_length())
        self._fresh[news.identity] = news

    def take(self) -> tuple[News, ...]:
        """Return what goes with the next ping or answer: what has gone out least often."""
        if not self._rumours:
            return ()
        chosen = nsmallest(
            _NEWS_PER_PING,
            self._rumours.values(),
            key=lambda rumour: (-rumour.left, rumour.news.identity),
        )
        for rumour in chosen:
            rumour.left -= 1
            if not rumour.left:
                del self._rumours[rumour.news.identity]
        return tuple(rumour.news for rumour in chosen)

    def take_fresh(self) -> tuple[News, ...]:
        """Return the news that have not been passed on at all, which then have been."""
        fresh = tuple(news for _, news in sorted(self._fresh.items()))
        self._fresh.clear()
        return fresh


# To so many others news are passed on at once. With six, one in four hundred is left out. It
# hears of them by a ping a second or two later, and what waits for that broker waits for as long.
_FANOUT = 6

# Suspects are asked a last time before they count as down, unless there are many.
_ASKED_LAST_MAX = 8

# Numbers of messages and tickets begin with the life, and are eight bytes long.
_INCARNATION_MAX = 1 << 51

_VERSION_MAX = 256

# The version with which `Members` could be one part of several.
_IN_PARTS = 2

# So many news make a message at most, which is then far smaller than messages may be.
_NEWS_PER_MESSAGE = 2048

_AWAY = (MemberStatus.DOWN, MemberStatus.LOST)


class GossipExchange:
    """All that one broker hears about others and tells about itself.

    Parameters
    ----------
    changed
        Called with what has changed about the members: nothing, if it is the own life.
    ask
        Pings a broker.

    Attributes
    ----------
    incarnation
        How often the broker was restarted, and had to deny that it is down.
    leaving
        Whether it has said goodbye.
    """

    def __init__(
        self,
        core: Core,
        founders: tuple[str, ...],
        incarnation: int,
        version: int,
        *,
        changed: Callable[[MembersChanged, Turn], None],
        ask: Callable[[str, Turn], None],
    ) -> None:
        settings = core.settings.membership
        self.roster = Roster(
            core.identity,
            founders,
            version=version,
            suspicion_ns=max(ns(settings.suspicion_s) - 2 * ns(settings.answer_s), 0),
            lost_ns=ns(settings.lost_s),
        )
        self.incarnation = incarnation
        self.leaving = False
        self._core = core
        self._changed = changed
        self._ask = ask
        self._period_ns = ns(settings.period_s)
        self._answer_ns = ns(settings.answer_s)
        self._gossip_ns = ns(settings.gossip_s)
        self._rumours = GossipQueue()
        self._own_digest = digest_of_one(core.identity, incarnation)
        self._gossiping = False
        self._compared_ns: int | None = None
        self._expiry: Timer | None = None

    @property
    def digest(self) -> int:
        """A digest of everybody who is there."""
        return self.roster.digest if self.leaving else self.roster.digest ^ self._own_digest

    def own_news(self) -> News:
        """Return what this broker says of itself."""
        status = MemberStatus.LEFT if self.leaving else MemberStatus.ALIVE
        return News(self._core.identity, self.incarnation, status, self._core.version)

    def all_news(self) -> tuple[News, ...]:
        """Return everything that this broker knows."""
        news_of = self.roster.news_of
        return (self.own_news(), *(news_of(one) for one in self.roster.known()))

    def news_for(self, peer: str) -> tuple[News, ...]:
        """Return what goes with a ping or an answer.

        What is thought of the peer itself comes first, so that it can deny it.
        """
        news = self._rumours.take()
        if self.roster.status(peer) not in (MemberStatus.ALIVE, MemberStatus.UNKNOWN):
            news = (self.roster.news_of(peer), *news)
        # One that speaks less than it knows says so where that is not in the ping itself.
        speaks_less = self._core.membership.version < self._core.version
        return (self.own_news(), *news) if self.leaving or speaks_less else news

    def hear_from(
        self, message: Ping | Pong | Join, sender: str, turn: Turn, news: tuple[News, ...] = ()
    ) -> None:
        """Take news that come with a ping or an answer, which is news of the sender too."""
        incarnation, version = message.incarnation, message.version
        if news or not self.roster.is_plain(sender, incarnation, version):
            before = self.roster.status(sender)
            # In this order: one that is leaving answers, which does not mean that it stays.
            self.hear((*news, News(sender, incarnation, MemberStatus.ALIVE, version)), turn)
            if before in _AWAY and self.roster.status(sender) is MemberStatus.ALIVE:
                # It may not be alone in coming back: the network may have been in two.
                self._exchange(sender, turn)

    def hear(self, news: Iterable[News], turn: Turn) -> None:
        """Take news, if they are in order; otherwise none of them."""
        self.check(news)
        life = self.incarnation // LIFE
        for one in news:
            if one.identity == self._core.identity:
                self._hear_of_self(one)
            else:
                self.roster.hear(one, now_ns=turn.now_ns)
        if self.incarnation // LIFE != life:
            self._changed(MembersChanged(), turn)
        self._settle(turn)

    def suspect(self, peer: str, turn: Turn) -> None:
        """Hold a broker suspect that does not answer."""
        self.roster.doubt(peer, now_ns=turn.now_ns)
        self._settle(turn)

    def compare(self, digest: int, peer: str, turn: Turn) -> None:
        """Exchange everything with a broker that disagrees although no news are about."""
        if digest != self.digest and not self._rumours:
            self._exchange(peer, turn)

    def some_others(self, count: int, *, without: str) -> list[str]:
        """Return some others that are there, at random."""
        there = self.roster.there
        drawn = self._core.rng.sample(there, min(count + 2, len(there)))
        return [one for one in drawn if one not in (without, self._core.identity)][:count]

    def check(self, news: Iterable[News]) -> None:
        """Refuse news that nobody can have."""
        digits = len(self._core.identity)
        for one in news:
            if not is_broker(one.identity, digits):
                self.check_identity(one.identity)
            if one.status in (MemberStatus.UNKNOWN, MemberStatus.LOST) or not (
                0 <= one.incarnation < _INCARNATION_MAX and 0 < one.version < _VERSION_MAX
            ):
                raise PeerMisbehaved(f"impossible news of {one.identity}")

    def check_identity(self, identity: str) -> None:
        """Refuse what cannot be the name of a broker of this overlay."""
        if not is_broker(identity, len(self._core.identity)):
            raise PeerMisbehaved(f"{identity!r} is not the name of a broker")

    def _exchange(self, peer: str, turn: Turn) -> None:
        since_ns = self._compared_ns
        if since_ns is not None and 0 <= turn.now_ns - since_ns < self._period_ns:
            return
        self._compared_ns = turn.now_ns
        self.tell_all(peer, self.all_news(), turn, answer=True)

    def tell_all(
        self, peer: str, news: Iterable[News], turn: Turn, *, answer: bool = False
    ) -> None:
        """Tell a broker what there is to tell, in as many messages as it takes.

        Each says for which identifiers it is all there is, so that one that gets lost, or is
        answered before the others have come, does no harm.
        """
        told = sorted(news, key=lambda one: one.identity)
        if len(told) <= _NEWS_PER_MESSAGE or self._core.membership.version < _IN_PARTS:
            turn.send(peer, Members(tuple(told), answer))
            return
        for first in range(0, len(told), _NEWS_PER_MESSAGE):
            some = tuple(told[first : first + _NEWS_PER_MESSAGE])
            after = told[first - 1].identity if first else ""
            upto = some[-1].identity if first + len(some) < len(told) else ""
            turn.send(peer, Members(some, answer, after, upto))

    def _hear_of_self(self, news: News) -> None:
        """Deny what is said about this broker, unless it is true."""
        own = self.own_news()
        # Whoever has heard it from a broker of the version before does not know the own one.
        same = (news.incarnation, news.status) == (own.incarnation, own.status)
        if news.incarnation < self.incarnation or same:
            return
        if not self.leaving:
            self.incarnation = news.incarnation + 1
            self._own_digest = digest_of_one(self._core.identity, self.incarnation)
        self._spread(self.own_news())

    def _settle(self, turn: Turn) -> None:
        """Draw the consequences of what has been heard."""
        change, names = self.roster.take_changes()
        for name in names:
            self._spread(self.roster.news_of(name))
        if self._rumours.has_fresh and not self._gossiping:
            self._gossiping = True
            self._core.timers.at(turn.now_ns + self._gossip_ns, self._gossip)
        self._set_expiry()
        if change.came or change.down or change.gone:
            self._changed(change, turn)

    def _spread(self, news: News) -> None:
        self._rumours.add(news, member_count=len(self.roster.there))

    def _gossip(self, turn: Turn) -> None:
        self._gossiping = False
        news = self._rumours.take_fresh()
        for peer in self.some_others(_FANOUT, without=self._core.identity):
            for first in range(0, len(news), _NEWS_PER_MESSAGE):
                turn.send(peer, Gossip(news[first : first + _NEWS_PER_MESSAGE]))

    def _set_expiry(self) -> None:
        deadline_ns = self.roster.next_deadline_ns()
        if self._expiry is not None:
            if self._expiry.at_ns == deadline_ns:
                return
            self._expiry.cancel()
            self._expiry = None
        if deadline_ns is not None:
            self._expiry = self._core.timers.at(deadline_ns, self._expire)

    def resume(self, turn: Turn) -> None:
        """Give all of whom nothing was heard as long as if they had just gone quiet."""
        self.roster.renew_deadlines(now_ns=turn.now_ns)
        self._settle(turn)

    def _expire(self, turn: Turn) -> None:
        self._expiry = None
        if self._core.membership.detached:
            return
        roster = self.roster
        due = roster.due(turn.now_ns)
        for peer in due:
            member = roster.get(peer)
            if member.status is MemberStatus.SUSPECT and not member.warned:
                # The time to answer is the last part of that which it has to deny.
                roster.spare(peer, until_ns=turn.now_ns + 2 * self._answer_ns)
                if len(due) <= _ASKED_LAST_MAX:
                    self._ask(peer, turn)
            else:
                roster.expire(peer, now_ns=turn.now_ns)
        self._settle(turn)
