"""The example that tells the whole story proves what it says."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from examples.whole_story.prices import Followed, Prices
from examples.whole_story.running import happens, running
from tests.live.overlays import is_there

ROOT = Path(__file__).parents[2]


def sentence(text: str) -> str:
    """What is said, whatever the figures are, and which simple way comes closest.

    Brokers choose their neighbours by delays that they measure, so that trees differ.
    """
    return re.sub(r"[0-9]+|less than [a-z ]+", "N", text.strip())


@pytest.mark.slow
def test_prices_flow_over_real_brokers_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    """The live part of the story in small, without Spark."""
    brokers = ("1a00", "5b00", "fc00")

    async def follow() -> Followed:
        async with overlay.gate() as gate:
            prices = Prices(gate, brokers, seed=1)
            await prices.begin()
            ending = asyncio.Event()
            following = asyncio.ensure_future(prices.change_until(ending))
            followed = prices.followed
            assert await happens(lambda: followed.updates > 300, lambda: followed.updates)
            ending.set()
            await following
            return followed

    with running(tmp_path / "state", brokers, settings="") as overlay:
        processes = [*overlay.processes.values()]
        assert all(map(is_there, processes))
        followed = asyncio.run(follow())
    assert followed.within
    assert followed.followers == 3
    # Whoever tolerates more is told less.
    assert followed.updates < 3 * followed.changes
    assert not any(map(is_there, processes))


@pytest.mark.full
def test_the_whole_story_is_told_and_its_report_needs_nothing_else(tmp_path: Path) -> None:
    """Run as a new user does, from an empty folder."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.whole_story"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("make demo: ")
    assert "The report is in build/demo/report.html." in done.stdout
    assert sentence(done.stdout) in sentence((ROOT / "README.md").read_text(encoding="utf-8"))
    folder = tmp_path / "build" / "demo"
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "console.jpg").read_bytes().startswith(b"\xff\xd8")
    assert "Flood situation" in (folder / "pager.txt").read_text(encoding="utf-8")
    assert (folder / "radio.mp3").stat().st_size > 10_000
    # Whatever a browser would fetch stands in the file itself.
    assert report.count("data:image/jpeg;base64,") == 1
    assert report.count("data:audio/mpeg;base64,") == 1
    assert 'src="http' not in report
    assert 'href="http' not in report
