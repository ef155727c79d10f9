"""What Spark says when a step fails, in one sentence that names the step and the data."""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distributary.errors import BadInput, DistributaryError, PipelineFailed

__all__ = ["explained"]

# An error of ours that was raised on an executor comes back as the last line of a traceback.
_OURS = re.compile(r"distributary\.errors\.\w+: (.+)")
_SIGNS = (
    (
        re.compile(r"is not a Parquet file|CANNOT_READ_FILE_FOOTER|Could not read footer"),
        "a file is not Parquet, or only half of one",
    ),
    (
        re.compile(r"FAILED_READ_FILE[^:]*: ?.*?file:?/*(?P<file>/\S+?)[.\s]*$", re.MULTILINE),
        "a file cannot be read",
    ),
    (re.compile(r"OutOfMemoryError|Java heap space"), "Java ran out of memory"),
    (re.compile(r"MemoryError|Cannot allocate memory"), "a worker ran out of memory"),
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_FULL_FILE = re.compile(r"(/[^\s:()'\"]+) \((?:No space left on device|Disk quota exceeded)\)")
_FILE = re.compile(r"file:/*(/[^\s'\",)]+)")
_RUN = re.compile(r"/(?:run-|\.)")


@contextmanager
def explained(step: str, dataset: str) -> Iterator[None]:
    """Turn whatever Spark raises within into `BadInput` or `PipelineFailed`."""
    try:
        yield
    except (DistributaryError, KeyboardInterrupt):
        raise
    except Exception as error:
        if _FULL.search(str(error)):
            raise _full_disk(dataset, str(error)) from error
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise _explanation(step, dataset, str(error)) from error


def _full_disk(dataset: str, text: str) -> BadInput:
    """Return which disk is full: the one that is named, or else the fuller of two.

    Spark keeps what does not fit into memory in a folder of its own.
    """
    local = (os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()).split(",")[0]
    named = _FULL_FILE.search(text) or _FILE.search(text)
    if "serialize broadcast" in text:
        place = local
    elif named is None:
        place = min((dataset, local), key=_free_bytes)
    elif named[1].startswith(local.rstrip("/") + "/") and "/blockmgr-" in named[1]:
        place = local
    else:
        # What the folder of a run is called tells nobody anything.
        place = _RUN.split(named[1])[0]
    hint = "make room there"
    if place == local:
        hint += ", or name another folder for Spark's temporary files in SPARK_LOCAL_DIRS"
    return BadInput(place, "the disk is full", hint=hint)


def _free_bytes(place: str) -> float:
    folder = Path(place).absolute()
    for candidate in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(candidate).free
    return math.inf


def _explanation(step: str, dataset: str, text: str) -> DistributaryError:
    ours = _OURS.findall(text)
    if ours:
        return BadInput(dataset, ours[-1].strip())
    named = _FILE.search(text)
    place = named[1] if named else dataset
    for sign, problem in _SIGNS:
        if sign.search(text):
            return BadInput(place, problem)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"^[A-Za-z_.]+(Error|Exception)\b.*:", line)]
    return PipelineFailed(
        step, dataset, (python or lines or ["no reason was given"])[-1 if python else 0]
    )
