"""Tickets: what a broker has asked of its host, and what it does with the answer.

A host answers at least once, if it goes on for long enough. An answer can get lost all the same:
with a worker that was killed, or with the host's memory of the question. So a broker asks again,
by the same ticket. A host that is still at work on that ticket need not do anything about it,
and must not begin it a second time; one that has forgotten it begins anew, and one that has
answered answers again. Whoever waits is told once.

Whoever works for a host may live longer than the broker that asked, and answer one that has been
restored since. So no ticket of one life of a broker is one of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributary.broker.effects import Effect, Turn
from distributary.broker.settings import ContentSettings, ns
from distributary.broker.timers import Backoff, Timer, Timers

__all__ = ["TICKETS_PER_LIFE", "Tickets"]

TICKETS_PER_LIFE = 1 << 32

# How long it waits at first before it tries what has failed for now, and at most.
_RETRY_NS = 1_000_000_000
_RETRY_NS_MAX = 16 * _RETRY_NS


class _Question:
    """Something that was asked: who is told the answer, and how it is asked again."""

    __slots__ = ("arguments", "asked", "call", "effect", "failures", "timer")

    def __init__(
        self, call: Callable[..., None], arguments: tuple[Any, ...], effect: Effect | None = None
    ) -> None:
        self.call = call
        self.arguments = arguments
        self.effect = effect
        self.asked = 0
        self.failures = 0
        self.timer: Timer | None = None


class Tickets:
    """All that one broker has asked of its host and waits for.

    Attributes
    ----------
    life
        How often the broker has been restored; to be set before anything is asked.
    """

    def __init__(self, timers: Timers, settings: ContentSettings) -> None:
        self.life = 0
        self._timers = timers
        ask_ns = ns(settings.ask_s)
        self._asking = Backoff(ask_ns, 8 * ask_ns)
        self._retrying = Backoff(_RETRY_NS, _RETRY_NS_MAX)
        self._tries = settings.conversion_tries
        self._count = 0
        self._questions: dict[int, _Question] = {}

    def expect(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> int:
        """Return a ticket for what a host is asked once, and does not forget."""
        return self._enter(_Question(call, arguments))

    def ask(
        self,
        turn: Turn,
        effect: Callable[[int], Effect],
        call: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> int:
        """Ask for something until it is answered; `effect` makes the question for a ticket."""
        question = _Question(call, arguments)
        ticket = self._enter(question)
        question.effect = effect(ticket)
        self._again(turn, ticket)
        return ticket

    def withdraw(self, ticket: int) -> None:
        """Wait no longer for an answer."""
        question = self._questions.pop(ticket, None)
        if question is not None and question.timer is not None:
            question.timer.cancel()

    def failed_for_now(self, ticket: int, turn: Turn) -> bool:
        """Try again later what has failed for now; return whether it is worth another try."""
        question = self._questions.get(ticket)
        if question is None:
            return True
        question.failures += 1
        if question.failures >= self._tries:
            return False
        question.asked = 0
        self._set_timer(ticket, question, self._retrying.after(question.failures - 1), turn)
        return True

    def answer(self, ticket: int, *answers: object, turn: Turn) -> None:
        """Tell whoever waits; nobody waits for what was answered, or was asked in another life."""
        question = self._questions.pop(ticket, None)
        if question is not None:
            if question.timer is not None:
                question.timer.cancel()
            question.call(turn, *answers, *question.arguments)

    def _enter(self, question: _Question) -> int:
        self._count += 1
        ticket = self.life * TICKETS_PER_LIFE + self._count
        self._questions[ticket] = question
        return ticket

    def _again(self, turn: Turn, ticket: int) -> None:
        question = self._questions[ticket]
        assert question.effect is not None
        turn.effects.append(question.effect)
        self._set_timer(ticket, question, self._asking.after(question.asked), turn)
        question.asked += 1

    def _set_timer(self, ticket: int, question: _Question, wait_ns: int, turn: Turn) -> None:
        if question.timer is not None:
            question.timer.cancel()
        question.timer = self._timers.at(turn.now_ns + wait_ns, self._again, ticket)
