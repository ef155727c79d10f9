"""The guide to the simulator has every field there is, with its default, and no other."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from distributary.broker.settings import MigrationSettings, Settings
from distributary.simulator import compared_report, read_scenario
from distributary.simulator.checkers.violation import Checker
from distributary.simulator.scenario import (
    FAULT_KINDS,
    AdaptationTable,
    ContentTable,
    Fault,
    OverlayTable,
    Shift,
    WorkloadTable,
)

GUIDE = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")


def rows(after: str) -> dict[str, str]:
    """Return the first two columns of the first table after some text."""
    table = GUIDE.partition(f"\n{after}")[2].partition("\n|---|")[2].partition("\n\n")[0]
    found = dict(re.findall(r"^\| `([^`]+)` \|(.*?)\|", table, re.M))
    assert found, after
    return found


@pytest.mark.parametrize(
    ("after", "table"),
    [
        ("### `[overlay]`", OverlayTable),
        ("### `[content]`", ContentTable),
        ("### `[workload]`", WorkloadTable),
        ("`[workload.shift]`", Shift),
        ("### `[adaptation]`", AdaptationTable),
        ("`[settings.migration]` has", MigrationSettings),
        ("## Faults", Fault),
    ],
)
def test_a_table_has_every_field_with_its_default(after: str, table: Any) -> None:
    found = rows(after)
    assert list(found) == [field.name for field in fields(table)]
    for field in fields(table):
        assert field.default is not MISSING
        said = found[field.name].strip()
        if field.default in (None, math.inf):
            assert said == "", field.name
        else:
            value = tomllib.loads(f"value = {said.strip('`')}")["value"]
            default = field.default
            assert value == (list(default) if isinstance(default, tuple) else default), field.name


def test_every_kind_of_fault_is_there() -> None:
    assert set(rows("| kind |")) == set(FAULT_KINDS)


def test_every_group_of_settings_is_there() -> None:
    listed = GUIDE.partition("The groups are ")[2].partition(". ")[0]
    groups = [field.name for field in fields(Settings) if field.name != "space"]
    groups = [name for name in groups if is_dataclass(getattr(Settings(), name))]
    assert re.findall(r"`(\w+)`", listed) == groups


def test_every_field_of_the_report_and_every_checker_is_there(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('size = "small"\n[overlay]\nbrokers = 2\n[workload]\nduration_s = 10\n')
    report = compared_report(read_scenario(path), seed=0)
    assert list(rows("## The report")) == list(report)
    assert list(rows("`deliveries` has")) == list(report["deliveries"])
    sources = (Path(__file__).parents[3] / "src" / "distributary" / "simulator").rglob("*.py")
    text = "".join(source.read_text(encoding="utf-8") for source in sources)
    checkers = {checker.name for checker in Checker.__subclasses__()}
    others = re.findall(r'(?:Violation\(|self\._complain\()\s*"([a-z ]+)",', text)
    assert set(rows("## What is checked")) == checkers | set(others)
