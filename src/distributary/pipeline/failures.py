"""What Spark says when a step fails, in one sentence that names the step and the data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

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
    (re.compile(r"No space left on device"), "the disk is full"),
    (re.compile(r"OutOfMemoryError|Java heap space"), "Java ran out of memory"),
    (re.compile(r"MemoryError|Cannot allocate memory"), "a worker ran out of memory"),
)
_FILE = re.compile(r"file:/*(/[^\s'\",)]+)")


@contextmanager
def explained(step: str, dataset: str) -> Iterator[None]:
    """Turn whatever Spark raises within into `BadInput` or `PipelineFailed`."""
    try:
        yield
    except (DistributaryError, KeyboardInterrupt):
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        raise _explanation(step, dataset, str(error)) from error


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
