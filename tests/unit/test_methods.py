"""One table of methods per planner: the planner, the command, its help and the guide agree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.commands import run

from distributary import fidelity, methods, placement, wiring

DOCS = Path(__file__).parents[2] / "docs"

PLANNERS = {
    "place": (methods.PLACEMENT, "placement.md", ["placement", "map", "--brokers", "6"]),
    "tree": (methods.FIDELITY, "fidelity.md", ["tree", "--servers", "4", "--routers", "20"]),
    "wire": (methods.WIRING, "wiring.md", ["wiring", "--users", "6", "--brokers", "2"]),
}

# What somebody writes who adds a method: a function elsewhere, and one entry in the table.
ADDED = """
import sys
from distributary import methods

methods.{table}["brand-new"] = "{function}"
from distributary.cli import main

sys.exit(main())
"""
FUNCTIONS = {
    "place": ("PLACEMENT", "placement.baselines:all_in_leaves", "all-in-leaves"),
    "tree": ("FIDELITY", "fidelity.baselines:random_tree", "random"),
    "wire": ("WIRING", "wiring.packing:packing_wiring", "packing"),
}
RESULT = {"place": "nodes", "tree": "trees", "wire": "assignment"}


def run_with_addition(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    table, function, _ = FUNCTIONS[command]
    return subprocess.run(
        [sys.executable, "-c", ADDED.format(table=table, function=function), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("command", PLANNERS)
def test_a_method_in_the_table_is_a_method_of_the_command(command: str, tmp_path: Path) -> None:
    problem = str(tmp_path / "problem.json")
    assert run("generate", *PLANNERS[command][2], "--seed", "3", "-o", problem).returncode == 0
    added = run_with_addition(command, command, problem, "--method", "brand-new", "--seed", "5")
    assert added.returncode == 0, added.stderr
    document = json.loads(added.stdout)
    assert document["method"] == "brand-new"
    same = run(command, problem, "--method", FUNCTIONS[command][2], "--seed", "5")
    assert document[RESULT[command]] == json.loads(same.stdout)[RESULT[command]]


@pytest.mark.parametrize("command", PLANNERS)
@pytest.mark.parametrize("group", [(), ("pipeline",)])
def test_the_help_lists_what_the_table_has(command: str, group: tuple[str, ...]) -> None:
    name = "plans" if group and command == "place" else command
    shown = run_with_addition(command, *group, name, "--help").stdout
    (listed,) = re.findall(r"--method\s+<([^>]+)>", shown)
    assert re.sub(r"\s", "", listed).split("|") == [*PLANNERS[command][0], "brand-new"]


@pytest.mark.parametrize("command", PLANNERS)
def test_the_guide_has_a_row_for_every_method(command: str) -> None:
    table, guide, _ = PLANNERS[command]
    text = (DOCS / guide).read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Methods\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == list(table)


@pytest.mark.parametrize(
    ("package", "table"),
    [
        (placement, methods.PLACEMENT),
        (fidelity, methods.FIDELITY),
        (wiring, methods.WIRING),
    ],
)
def test_a_package_offers_the_methods_of_its_table(
    package: ModuleType, table: dict[str, str]
) -> None:
    assert package.METHODS is table
