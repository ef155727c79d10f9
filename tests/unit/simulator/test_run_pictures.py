"""Pictures and summaries of runs: what there is to show, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from distributary.simulator import Simulation, read_scenario, report_of, summary_lines
from distributary.simulator.draw import draw_run, run_svg
from distributary.simulator.network_picture import network_plane

EVENTS = "publications = 3\nmatching = 1"
STREAM = "objects = 1\nrates = [1, 2]"


FAULTS = """
[[fault]]
kind = "drop"
at_s = 3
until_s = 4
[[fault]]
kind = "slow"
brokers = [1]
at_s = 4
until_s = 5
"""


def ran(folder: Path, workload: str) -> Simulation:
    path = folder / "s.toml"
    path.write_text(
        'size = "small"\n[overlay]\nbrokers = 3\n[workload]\nbegin_s = 3\nduration_s = 6\n'
        f"settle_s = 10\n{workload}\n"
    )
    simulation = Simulation(read_scenario(path), seed=0)
    simulation.run()
    return simulation


def report(folder: Path, workload: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(report_of(ran(folder, workload))))
    return found


@pytest.mark.parametrize(("workload", "axes"), [(EVENTS + FAULTS, 2), (STREAM + FAULTS, 1)])
def test_every_axis_of_time_has_the_faults(tmp_path: Path, workload: str, axes: int) -> None:
    simulation = ran(tmp_path, workload)
    told = report_of(simulation)["faults"]
    assert [(one["kind"], one["at_s"], one["until_s"]) for one in told] == [
        ("drop", 3.0, 4.0),
        ("slow", 4.0, 5.0),
    ]
    assert told[0]["brokers"] == []
    assert told[1]["brokers"] == [simulation.places.identifiers[1]]
    for suffix in (".svg", ".html"):
        draw_run(simulation, tmp_path / f"run{suffix}")
        picture = (tmp_path / f"run{suffix}").read_text(encoding="utf-8")
        assert picture.count('class="window"') == 2 * axes
        assert picture.count("<title>drop, 3 to 4 s</title>") == axes


def test_the_network_shows_brokers_load_conversions_and_clients(tmp_path: Path) -> None:
    (tmp_path / "n.gml").write_text(
        'graph [ node [ id 0 label "A <b>" Longitude 1 Latitude 1 ] node [ id 1 label "B"'
        " Longitude 2 Latitude 1 ] edge [ source 0 target 1 ] ]"
    )
    path = tmp_path / "s.toml"
    path.write_text(
        'size = "small"\n[overlay]\ntopology = "gml"\nfile = "n.gml"\nat = ["B", "A <b>"]\n'
        '[content]\ngraph = "map"\n[workload]\nsubscriptions = 6\npublications = 8\n'
        "matching = 1\nbegin_s = 3\nduration_s = 8\nsettle_s = 20\n"
    )
    simulation = Simulation(read_scenario(path), seed=0)
    simulation.run()
    assert simulation.places.names == ("B", "A <b>")
    plane = network_plane(simulation)
    assert plane.hubs == ("B", "A <b>")
    assert plane.counts.sum() == 6
    assert sum(int(badge or "0") for badge in plane.badges) == len(simulation.world.conversions) > 0
    assert plane.sizes.max() == 1.0
    assert (plane.fills > 0.0).any()
    assert any("conversions in" in line for line in plane.hub_details[0])
    draw_run(simulation, tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "A &lt;b&gt;" in page
    assert "<b>" not in page
    assert "so many conversions ran there" in page


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
