"""Movers: a broker that goes to another parent by order, and lets others pass or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from distributary.broker.adaptation import mover
from distributary.broker.adaptation.messages import Answer, Moved, Order, Question
from distributary.broker.addresses import Address
from distributary.broker.effects import Turn
from distributary.broker.settings import ns
from distributary.broker.timers import Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Movers"]

# Longer than any tree is deep: a question that has gone further goes round in circles.
_HOPS_MAX = 64
# A question is answered in some round trips. The share of a hold that it may take leaves time
# for the link itself, and for a second step.
_PATIENCE = 0.25


class Movers:
    """What a broker does about moves of its own and of those below it.

    Parameters
    ----------
    core
        The broker's.
    obeys
        Whether the broker may be moved in a tree now.
    """

    def __init__(self, core: Core, obeys: Callable[[str], bool]) -> None:
        self._core = core
        self._obeys = obeys
        self._moves: dict[str, mover.Move] = {}
        self._timers: dict[str, Timer] = {}
        self._number = 0

    def take_order(self, message: Order, sender: Address, turn: Turn) -> None:
        """Handle that somebody above wants the broker below another one."""
        streams = self._core.streams
        tree = message.tree
        if streams.parent(tree) == message.parent:
            turn.send(sender, Moved(tree, message.round, done=True))
            return
        obeys = (
            self._obeys(tree)
            and streams.parent(tree) is not None
            and streams.asking(tree) is None
            and message.parent != self._core.identity
        )
        # Larger than any number before a crash, which nobody remembers.
        self._number = max(self._number + 1, turn.now_ns)
        self._step(
            tree,
            mover.Ordered(
                (tree, message.round),
                sender,
                message.parent,
                obeys=obeys,
                to_root=obeys and streams.root(tree) == message.parent,
                number=self._number,
            ),
            turn,
        )

    def take_question(self, message: Question, sender: Address, turn: Turn) -> None:
        """Handle that a broker wants to go below us, or further down."""
        streams = self._core.streams
        tree = message.tree
        parent = streams.parent(tree)
        is_root = tree in streams.trees() and streams.root(tree) == self._core.identity
        verdict = mover.Verdict.REFUSED
        if (is_root or parent is not None) and streams.asking(tree) is None:
            move = self._moves.get(tree, mover.AT_REST)
            verdict = mover.judge(self._core.identity, parent, move, message.mover)
        if verdict is mover.Verdict.ON and message.hops < _HOPS_MAX:
            assert parent is not None
            turn.send(parent, Question(tree, message.mover, message.number, message.hops + 1))
            return
        cleared = verdict is mover.Verdict.CLEARED
        turn.send(message.mover, Answer(tree, message.number, cleared))

    def take_answer(self, message: Answer, sender: Address, turn: Turn) -> None:
        """Handle that we may go where we want to, or not."""
        self._step(message.tree, mover.Answered(message.number, message.cleared), turn)

    def settled(self, tree: str, turn: Turn) -> None:
        """Learn that nobody is asked any more to be the parent in a tree."""
        move = self._moves.get(tree, mover.AT_REST)
        accepted = self._core.streams.parent(tree) == move.parent
        self._step(tree, mover.Arrived(move.number, accepted), turn)

    def _step(self, tree: str, given: mover.Given, turn: Turn) -> None:
        before = self._moves.get(tree, mover.AT_REST)
        after, doing = mover.step(before, given)
        self._moves[tree] = after
        if after.stage is mover.Stage.STILL:
            del self._moves[tree]
        if after.stage is not before.stage:
            self._watch(tree, after.stage, turn)
        match doing:
            case mover.Climb(to, number):
                turn.send(to, Question(tree, self._core.identity, number, 0))
            case mover.Attach(to, number):
                self._core.streams.attach_to(tree, to, turn)
                if self._core.streams.asking(tree) != to:
                    self._step(tree, mover.Arrived(number, accepted=False), turn)
            case mover.Tell(to, round_, done):
                turn.send(to, Moved(tree, round_[1], done))

    def _watch(self, tree: str, stage: mover.Stage, turn: Turn) -> None:
        """Lose patience with a question; the streams part does so with a link."""
        timer = self._timers.pop(tree, None)
        if timer is not None:
            timer.cancel()
        if stage is mover.Stage.CLIMBING:
            patience_ns = ns(self._core.settings.adaptation.hold_s * _PATIENCE)
            self._timers[tree] = self._core.timers.at(turn.now_ns + patience_ns, self._expire, tree)

    def _expire(self, turn: Turn, tree: str) -> None:
        self._timers.pop(tree, None)
        self._step(tree, mover.Expired(), turn)
