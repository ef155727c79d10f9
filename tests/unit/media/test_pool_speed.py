"""A pool costs little: a small conversion pays no process, and cores are used."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator

import pytest
from tests.scripts_pool import plugged_in, run, start

from distributary.content.media_type import MediaType
from distributary.media.limits import Limits
from distributary.media.pool import Pool
from distributary.media.registry import installed

UTF_8 = MediaType.parse("text/plain;charset=utf-8")
UTF_16 = MediaType.parse("text/plain;charset=utf-16")
TEN_KILOBYTES = (
    ("Die Straße führt über die Brücke. " * 400).encode()[:10_000].decode(errors="ignore").encode()
)

pytestmark = pytest.mark.usefixtures("scripts")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugged_in(tmp_path_factory.mktemp("plugin")):
        yield


def median_ms(call: Callable[[], object], *, repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return 1000 * statistics.median(taken)


def test_a_small_conversion_costs_less_than_five_milliseconds_more_than_a_call() -> None:
    converter = installed().converter(UTF_8, UTF_16)
    assert converter is not None
    limits = Limits()
    with Pool(1) as pool:
        pool.convert(TEN_KILOBYTES, UTF_8, UTF_16)
        pooled = median_ms(lambda: pool.convert(TEN_KILOBYTES, UTF_8, UTF_16), repeat=200)
    direct = median_ms(lambda: converter.convert(TEN_KILOBYTES, UTF_8, UTF_16, limits), repeat=200)
    assert pooled - direct < 5


def spun(workers: int) -> tuple[float, float]:
    """Return how long eight conversions took together, and how long each for itself in sum."""
    with Pool(workers) as pool:
        for future in [start(pool, "pid") for _ in range(workers)]:
            future.result(60)
        begun = time.perf_counter()
        futures = [start(pool, "spin 1000000") for _ in range(8)]
        each = [future.result(60).seconds for future in futures]
        return time.perf_counter() - begun, sum(each)


def test_two_workers_are_both_busy_all_the_time() -> None:
    """Holds however many others want the cores: they slow down both sides of the comparison."""
    together, in_sum = spun(2)
    assert 1.6 < in_sum / together < 2.01
    together, in_sum = spun(1)
    assert 0.8 < in_sum / together < 1.01


@pytest.mark.full
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core does one thing at a time")
def test_two_workers_do_nearly_twice_as_much_as_one() -> None:
    """The best of a few attempts: other tests may be on the cores at the same time."""
    best = 0.0
    for _ in range(6):
        best = max(best, spun(1)[0] / spun(2)[0])
        if best > 1.7:
            break
    assert best > 1.4


def test_the_first_conversion_waits_for_no_more_than_a_process_to_start() -> None:
    def first() -> None:
        with Pool(1) as pool:
            run(pool, "echo hello")

    assert median_ms(first, repeat=3) < 3000
