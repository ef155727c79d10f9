"""Statistics: what a broker knows of itself and its children in each tree.

Rates are those of the last window, as the streams part has counted them. A broker tells its
parent its figures when one has changed by more than the factor 1 + tau, or when the parent is
another one; so every parent knows its children, and can tell them to its own parent.

Knowledge: what a broker that has heard all its children knows of a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distributary.broker.adaptation.messages import Figures, HoldAnswer, ObjectFigures, Statistics
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.fidelity.local import LocalView

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Collector", "differs", "grandchildren_of", "view_of"]

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
