"""Steps of a chain as calls of the jobs they name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import distributary
from distributary.pipeline.config import Step
from distributary.pipeline.days import Day, Days, parse_days
from distributary.pipeline.job_tables import BY_DAY
from distributary.pipeline.progress import Observe
from distributary.pipeline.report import JobReport
from distributary.pipeline.runs import DONE, file_states, options_of, runs_in

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["JobCall", "call_of"]


@dataclass(frozen=True)
class JobCall:
    """A job that is going to be run.

    Attributes
    ----------
    job, store
        Which, and on which folder.
    function, arguments
        What is called, and with what.
    complete
        Whether all arguments are known; a content space is only chosen when it is needed.
    """

    job: str
    store: Store
    function: Callable[..., JobReport]
    arguments: dict[str, Any]
    complete: bool = True
    code: str = distributary.__version__

    @property
    def options(self) -> str | None:
        """What is asked for, as it is noted; None before it is known."""
        return options_of(self.function, (), self._given()) if self.complete else None

    def __call__(self, *, days: Days | None = None) -> JobReport:
        """Run the job; of jobs that do some days, those that are given."""
        given = self._given()
        return self.function(**given) if days is None else self.function(**given, days=days)

    def every_day(self) -> frozenset[Day]:
        """Return all days that the job could do, and those that it has done."""
        made_of = BY_DAY[self.job]
        names = (made_of.of_day[0], made_of.table)
        return frozenset().union(*(self.store.days(name) for name in names if self.store.has(name)))

    def _given(self) -> dict[str, Any]:
        stores = {"target": self.store}
        if self.job not in ("sample", "ingest"):
            stores["source"] = self.store
        return {**stores, **self.arguments}


def call_of(
    step: Step,
    store: Store,
    *,
    choose: bool = True,
    observe: Observe | None = None,
    warn: Callable[[str], None] | None = None,
) -> JobCall:
    """Return the call of a step; what a job is made of is imported when it is its turn.

    Unless the content space may be chosen, which takes Spark, it is left out where none is kept.
    """
    given: dict[str, Any] = dict(step.options)

    def taken(*names: str) -> dict[str, Any]:
        return {name: given.pop(name) for name in names if name in given}

    def call(function: Callable[..., JobReport], **arguments: Any) -> JobCall:
        return JobCall(step.job, store, function, arguments)

    match step.job:
        case "sample":
            from distributary.pipeline.jobs.sample import sample
            from distributary.pipeline.sample import SampleSizes

            return call(sample, seed=given.pop("seed", 0), sizes=SampleSizes(**given))
        case "ingest":
            from distributary.pipeline.jobs.ingest import ingest

            if given.get("add"):
                given["files"] = _unread(store, given["table"], given["files"])
            return call(ingest, name=given.pop("table"), warn=warn, **given)
        case "match":
            from distributary.pipeline.jobs.match import match

            return call(match, **given)
        case "channels":
            from distributary.pipeline.jobs.channels import SpaceWish, channels

            span = _span(taken("since", "until"))
            wish = SpaceWish(**given)
            space = wish.kept(store)
            if space is None and not choose:
                return JobCall(step.job, store, channels, {}, complete=False)
            chosen = wish.chosen(store) if space is None else space
            return call(channels, space=chosen, wish=wish, span=span)
        case "traffic":
            from distributary.pipeline.jobs.traffic import traffic

            return call(traffic, span=_span(taken("since", "until")), **given)
        case "rates":
            from distributary.pipeline.jobs.rates import rates
            from distributary.pipeline.transforms.followers import ObjectEvents

            span = _span(taken("since", "until"))
            return call(rates, events=ObjectEvents(**given), span=span)
        case "plans":
            from distributary.pipeline.jobs.plans import plans
            from distributary.pipeline.transforms.publication_plans import PlanOptions

            own = taken("graph", "space", "tasks")
            return call(plans, options=PlanOptions(**given), **own)
        case "wire":
            from distributary.pipeline.jobs.wire import wire

            return call(wire, observe=observe, **given)
        case "tree":
            from distributary.pipeline.jobs.tree import tree
            from distributary.pipeline.stream_problems import ServerTimes

            times = taken("filter_time", "send_time", "source_filter_time", "source_send_time")
            given["root"] = given.pop("source", None)
            return call(tree, times=ServerTimes(**times), observe=observe, **given)
    raise AssertionError(f"{step.job} is no job")


def _unread(store: Store, table: str, names: Sequence[str]) -> list[str]:
    """Return the files that were not added to a table before, as they are now."""
    read: dict[str, object] = {}
    for run in runs_in(store):
        options = json.loads(run.options)
        if run.job == "ingest" and run.outcome == DONE and options["name"] == table:
            read |= options["files"]
    return [path for path, state in file_states(names).items() if read.get(path) != state]


def _span(given: dict[str, Any]) -> Days:
    return parse_days(given.get("since"), given.get("until"))
