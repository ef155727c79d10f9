"""The client library is small: two packages, and neither NumPy nor Numba nor NATS."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.unit.test_minimal_import import BLOCK

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
# What the extra brings, with what that brings along.
CLIENT = ["httpx", "httpcore", "h11", "anyio", "sniffio", "idna", "certifi", "websockets"]
CLIENT += ["typing_extensions"]
ALLOWED = f"ALLOWED = {{'distributary', {', '.join(map(repr, CLIENT))}}}"

# All that a program does before its first request, and what was loaded for it.
PROGRAM = """
import json
import distributary

distributary.connect("http://127.0.0.1:9", token="t")
distributary.connect_sync("http://127.0.0.1:9", token="t")
from distributary.client import *
from distributary.client.connection import Connection
print(json.dumps(sorted(sys.modules)))
"""


def loaded(block: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", block + PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names: list[str] = json.loads(done.stdout)
    return names


def test_it_needs_what_its_extra_brings_and_no_more() -> None:
    """How long an import takes depends on the machine; how much is loaded does not."""
    lines = BLOCK.splitlines()
    assert sum(line.startswith("ALLOWED = ") for line in lines) == 1
    block = "\n".join(ALLOWED if line.startswith("ALLOWED = ") else line for line in lines)
    names = loaded(f"{block}\n")
    assert {"httpx", "websockets", "distributary.client.connection"} <= set(names)
    assert len(names) < 330


def test_it_loads_no_planner_even_where_there_is_one() -> None:
    names = {name.partition(".")[0] for name in loaded("import sys\n")}
    assert not names & {"numpy", "numba", "llvmlite", "nats", "pyarrow", "msgspec", "typer"}


def test_the_extra_names_these_packages() -> None:
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert [one.partition(">")[0] for one in extras["client"]] == ["httpx", "websockets"]
    assert set(extras["client"]) <= set(extras["dev"])


def test_without_its_packages_one_sentence_says_how_to_get_them() -> None:
    program = """
from distributary.errors import MissingPackage
import distributary
try:
    distributary.connect("http://127.0.0.1:9", token="t")
except MissingPackage as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == (
        "speaking to a gateway needs httpx, which is not installed; "
        'hint: pip install "distributary[client]"\n'
    )
