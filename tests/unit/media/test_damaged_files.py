"""Whatever a file does to a converter, the caller gets an answer, in time, and goes on.

A failure prints the file that showed it; `damaged_file(seed, number)` makes it again.
"""

from __future__ import annotations

import multiprocessing
import time
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import psutil
import pytest
from tests.bombs import BOMBS, deflated
from tests.damaged_files import TARGETS, DamagedFile, damaged_file
from tests.tiny_media import ESSENCES, tiny

from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.media.pool import Pool

SEED = 0
LIMITS = Limits(
    seconds=1.0,
    memory_bytes=512 << 20,
    output_bytes=32 << 20,
    pages=100,
    pixels=16_000_000,
    frames=20_000,
)
# The same for content that shall convert, however busy the machine is.
UNHURRIED = replace(LIMITS, seconds=60.0)
# What an answer may take beyond the limit, on a machine that is busy with something else.
MARGIN_SECONDS = 60.0
GROWN_BYTES_MAX = 40 << 20

HEALTHY = ("Grüße".encode(), "text/plain;charset=utf-8", "text/plain;charset=utf-16")


def outcome(pool: Pool, file: DamagedFile) -> str:
    """Return how the conversion of a file ended: `converted`, or the kind of its failure."""
    began = time.monotonic()
    result = pool.submit(file.content, file.source, file.target)
    failure = result.exception()
    seconds = time.monotonic() - began
    assert seconds < LIMITS.seconds + MARGIN_SECONDS, (file, seconds)
    if failure is None:
        assert len(result.result().content) <= LIMITS.output_bytes, file
        return "converted"
    assert isinstance(failure, ConversionFailed), (file, failure)
    assert failure.lasting, (file, failure)
    assert failure.reason, file
    assert "\n" not in str(failure), file
    return failure.kind


def outcomes(count: int) -> Counter[str]:
    """Convert the first files of the seed, with a healthy one after each, and count the ends."""
    ends: Counter[str] = Counter()
    settled = count // 2
    rss = psutil.Process().memory_info
    before = 0
    # Files are made in another process: what it takes to make them is not the pool's.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as maker, Pool(1, limits=LIMITS) as pool:
        expected = pool.convert(*HEALTHY, limits=UNHURRIED).content
        for number in range(count):
            file = maker.submit(damaged_file, SEED, number).result()
            ends[outcome(pool, file)] += 1
            healthy = pool.submit(*HEALTHY, limits=UNHURRIED)
            assert healthy.exception() is None, (file, healthy.exception())
            assert healthy.result().content == expected, file
            if number == settled:
                before = rss().rss
    grown = rss().rss - before
    print(f"seed {SEED}, {count} files: {dict(ends.most_common())}, grown by {grown:,} bytes")
    assert grown < GROWN_BYTES_MAX, (grown, ends)
    # Whatever is wrong with a file, our converters say so; an exception would be their fault.
    assert not ends["faulty"], ends
    return ends


def test_the_files_convert_before_they_are_damaged() -> None:
    """Otherwise the damage would prove nothing."""
    with Pool(1, limits=UNHURRIED) as pool:
        for essence in ESSENCES:
            source = "text/plain;charset=utf-8" if essence == "text/plain" else essence
            for target in TARGETS[essence]:
                assert pool.convert(tiny(essence), source, target).content, (source, target)


def test_fifty_damaged_files_are_answered_and_the_caller_goes_on() -> None:
    ends = outcomes(50)
    assert ends["damaged"] >= 25, ends
    assert ends["pixels"] >= 3, ends
    # Workers are lost, as they are stopped or go down by themselves, and are replaced.
    assert ends["time"] + ends["crashed"] + ends["memory"] >= 2, ends


@pytest.mark.full
def test_a_thousand_damaged_files_are_answered_and_the_caller_goes_on() -> None:
    ends = outcomes(1000)
    assert ends["damaged"] >= 500, ends
    for kind in ("pixels", "pages", "frames", "time"):
        assert ends[kind] >= 3, ends


def test_every_kind_of_file_meets_every_kind_of_damage() -> None:
    files = [damaged_file(SEED, number) for number in range(220)]
    bombs = {bomb.__name__.replace("_", " ") for _, bomb in BOMBS}
    pairs = {(file.source, file.damage) for file in files if file.damage not in bombs}
    assert len(pairs) == len(ESSENCES) * 10
    assert bombs == {file.damage for file in files} & bombs
    assert max(len(file.content) for file in files) < 8_000_000


def test_the_same_number_is_the_same_file() -> None:
    for number in range(0, 100, 7):
        assert damaged_file(3, number).content == damaged_file(3, number).content
    assert damaged_file(3, 1).content != damaged_file(4, 1).content


def test_a_flood_is_what_it_says() -> None:
    assert zlib.decompress(deflated(b"flood ", 1000)) == b"flood " * 1000
