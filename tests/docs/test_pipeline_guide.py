"""The guide to the pipeline has every table, every column and every option, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from tests.docs.test_documents import ROOT, first_column, run, section

from distributary.cli.pipeline import app
from distributary.pipeline.schemas import TABLES

GUIDE = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
HEADINGS = {
    "sample": "Making a sample",
    "ingest": "Reading files",
    "load": "Reading a folder of files",
    "match": "Matching",
    "channels": "Channels",
    "traffic": "Traffic",
    "rates": "Rates",
    "plans": "Plans",
    "wire": "Wiring",
    "tree": "Trees",
    "stream": "Streaming",
    "run": "A chain of jobs",
    "show": "Looking at a table",
    "plot": "Drawing a table",
    "prune": "Removing old rows",
    "history": "What was done, and what is stale",
    "erase": "Erasing a user",
    "compact": "Putting small files together",
    "vacuum": "Removing old files",
    "convert": "Older tables",
}

GROUP = typer.main.get_command(app)
assert isinstance(GROUP, typer.core.TyperGroup)
COMMANDS = GROUP.commands


def described(heading: str) -> set[str]:
    return {word for word in first_column(section(GUIDE, heading)) if word.startswith("--")}


def columns(declared: str) -> tuple[str, ...]:
    """Return the names of columns as Spark would, which is not running here."""
    # What is between angle brackets has commas that are none between columns.
    while "<" in declared:
        declared = re.sub(r"<[^<>]*>", "", declared)
    return tuple(part.split()[0] for part in declared.split(", "))


def test_the_guide_has_every_table_with_its_columns() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \| ", section(GUIDE, "Tables"), re.M)
    shown = {name: tuple(re.findall(r"`(\w+)`", listed)) for name, listed in rows}
    assert shown == {name: columns(table.columns) for name, table in TABLES.items()}


def test_the_guide_has_every_command(tmp_path: Path) -> None:
    text = run(["distributary", "pipeline", "--help"], tmp_path).stdout
    listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^  (\w+) ", listed, re.M)) == set(HEADINGS)


@pytest.mark.parametrize("command", HEADINGS)
def test_the_guide_has_every_option_of_a_job_and_no_other(command: str) -> None:
    parameters = COMMANDS[command].params
    names = [name for item in parameters for name in (*item.opts, *item.secondary_opts)]
    offered = {name for name in names if name.startswith("--")} - {"--help"}
    common = described("What every job takes")
    assert len(common) > 5
    assert len(offered) >= 3
    assert described(HEADINGS[command]) | (common & offered) == offered
    assert offered - common <= described(HEADINGS[command])
