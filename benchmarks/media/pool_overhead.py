"""What a conversion pays for being run where it can do no harm, and what a kept one costs."""

from __future__ import annotations

import hashlib
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    result_hash,
)
from distributary.media.cache import Cache
from distributary.media.pool import Pool

__all__ = ["STUDY"]

_SOURCE, _TARGET = "text/plain;charset=utf-8", "text/plain;charset=utf-16"
_OVERHEAD_MS_MAX = 5.0
_HIT_MS_MAX = 5.0
_CACHE_BYTES = 1 << 30


@dataclass(frozen=True)
class _Parameters:
    repeats: int
    starts: int
    content_bytes: tuple[int, ...]


# The claims are about the first size.
_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(30, 2, (10_000, 100_000)),
    "large": _Parameters(500, 20, (10_000, 1_000_000, 10_000_000)),
}


@dataclass(frozen=True)
class _Measured:
    """Medians in seconds, and what the text became."""

    whole: float
    inside: float
    overhead: float
    kept: float
    digest: str


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    progress("starting workers")
    start = statistics.median(_seconds_to_start() for _ in range(parameters.starts))
    measured = {}
    for content_bytes in parameters.content_bytes:
        progress(f"{content_bytes:,} bytes")
        # Large content takes longer, and needs fewer times to tell.
        repeats = max(5, parameters.repeats * parameters.content_bytes[0] // content_bytes)
        measured[content_bytes] = _measure(_text(content_bytes), repeats)
    rows: list[tuple[Value, ...]] = [
        (
            content_bytes,
            1e3 * item.whole,
            1e3 * item.inside,
            1e3 * item.overhead,
            1e3 * item.kept,
        )
        for content_bytes, item in measured.items()
    ]
    smallest = measured[parameters.content_bytes[0]]
    return Findings(
        tables=(
            Table(
                "A text from UTF-8 to UTF-16 in a pool of one worker",
                "speed",
                (
                    Column("bytes"),
                    Column("ms in all", 2),
                    Column("ms in the converter", 2),
                    Column("ms of overhead", 2),
                    Column("ms if it was kept", 2),
                ),
                tuple(rows),
                notes=(
                    "Medians. Overhead is what is left of the whole without the converter: to "
                    "hand the text to another process, and to get the result back. The first "
                    f"conversion of a pool starts a worker and takes {1e3 * start:.0f} ms. What "
                    "was kept is found by the hash of its content, read and checked."
                ),
            ),
        ),
        claims=(
            Claim(
                "overhead of a conversion of 10 KB",
                1e3 * smallest.overhead,
                "<",
                _OVERHEAD_MS_MAX,
                "ms",
            ),
            Claim("a kept conversion of 10 KB", 1e3 * smallest.kept, "<", _HIT_MS_MAX, "ms"),
        ),
        result_hash=result_hash([item.digest for item in measured.values()]),
    )


def _measure(content: bytes, repeats: int) -> _Measured:
    wholes, insides, overheads = [], [], []
    with Pool(1) as pool:
        expected = pool.convert(content, _SOURCE, _TARGET).content
        for _ in range(repeats):
            began = time.perf_counter()
            result = pool.convert(content, _SOURCE, _TARGET)
            whole = time.perf_counter() - began
            assert result.content == expected, "a worker gives another result"
            wholes.append(whole)
            insides.append(result.seconds)
            overheads.append(whole - result.seconds)
    return _Measured(
        whole=statistics.median(wholes),
        inside=statistics.median(insides),
        overhead=statistics.median(overheads),
        kept=_seconds_if_kept(content, expected, repeats),
        digest=hashlib.sha256(expected).hexdigest(),
    )


def _seconds_if_kept(content: bytes, expected: bytes, repeats: int) -> float:
    times = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder), bytes_max=_CACHE_BYTES)
        with Pool(1, cache=cache) as pool:
            pool.convert(content, _SOURCE, _TARGET)
            for _ in range(repeats):
                began = time.perf_counter()
                result = pool.convert(content, _SOURCE, _TARGET)
                times.append(time.perf_counter() - began)
                assert result.cached, "nothing was kept"
                assert result.content == expected, "something else was kept"
    return statistics.median(times)


def _seconds_to_start() -> float:
    with Pool(1) as pool:
        began = time.perf_counter()
        pool.convert(b"a", _SOURCE, _TARGET)
        return time.perf_counter() - began


def _text(content_bytes: int) -> bytes:
    words = "Die Brücke an der Mühle ist bis auf Weiteres gesperrt. ".encode()
    return (
        (words * (content_bytes // len(words) + 1))[:content_bytes].decode(errors="ignore").encode()
    )


STUDY = Study(
    name="pool-overhead",
    about=(
        "What a conversion costs beside the converter itself, as it runs in another process, "
        "and how long one takes whose result was kept."
    ),
    minutes=0.3,
    run=_run,
)
