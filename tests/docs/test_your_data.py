"""The example with data of one's own: its files are what made them, and its page is true."""

from __future__ import annotations

import shutil
from pathlib import Path

from examples.your_data.__main__ import FILES, write
from tests.docs.test_documents import ROOT, play

EXAMPLE = ROOT / "examples" / "your_data"


def test_the_files_are_those_that_the_seed_makes(tmp_path: Path) -> None:
    write(tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (EXAMPLE / name).read_bytes(), name


def test_the_example_prints_what_its_page_says(tmp_path: Path) -> None:
    """In a copy of the folder, as its reader would."""
    copy = shutil.copytree(EXAMPLE, tmp_path / "copy", ignore=shutil.ignore_patterns("__pyc*"))
    differences = play((EXAMPLE / "README.md").read_text(encoding="utf-8"), copy)
    assert not differences, "\n".join(differences)
    for picture, word in (
        ("quotes.svg", "change since the first (%)"),
        ("rates.html", "updates per second"),
        ("deliveries.html", "deliveries"),
    ):
        assert word in (copy / picture).read_text(encoding="utf-8")
