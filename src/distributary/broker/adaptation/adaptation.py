"""Adaptation: the part of a broker that changes the trees that streams follow.

Zhou, Ooi and Tan, sections 3.2 and 4.2. `node` says when a broker may change a tree, `Collector`
what it knows of it, `fidelity.local` which move is best, and `mover` how one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distributary.broker.adaptation import node
from distributary.broker.adaptation.messages import (
    CHECKS,
    Answer,
    Figures,
    Hold,
    HoldAnswer,
    HoldRelease,
    Moved,
    ObjectFigures,
    Order,
    Question,
    Statistics,
    Token,
)
from distributary.broker.adaptation.mover import Movers, steps_of, with_children
from distributary.broker.addresses import Address
from distributary.broker.core import Core, Handler, Part
from distributary.broker.host import OrderTree, Turn
from distributary.broker.settings import ns
from distributary.broker.telemetry import Adapted, TreeOrdered
from distributary.broker.timers import Timer
from distributary.fidelity.local import LocalMove, LocalView, best_move

if TYPE_CHECKING:
    from distributary.broker.membership.roster import MembersChanged

__all__ = ["Adaptation", "TreeOrders", "differs"]


# Statistics: what a broker knows of itself and its children in each tree.
#
# Rates are those of the last window, as the streams part has counted them. A broker tells its
# parent its figures when one has changed by more than the factor 1 + tau, or when the parent is
# another one; so every parent knows its children, and can tell them to its own parent.
#
# Knowledge: what a broker that has heard all its children knows of a tree.


# What is followed has a rate, even if nothing was seen in a window: a follower more is work
# more, and nothing is divided by zero.
_RATE_MIN = 1e-6


class _Sums(NamedTuple):
    """What a broker does for one tree: its load, the sum of peak rates, the weight below."""

    load: float
    peaks: float
    below: float


class _Told(NamedTuple):
    parent: str
    figures: Figures
    at_ns: int


class Collector:
    """Collects the figures of one broker, and those that its children have told."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[tuple[str, str], Figures] = {}
        self._told: dict[str, _Told] = {}
        # Rates change at the end of a window only, so that sums over hundreds of trees need
        # not be made anew for every question about one.
        self._sums: dict[str, tuple[tuple[str, ...], _Sums]] = {}
        self._wishes = 0

    def hear(self, message: Statistics, sender: str, turn: Turn) -> None:
        """Take what a child tells."""
        for tree, figures in message.figures:
            self._known[tree, sender] = figures
            self._sums.pop(tree, None)

    def of(self, tree: str, child: str) -> Figures | None:
        """Return what a child has told; None when it has told nothing yet."""
        return self._known.get((tree, child))

    def own(self, tree: str) -> Figures:
        """Return the broker's own figures in a tree."""
        streams = self._core.streams
        sums = {other: self._sums_of(other) for other in streams.trees()}
        objects = self._objects(tree)
        if self._wishes == 0:
            self._wishes = max(sum(len(streams.own_rates(one)) for one in streams.trees()), 1)
        weight = sum(entry.own for entry in objects) / self._wishes
        elsewhere = [figure for other, figure in sums.items() if other != tree]
        return Figures(
            objects=objects,
            children=streams.children(tree),
            weight=weight,
            weight_below=sums[tree].below if tree in sums else 0.0,
            filter_s=streams.filter_time_s,
            send_s=streams.send_time_s,
            load_elsewhere=sum(figure.load for figure in elsewhere),
            peaks_elsewhere=sum(figure.peaks for figure in elsewhere),
            weight_elsewhere=sum(figure.below for figure in elsewhere),
        )

    def tell(self, turn: Turn) -> None:
        """Tell parents what has changed; to be called at the end of each window."""
        streams = self._core.streams
        self._sums.clear()
        self._wishes = 0
        trees = set(streams.trees())
        self._told = {tree: told for tree, told in self._told.items() if tree in trees}
        self._known = {
            (tree, child): figures
            for (tree, child), figures in self._known.items()
            if child in streams.children(tree)
        }
        news: dict[str, list[tuple[str, Figures]]] = {}
        for tree in streams.trees():
            parent = streams.parent(tree)
            if parent is not None:
                figures = self.own(tree)
                if self._is_news(tree, parent, figures, turn.now_ns):
                    news.setdefault(parent, []).append((tree, figures))
                    self._told[tree] = _Told(parent, figures, turn.now_ns)
        for parent, figures_by_tree in news.items():
            turn.send(parent, Statistics(tuple(figures_by_tree)))

    def introduce(self, tree: str, turn: Turn) -> None:
        """Tell a new parent in a tree the own figures."""
        parent = self._core.streams.parent(tree)
        told = self._told.get(tree)
        if parent is not None and (told is None or told.parent != parent):
            figures = self.own(tree)
            self._told[tree] = _Told(parent, figures, turn.now_ns)
            turn.send(parent, Statistics(((tree, figures),)))

    def _is_news(self, tree: str, parent: str, figures: Figures, now_ns: int) -> bool:
        settings = self._core.settings.adaptation
        told = self._told.get(tree)
        if told is None or told.parent != parent or differs(told.figures, figures, settings.tau):
            return True
        # What was told may have been lost; who has nothing new to say says it again.
        return now_ns - told.at_ns >= ns(settings.round_s)

    def _objects(self, tree: str) -> tuple[ObjectFigures, ...]:
        streams = self._core.streams
        own = streams.own_rates(tree)
        passed = [streams.rates(tree, child) for child in streams.children(tree)]
        found = []
        for name in sorted({*own, *(name for rates in passed for name in rates)}):
            mine = max(own[name], _RATE_MIN) if name in own else 0.0
            theirs = [max(rates[name], _RATE_MIN) for rates in passed if name in rates]
            peak = max([mine, *theirs])
            found.append(ObjectFigures(*name, mine, peak, len(theirs), sum(theirs)))
        return tuple(found)

    def _sums_of(self, tree: str) -> _Sums:
        children = self._core.streams.children(tree)
        known = self._sums.get(tree)
        if known is None or known[0] != children:
            known = self._sums[tree] = (children, self._sum_up(tree, children))
        return known[1]

    def _sum_up(self, tree: str, children: tuple[str, ...]) -> _Sums:
        streams = self._core.streams
        objects = self._objects(tree)
        load = sum(
            streams.filter_time_s * entry.receivers * entry.peak
            + streams.send_time_s * entry.passed
            for entry in objects
        )
        below = 0.0
        for child in children:
            figures = self.of(tree, child)
            if figures is None:
                # As if it had one wish of its own: better than nothing until it tells.
                below += sum(streams.rates(tree, child).values())
            else:
                below += figures.weight + figures.weight_below
        return _Sums(load, sum(entry.peak for entry in objects), below)


def differs(old: Figures, new: Figures, tau: float) -> bool:
    """Whether a figure has risen or fallen by more than the factor 1 + tau."""
    if old.children != new.children or len(old.objects) != len(new.objects):
        return True
    pairs = [
        (old.weight, new.weight),
        (old.weight_below, new.weight_below),
        (old.filter_s, new.filter_s),
        (old.send_s, new.send_s),
        (old.load_elsewhere, new.load_elsewhere),
        (old.peaks_elsewhere, new.peaks_elsewhere),
        (old.weight_elsewhere, new.weight_elsewhere),
    ]
    for before, now in zip(old.objects, new.objects, strict=True):
        if (before.source, before.subject) != (now.source, now.subject):
            return True
        pairs += [(before.own, now.own), (before.peak, now.peak), (before.passed, now.passed)]
        pairs.append((before.receivers, now.receivers))
    return any(max(pair) > min(pair) * (1.0 + tau) for pair in pairs)


_NS_PER_SECOND = 1e9


def grandchildren_of(reports: Mapping[str, HoldAnswer]) -> dict[str, tuple[str, ...]]:
    """Return the children of each child that reported."""
    return {
        child: report.figures.children
        for child, report in reports.items()
        if report.figures is not None
    }


def view_of(
    name: str,
    figures: Figures,
    reports: Mapping[str, HoldAnswer],
    delay_ns_to: Callable[[str], int],
) -> LocalView | None:
    """Return the tree as a broker sees it; None when it has not heard of everybody yet.

    Parameters
    ----------
    name, figures
        Of the broker itself.
    reports
        What each of its children told.
    delay_ns_to
        The broker's own delays.
    """
    nodes: list[tuple[str, int, Figures]] = [(name, -1, figures)]
    lower: list[tuple[str, int, Figures]] = []
    for child in sorted(reports):
        report = reports[child]
        known = dict(report.below)
        if report.figures is None or set(known) != set(report.figures.children):
            return None
        lower += [(below, len(nodes), known[below]) for below in report.figures.children]
        nodes.append((child, 0, report.figures))
    first_lower = len(nodes)
    nodes += lower
    names = tuple(node for node, _, _ in nodes)
    if len(set(names)) < len(names):
        # Somebody is on the way from one place to another.
        return None
    index: dict[tuple[str, str], int] = {}
    for _, _, told in nodes:
        for entry in told.objects:
            index.setdefault((entry.source, entry.subject), len(index))
    count, objects = len(nodes), len(index)
    rates = np.zeros((count, objects))
    receivers = np.zeros((count, objects), dtype=np.int64)
    passed = np.zeros((count, objects))
    for at, (_, _, told) in enumerate(nodes):
        for entry in told.objects:
            x = index[entry.source, entry.subject]
            rates[at, x] = entry.peak if at >= first_lower else entry.own
            if at >= first_lower:
                receivers[at, x], passed[at, x] = entry.receivers, entry.passed
    told_lower = np.arange(count) >= first_lower
    return LocalView(
        names=names,
        parents=np.array([parent for _, parent, _ in nodes]),
        rates=rates,
        weights=np.array([told.weight for _, _, told in nodes]),
        filter_times=np.array([told.filter_s for _, _, told in nodes]),
        send_times=np.array([told.send_s for _, _, told in nodes]),
        delays=_delays(names, first_lower, reports, delay_ns_to),
        elsewhere=np.array(
            [
                (told.load_elsewhere, told.peaks_elsewhere, told.weight_elsewhere)
                for _, _, told in nodes
            ]
        ),
        below_count=np.where(told_lower, [len(told.children) for _, _, told in nodes], 0),
        below_receivers=receivers,
        below_passed=passed,
        below_weight=np.where(told_lower, [told.weight_below for _, _, told in nodes], 0.0),
    )


def _delays(
    names: tuple[str, ...],
    first_lower: int,
    reports: Mapping[str, HoldAnswer],
    delay_ns_to: Callable[[str], int],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the delays between everybody, from whoever told one.

    Two that have told nothing of each other are taken to be as far apart as by way of the
    broker itself: then nobody is moved because of what is not known.
    """
    own = np.array([0, *(delay_ns_to(peer) for peer in names[1:])], dtype=np.float64)
    delays = own[:, None] + own[None, :]
    at = {peer: i for i, peer in enumerate(names)}
    for child in names[1:first_lower]:
        for peer, delay_ns in reports[child].delays_ns:
            if peer in at and at[peer] > 0:
                delays[at[child], at[peer]] = delays[at[peer], at[child]] = delay_ns
    np.fill_diagonal(delays, 0.0)
    return delays / _NS_PER_SECOND


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
        self._node = node.AdaptationNode(core.identity)
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
        self._step(node.TokenCame((message.tree, message.round)), turn)

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
        self._step(node.StepMade((message.tree, message.round), sender, message.done), turn)

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
                self._step(node.TokenCame((tree, turn.now_ns)), turn)

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

    def _set_timers(self, before: node.AdaptationNode, turn: Turn) -> None:
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
