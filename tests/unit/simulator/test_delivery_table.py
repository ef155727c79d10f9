"""Who got what: every delivery of the ledger has one row, and costs are those of the report."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import astuple, fields
from functools import cache
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet
import pytest

from distributary.broker.dissemination.messages import ItemId
from distributary.errors import BadInput
from distributary.simulator import Simulation, read_scenario, report_of
from distributary.simulator.deliveries import DeliveryRow, deliveries_of, write_deliveries

SCENARIOS = Path(__file__).parents[3] / "scenarios"
# Conversions, faults under which content is planned anew, clients that move, tenants, changes.
NAMES = ("map-small", "mixed", "migration-split", "tenants", "changes")


@cache
def ran(name: str) -> Simulation:
    simulation = Simulation(read_scenario(SCENARIOS / f"{name}.toml"), seed=1)
    simulation.run()
    return simulation


@pytest.mark.parametrize("name", NAMES)
def test_every_delivery_has_one_row(name: str) -> None:
    simulation = ran(name)
    rows = deliveries_of(simulation)
    told = Counter(
        (f"{row.subscription} of {_address(row)}", ItemId(row.tenant, row.source, row.id))
        for row in rows
    )
    assert told == Counter(simulation.ledger.got.keys())
    counts = report_of(simulation)["deliveries"]
    assert len(rows) == counts["made"] + counts["extra"]
    assert sum(bool(row.undeliverable) for row in rows) == counts["undeliverable"]


def _address(row: DeliveryRow) -> str:
    return f"@{row.tenant}@{row.client}" if row.tenant else f"@{row.client}"


@pytest.mark.parametrize("name", NAMES)
def test_costs_add_up_to_those_of_the_report(name: str) -> None:
    """What was planned for nobody who got it in the end is all that may be missing."""
    simulation = ran(name)
    rows = deliveries_of(simulation)
    content = simulation.scenario.settings.content
    got = {(row.tenant, row.source, row.id) for row in rows}
    missing = sum(
        content.alpha * plan.worth.transmission + content.beta * plan.worth.conversion
        for plan in simulation.planned
        if (plan.tenant, plan.source, plan.id) not in got
    )
    assert min(row.cost for row in rows) >= 0.0
    assert sum(row.cost for row in rows) + missing == pytest.approx(
        report_of(simulation)["cost"]["total"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_delays_and_formats_are_those_that_clients_saw(name: str) -> None:
    simulation = ran(name)
    rows = deliveries_of(simulation)
    delays = report_of(simulation)["delays_s"]
    assert max(row.delay_s for row in rows if row.format) == pytest.approx(delays["p100"])
    assert [row.delivered_s for row in rows] == sorted(row.delivered_s for row in rows)
    brokers = set(simulation.places.names)
    ran_there = {(one.broker, one.made.media_type) for one in simulation.world.conversions}
    assert any(row.converted for row in rows)
    for row in rows:
        assert row.home in brokers
        if row.converted:
            steps = [step.split(" > ") for step in row.converted.split("; ")]
            where = row.converted_at.split("; ")
            assert steps[-1][1] == row.format
            assert {(at, made) for at, (_, made) in zip(where, steps, strict=True)} <= ran_there
            for (_, made), (origin, _) in pairwise(steps):
                assert made == origin


def test_both_kinds_of_files_have_the_same_rows(tmp_path: Path) -> None:
    simulation = ran("map-small")
    rows = [list(astuple(row)) for row in deliveries_of(simulation)]
    write_deliveries(simulation, tmp_path / "d.csv")
    write_deliveries(simulation, tmp_path / "d.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "d.parquet")
    names = [field.name for field in fields(DeliveryRow)]
    assert table.column_names == names
    assert [list(row.values()) for row in table.to_pylist()] == rows
    with (tmp_path / "d.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))
    assert read == [names, *([str(cell) for cell in row] for row in rows)]


def test_a_run_without_deliveries_is_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'size = "small"\n[overlay]\nbrokers = 2\n[workload]\nbegin_s = 1\nduration_s = 2\n'
    )
    simulation = Simulation(read_scenario(path), seed=0)
    simulation.run()
    write_deliveries(simulation, tmp_path / "d.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "d.parquet").num_rows == 0


def test_a_name_must_say_what_kind_of_table_it_is(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"ends in neither \.parquet nor \.csv"):
        write_deliveries(ran("map-small"), tmp_path / "d.json")
    assert not list(tmp_path.iterdir())
