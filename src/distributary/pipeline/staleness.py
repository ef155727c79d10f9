"""What is stale: which days of which jobs are to be done again, and why.

A day is up to date when the last run that did it is on record, nothing that it has read of that day
has changed since, and nobody else has written what it wrote. What a job writes over all days is up
to date when nothing at all has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import distributary
from distributary.pipeline.days import Day, Days, in_order, shown_days
from distributary.pipeline.job_tables import BY_DAY, WRITES, DayInputs
from distributary.pipeline.runs import DONE, SPAN, Run

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["Stale", "Staleness"]


# Whatever day it is.
_ANY = object()
# All that these write is by day.
_ONLY_DAYS = ("match", "plans")


@dataclass(frozen=True)
class Stale:
    """What a job has to do: nothing when there is no reason to.

    `days` are those to be done; None for jobs that do all at once. Each reason has the days that
    it is about.
    """

    days: frozenset[Day] | None
    reasons: Mapping[str, frozenset[Day] | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def lines(self) -> list[str]:
        """Return the reasons as people read them."""
        return [
            reason if days is None else f"{reason}: {shown_days(days)}"
            for reason, days in self.reasons.items()
        ]


class Staleness:
    """What is stale in a folder.

    With `plan`, jobs that are asked about one after the other are taken to have been done, so that
    what comes of them is stale, too.
    """

    def __init__(self, store: Store, runs: Sequence[Run], *, plan: bool = False) -> None:
        self._store = store
        self._runs = [run for run in runs if run.outcome == DONE and run.source is None]
        self._plan = plan
        self._changes: dict[str, tuple[int, dict[int, frozenset[Day]] | None]] = {}
        # What jobs that were asked about will change; None for days that are not known yet.
        self._coming: dict[str, frozenset[Day] | None] = {}

    def of(self, job: str, options: str, forced: Days | None = None) -> Stale:
        """Return what a job with some options has to do; `forced` days in any case."""
        runs = [run for run in self._runs if run.job == job]
        found = (
            self._of_days(job, BY_DAY[job], options, runs, forced)
            if job in BY_DAY
            else Stale(None, self._whole(options, runs))
        )
        if found and self._plan:
            own = BY_DAY[job].table if job in BY_DAY else None
            self.expect([name for name in WRITES.get(job, ()) if name != own], None)
            if own is not None:
                self.expect([own], found.days)
        return found

    def expect(self, tables: Iterable[str], days: frozenset[Day] | None) -> None:
        """Take tables to be changed by a job: some of their days, or nobody knows which."""
        for name in tables:
            before = self._coming.get(name, frozenset())
            both = None if days is None or before is None else before | days
            self._coming[name] = both

    def _of_days(
        self, job: str, made_of: DayInputs, options: str, runs: Sequence[Run], forced: Days | None
    ) -> Stale:
        reasons: dict[str, set[Day]] = {}
        there = set(self._days(made_of.of_day[0]))
        for day in in_order(there | self._days(made_of.table)):
            done = next((run for run in reversed(runs) if day in (run.days or ())), None)
            for reason in self._day_reasons(made_of, day, options, done):
                reasons.setdefault(reason, set()).add(day)
            if forced is not None and day in forced:
                reasons.setdefault("asked for", set()).add(day)
        found: dict[str, frozenset[Day] | None] = {
            reason: frozenset(days) for reason, days in reasons.items()
        }
        days = frozenset(day for some in reasons.values() for day in some)
        for name in made_of.of_day:
            if name in self._coming and self._coming[name] is None:
                found[f"{name} will change"] = None
        if job not in _ONLY_DAYS:
            found |= self._whole(options, runs)
        return Stale(days, found)

    def _day_reasons(
        self, made_of: DayInputs, day: Day, options: str, done: Run | None
    ) -> list[str]:
        if done is None:
            return ["new"]
        found = []
        if done.code != distributary.__version__:
            found.append("another version of the code")
        if _without_span(done.options) != _without_span(options):
            found.append("other options")
        read = [(name, day) for name in made_of.of_day] + [(name, _ANY) for name in made_of.whole]
        found += [
            f"{name} changed"
            for name, about in read
            if self._has_changed(name, done.inputs.get(name), about)
        ]
        written = done.outputs.get(made_of.table)
        if self._has_changed(made_of.table, written, day, coming=False):
            found.append(f"{made_of.table} was written by others")
        return found

    def _whole(self, options: str, runs: Sequence[Run]) -> dict[str, frozenset[Day] | None]:
        """Return why what a job makes of everything is stale."""
        if not runs:
            return {"new": None}
        last = runs[-1]
        reasons = []
        if last.code != distributary.__version__:
            reasons.append("another version of the code")
        if last.options != options:
            reasons.append("other options")
        reasons += [
            f"{name} changed"
            for name, version in last.inputs.items()
            if self._has_changed(name, version)
        ]
        reasons += [
            f"{name} was written by others"
            for name, version in last.outputs.items()
            if self._has_changed(name, version, coming=False)
        ]
        return dict.fromkeys(reasons)

    def _has_changed(
        self, name: str, version: int | None, day: object = _ANY, *, coming: bool = True
    ) -> bool:
        """Whether a table, or a day of it, is another one than at a version."""
        if coming and name in self._coming:
            days = self._coming[name]
            # Where it is not known which, it is said once and not for every day.
            if (day is _ANY) if days is None else (day is _ANY or day in days):
                return True
        if not self._store.has(name):
            return version is not None
        if version is None:
            return True
        changes = self._after(name, version)
        return changes is None or any(
            days if day is _ANY else day in days
            for number, days in changes.items()
            if number > version
        )

    def _after(self, name: str, version: int) -> dict[int, frozenset[Day]] | None:
        """Return what has changed a table since a version, or an earlier one; read once."""
        known = self._changes.get(name)
        if known is None or known[0] > version:
            known = version, self._store.changes(name, version)
            self._changes[name] = known
        return known[1]

    def _days(self, name: str) -> frozenset[Day]:
        coming = self._coming.get(name) or frozenset()
        return (self._store.days(name) if self._store.has(name) else frozenset()) | coming


def _without_span(options: str) -> str:
    chosen = json.loads(options)
    chosen.pop(SPAN, None)
    return json.dumps(chosen, sort_keys=True)
