"""How far the papers' method and its starting plans are from the optimum.

The papers could compare with the optimum on four formats only; the exact method reaches
their sixteen as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.excess import excess_percent, saving_percent
from benchmarks.placement.checked_cost import checked_cost
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
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.exact import exact_plan
from distributary.placement.generate import generate_problem
from distributary.placement.iterative import iterative
from distributary.placement.plan import Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["STUDY"]

_ITERATIONS = 1000
_HETEROGENEITIES = ("weak", "strong")

Method = Callable[[PlacementProblem], Plan]


def _iterative(problem: PlacementProblem, *, steiner: str = "charikar", depth: int = 1) -> Plan:
    return iterative(problem, iterations=_ITERATIONS, steiner=steiner, depth=depth).plan


_METHODS: Mapping[str, Method] = {
    "iterative, charikar": _iterative,
    "iterative, exact steps": lambda problem: _iterative(problem, steiner="exact"),
    "all-in-root": all_in_root,
    "all-in-leaves": all_in_leaves,
    "single-format": single_format,
}
_DEEPER: Mapping[str, Method] = {
    "iterative, charikar, depth 2": lambda problem: _iterative(problem, depth=2),
}
_PLANNERS: Mapping[str, Method] = {"exact": exact_plan, "iterative": _iterative}

_PAPER_NOTES = {
    "map": (
        "CCD reports about 1 % for its method on this graph after 1,000 iterations, whatever the "
        "matching ratio. Its measured costs did not survive; the costs here are our own."
    ),
    "video": "CCD had no optimum to compare with on this graph.",
}


@dataclass(frozen=True)
class _Parameters:
    brokers: int
    ratios: tuple[float, ...]
    middle: float
    seeds: Mapping[str, tuple[int, ...]]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(32, (0.3, 0.5), 0.5, {"map": (1, 2), "video": (1,)}),
    "large": _Parameters(
        1024,
        (0.1, 0.3, 0.5, 0.7, 0.9),
        0.5,
        {"map": tuple(range(1, 11)), "video": tuple(range(1, 6))},
    ),
}


@dataclass(frozen=True)
class _Compared:
    """The excess of several methods over the optimum on one problem, in percent."""

    ratio: float
    optimum: float
    excess: Mapping[str, float]


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    tables: list[Table] = []
    results: list[object] = []
    depths: list[tuple[Value, ...]] = []
    lowest = float("inf")
    for kind, seeds in parameters.seeds.items():
        compared = []
        for ratio in parameters.ratios:
            for seed in seeds:
                progress(f"{kind}, matching {ratio:.0%}, seed {seed}")
                problem = _problem(kind, parameters, ratio, seed)
                methods = {**_METHODS, **(_DEEPER if ratio == parameters.middle else {})}
                compared.append(_compare(problem, ratio, methods))
        tables.append(_ratio_table(kind, parameters, compared))
        depths += _depth_rows(kind, parameters, compared)
        results += [(item.optimum, sorted(item.excess.items())) for item in compared]
        lowest = min([lowest, *(value for item in compared for value in item.excess.values())])
    tables.append(
        Table(
            f"Deeper refinements: excess over the optimum in %, matching {parameters.middle:.0%}",
            "quality",
            (
                *(Column(name) for name in ("problem", "method", "seeds")),
                Column("mean %", 2),
                Column("largest %", 2),
            ),
            tuple(depths),
        )
    )
    savings, saving_table = _savings(parameters, progress)
    tables.append(saving_table)
    return Findings(
        tables=tuple(tables),
        claims=(
            Claim("smallest excess over the optimum", lowest, ">=", 0.0, "%"),
            Claim(
                "smallest saving of an exact plan that knows the factors",
                min(value for (_, _, method), value in savings.items() if method == "exact"),
                ">=",
                0.0,
                "%",
            ),
        ),
        result_hash=result_hash([results, [[*key, value] for key, value in savings.items()]]),
    )


def _problem(kind: str, parameters: _Parameters, ratio: float, seed: int) -> PlacementProblem:
    return generate_problem(kind, seed=seed, brokers=parameters.brokers, matching=ratio)


def _compare(problem: PlacementProblem, ratio: float, methods: Mapping[str, Method]) -> _Compared:
    optimum = checked_cost(problem, exact_plan(problem))
    excess = {
        name: excess_percent(checked_cost(problem, method(problem)), optimum)
        for name, method in methods.items()
    }
    return _Compared(ratio, optimum, excess)


def _ratio_table(kind: str, parameters: _Parameters, compared: list[_Compared]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for ratio in parameters.ratios:
        here = [item for item in compared if item.ratio == ratio]
        means = [mean([item.excess[name] for item in here]) for name in _METHODS]
        rows.append((f"{ratio:.0%}", len(here), *means))
    return Table(
        f"Mean excess over the optimum in %: {kind}, {parameters.brokers:,} brokers, iterative "
        f"with {_ITERATIONS:,} iterations",
        "quality",
        (Column("matching"), Column("seeds"), *(Column(name, 2) for name in _METHODS)),
        tuple(rows),
        notes=_PAPER_NOTES[kind],
    )


def _depth_rows(
    kind: str, parameters: _Parameters, compared: list[_Compared]
) -> list[tuple[Value, ...]]:
    """Return how far refinements of each kind get at the middle ratio."""
    here = [item.excess for item in compared if item.ratio == parameters.middle]
    rows: list[tuple[Value, ...]] = []
    for name in ("iterative, charikar", *_DEEPER, "iterative, exact steps"):
        values = [excess[name] for excess in here]
        rows.append((kind, name, len(values), mean(values), max(values)))
    return rows


def _savings(
    parameters: _Parameters, progress: Progress
) -> tuple[dict[tuple[str, str, str], float], Table]:
    """Return what it saves to know the factors of brokers and links, mean over seeds."""
    savings: dict[tuple[str, str, str], float] = {}
    rows: list[tuple[Value, ...]] = []
    for kind, seeds in parameters.seeds.items():
        for heterogeneity in _HETEROGENEITIES:
            progress(f"{kind}, heterogeneity {heterogeneity}")
            found: dict[str, list[float]] = {name: [] for name in _PLANNERS}
            for seed in seeds:
                uneven = generate_problem(
                    kind,
                    seed=seed,
                    brokers=parameters.brokers,
                    matching=parameters.middle,
                    heterogeneity=heterogeneity,
                )
                alike = _problem(kind, parameters, parameters.middle, seed)
                assert uneven.tree.names == alike.tree.names
                assert bool((uneven.wants == alike.wants).all())
                for name, planner in _PLANNERS.items():
                    found[name].append(
                        saving_percent(
                            checked_cost(uneven, planner(uneven)),
                            checked_cost(uneven, planner(alike)),
                        )
                    )
            means = {name: mean(values) for name, values in found.items()}
            savings.update(((kind, heterogeneity, name), means[name]) for name in means)
            rows.append((kind, heterogeneity, len(seeds), *means.values()))
    names = ("problem", "heterogeneity", "seeds")
    return savings, Table(
        "Mean saving in % by planning with the factors of brokers and links known, against "
        f"planning as if all were alike; matching {parameters.middle:.0%}",
        "quality",
        (*(Column(name) for name in names), *(Column(f"{name} %", 2) for name in _PLANNERS)),
        tuple(rows),
        notes=(
            "CCD's supplement reports almost nothing under weak heterogeneity and about 10 % under "
            "strong, with its iterative method."
        ),
    )


STUDY = Study(
    name="heuristic-quality",
    about=(
        "CCD's iterative method and its three starting plans against the true optimum, on the "
        "papers' two scenarios."
    ),
    minutes=5.0,
    run=_run,
)
