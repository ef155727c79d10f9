"""requirements.lock pins and hashes everything, and works with any package index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"

PINNED = re.compile(r"^(?P<name>[a-z0-9]+(?:[-.][a-z0-9]+)*)==(?P<version>[^\s;]+)(?: ; .+)?$")
HASH = re.compile(r"^--hash=sha256:[0-9a-f]{64}$")


def requirements(text: str) -> list[list[str]]:
    """Return each requirement as its pin followed by its hashes."""
    joined = re.sub(r"\\\n", "\n\t", text)
    entries: list[list[str]] = []
    for line in joined.splitlines():
        part = line.strip()
        if not part or part.startswith("#"):
            continue
        if line[0].isspace() and entries:
            entries[-1].append(part)
        else:
            entries.append([part])
    return entries


def faults(text: str) -> list[str]:
    """Return a sentence for every line that is unpinned, unhashed or names a place."""
    found = []
    for pin, *hashes in requirements(text):
        if not PINNED.match(pin):
            found.append(f"not pinned: {pin}")
        if not hashes:
            found.append(f"no hash: {pin}")
        found.extend(f"not a hash: {part}" for part in hashes if not HASH.match(part))
    found.extend(
        f"names a place: {line.strip()}"
        for line in text.splitlines()
        if re.search(r"://| @ |\bfile:|--[a-z-]*(?:index|find-links|host)", line)
        or re.search(r"\b[\w-]+\.(?:com|dev|io|net|org)\b", line)
    )
    return found


def normalised(requirement: str) -> str:
    """Return the name of the package in a requirement, as a lock file writes it."""
    name = re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_requirement_is_pinned_and_hashed_and_names_no_host() -> None:
    assert faults(LOCK.read_text(encoding="utf-8")) == []


def test_the_lock_covers_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["dev"]
    locked = {pin.partition("==")[0] for pin, *_ in requirements(LOCK.read_text(encoding="utf-8"))}
    assert {normalised(requirement) for requirement in asked} <= locked


def test_no_requirement_is_locked_twice_for_the_same_systems() -> None:
    pins = [pin for pin, *_ in requirements(LOCK.read_text(encoding="utf-8"))]
    assert len(pins) == len(set(pins))


@pytest.mark.parametrize(
    "text",
    [
        "numpy>=2.0 \\\n    --hash=sha256:" + "0" * 64,
        "numpy==2.0",
        "numpy==2.0 \\\n    --hash=md5:" + "0" * 32,
        "--index-url https://example.invalid/simple",
        "numpy @ https://example.invalid/numpy.whl \\\n    --hash=sha256:" + "0" * 64,
        "# from pypi.example.org\nnumpy==2.0 \\\n    --hash=sha256:" + "0" * 64,
    ],
)
def test_a_faulty_lock_is_caught(text: str) -> None:
    assert faults(text) != []


def test_a_sound_lock_passes() -> None:
    text = "colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    assert faults(text) == []
