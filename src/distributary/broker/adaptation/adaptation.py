"""Adaptation: the part of a broker that changes the trees that streams follow.

Zhou, Ooi and Tan, sections 3.2 and 4.2. `node` says when a broker may change a tree, `statistics`
what it knows of it, `fidelity.local` which move is best, and `mover` how one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from distributary.broker.adaptation import mover, node
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
from distributary.broker.adaptation.statistics import Collector, grandchildren_of, view_of
from distributary.broker.addresses import Address
from distributary.broker.core import Handler, Part
from distributary.broker.host import OrderTree, Turn
from distributary.broker.settings import ns
from distributary.broker.telemetry import Adapted, TreeOrdered
from distributary.broker.timers import Timer
from distributary.fidelity.local import LocalMove, best_move

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.membership.roster import MembersChanged

__all__ = ["Adaptation", "Movers", "TreeOrders"]

# Longer than any tree is deep: a question that has gone further goes round in circles.
_HOPS_MAX = 64
# A question is answered in some round trips. The share of a hold that it may take leaves time
# for the link itself, and for a second step.
_PATIENCE = 0.25


class Movers:
    """What a broker does about moves of its own and of those below it.

    Parameters
    ----------
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


# Orders to bring a tree into a shape that was planned elsewhere.
#
# The root tells one broker after the other to go below its wanted parent, nearest to the root
# first: what a broker is to go below has its own place by then. Each step is the `Order` that
# adaptation gives too, so that whoever moves asks first and no cycle can come of it, whatever
# else moves meanwhile. A step that is refused may become possible by a later one, so that those
# are tried once more at the end. An order is volatile: after a crash of the root it is given
# again by whoever wants the tree, as `TreeOrdered` was never reported.

_TRIES = 2


class _Shaping:
    """A tree that is being brought into a shape.

    Attributes
    ----------
    round
        Tells the answers to this order from those of adaptation's rounds.
    waiting, refused
        (broker, parent): steps to be made, the next one last, and those made in vain.
    """

    __slots__ = ("moved", "refused", "round", "timer", "tries", "waiting")

    def __init__(self, round_: int, steps: list[tuple[str, str]]) -> None:
        self.round = round_
        self.waiting = steps[::-1]
        self.refused: list[tuple[str, str]] = []
        self.moved = 0
        self.tries = 1
        self.timer: Timer | None = None


class TreeOrders:
    """The orders that one broker carries out for trees whose root it is."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._shaping: dict[str, _Shaping] = {}
        self._wait_ns = ns(core.settings.adaptation.hold_s)
        self._round = 0

    def take_order(self, message: OrderTree, sender: Address, turn: Turn) -> None:
        """Begin to bring a tree into a shape; a newer order takes the place of an older one."""
        tree = message.tree
        reason = self._objection(tree)
        steps = [] if reason else _from_the_root(self._core.identity, dict(message.parents))
        if not reason and len(steps) < len(dict(message.parents)):
            reason = "the shape goes round in a circle"
        if reason:
            turn.report(TreeOrdered(tree, 0, message.parents, reason))
            return
        self._end(tree)
        # Later than any round of adaptation before a crash, which nobody remembers.
        self._round = max(self._round + 1, turn.now_ns)
        self._shaping[tree] = _Shaping(self._round, steps)
        self._next(tree, turn)

    def moved(self, message: Moved, sender: Address, turn: Turn) -> bool:
        """Take the answer to a step, if it is one."""
        shaping = self._shaping.get(message.tree)
        if shaping is None or shaping.round != message.round:
            return False
        if shaping.waiting and shaping.waiting[-1][0] == sender:
            self._answered(message.tree, shaping, turn, done=message.done)
        return True

    def _objection(self, tree: str) -> str:
        streams = self._core.streams
        if tree not in streams.trees() or streams.root(tree) != self._core.identity:
            return "this broker is not the root of such a tree"
        return ""

    def _next(self, tree: str, turn: Turn) -> None:
        shaping = self._shaping[tree]
        if not shaping.waiting and shaping.refused and shaping.tries < _TRIES:
            shaping.tries += 1
            shaping.waiting, shaping.refused = shaping.refused[::-1], []
        if not shaping.waiting:
            self._end(tree)
            turn.report(TreeOrdered(tree, shaping.moved, tuple(shaping.refused)))
            return
        broker, parent = shaping.waiting[-1]
        turn.send(broker, Order(tree, shaping.round, parent))
        shaping.timer = self._core.timers.at(turn.now_ns + self._wait_ns, self._silent, tree)

    def _silent(self, turn: Turn, tree: str) -> None:
        self._answered(tree, self._shaping[tree], turn, done=False)

    def _answered(self, tree: str, shaping: _Shaping, turn: Turn, *, done: bool) -> None:
        if shaping.timer is not None:
            shaping.timer.cancel()
        step = shaping.waiting.pop()
        if done:
            shaping.moved += 1
        else:
            shaping.refused.append(step)
        self._next(tree, turn)

    def _end(self, tree: str) -> None:
        shaping = self._shaping.pop(tree, None)
        if shaping is not None and shaping.timer is not None:
            shaping.timer.cancel()


def _from_the_root(root: str, parents: dict[str, str]) -> list[tuple[str, str]]:
    """Return (broker, parent) level by level; those that are not below the root are left out."""
    children: dict[str, list[str]] = {}
    for broker in sorted(parents):
        children.setdefault(parents[broker], []).append(broker)
    steps: list[tuple[str, str]] = []
    level = sorted(set(children) - set(parents) | {root})
    while level:
        following = [(child, parent) for parent in level for child in children.pop(parent, ())]
        steps += following
        level = [child for child, _ in following]
    return steps


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
            Statistics: self._collector.hear,
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
        self._node, outputs = node.step(before, given, self.core.streams)
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
