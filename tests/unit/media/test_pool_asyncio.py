"""Under asyncio a conversion is awaited, and cancelling it frees its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile_plugin import SCRIPT, SCRIPT_RESULT
from tests.scripts_pool import eventually, gone, plugged_in, run

from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.media.pool import Pool

pytestmark = pytest.mark.usefixtures("scripts")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugged_in(tmp_path_factory.mktemp("plugin")):
        yield


async def asked(pool: Pool, script: str, limits: Limits | None = None) -> bytes:
    result = await pool.convert_async(script.encode(), SCRIPT, SCRIPT_RESULT, limits=limits)
    return result.content


def test_conversions_are_awaited_together() -> None:
    async def all_of_them(pool: Pool) -> list[bytes]:
        return await asyncio.gather(*(asked(pool, f"echo {number}") for number in range(20)))

    with Pool(2) as pool:
        assert asyncio.run(all_of_them(pool)) == [str(number).encode() for number in range(20)]


def test_the_event_loop_goes_on_while_a_worker_is_busy() -> None:
    async def tick_and_signal(pool: Pool, directory: Path) -> bytes:
        conversion = asyncio.create_task(asked(pool, "mark-and-await signal"))
        while not (directory / "begun").exists():
            await asyncio.sleep(0.002)
        for _ in range(10):
            await asyncio.sleep(0.002)
        assert not conversion.done()
        (directory / "signal").touch()
        return await conversion

    with Pool(1) as pool:
        directory = Path(run(pool, "directory").decode())
        assert asyncio.run(tick_and_signal(pool, directory)) == b"it came"


def test_a_conversion_that_fails_raises_where_it_is_awaited() -> None:
    with Pool(1) as pool, pytest.raises(ConversionFailed, match=r"more than 0\.3 s"):
        asyncio.run(asked(pool, "spin-for-ever", Limits(seconds=0.3)))


def test_cancelling_a_running_conversion_kills_its_worker() -> None:
    async def begin_and_cancel(pool: Pool, mark: Path) -> None:
        conversion = asyncio.create_task(asked(pool, "mark-and-wait begun"))
        while not mark.exists():
            await asyncio.sleep(0.002)
        conversion.cancel()
        with pytest.raises(asyncio.CancelledError):
            await conversion
        assert await asked(pool, "echo next") == b"next"

    with Pool(1) as pool:
        pid = pool_pid(pool)
        asyncio.run(begin_and_cancel(pool, Path(run(pool, "directory").decode()) / "begun"))
        eventually(lambda: gone(pid))
        assert pool_pid(pool) != pid


def test_cancelling_a_waiting_conversion_leaves_the_running_one_alone() -> None:
    async def wait_and_cancel(pool: Pool, directory: Path) -> bytes:
        running = asyncio.create_task(asked(pool, "mark-and-await signal"))
        while not (directory / "begun").exists():
            await asyncio.sleep(0.002)
        waiting = asyncio.create_task(asked(pool, "exit 1"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        (directory / "signal").touch()
        return await running

    with Pool(1) as pool:
        pid = pool_pid(pool)
        directory = Path(run(pool, "directory").decode())
        assert asyncio.run(wait_and_cancel(pool, directory)) == b"it came"
        assert pool_pid(pool) == pid


def test_a_conversion_that_is_awaited_for_too_long_is_given_up() -> None:
    async def impatient(pool: Pool) -> None:
        async with asyncio.timeout(0.3):
            await asked(pool, "spin-for-ever")

    with Pool(1) as pool:
        with pytest.raises(TimeoutError):
            asyncio.run(impatient(pool))
        assert run(pool, "echo next") == b"next"


def pool_pid(pool: Pool) -> int:
    return int(run(pool, "pid"))
