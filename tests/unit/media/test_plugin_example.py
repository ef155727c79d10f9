"""The example package: installed beside distributary, it converts, and nothing else changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from tests.commands import run
from tests.tiny_media import tiny

EXAMPLE = Path(__file__).parents[3] / "examples" / "morse"
MORSE = "audio/wav;code=morse"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the package into a folder of its own, and return what puts it on the path."""
    folder = tmp_path_factory.mktemp("installed")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder), str(EXAMPLE)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    path = filter(None, (str(folder), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def test_its_conversion_is_listed_where_it_is_installed(environment: dict[str, str]) -> None:
    listed = json.loads(run("formats", "--json", env=environment, fresh=True).stdout)
    pairs = {(item["from"], item["to"]) for item in listed["conversions"]}
    assert ("text/plain;charset=utf-8", MORSE) in pairs
    assert MORSE in listed["formats"]
    elsewhere = json.loads(run("formats", "--json").stdout)
    assert MORSE not in elsewhere["formats"]
    assert len(elsewhere["conversions"]) == len(pairs) - 1


def test_it_converts_in_a_worker_and_on_the_way_from_other_formats(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "call.txt").write_text("CQ DE K1ABC", "utf-8")
    (tmp_path / "map.pdf").write_bytes(tiny("application/pdf"))
    for name, way in (("call.txt", "text/plain"), ("map.pdf", "application/pdf -> text/plain")):
        command = ("convert", name, "morse.wav", "--to", MORSE)
        ran = run(*command, env=environment, cwd=tmp_path, fresh=True)
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr.startswith(f"{way};charset=utf-8 -> {MORSE}: ")
        with wave.open(str(tmp_path / "morse.wav")) as sound:
            assert sound.getnframes() > 8000


def test_its_files_are_known_by_their_names_and_its_parameters_by_theirs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "call.txt").write_text("CQ DE K1ABC", "utf-8")
    ran = run("convert", "call.txt", "call.morse", env=environment, cwd=tmp_path, fresh=True)
    assert ran.returncode == 0, ran.stderr
    assert f"-> {MORSE}: " in ran.stderr
    with wave.open(str(tmp_path / "call.morse")) as sound:
        assert sound.getnframes() > 8000
    slow = ("convert", "call.txt", "call.wav", "--to", f"{MORSE};wpm=2")
    ran = run(*slow, env=environment, cwd=tmp_path, fresh=True)
    assert ran.returncode == 2
    assert "'wpm=2' is out of range; hint: wpm is 5 to 40" in ran.stderr
    ran = run("convert", "call.txt", "call.morse", cwd=tmp_path)
    assert ran.returncode == 2
    assert "'call.morse' does not say which format to make" in ran.stderr


def test_without_it_nothing_converts_to_morse(tmp_path: Path) -> None:
    (tmp_path / "call.txt").write_text("CQ", "utf-8")
    ran = run("convert", "call.txt", "morse.wav", "--to", MORSE, cwd=tmp_path)
    assert ran.returncode == 2
    assert "call.txt: nothing converts" in ran.stderr


@pytest.mark.full
def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout
