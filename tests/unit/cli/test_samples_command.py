"""`distributary samples`: a folder of content, whole, or one line about what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.commands import check_one_line

from distributary.cli import main
from distributary.media.sniff import sniff

NAMES = {
    "map.pdf": "application/pdf",
    "clip.mp4": "video/mp4",
    "photo.jpg": "image/jpeg",
    "notice.txt": "text/plain",
    "tone.wav": "audio/wav",
}


def test_a_folder_is_made_and_filled_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "content"
    assert main(["samples", str(folder), "--seed", "1"]) == 0
    captured = capsys.readouterr()
    assert {path.name for path in folder.iterdir()} == NAMES.keys()
    lines = captured.out.splitlines()
    assert len(lines) == len(NAMES)
    for line, (name, essence) in zip(lines, NAMES.items(), strict=True):
        content = (folder / name).read_bytes()
        assert sniff(content).essence == essence
        assert str(folder / name) in line
        assert re.search(rf" {len(content):,} bytes  \w", line)
    assert captured.err == "seed 1\n"


def test_a_file_in_the_place_of_the_folder_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "content"
    target.write_text("mine", encoding="utf-8")
    code = main(["samples", str(target)])
    captured = capsys.readouterr()
    check_one_line(code, captured.out, captured.err, "DIR: ")
    assert "is a file" in captured.err
    assert target.read_text(encoding="utf-8") == "mine"


def test_a_negative_seed_and_a_missing_folder_name_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in (["samples"], ["samples", "content", "--seed", "-1"]):
        code = main(arguments)
        captured = capsys.readouterr()
        check_one_line(code, captured.out, captured.err, "distributary samples")
