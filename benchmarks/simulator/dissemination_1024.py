"""Maps for a tenth of 1,024 brokers: how long the simulator takes, and what hurry costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    result_hash,
)
from distributary.simulator import Simulation, read_scenario, report_of
from distributary.simulator.scenario import Scenario

__all__ = ["STUDY"]

_SCENARIO = Path(__file__).parents[2] / "scenarios" / "map.toml"
_SEED = 1
_CORE_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class _Parameters:
    """How many brokers and publications, and the same for the comparison of weights."""

    brokers: int
    publications: int
    compared_publications: int
    weights: tuple[float, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(48, 30, 20, (0.0, 0.3)),
    "large": _Parameters(1024, 1000, 300, (0.0, 0.1, 0.3, 1.0)),
}


@dataclass(frozen=True, eq=False)
class _Measured:
    """A report, and the seconds of its run: in all, and of the core."""

    report: dict[str, object]
    seconds: float
    core_seconds: float

    def number(self, table: str, field: str) -> float:
        found = self.report[table]
        assert isinstance(found, dict)
        return float(found[field])

    @property
    def messages(self) -> int:
        found = self.report["messages"]
        assert isinstance(found, dict)
        return sum(found.values())

    @property
    def violations(self) -> int:
        found = self.report["violations"]
        assert isinstance(found, list)
        return len(found)


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    scenario = read_scenario(_SCENARIO)
    per_s = scenario.workload.publications / (
        scenario.workload.duration_s - scenario.workload.begin_s
    )
    whole = _sized(scenario, parameters.brokers, parameters.publications, per_s)
    progress(f"{parameters.brokers:,} brokers, {parameters.publications:,} publications")
    measured = _measure(whole)
    compared = {}
    for weight in parameters.weights:
        progress(f"delay weight {weight:g}")
        less = _sized(scenario, parameters.brokers, parameters.compared_publications, per_s)
        compared[weight] = _measure(_with_weight(less, weight))
    return Findings(
        tables=(_speed_table(parameters, measured), _weight_table(parameters, compared, per_s)),
        claims=(
            Claim(
                f"{parameters.publications:,} publications at {parameters.brokers:,} brokers",
                measured.core_seconds,
                "<=",
                _CORE_SECONDS_MAX,
                "s",
            ),
            Claim(
                "deliveries that were owed and made",
                measured.number("deliveries", "made") / measured.number("deliveries", "owed"),
                ">=",
                1.0,
                "of all",
            ),
            Claim(
                "violations",
                sum(item.violations for item in (measured, *compared.values())),
                "<=",
                0,
                "in all runs",
            ),
        ),
        result_hash=result_hash(
            [str(item.report["log_hash"]) for item in (measured, *compared.values())]
        ),
    )


def _sized(scenario: Scenario, brokers: int, publications: int, per_s: float) -> Scenario:
    """Return the scenario with other counts, and as much published in a second."""
    workload = scenario.workload
    return replace(
        scenario,
        overlay=replace(scenario.overlay, brokers=brokers),
        workload=replace(
            workload,
            publications=publications,
            duration_s=workload.begin_s + publications / per_s,
        ),
    )


def _with_weight(scenario: Scenario, weight: float) -> Scenario:
    settings = scenario.settings
    content = replace(settings.content, delay_weight=weight)
    return replace(scenario, settings=replace(settings, content=content))


def _measure(scenario: Scenario) -> _Measured:
    began, core_began = time.perf_counter(), time.process_time()
    simulation = Simulation(scenario, seed=_SEED)
    simulation.run()
    report = report_of(simulation)
    return _Measured(report, time.perf_counter() - began, time.process_time() - core_began)


def _speed_table(parameters: _Parameters, measured: _Measured) -> Table:
    messages = measured.messages
    return Table(
        f"Maps to a tenth of {parameters.brokers:,} brokers, message by message",
        "speed",
        (
            Column("publications"),
            Column("deliveries"),
            Column("messages"),
            Column("s", 1),
            Column("core s", 1),
            Column("messages per core second"),
        ),
        (
            (
                parameters.publications,
                int(measured.number("deliveries", "made")),
                messages,
                measured.seconds,
                measured.core_seconds,
                messages / measured.core_seconds,
            ),
        ),
        notes=(
            "The scenario `scenarios/map.toml` with all checkers: brokers that start, "
            "subscriptions that are registered, plans, conversions, deliveries, pings. One run "
            "on one core."
        ),
    )


def _weight_table(
    parameters: _Parameters, compared: Mapping[float, _Measured], per_s: float
) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            weight,
            item.number("delays_s", "p50"),
            item.number("delays_s", "p90"),
            item.number("delays_s", "p99"),
            item.number("cost", "transmission"),
            item.number("cost", "conversion"),
        )
        for weight, item in compared.items()
    ]
    return Table(
        f"Plans that mind the delays of deliveries, {parameters.brokers:,} brokers",
        "quality",
        (
            Column("delay weight", 1),
            Column("median delay s", 2),
            Column("p90 s", 2),
            Column("p99 s", 2),
            Column("transmission"),
            Column("conversion"),
        ),
        tuple(rows),
        notes=(
            f"{parameters.compared_publications:,} publications, {per_s:.1f} a second, of which "
            "a quarter are of one type and so have one root. With a weight of 0, as in the "
            "published method, roots convert more than they can, and everything waits for "
            "them. Costs are those of the plans that roots made."
        ),
    )


STUDY = Study(
    name="simulate-map",
    about=(
        "Real brokers that plan and deliver maps, message by message, at the size of the "
        "published experiments."
    ),
    minutes=6,
    run=_run,
)
