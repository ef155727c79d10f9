"""`pipeline wire`: the wiring that `distributary wire` finds in the same folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline_tables import put

from distributary.cli import main
from distributary.errors import BadInput
from distributary.pipeline.jobs.wire import TABLES, wire
from distributary.pipeline.store import Store
from distributary.wiring.cost import cost
from distributary.wiring.packing import packing_wiring
from distributary.wiring.problem_tables import read_problem_tables
from distributary.wiring.wiring_file import read_wiring

USERS, BROKERS, CELLS = 14, 4, 5


def fill(store: Store, *, homes: bool = True) -> None:
    rng = np.random.default_rng(3)
    users = [f"u{number:02}" for number in rng.permutation(USERS)]
    brokers = [f"b{number}" for number in range(BROKERS)]
    places = rng.random((USERS, 2))
    towns = rng.random((BROKERS, 2))
    access = np.linalg.norm(places[:, None] - towns[None], axis=2)
    core = np.linalg.norm(towns[:, None] - towns[None], axis=2)
    publisher, wisher = rng.integers(0, 3, (2, USERS, CELLS)) == 0
    rates = np.argwhere(publisher)
    wishes = np.argwhere(wisher)
    home = [brokers[number % BROKERS] if homes or number else None for number in range(USERS)]
    named = np.array(users)
    put(store, "users", pa.table({"user": users, "broker": home}), files=2)
    put(store, "brokers", pa.table({"broker": brokers, "capacity": [1e6] * BROKERS}))
    put(store, "access_costs", pa.table({"user": users, "costs": access.tolist()}), files=3)
    put(store, "core_costs", pa.table({"broker": brokers, "costs": core.tolist()}))
    put(
        store,
        "rates_published",
        pa.table(
            {
                "user": named[rates[:, 0]],
                "cell": rates[:, 1],
                "bytes_per_second": rng.uniform(1.0, 9.0, len(rates)),
            }
        ),
    )
    put(store, "interests", pa.table({"user": named[wishes[:, 0]], "cell": wishes[:, 1]}))


def wired(store: Store) -> dict[str, str]:
    rows = store.read("wiring").to_pylist()
    return {row["user"]: row["broker"] for row in rows}


def test_the_wiring_is_that_of_the_command_wire_on_the_folder(store: Store, tmp_path: Path) -> None:
    fill(store)
    folder = Path(store.path("users")).parent
    alone = tmp_path / "alone.json"
    assert main(["wire", str(folder), "--seed", "4", "-o", str(alone)]) == 0
    report = wire(store, store, seed=4)
    document = json.loads(alone.read_text())
    assert wired(store) == document["assignment"]
    for name in ("total_cost", "access_cost", "core_cost", "lower_bound", "gap"):
        assert report.figures[name] == document[name]
    assert set(report.rows_in) == set(TABLES)
    assert (report.rows_in["users"], report.rows_in["brokers"]) == (USERS, BROKERS)
    assert report.rows_out == {"wiring": USERS}


def test_the_report_has_the_cost_of_simpler_wirings_and_of_the_homes(store: Store) -> None:
    fill(store)
    report = wire(store, store, method="search")
    problem = read_problem_tables(Path(store.path("users")).parent).problem
    assert report.figures["packing"] == cost(problem, packing_wiring(problem)).total
    homes = store.read("users").to_pylist()
    at = {row["user"]: problem.brokers.index(row["broker"]) for row in homes}
    broker_of = np.array([at[user] for user in problem.users])
    assert report.figures["homes"] == cost(problem, broker_of).total
    assert float(str(report.figures["total_cost"])) <= min(
        float(str(report.figures[name])) for name in ("packing", "clustering", "mixing", "homes")
    )


def test_users_can_be_moved_from_their_homes(store: Store, tmp_path: Path) -> None:
    fill(store, homes=False)
    report = wire(store, store, from_homes=True, moves=2, baselines=False)
    # One user had no home, and a first home is no move.
    assert report.figures["moved"] == 2
    assert "homes" not in report.figures
    homes = {row["user"]: row["broker"] for row in store.read("users").to_pylist()}
    after = wired(store)
    assert sum(homes[user] not in (None, broker) for user, broker in after.items()) == 2
    document = tmp_path / "after.json"
    document.write_text(json.dumps({"assignment": after}))
    problem = read_problem_tables(Path(store.path("users")).parent).problem
    assert (
        report.figures["total_cost"]
        == cost(problem, read_wiring(document, problem).broker_of).total
    )


def test_tables_with_parts_of_a_stream_are_read_whole(store: Store) -> None:
    fill(store)
    expected = wire(store, store, baselines=False).figures["total_cost"]
    folder = Path(store.path("interests"))
    (folder / "batch=7").mkdir()
    (folder / "part-00000.parquet").rename(folder / "batch=7" / "part-00000.parquet")
    assert wire(store, store, baselines=False).figures["total_cost"] == expected


def test_a_missing_table_is_named(store: Store) -> None:
    fill(store)
    Path(store.path("interests"), "part-00000.parquet").unlink()
    Path(store.path("interests")).rmdir()
    with pytest.raises(BadInput, match="interests: there is no such table"):
        wire(store, store)
