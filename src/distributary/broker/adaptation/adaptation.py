"""Adaptation: the part of a broker that changes the trees that streams follow.

Zhou, Ooi and Tan, sections 3.2 and 4.2. `node` and `machine` say when a broker may change
a tree, `statistics` and `knowledge` what it knows of it, `fidelity.local` which move is best,
`movers` how one is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from distributary.broker.adaptation import machine, node
from distributary.broker.adaptation.messages import (
    CHECKS,
    Answer,
    Hold,
    HoldAnswer,
    HoldRelease,
    Moved,
    Order,
    Question,
    Statistics,
    Token,
)
from distributary.broker.adaptation.mover import steps_of, with_children
from distributary.broker.adaptation.movers import Movers
from distributary.broker.adaptation.statistics import Collector, grandchildren_of, view_of
from distributary.broker.adaptation.tree_orders import TreeOrders
from distributary.broker.addresses import Address
from distributary.broker.core import Handler, Part
from distributary.broker.effects import Turn
from distributary.broker.host import OrderTree
from distributary.broker.settings import ns
from distributary.broker.telemetry import Adapted
from distributary.broker.timers import Timer
from distributary.fidelity.local import LocalMove, best_move

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.membership.roster import MembersChanged

__all__ = ["Adaptation"]

# Children must have answered in this share of a hold, so that the rest is left for moves
# while all of them still hold still.
_ASKING = 0.5


class Adaptation(Part):
    """Adapts the trees that one broker is in."""

    name = "adaptation"
    uses = ("streams",)
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._settings = core.settings.adaptation
        self._node = node.Node(core.identity)
        self._collector = Collector(core)
        self._movers = Movers(core, lambda tree: self._node.obeys(tree))
        self._orders = TreeOrders(core)
        self._among: dict[tuple[str, node.Round], tuple[str, ...]] = {}
        self._chosen: LocalMove | None = None
        self._wait_began_ns = 0
        self._wait_timer: Timer | None = None
        self._hold_timer: Timer | None = None

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Token: self._token,
            Hold: self._hold,
            HoldAnswer: self._acknowledge,
            HoldRelease: self._release,
            Moved: self._moved,
            Order: self._movers.take_order,
            Question: self._movers.take_question,
            Answer: self._movers.take_answer,
            Statistics: self._statistics,
            OrderTree: self._orders.take_order,
        }

    def start(self, turn: Turn) -> None:
        """Begin to collect statistics, and rounds of the trees whose root this broker is."""
        if not self._settings.enabled:
            return
        window_ns = ns(self._settings.window_s)
        self.core.timers.at(turn.now_ns + window_ns, self._end_window)
        # Not all roots at the same time.
        first_ns = round(ns(self._settings.round_s) * (0.5 + 0.5 * self.core.rng.random()))
        self.core.timers.at(turn.now_ns + first_ns, self._begin_rounds)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Wait for nobody who does not answer any more."""
        lost = {*change.down, *change.gone}
        held, wait = self._node.held, self._node.wait
        if held is not None and held.holder in lost:
            self._step(node.HoldExpired(), turn)
        if wait is not None and wait is self._node.wait and lost.intersection(wait.pending):
            self._step(node.WaitExpired(), turn)

    def settled(self, tree: str, turn: Turn) -> None:
        """Learn that this broker has a new parent in a tree, or stays with the one it has."""
        self._movers.settled(tree, turn)
        if self._settings.enabled:
            self._collector.introduce(tree, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return whether a round is under way here."""
        held, wait = self._node.held, self._node.wait
        return {
            "held_by": None if held is None else held.holder,
            "round_of": None if wait is None else wait.round[0],
        }

    # Messages

    def _token(self, message: Token, sender: Address, turn: Turn) -> None:
        self._step(node.Token((message.tree, message.round)), turn)

    def _hold(self, message: Hold, sender: Address, turn: Turn) -> None:
        round_ = (message.tree, message.round)
        self._among[sender, round_] = message.among
        self._step(node.Hold(round_, sender), turn)
        if (sender, round_) not in self._node.holds:
            self._among.pop((sender, round_), None)

    def _acknowledge(self, message: HoldAnswer, sender: Address, turn: Turn) -> None:
        granted = message.figures is not None
        round_ = (message.tree, message.round)
        self._step(node.Acknowledged(round_, sender, granted, message), turn)

    def _release(self, message: HoldRelease, sender: Address, turn: Turn) -> None:
        round_ = (message.tree, message.round)
        self._step(node.Released(round_, sender), turn)
        self._among.pop((sender, round_), None)

    def _moved(self, message: Moved, sender: Address, turn: Turn) -> None:
        if self._orders.moved(message, sender, turn):
            return
        self._step(node.Moved((message.tree, message.round), sender, message.done), turn)

    def _statistics(self, message: Statistics, sender: Address, turn: Turn) -> None:
        self._collector.hear(message, sender)

    # Timers

    def _end_window(self, turn: Turn) -> None:
        self.core.timers.at(turn.now_ns + ns(self._settings.window_s), self._end_window)
        self._collector.tell(turn)

    def _begin_rounds(self, turn: Turn) -> None:
        self.core.timers.at(turn.now_ns + ns(self._settings.round_s), self._begin_rounds)
        streams = self.core.streams
        for tree in streams.trees():
            if streams.root(tree) == self.core.identity and streams.children(tree):
                # The time tells rounds apart even over a crash.
                self._step(node.Token((tree, turn.now_ns)), turn)

    def _hold_expired(self, turn: Turn) -> None:
        self._hold_timer = None
        self._step(node.HoldExpired(), turn)

    def _wait_expired(self, turn: Turn) -> None:
        self._wait_timer = None
        self._step(node.WaitExpired(), turn)

    # The machine

    def _step(self, given: node.Input, turn: Turn) -> None:
        before = self._node
        self._node, outputs = machine.step(before, given, self.core.streams)
        self._set_timers(before, turn)
        for output in outputs:
            self._do(output, turn)

    def _do(self, output: node.Output, turn: Turn) -> None:
        match output:
            case node.SendHold(to, (tree, number)):
                turn.send(to, Hold(tree, number, self._around(tree)))
            case node.SendAcknowledgement(to, (tree, number), granted):
                among = self._among.pop((to, (tree, number)), ())
                turn.send(to, self._report(tree, number, granted, among))
            case node.SendRelease(to, (tree, number)):
                turn.send(to, HoldRelease(tree, number))
            case node.Attempt(wait):
                self._step(node.Chosen(wait.round, self._choose(wait)), turn)
            case node.SendOrder(to, (tree, number), parent):
                turn.send(to, Order(tree, number, parent))
            case node.PassToken(wait):
                self._pass_token(wait, turn)

    def _around(self, tree: str) -> tuple[str, ...]:
        """Return the children and grandchildren that are known."""
        children = self.core.streams.children(tree)
        known = [self._collector.of(tree, child) for child in children]
        below = {name for figures in known if figures is not None for name in figures.children}
        return tuple(sorted({*children, *below}))

    def _report(self, tree: str, number: int, granted: bool, among: tuple[str, ...]) -> HoldAnswer:
        if not granted:
            return HoldAnswer(tree, number, None, (), ())
        figures = self._collector.own(tree)
        known = [(child, self._collector.of(tree, child)) for child in figures.children]
        below = tuple((child, told) for child, told in known if told is not None)
        delays_ns = tuple(
            (peer, self.core.streams.delay_ns(peer))
            for peer in sorted({*among, *figures.children})
            if peer != self.core.identity
        )
        return HoldAnswer(tree, number, figures, below, delays_ns)

    def _choose(self, wait: node.Wait) -> tuple[node.Step, ...]:
        """Return the steps of the best move that is known, if one gains anything."""
        self._chosen = None
        reports: dict[str, HoldAnswer] = dict(wait.reports)
        if not reports:
            return ()
        tree = wait.round[0]
        figures = self._collector.own(tree)
        view = view_of(self.core.identity, figures, reports, self.core.streams.delay_ns)
        move = None if view is None else best_move(view)
        if view is None or move is None:
            return ()
        self._chosen = move
        parents = {
            name: view.names[parent]
            for name, parent in zip(view.names[1:], view.parents[1:], strict=True)
        }
        return steps_of(
            move.kind, top=view.names[0], moved=move.moved, other=move.other, parents=parents
        )

    def _pass_token(self, wait: node.Wait, turn: Turn) -> None:
        tree, number = wait.round
        move, self._chosen = self._chosen, None
        if move is not None and wait.steps and wait.done == len(wait.steps):
            turn.report(Adapted(tree, move.kind, move.gain))
        below = grandchildren_of(dict(wait.reports))
        children = self.core.streams.children(tree)
        for child in with_children(children, below, wait.steps[: wait.done]):
            turn.send(child, Token(tree, number))

    def _set_timers(self, before: node.Node, turn: Turn) -> None:
        """Have patience with what has just begun."""
        held, wait = self._node.held, self._node.wait
        hold_ns = ns(self._settings.hold_s)
        if held != before.held:
            if self._hold_timer is not None:
                self._hold_timer.cancel()
                self._hold_timer = None
            if held is not None:
                at_ns = turn.now_ns + hold_ns
                self._hold_timer = self.core.timers.at(at_ns, self._hold_expired)
        old = before.wait
        if wait is None or old is None or wait.round != old.round:
            self._wait_began_ns = turn.now_ns
        elif wait.attempting == old.attempting:
            return
        if self._wait_timer is not None:
            self._wait_timer.cancel()
            self._wait_timer = None
        if wait is not None:
            share = 1.0 if wait.attempting else _ASKING
            at_ns = self._wait_began_ns + round(share * hold_ns)
            self._wait_timer = self.core.timers.at(at_ns, self._wait_expired)
