"""Brokers and the server are killed, one is paused, clocks jump: nothing lost, none twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.live.overlays import RunningOverlay, running_overlay
from tests.live.traffic import Traffic

pytestmark = pytest.mark.slow

_BROKERS, _SUBSCRIBERS, _PUBLISHERS = 8, 40, 4
_PAUSE_S = 20.0
_BATCH = 25


async def _publish(traffic: Traffic, name: str, count: int) -> None:
    for _ in range(count // _BATCH):
        await traffic.publish(name, _BATCH)
        await asyncio.sleep(0.5)


async def _kill(overlay: RunningOverlay, rng: random.Random, spared: str) -> None:
    """Kill somebody every few seconds, for ever."""
    victims = [one for one in (*overlay.brokers, "nats") if one != spared]
    while True:
        await asyncio.sleep(rng.uniform(1.5, 4.0))
        victim = rng.choice(victims)
        if victim in overlay.pids():
            await asyncio.to_thread(overlay.kill, victim)


async def _jump(overlay: RunningOverlay, rng: random.Random) -> None:
    """Set somebody's clock forward by two seconds, or back again, now and then."""
    while True:
        await asyncio.sleep(rng.uniform(2.0, 5.0))
        victim = overlay.pids().get(rng.choice(overlay.brokers))
        if victim is not None:
            # It may have been killed meanwhile.
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGUSR2)


async def _pause(overlay: RunningOverlay, broker: str) -> None:
    pid = overlay.pids()[broker]
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(_PAUSE_S)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _chaos(overlay: RunningOverlay, count: int, seed: int) -> None:
    async with overlay.gate() as gate:
        traffic = Traffic(gate, overlay.brokers)
        await traffic.subscribe(_SUBSCRIBERS)
        # Nobody publishes at the one that is paused, or everything would wait for it.
        paused = overlay.brokers[-1]
        killing = asyncio.ensure_future(_kill(overlay, random.Random(seed), paused))
        pausing = asyncio.ensure_future(_pause(overlay, paused))
        jumping = asyncio.ensure_future(_jump(overlay, random.Random(seed + 1)))
        try:
            await asyncio.gather(
                *(_publish(traffic, f"p{k}", count // _PUBLISHERS) for k in range(_PUBLISHERS))
            )
        finally:
            killing.cancel()
            jumping.cancel()
            await asyncio.gather(killing, pausing, jumping, return_exceptions=True)
        assert not pausing.cancelled()
        assert jumping.cancelled()
        assert sum("was killed by signal 9" in line for line in overlay.said) > 2
        await traffic.settled(seconds=240.0)


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.full)])
def test_nothing_accepted_is_lost_or_comes_twice_or_out_of_order(
    tmp_path: Path, count: int
) -> None:
    state = tmp_path / "state"
    with running_overlay(state, brokers=_BROKERS, program="tests.live.jumping") as overlay:
        asyncio.run(_chaos(overlay, count, seed=7))
