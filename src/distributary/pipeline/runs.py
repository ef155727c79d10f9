"""Runs of jobs: what each has read and made, so that it is known what has to be done again.

A run writes its row when everything else is written. Tables that were written by a run without a
row, because it was killed, are not taken for its results: they are made again.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import distributary
from distributary.content.content_space import ContentSpace
from distributary.pipeline.days import ALL, Day, Days, in_order
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.running import marked
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import found_files

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["DONE", "RUNS", "SPAN", "Run", "file_states", "options_of", "recorded", "runs_in"]

RUNS = "runs"
DONE = "done"
"""The outcome of a run that has written everything; of others it says what went wrong."""

P = ParamSpec("P")
_MAPS = ("inputs", "outputs", "rows_in", "rows_out")
# What a job is given that does not change what comes out, or that is noted elsewhere.
_ASIDE = frozenset(
    {"source", "target", "store", "observe", "warn", "stopped"}
    | {"days", "span", "tasks", "wish"}
    # Whoever is erased is not written down in doing so.
    | {"user"}
)
SPAN = "span"
"""Among the options: the first day that results are sums over, and the one after the last."""

Facts = Callable[["Store"], Mapping[str, object]]


@dataclass(frozen=True)
class Run:
    """A row of the table `runs`.

    Attributes
    ----------
    run, job, code
        Its name, its job, and the version of the code.
    source
        The folder that it has read; None when that is the folder it has written.
    began, seconds
        When, and how long it took.
    since, until, days
        The days that it was asked for, and those that it has done; None where a job has none.
    options
        What it was asked for, as JSON; files by what is in them.
    inputs, outputs
        The versions of tables that it has read and made; None for tables that were not there.
    rows_in, rows_out
        The rows it has read and written, by table.
    outcome
        `DONE`, or what went wrong.
    """

    run: str
    job: str
    code: str
    source: str | None
    began: datetime
    seconds: float
    since: date | None
    until: date | None
    days: Sequence[Day] | None
    options: str
    inputs: Mapping[str, int | None]
    outputs: Mapping[str, int]
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    outcome: str

    def document(self) -> dict[str, object]:
        """Return the run as JSON has it."""
        found = vars(self) | {"options": json.loads(self.options)}
        found["days"] = None if self.days is None else [_iso(day) for day in self.days]
        return found | {name: _iso(found[name]) for name in ("began", "since", "until")}


def recorded(
    job: str, facts: Facts | None = None
) -> Callable[[Callable[P, JobReport]], Callable[P, JobReport]]:
    """Make a function a job whose runs are noted in the folder that it writes.

    `facts` finds out what else decides about results, besides options and tables.
    """

    def decorate(function: Callable[P, JobReport]) -> Callable[P, JobReport]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> JobReport:
            given = _bound(function, args, kwargs)
            source, target = _stores(given)
            if source is not target:
                source.begin(job)
            target.begin(job)
            began, watch = datetime.now(UTC), Stopwatch()
            options = options_of(run, args, kwargs)
            days: Days = given.get("days", ALL)

            def note(report: JobReport, outcome: str) -> None:
                since, until = days.bounds
                done = None if report.days is None else in_order(report.days)
                written = target.written_versions
                read = {**target.read_versions, **source.read_versions}
                row = Run(
                    run=target.run,
                    job=job,
                    code=distributary.__version__,
                    source=None if source is target else source.path(""),
                    began=began,
                    seconds=round(watch.seconds, 3),
                    since=since,
                    until=until,
                    days=done,
                    options=options,
                    inputs={name: read[name] for name in read if name not in written},
                    outputs=written,
                    rows_in=report.rows_in,
                    rows_out=report.rows_out,
                    outcome=outcome,
                )
                _append(target, row)

            try:
                with marked(target):
                    report = function(*args, **kwargs)
            except BaseException as error:
                # Where nothing is yet, nothing is left either.
                if target.folder.names():
                    # What went wrong is told by the error, and no other that comes of it.
                    with suppress(Exception):
                        note(JobReport(job, {}, {}, 0.0), _failure(error))
                raise
            if not given.get("dry_run"):
                note(report, DONE)
            return report

        vars(run)["facts"] = facts
        return run

    return decorate


def options_of(
    function: Callable[..., JobReport], args: Sequence[object], kwargs: Mapping[str, object]
) -> str:
    """Return what a job is asked for as JSON: all that decides about its results."""
    given = _bound(inspect.unwrap(function), args, kwargs)
    source, _ = _stores(given)
    facts: Facts | None = getattr(function, "facts", None)
    chosen = ({} if facts is None else dict(facts(source))) | {
        name: _FILES.get(name, _plain)(value) for name, value in given.items() if name not in _ASIDE
    }
    if SPAN in given:
        span: Days = given["days"] if given[SPAN] is None else given[SPAN]
        chosen[SPAN] = [_iso(day) for day in span.bounds]
    return json.dumps(chosen, sort_keys=True)


def runs_in(store: Store) -> list[Run]:
    """Return the runs that a folder knows of, in the order in which they began."""
    if not store.has(RUNS):
        return []
    rows = store.read(RUNS).to_pylist()
    found = [Run(**row | {name: dict(row[name]) for name in _MAPS}) for row in rows]
    return sorted(found, key=lambda run: (run.began, run.run))


def _append(target: Store, run: Run) -> None:
    import pyarrow as pa

    maps = {name: list(getattr(run, name).items()) for name in _MAPS}
    rows = pa.Table.from_pylist([vars(run) | maps], schema=table_schema(RUNS).arrow)
    target.publish(target.draft(RUNS, rows), append=True)


def _bound(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, Any]:
    found = inspect.signature(function).bind(*args, **kwargs)
    found.apply_defaults()
    return dict(found.arguments)


def _stores(given: Mapping[str, Any]) -> tuple[Store, Store]:
    target = given["target"] if "target" in given else given["store"]
    return given.get("source", target) if _is_store(given.get("source")) else target, target


def _is_store(value: object) -> bool:
    from distributary.pipeline.store import Store

    return isinstance(value, Store)


def _plain(value: Any) -> Any:
    """Return an option as JSON has it; a file by what is in it."""
    if isinstance(value, ContentSpace):
        return value.version
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _content(value: Any) -> Any:
    """Return what is in a file as a hash of it; other things as they are."""
    if not isinstance(value, str | Path):
        return _plain(value)
    try:
        return f"sha256:{hashlib.sha256(Path(value).read_bytes()).hexdigest()}"
    except OSError:
        return str(value)


def file_states(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the files that some names stand for, each with its size and when it was changed."""
    return {
        path: [length, Path(path).stat().st_mtime_ns if Path(path).is_file() else 0]
        for path, length in found_files(names)
    }


_FILES: Mapping[str, Callable[[Any], Any]] = {
    "graph": _content,
    "space": _content,
    "files": file_states,
}


def _failure(error: BaseException) -> str:
    text = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _iso(value: Any) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")
