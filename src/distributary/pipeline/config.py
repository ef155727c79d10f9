"""What `pipeline run` reads: a TOML file that says which jobs run, with which options.

::

    [data]
    folder = "market"

    [sample]
    publications = 10_000
    seed = 7

    [match]

    [plans]
    method = "exact"

A job runs when its table is there, whatever its place in the file: the jobs have an order
of their own. Files are looked for beside the configuration.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distributary.content.fields import described, no_such_name
from distributary.errors import BadInput

__all__ = ["STEPS", "RunConfig", "Step", "read_config"]

_BYTES_MAX = 2**20

_INTEGER = "a whole number"
_NUMBER = "a number"
_TEXT = "a string"
_FLAG = "true or false"
_PATH = "the name of a file"
_TEXTS = "a list of strings"
_SPACE = "types, default or the name of a file"
_PATHS = "a list of names of files"

# The days that results are sums over.
_SPAN = {"since": _TEXT, "until": _TEXT}

STEPS: Mapping[str, Mapping[str, str]] = {
    "sample": {
        "publications": _INTEGER,
        "subscriptions": _INTEGER,
        "users": _INTEGER,
        "brokers": _INTEGER,
        "objects": _INTEGER,
        "seconds": _INTEGER,
        "servers": _INTEGER,
        "matches": _NUMBER,
        "days": _NUMBER,
        "seed": _INTEGER,
    },
    "ingest": {
        "table": _TEXT,
        "files": _PATHS,
        "add": _FLAG,
        "publisher": _TEXT,
        "any_publisher": _FLAG,
    },
    "match": {"graph": _PATH},
    "channels": {
        **_SPAN,
        "space": _SPACE,
        "dimensions": _TEXTS,
        "bins": _INTEGER,
        "by": _TEXT,
    },
    "traffic": {**_SPAN, "partners": _INTEGER},
    "rates": {**_SPAN, "source": _TEXT, "type": _TEXT, "value": _TEXT},
    "plans": {
        "graph": _PATH,
        "space": _PATH,
        "method": _TEXT,
        "seed": _INTEGER,
        "alpha": _NUMBER,
        "beta": _NUMBER,
        "link_cost": _TEXT,
        "tasks": _INTEGER,
    },
    "wire": {
        "method": _TEXT,
        "core": _TEXT,
        "seed": _INTEGER,
        "time_limit": _NUMBER,
        "from_homes": _FLAG,
        "moves": _INTEGER,
        "baselines": _FLAG,
    },
    "tree": {
        "source": _TEXT,
        "method": _TEXT,
        "objects": _TEXT,
        "filter_time": _NUMBER,
        "send_time": _NUMBER,
        "source_filter_time": _NUMBER,
        "source_send_time": _NUMBER,
        "seed": _INTEGER,
        "time_limit": _NUMBER,
        "baselines": _FLAG,
    },
}
"""The jobs in the order in which they run, and what the options of each are."""

# The words that stand for a content space where a file may be named.
_SPACES = ("types", "default")
_NEEDED = {"ingest": ("table", "files")}
_REPEATED = ("ingest",)


@dataclass(frozen=True)
class Step:
    """A job to run.

    Options are those that were given, by name: each of the right kind, paths whole.
    """

    job: str
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RunConfig:
    """Which jobs to run on which folder.

    `data` is None when the configuration does not say where the tables are.
    """

    data: str | None
    steps: tuple[Step, ...]


def read_config(path: Path | str) -> RunConfig:
    """Return the configuration in a file, or raise `BadInput` naming the file and place."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput(str(path), f"cannot be read: {reason}") from None
    if len(content) > _BYTES_MAX:
        raise BadInput(str(path), f"is larger than {_BYTES_MAX:,} bytes")
    try:
        document = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(str(path), f"is not TOML: {error}") from None
    try:
        return _config(document, path.absolute().parent)
    except BadInput as error:
        raise error.within(str(path)) from None


def _config(document: Mapping[str, object], folder: Path) -> RunConfig:
    for name in document:
        if name != "data" and name not in STEPS:
            raise no_such_name(f"[{name}]", name, ("data", *STEPS), "a job")
    if "sample" in document and "ingest" in document:
        raise BadInput("[ingest]", "cannot be combined with [sample]: both fill the tables")
    data = None
    if "data" in document:
        given = _options("[data]", document["data"], {"folder": _TEXT}, folder)
        if "folder" not in given:
            raise BadInput("[data]", "has no folder", hint='write it as in folder = "market"')
        data = _resolved(str(given["folder"]), folder)
    steps: list[Step] = []
    for job, kinds in STEPS.items():
        if job not in document:
            continue
        value = document[job]
        entries: Sequence[object] = (
            value if job in _REPEATED and isinstance(value, list) else [value]
        )
        for entry in entries:
            options = _options(f"[{job}]", entry, kinds, folder)
            for needed in _NEEDED.get(job, ()):
                if needed not in options:
                    raise BadInput(f"[{job}]", f"has no {needed}")
            steps.append(Step(job, options))
    # Publications are compared with users, so those are read first.
    steps.sort(key=lambda step: (list(STEPS).index(step.job), step.options.get("table") != "users"))
    if not steps:
        raise BadInput("configuration", "names no job", hint=f"jobs are {', '.join(STEPS)}")
    return RunConfig(data, tuple(steps))


def _options(
    place: str, value: object, kinds: Mapping[str, str], folder: Path
) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadInput(place, f"must be a table, not {described(value)}")
    options: dict[str, object] = {}
    for name, given in value.items():
        if name not in kinds:
            raise no_such_name(place, name, kinds, "an option of it")
        if not _is_kind(given, kinds[name]):
            raise BadInput(f"{place} {name}", f"must be {kinds[name]}, not {described(given)}")
        if kinds[name] == _PATH or (kinds[name] == _SPACE and given not in _SPACES):
            given = _resolved(given, folder)
        elif kinds[name] == _PATHS:
            given = [_resolved(item, folder) for item in given]
        elif kinds[name] == _NUMBER:
            given = float(given)
        options[name] = given
    return options


def _is_kind(value: object, kind: str) -> bool:
    if kind in (_TEXTS, _PATHS):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind in (_TEXT, _PATH, _SPACE):
        return isinstance(value, str)
    if kind == _FLAG or isinstance(value, bool):
        return kind == _FLAG and isinstance(value, bool)
    return isinstance(value, int) or (kind == _NUMBER and isinstance(value, float))


def _resolved(name: str, folder: Path) -> str:
    """Return a path that is relative to the configuration as one that is not; URLs stay."""
    return name if "://" in name else str(folder / name)
