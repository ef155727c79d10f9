"""How many more conversions two workers do than one."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import dataclass

import numpy as np
from PIL import Image

from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    result_hash,
)
from distributary.media.pool import Pool

__all__ = ["STUDY"]

_SEED = 1


@dataclass(frozen=True)
class _Parameters:
    width: int
    pictures: int
    repeats: int
    speedup_min: float


# Small conversions are over before both workers are at it.
_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(1200, 6, 2, 1.2),
    "large": _Parameters(2560, 12, 20, 1.8),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    progress("pictures")
    pictures = [_picture(parameters.width, number) for number in range(parameters.pictures)]
    target = f"image/jpeg;width={parameters.width // 2}"
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with Pool(1) as one, Pool(2) as two:
        results = _converted(one, pictures, target)
        assert _converted(two, pictures, target) == results, "two workers give another result"
        for number in range(parameters.repeats):
            progress(f"run {number + 1}")
            # In turns: what else the machine does then disturbs both alike.
            for pool in (one, two):
                began = time.perf_counter()
                _converted(pool, pictures, target)
                seconds[pool.workers].append(time.perf_counter() - began)
    # The best of short runs, as others may be busy in between.
    best = {workers: min(times) for workers, times in seconds.items()}
    return Findings(
        tables=(
            Table(
                f"Pictures of {parameters.width:,} pixels made half as wide",
                "speed",
                (Column("workers"), Column("pictures per second", 1), Column("times as fast", 2)),
                tuple(
                    (workers, parameters.pictures / time_, best[1] / time_)
                    for workers, time_ in best.items()
                ),
                notes=(
                    f"JPEG, {parameters.pictures} pictures at a time, best of "
                    f"{parameters.repeats} times in turns; results are compared."
                ),
            ),
        ),
        claims=(
            Claim(
                "one worker beside two",
                best[1] / best[2],
                ">=",
                parameters.speedup_min,
                "times as long",
            ),
        ),
        result_hash=result_hash([hashlib.sha256(b"".join(results)).hexdigest()]),
    )


def _converted(pool: Pool, pictures: list[bytes], target: str) -> list[bytes]:
    futures = [pool.submit(picture, "image/jpeg", target) for picture in pictures]
    wait(futures)
    return [future.result().content for future in futures]


def _picture(width: int, number: int) -> bytes:
    """Return a picture with something in it everywhere: soft shapes and a little noise."""
    rng = np.random.default_rng([_SEED, number])
    height = width * 3 // 4
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    soft = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    noisy = np.clip(soft + rng.integers(-8, 9, soft.shape, dtype=np.int16), 0, 255)
    file = io.BytesIO()
    Image.fromarray(noisy.astype(np.uint8)).save(file, "jpeg", quality=85)
    return file.getvalue()


STUDY = Study(
    name="two-workers",
    about="How many more pictures two worker processes convert than one, on two cores.",
    minutes=0.8,
    run=_run,
)
