"""Pictures and summaries of runs: what there is to show, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from distributary.simulator import Simulation, read_scenario, report_of, summary_lines
from distributary.simulator.draw import run_svg

EVENTS = "publications = 3\nmatching = 1"
STREAM = "objects = 1\nrates = [1, 2]"


def report(folder: Path, workload: str) -> dict[str, Any]:
    path = folder / "s.toml"
    path.write_text(
        'size = "small"\n[overlay]\nbrokers = 3\n[workload]\nbegin_s = 3\nduration_s = 6\n'
        f"settle_s = 10\n{workload}\n"
    )
    simulation = Simulation(read_scenario(path), seed=0)
    simulation.run()
    found: dict[str, Any] = json.loads(json.dumps(report_of(simulation)))
    return found


@pytest.mark.parametrize(
    ("workload", "shown", "not_shown"),
    [(EVENTS, ">deliveries<", ">loss of fidelity"), (STREAM, ">loss of fidelity", ">deliveries<")],
)
def test_what_a_run_did_not_have_is_not_drawn(
    tmp_path: Path, workload: str, shown: str, not_shown: str
) -> None:
    picture = run_svg(report(tmp_path, workload))
    assert shown in picture
    assert not_shown not in picture


def test_a_cost_of_next_to_nothing_is_not_shown(tmp_path: Path) -> None:
    """Events without content cost some thousandths, which would be written as 0.0."""
    found = report(tmp_path, EVENTS)
    assert 0.0 < found["cost"]["total"] < 0.05
    assert not any(line.startswith("cost") for line in summary_lines(found))
    assert ">all in the root<" not in run_svg(found)
    found["cost"]["total"] = 0.06
    assert any(line.startswith("cost") for line in summary_lines(found))
    assert ">all in the root<" in run_svg(found)


def test_a_long_name_stays_within_the_picture(tmp_path: Path) -> None:
    found = {**report(tmp_path, EVENTS), "scenario": "x" * 200 + "end", "brokers": 1}
    picture = run_svg(found)
    assert "x" * 61 not in picture
    assert "end, seed 0" in picture
    assert "1 broker, " in picture
