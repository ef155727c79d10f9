"""Planning against no planning, each in runs of its own: what it costs, and how long it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    mean,
    result_hash,
)
from distributary.errors import BadInput
from distributary.simulator import Simulation, compared_report, report_of
from distributary.simulator.policies import POLICIES
from distributary.simulator.scenario import Scenario
from distributary.simulator.scenario_file import scenario_from
from distributary.topology.gml import read_gml

__all__ = ["NETWORKS", "STUDY"]

NETWORKS = "DISTRIBUTARY_NETWORKS"
"""Names a folder of GML files, which stand in for generated networks."""

_SEED = 1
# More than brokers can do if all of it is left to roots, and less than all can do together.
_WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "map": {"publications": 150, "duration_s": 25},
    "video": {"publications": 60, "duration_s": 130},
}
_MEGABYTES = {"map": [0.6, 2.0], "video": [1.0, 4.0]}


@dataclass(frozen=True)
class _Parameters:
    """How many networks and brokers, the share of each workload, and the weights to compare."""

    networks: int
    brokers: int
    share: float
    weights: tuple[float, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(2, 12, 0.2, (0.0, 0.3)),
    "large": _Parameters(20, 20, 1.0, (0.0, 0.1, 0.3, 1.0)),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    networks, named = _networks(parameters)
    tables: list[Table] = []
    claims: list[Claim] = []
    hashed: list[object] = []
    violations = 0
    for graph in _WORKLOADS:
        compared: list[Mapping[str, Mapping[str, float]]] = []
        weighed: dict[float, list[Mapping[str, Any]]] = {w: [] for w in parameters.weights}
        for number, network in enumerate(networks, start=1):
            progress(f"{graph}, network {number} of {len(networks)}")
            scenario = _scenario(graph, network, parameters)
            report = compared_report(scenario, seed=_SEED)
            compared.append(report["policies"])
            own = scenario.settings.content.delay_weight
            for weight, reports in weighed.items():
                reports.append(report if weight == own else _weighed(scenario, weight))
        violations += sum(int(one["violations"]) for run in compared for one in run.values())
        violations += sum(len(r["violations"]) for reports in weighed.values() for r in reports)
        means = _means(compared)
        best = min(means[policy]["objective"] for policy in POLICIES[1:])
        claims.append(
            Claim(
                f"objective of planning, {graph}", means["planned"]["objective"] / best, "<=", 1.0
            )
        )
        tables += [
            _policy_table(graph, named, means, compared),
            _weight_table(graph, named, weighed),
        ]
        hashed.append([[run[p]["objective"] for p in POLICIES] for run in compared])
    claims.append(Claim("violations", violations, "<=", 0, "in all runs"))
    return Findings(tuple(tables), tuple(claims), result_hash(hashed))


def _networks(parameters: _Parameters) -> tuple[list[dict[str, Any]], str]:
    """Return what scenarios say of their networks, and what the networks are."""
    count, folder = parameters.networks, os.environ.get(NETWORKS)
    if folder is None:
        generated = [{"topology": "power-law", "routers": 100 + 20 * k} for k in range(count)]
        return generated, f"{count} generated networks"
    files = [
        path
        for path in sorted(Path(folder).glob("*.gml"))
        if len(read_gml(path).largest_part) >= parameters.brokers
    ][:count]
    if len(files) < count:
        raise BadInput(
            NETWORKS,
            f"has {len(files)} networks with at least {parameters.brokers} places, and "
            f"{count} are needed",
        )
    known = [{"topology": "gml", "file": str(path.resolve())} for path in files]
    return known, f"{count} networks, {files[0].stem} to {files[-1].stem}"


def _scenario(graph: str, network: Mapping[str, Any], parameters: _Parameters) -> Scenario:
    workload = _WORKLOADS[graph]
    begin_s = 10.0
    return scenario_from(
        {
            "size": "small",
            "overlay": {
                "brokers": parameters.brokers,
                "bandwidth_mbps": 1000,
                "heterogeneity": "weak",
                **network,
            },
            "content": {"graph": graph, "megabytes": _MEGABYTES[graph], "tree": "discovered"},
            "workload": {
                "publications": round(parameters.share * workload["publications"]),
                "publishers": 3,
                "matching": 0.3,
                "begin_s": begin_s,
                "duration_s": begin_s + parameters.share * (workload["duration_s"] - begin_s),
            },
        },
        Path(f"{graph}.toml"),
    )


def _weighed(scenario: Scenario, weight: float) -> Mapping[str, Any]:
    content = replace(scenario.settings.content, delay_weight=weight)
    simulation = Simulation(
        replace(scenario, settings=replace(scenario.settings, content=content)), seed=_SEED
    )
    simulation.run()
    return report_of(simulation)


def _means(
    compared: Sequence[Mapping[str, Mapping[str, float]]],
) -> dict[str, dict[str, float]]:
    return {
        policy: {
            field: mean([run[policy][field] for run in compared]) for field in compared[0][policy]
        }
        for policy in POLICIES
    }


def _policy_table(
    graph: str,
    named: str,
    means: Mapping[str, Mapping[str, float]],
    compared: Sequence[Mapping[str, Mapping[str, float]]],
) -> Table:
    rows: list[tuple[Value, ...]] = []
    for policy in POLICIES:
        figures = means[policy]
        beaten = sum(run["planned"]["objective"] < run[policy]["objective"] for run in compared)
        rows.append(
            (
                policy,
                figures["cost"],
                figures["delay_s_mean"],
                figures["delay_s_p95"],
                figures["objective"],
                "-" if policy == "planned" else beaten,
            )
        )
    return Table(
        f"Planning and three simple policies, {graph}",
        "quality",
        (
            Column("policy"),
            Column("cost", 1),
            Column("mean delay s", 2),
            Column("p95 delay s", 2),
            Column("objective", 1),
            Column("networks on which planning has less"),
        ),
        tuple(rows),
        notes=(
            f"Means over {named}, with {len(compared)} runs of each policy. In a run all "
            "brokers keep to one policy. The objective is the cost and 0.3 for each second by "
            "which each delivery was late, as measured from the publisher to the subscriber."
        ),
    )


def _weight_table(
    graph: str, named: str, weighed: Mapping[float, Sequence[Mapping[str, Any]]]
) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            weight,
            mean([report["cost"]["total"] for report in reports]),
            mean([report["delays_s"]["mean"] for report in reports]),
            mean([report["delays_s"]["p95"] for report in reports]),
        )
        for weight, reports in weighed.items()
    ]
    return Table(
        f"What a weight of delays buys, {graph}",
        "quality",
        (
            Column("delay weight", 2),
            Column("cost", 1),
            Column("mean delay s", 2),
            Column("p95 delay s", 2),
        ),
        tuple(rows),
        notes=f"Planning, means over {named}. With 0 plans are chosen by their cost alone.",
    )


STUDY = Study(
    name="simulate-policies",
    about=(
        "Real brokers that plan maps and videos for cost and delay, against brokers that always "
        "convert at the root, at the leaves, or with a single format on each link. "
        f"`{NETWORKS}` may name a folder of GML files to run it on."
    ),
    minutes=10,
    run=_run,
)
