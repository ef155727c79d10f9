"""`pipeline run`: a chain of jobs on one folder, with one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distributary.pipeline.config import Step
from distributary.pipeline.progress import Observe, watched
from distributary.pipeline.report import Figure, JobReport

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["Comparison", "comparison", "run"]

Comparison = tuple[str, float | None, Mapping[str, float | None]]
"""What a planner's result costs: the name of the figure, its value, and the baselines."""

# The figure that a planner minimises, and those of what one would do without it.
_COMPARED = {
    "plans": ("total_cost", ("all_in_root", "all_in_leaves", "single_format")),
    "wire": ("total_cost", ("packing", "clustering", "mixing", "homes")),
    "tree": ("average_loss", ("source", "random", "dita")),
}


def run(
    store: Store,
    steps: Sequence[Step],
    *,
    observe: Observe | None = None,
    warn: Callable[[str], None] | None = None,
    finished: Callable[[JobReport], None] | None = None,
) -> list[JobReport]:
    """Run jobs one after another, each on what those before it wrote.

    `warn` is told about what a job ignores, and `finished` about every job that has ended.
    """
    reports = []
    for step in steps:
        with watched(store.spark, step.job, observe):
            report = _JOBS[step.job](store, dict(step.options), observe, warn)
        if finished is not None:
            finished(report)
        reports.append(report)
    return reports


def comparison(report: JobReport) -> Comparison | None:
    """Return what a planner's result costs beside its baselines; None for other jobs."""
    if report.job not in _COMPARED:
        return None
    name, others = _COMPARED[report.job]
    baselines = {
        other: _number(report.figures[other]) for other in others if other in report.figures
    }
    return name, _number(report.figures[name]), baselines


def _number(figure: Figure) -> float | None:
    return float(figure) if isinstance(figure, int | float) else None


Options = dict[str, Any]
Warn = Callable[[str], None] | None


def _sample(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.sample import sample
    from distributary.pipeline.sample import SampleSizes

    seed = options.pop("seed", 0)
    return sample(store, SampleSizes(**options), seed=seed)


def _ingest(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.ingest import ingest

    table, files = options.pop("table"), options.pop("files")
    return ingest(store, table, files, warn=warn, **options)


def _match(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.match import match

    return match(store, store, **options)


def _channels(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.channels import channels, space_for

    space = space_for(store, file=options.pop("space", None), **options)
    return channels(store, store, space)


def _traffic(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.traffic import traffic

    return traffic(store, store, **options)


def _rates(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.rates import rates
    from distributary.pipeline.transforms.followers import ObjectEvents

    return rates(store, store, events=ObjectEvents(**options))


def _plans(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.plans import plans
    from distributary.pipeline.transforms.publication_plans import PlanOptions

    own = {name: options.pop(name) for name in ("graph", "space", "tasks") if name in options}
    return plans(store, store, options=PlanOptions(**options), **own)


def _wire(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.wire import wire

    return wire(store, store, observe=observe, **options)


def _tree(store: Store, options: Options, observe: Observe | None, warn: Warn) -> JobReport:
    from distributary.pipeline.jobs.tree import tree
    from distributary.pipeline.stream_problems import ServerTimes

    times = {
        name: options.pop(name)
        for name in ("filter_time", "send_time", "source_filter_time", "source_send_time")
        if name in options
    }
    root = options.pop("source", None)
    return tree(store, store, root=root, times=ServerTimes(**times), observe=observe, **options)


_JOBS: Mapping[str, Callable[[Any, Options, Observe | None, Warn], JobReport]] = {
    "sample": _sample,
    "ingest": _ingest,
    "match": _match,
    "channels": _channels,
    "traffic": _traffic,
    "rates": _rates,
    "plans": _plans,
    "wire": _wire,
    "tree": _tree,
}
