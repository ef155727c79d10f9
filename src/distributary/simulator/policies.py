"""Policies: one scenario and seed, planned in different ways, each with queues of its own.

A plan changes what later plans meet. What a policy comes to is therefore seen only when all
brokers keep to it for a whole run.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from distributary.arguments import check_entries, checked
from distributary.broker.planning import PLANNED
from distributary.placement.baselines import BASELINES
from distributary.simulator.report import report_of
from distributary.simulator.scenario import Scenario
from distributary.simulator.simulation import Observe, Simulation

__all__ = ["POLICIES", "compared_report", "comparison_lines", "under_policy"]

POLICIES = (PLANNED, *BASELINES)

_COLUMNS = (
    ("cost", "cost", ",.1f"),
    ("delay_s_mean", "mean delay s", ",.3f"),
    ("delay_s_p95", "p95 delay s", ",.3f"),
    ("objective", "objective", ",.1f"),
)


def under_policy(scenario: Scenario, policy: str) -> Scenario:
    """Return the scenario with brokers that plan by one of `POLICIES`.

    Planned is by the scenario's own method, or by `auto` where that is a simple one.
    """
    content = scenario.settings.content
    method = policy
    if policy == PLANNED:
        method = "auto" if content.method in BASELINES else content.method
    settings = replace(scenario.settings, content=replace(content, method=method))
    return replace(scenario, settings=settings)


def compared_report(
    scenario: Scenario,
    *,
    seed: int,
    observe: Observe | None = None,
    keep: Callable[[Simulation], None] | None = None,
) -> dict[str, Any]:
    """Return the report of a run, with what each policy comes to in a run of its own.

    `keep` is given the run itself when it is over.
    """
    own = _report(scenario, seed, observe, keep)
    policies: dict[str, dict[str, float]] = {}
    for policy in POLICIES:
        other = under_policy(scenario, policy)
        same = other.settings.content == scenario.settings.content
        policies[policy] = _figures(own if same else _report(other, seed, observe))
    return {**own, "policies": policies}


@checked
def comparison_lines(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the policies of one or more reports as a table, with means over the reports."""
    check_entries("reports", reports, Mapping)
    rows = [("policy", *(heading for _, heading, _ in _COLUMNS))]
    for policy in POLICIES:
        figures = [report["policies"][policy] for report in reports]
        means = (
            format(sum(figure[field] for figure in figures) / len(figures), form)
            for field, _, form in _COLUMNS
        )
        rows.append((policy, *means))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _report(
    scenario: Scenario,
    seed: int,
    observe: Observe | None,
    keep: Callable[[Simulation], None] | None = None,
) -> dict[str, Any]:
    # Or else all runs would be in memory at once.
    gc.collect()
    simulation = Simulation(scenario, seed=seed)
    simulation.run(observe)
    if keep is not None:
        keep(simulation)
    return report_of(simulation)


def _figures(report: Mapping[str, Any]) -> dict[str, float]:
    delays = report["delays_s"]
    return {
        "cost": report["cost"]["total"],
        "delay_s_mean": delays.get("mean", 0.0),
        "delay_s_p95": delays.get("p95", 0.0),
        "objective": report["objective"]["total"],
        "violations": len(report["violations"]),
    }
