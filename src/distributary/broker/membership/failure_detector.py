"""The detector: pings others in turn, and notices who does not answer.

In every period it asks one other broker, each once in a round, in random order, so that the
load is the same however large the overlay is. Who does not answer is asked again, and by way
of some others, before it is held suspect. What comes back also measures the delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.host import Turn
from distributary.broker.membership.messages import Ping, PingFor, Pong, Reached, Status
from distributary.broker.settings import ns
from distributary.broker.timers import Timer

if TYPE_CHECKING:
    from distributary.broker.membership.membership import Membership

__all__ = ["Detector"]

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
        """Take an answer."""
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
        away = roster.away(Status.DOWN)
        if not away and self._periods % _PERIODS_PER_LOST == 0:
            away = roster.away(Status.LOST)
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
