"""The example that tells the whole story proves what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    assert done.stdout.strip() in (ROOT / "README.md").read_text(encoding="utf-8")
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
