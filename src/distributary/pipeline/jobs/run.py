"""`pipeline run`: a chain of jobs on one folder, with one Spark session; what is stale of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.pipeline.config import Step
from distributary.pipeline.days import ALL, Days, day_list
from distributary.pipeline.job_tables import BY_DAY
from distributary.pipeline.jobs.steps import JobCall, call_of
from distributary.pipeline.progress import Observe, watched
from distributary.pipeline.report import Figure, JobReport
from distributary.pipeline.runs import DONE, Run, runs_in
from distributary.pipeline.staleness import Stale, Staleness

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["UP_TO_DATE", "Comparison", "Todo", "comparison", "run", "todo"]

UP_TO_DATE = "up_to_date"
"""The figure of a job that had nothing to do."""

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


@dataclass(frozen=True)
class Todo:
    """A step of a chain, and what there is to do for it."""

    step: Step
    stale: Stale

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        days = self.stale.days
        return {
            "job": self.step.job,
            "stale": bool(self.stale),
            "days": None if days is None else day_list(days),
            "reasons": self.stale.lines(),
        }


def run(
    store: Store,
    steps: Sequence[Step],
    *,
    days: Days | None = None,
    observe: Observe | None = None,
    warn: Callable[[str], None] | None = None,
    finished: Callable[[JobReport], None] | None = None,
) -> list[JobReport]:
    """Run the jobs of a chain that have something to do, each on what those before it wrote.

    Of jobs that work by day, the stale days are done, and `days` in any case. What `wire` would
    refuse at the end is refused as soon as the tables have been filled. `warn` is told about what
    a job ignores, and `finished` about every job that has ended; one that had nothing to do has
    read and written nothing.
    """
    reports = []
    jobs = [step.job for step in steps]
    filled = next((n for n, job in enumerate(jobs) if job not in _FILLING), len(jobs))
    for number, step in enumerate(steps):
        if number == filled and "wire" in jobs:
            from distributary.pipeline.jobs.wire import check

            check(store, names="channels" in jobs)
        with watched(store.spark, step.job, observe):
            call = call_of(step, store, observe=observe, warn=warn)
            runs = runs_in(store)
            stale = _stale(call, Staleness(store, runs), runs, days)
            report = _report(call, stale)
        if finished is not None:
            finished(report)
        reports.append(report)
    return reports


def todo(store: Store, steps: Sequence[Step], *, days: Days | None = None) -> list[Todo]:
    """Return what `run` would do, and why; for this no Spark has to run.

    Which days files have is not known before they are read: what follows from that is said, and
    not listed.
    """
    runs = runs_in(store)
    staleness = Staleness(store, runs, plan=True)
    found = []
    for step in steps:
        stale = _stale(call_of(step, store, choose=False), staleness, runs, days)
        if stale and step.job == "ingest":
            staleness.expect([str(step.options["table"])], None)
        found.append(Todo(step, stale))
    return found


def _stale(call: JobCall, staleness: Staleness, runs: Sequence[Run], days: Days | None) -> Stale:
    if call.job == "ingest":
        return _stale_files(call, runs)
    if call.options is None:
        return Stale(None, {"new": None})
    return staleness.of(call.job, call.options, days)


def _stale_files(call: JobCall, runs: Sequence[Run]) -> Stale:
    """Return whether there are files that were not read yet, or read otherwise.

    What became of the table later is no matter: others may have replaced some of its days.
    """
    name = str(call.arguments["name"])
    if not call.store.has(name):
        return Stale(None, {"new": None})
    if not call.arguments["files"]:
        return Stale(None)
    asked = call.options, call.code
    done = [item for item in runs if item.outcome == DONE and (item.options, item.code) == asked]
    if not done:
        return Stale(None, {"files": None})
    # A table that begins anew has nothing of what was read.
    made = done[-1].outputs.get(name)
    gone = made is not None and call.store.changes(name, made) is None
    return Stale(None, {"another table": None} if gone else {})


def _report(call: JobCall, stale: Stale) -> JobReport:
    if not stale:
        return JobReport(call.job, {}, {}, 0.0, {UP_TO_DATE: "yes"})
    if call.job not in BY_DAY:
        return call()
    # All of them at once is done as if they had never been: it is quicker, and rows without a
    # day are among them.
    whole = stale.days is None or stale.days >= call.every_day()
    return call(days=ALL if whole else Days(chosen=stale.days))


def comparison(report: JobReport) -> Comparison | None:
    """Return what a planner's result costs beside its baselines; None for other jobs."""
    if report.job not in _COMPARED or UP_TO_DATE in report.figures:
        return None
    name, others = _COMPARED[report.job]
    baselines = {
        other: _number(report.figures[other]) for other in others if other in report.figures
    }
    return name, _number(report.figures[name]), baselines


def _number(figure: Figure) -> float | None:
    return float(figure) if isinstance(figure, int | float) else None
