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


# The jobs that fill the tables which others read.
_FILLING = ("sample", "ingest")


def run(
    store: Store,
    steps: Sequence[Step],
    *,
    observe: Observe | None = None,
    warn: Callable[[str], None] | None = None,
    finished: Callable[[JobReport], None] | None = None,
) -> list[JobReport]:
    """Run jobs one after another, each on what those before it wrote.

    What `wire` would refuse at the end is refused as soon as the tables have been filled.
    `warn` is told about what a job ignores, and `finished` about every job that has ended.
    """
    reports = []
    jobs = [step.job for step in steps]
    filled = next((n for n, job in enumerate(jobs) if job not in _FILLING), len(jobs))
    for number, step in enumerate(steps):
        if number == filled and "wire" in jobs:
            from distributary.pipeline.jobs.wire import check

            check(store, names="channels" in jobs)
        store.begin(step.job)
        with watched(store.spark, step.job, observe):
            report = _report(step, store, observe, warn)
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


def _report(
    step: Step, store: Store, observe: Observe | None, warn: Callable[[str], None] | None
) -> JobReport:
    """Run one job; what it is made of is imported when it is its turn."""
    given: dict[str, Any] = dict(step.options)

    def taken(*names: str) -> dict[str, Any]:
        return {name: given.pop(name) for name in names if name in given}

    match step.job:
        case "sample":
            from distributary.pipeline.jobs.sample import sample
            from distributary.pipeline.sample import SampleSizes

            return sample(store, seed=given.pop("seed", 0), sizes=SampleSizes(**given))
        case "ingest":
            from distributary.pipeline.jobs.ingest import ingest

            return ingest(store, given.pop("table"), given.pop("files"), warn=warn, **given)
        case "match":
            from distributary.pipeline.jobs.match import match

            return match(store, store, **given)
        case "channels":
            from distributary.pipeline.jobs.channels import channels, space_for

            return channels(store, store, space_for(store, **given))
        case "traffic":
            from distributary.pipeline.jobs.traffic import traffic

            return traffic(store, store, **given)
        case "rates":
            from distributary.pipeline.jobs.rates import rates
            from distributary.pipeline.transforms.followers import ObjectEvents

            return rates(store, store, events=ObjectEvents(**given))
        case "plans":
            from distributary.pipeline.jobs.plans import plans
            from distributary.pipeline.transforms.publication_plans import PlanOptions

            own = taken("graph", "space", "tasks")
            return plans(store, store, options=PlanOptions(**given), **own)
        case "wire":
            from distributary.pipeline.jobs.wire import wire

            return wire(store, store, observe=observe, **given)
        case "tree":
            from distributary.pipeline.jobs.tree import tree
            from distributary.pipeline.stream_problems import ServerTimes

            times = taken("filter_time", "send_time", "source_filter_time", "source_send_time")
            given["root"] = given.pop("source", None)
            return tree(store, store, times=ServerTimes(**times), observe=observe, **given)
    raise AssertionError(f"{step.job} is no job")
