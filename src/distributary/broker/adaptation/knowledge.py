"""Knowledge: what a broker that has heard all its children knows of a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from distributary.broker.messages.adaptation import Figures, HoldAnswer
from distributary.fidelity.local import LocalView

__all__ = ["grandchildren_of", "view_of"]

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
