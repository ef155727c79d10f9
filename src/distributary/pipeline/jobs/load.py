"""The job `load`: a folder of files, each named after its table, into all those tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from distributary.errors import BadInput
from distributary.pipeline.jobs import ingest as jobs
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.sources.files import found_files, plain_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["check", "frames", "load", "tables_in"]

# Publications are compared with users, so those come first.
_ORDER = ("users", *(name for name in jobs.INGESTIBLE if name != "users"))
# Longer names first: `channels` must not take what is for a table that begins like it.
_NAMES = "|".join(sorted(jobs.INGESTIBLE, key=len, reverse=True))
_NAMED = re.compile(rf"(?P<table>{_NAMES})(?:[.-].*)?")


def tables_in(folder: str) -> dict[str, list[str]]:
    """Return the files for each table, in the order in which tables are to be read.

    A file belongs to the table that it, or the folder in which it is, is called after:
    `users.csv`, `quotes-2026-01.csv.gz`, `publications/monday.jsonl`.

    Raises `BadInput` for a file that is called after none.
    """
    root = PurePosixPath(plain_path(folder))
    found: dict[str, list[str]] = {}
    for path, _ in found_files([folder]):
        inside = PurePosixPath(path).relative_to(root)
        named = next(filter(None, map(_NAMED.fullmatch, reversed(inside.parts))), None)
        if named is None:
            raise BadInput(
                path,
                "is not called after a table",
                hint="as users.csv or quotes-monday.csv are; tables are "
                + ", ".join(jobs.INGESTIBLE),
            )
        found.setdefault(named["table"], []).append(path)
    return {name: found[name] for name in _ORDER if name in found}


def check(
    folder: str, *, publisher: str | None = None, any_publisher: bool = False
) -> list[dict[str, Any]]:
    """Return what `ingest` is asked for, one table after the other, or raise `BadInput`."""
    asked: list[dict[str, Any]] = []
    for name, files in tables_in(folder).items():
        step: dict[str, Any] = {"name": name, "files": files}
        if name == "publications":
            step |= {"publisher": publisher, "any_publisher": any_publisher}
        jobs.check(**step)
        asked.append(step)
    return asked


def load(
    target: Store,
    folder: str,
    *,
    publisher: str | None = None,
    any_publisher: bool = False,
    warn: Callable[[str], None] | None = None,
) -> JobReport:
    """Read every file of a folder into the table that it is called after.

    Each table is read as by `ingest`, and replaced.
    """
    watch = Stopwatch()
    rows_in: Counter[str] = Counter()
    rows_out: Counter[str] = Counter()
    files = 0
    for step in check(folder, publisher=publisher, any_publisher=any_publisher):
        report = jobs.ingest(target, **step, warn=warn)
        rows_in.update(report.rows_in)
        rows_out.update(report.rows_out)
        files += len(step["files"])
    return JobReport("load", rows_in, rows_out, watch.seconds, {"files": files})


def frames(
    target: Store, folder: str, *, publisher: str | None = None, any_publisher: bool = False
) -> dict[str, DataFrame]:
    """Return what the job writes, before anything is run."""
    asked = check(folder, publisher=publisher, any_publisher=any_publisher)
    return {step["name"]: jobs.frames(target, **step)[step["name"]] for step in asked}
