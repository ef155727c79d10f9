"""Problems from Parquet tables, as Spark writes them; faults name the file and the column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.wiring_sameness import same_wiring_problem

from distributary.errors import BadInput
from distributary.wiring.columns import ParquetColumn
from distributary.wiring.generate import generate_problem
from distributary.wiring.problem import WiringProblem
from distributary.wiring.problem_tables import read_problem_tables
from distributary.wiring.problem_writer import write_problem_tables

Tables = dict[str, dict[str, Any]]


def valid() -> Tables:
    return {
        "brokers": {"broker": ["b1", "b2"], "capacity": [100.0, None]},
        "users": {
            "user": ["u1", "u2", "u3"],
            "publishes": [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]],
            "subscribes": [[0, 1], [1, 0], [0, 0]],
        },
        "access_costs": {"user": ["u1", "u2", "u3"], "costs": [[1.0, 4.0], [3.0, 1.0], [1.0, 1.0]]},
        "core_costs": {"broker": ["b1", "b2"], "costs": [[0.0, 3.0], [3.0, 0.0]]},
    }


def factored() -> Tables:
    tables = valid()
    tables["users"] = {"user": ["u1", "u2", "u3"]}
    tables["rates_published"] = {"user": ["u2", "u1"], "cell": [7, 3], "rate": [2.0, 1.0]}
    tables["interests"] = {"user": ["u2", "u1"], "cell": [3, 7]}
    return tables


def write(folder: Path, tables: Tables) -> Path:
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def expected() -> WiringProblem:
    return WiringProblem.in_order(
        users=["u1", "u2", "u3"],
        brokers=["b1", "b2"],
        publishes=np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]),
        subscribes=np.array([[0, 1], [1, 0], [0, 0]], dtype=np.bool_),
        access_prices=np.array([[1.0, 4.0], [3.0, 1.0], [1.0, 1.0]]),
        core_prices=np.array([[0.0, 3.0], [3.0, 0.0]]),
        capacities=np.array([100.0, np.inf]),
    )


def test_tables_say_the_same_as_a_document(tmp_path: Path) -> None:
    file = read_problem_tables(write(tmp_path, valid()))
    assert same_wiring_problem(file.problem, expected())
    assert file.user_order == ("u1", "u2", "u3")
    assert file.positions is None


def test_a_table_may_be_a_folder_of_files_in_any_order(tmp_path: Path) -> None:
    tables = valid()
    write(tmp_path, {name: tables[name] for name in ("brokers", "users", "core_costs")})
    folder = tmp_path / "access_cost"
    folder.mkdir()
    costs = pa.table(tables["access_costs"])
    pq.write_table(costs.take([2, 1]), folder / "part-00001.snappy.parquet")
    pq.write_table(costs.take([0]), folder / "part-00000.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    assert same_wiring_problem(read_problem_tables(tmp_path).problem, expected())


def test_rates_and_interests_may_be_rows(tmp_path: Path) -> None:
    assert same_wiring_problem(read_problem_tables(write(tmp_path, factored())).problem, expected())


def test_users_may_be_known_by_their_prices_only(tmp_path: Path) -> None:
    tables = factored()
    del tables["users"]
    rates = tables["rates_published"]
    rates["bytes_per_second"] = rates.pop("rate")
    tables["rates_published"]["cell"] = ["late", "early"]
    tables["interests"]["cell"] = ["early", "late"]
    assert same_wiring_problem(read_problem_tables(write(tmp_path, tables)).problem, expected())


def test_nobody_publishing_or_wanting_anything_is_a_problem_too(tmp_path: Path) -> None:
    tables = factored()
    tables["rates_published"] = {
        "user": pa.array([], pa.string()),
        "cell": pa.array([], pa.int32()),
        "rate": pa.array([], pa.float64()),
    }
    tables["interests"] = {"user": pa.array([], pa.string()), "cell": pa.array([], pa.int32())}
    problem = read_problem_tables(write(tmp_path, tables)).problem
    assert not problem.demands.any()
    assert problem.channel_count == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"subscribes": pa.array([[False, True], [True, False], [False, False]])},
        {"subscribes": pa.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])},
        {"publishes": pa.array([[1, 0], [0, 2], [0, 0]], pa.list_(pa.int32()))},
        {"publishes": pa.array([[1, 0], [0, 2], [0, 0]], pa.large_list(pa.float32()))},
        {"publishes": pa.array([[1, 0], [0, 2], [0, 0]], pa.list_(pa.float64(), 2))},
        {"user": pa.array(["u1", "u2", "u3"], pa.large_string())},
        {"user": pa.array(["u1", "u2", "u3"]).dictionary_encode()},
        {"home": [None, "b1", None]},
    ],
)
def test_columns_of_related_types_are_read(tmp_path: Path, columns: dict[str, Any]) -> None:
    tables = valid()
    tables["users"] |= columns
    assert same_wiring_problem(read_problem_tables(write(tmp_path, tables)).problem, expected())


@pytest.mark.parametrize("capacity", [[None, None], pa.array([None, None], pa.float64())])
def test_a_capacity_that_nobody_has_is_no_limit(tmp_path: Path, capacity: Any) -> None:
    tables = valid()
    tables["brokers"]["capacity"] = capacity
    problem = read_problem_tables(write(tmp_path, tables)).problem
    assert np.isinf(problem.capacities).all()


@pytest.mark.parametrize(("access", "core"), [("cost", "cost"), ("access_cost", "core_cost")])
def test_the_lists_of_prices_have_several_names(tmp_path: Path, access: str, core: str) -> None:
    tables = valid()
    tables["access_costs"][access] = tables["access_costs"].pop("costs")
    tables["core_costs"][core] = tables["core_costs"].pop("costs")
    assert same_wiring_problem(read_problem_tables(write(tmp_path, tables)).problem, expected())
    tables["core_costs"][core] = [[0.0, 3.0], [4.0, 0.0]]
    with pytest.raises(BadInput, match=rf"core_costs.parquet: {core} of 'b1' to 'b2': is 3"):
        read_problem_tables(write(tmp_path, tables))


def test_positions_are_read_where_both_users_and_brokers_have_them(tmp_path: Path) -> None:
    tables = valid()
    tables["users"] |= {"x": [0.0, -1.0, 2.0], "y": [0.0, 0.5, 1.0]}
    assert read_problem_tables(write(tmp_path, tables)).positions is None
    tables["brokers"] |= {"x": [1, 2], "y": [3, 4]}
    positions = read_problem_tables(write(tmp_path, tables)).positions
    assert positions is not None
    assert positions.users.tolist() == [[0.0, 0.0], [-1.0, 0.5], [2.0, 1.0]]
    assert positions.brokers.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    tables["brokers"] |= {"x": [1.0, float("nan")]}
    with pytest.raises(BadInput, match=r"brokers.parquet: x\[1\]: must be a finite number"):
        read_problem_tables(write(tmp_path, tables))


def test_large_groups_of_rows_are_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = generate_problem(seed=1, users=60, brokers=5, channels=8)
    write_problem_tables(problem, tmp_path)
    monkeypatch.setattr("distributary.wiring.tables._GROUP_BYTES_MAX", 0)
    monkeypatch.setattr("distributary.wiring.tables._BLOCK_NUMBERS", 40)
    assert same_wiring_problem(read_problem_tables(tmp_path).problem, problem)


def test_many_channels_are_written_as_rows(tmp_path: Path) -> None:
    problem = generate_problem(seed=1, users=40, brokers=3, channels=8, dimensions=3)
    write_problem_tables(problem, tmp_path)
    assert (tmp_path / "rates_published.parquet").exists()
    read = read_problem_tables(tmp_path).problem
    assert np.array_equal(read.demands, problem.demands)
    # Written again with few channels, no table of the old problem is left.
    small = generate_problem(seed=1, users=40, brokers=3, channels=4)
    write_problem_tables(small, tmp_path)
    assert same_wiring_problem(read_problem_tables(tmp_path).problem, small)


def replaced(table: str, **columns: Any) -> Callable[[Tables], None]:
    def change(tables: Tables) -> None:
        tables[table] |= columns

    return change


def removed(table: str, column: str | None = None) -> Callable[[Tables], None]:
    def change(tables: Tables) -> None:
        if column is None:
            del tables[table]
        else:
            del tables[table][column]

    return change


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (removed("brokers"), "has no table 'brokers'; hint"),
        (removed("users"), "has no table 'users'; hint"),
        (removed("access_costs"), "has no table 'access_costs'"),
        (removed("core_costs"), "has no table 'core_costs'"),
        (removed("users", "publishes"), "users.parquet: has no column 'publishes'"),
        (removed("users", "user"), "users.parquet: has no column 'user'"),
        (removed("access_costs", "costs"), "access_costs.parquet: has no column 'costs'"),
        (removed("access_costs", "user"), "access_costs.parquet: has no column 'user'"),
        (replaced("users", user=[1, 2, 3]), "users.parquet: user: must be a column of strings"),
        (replaced("users", user=["u1", None, "u3"]), "users.parquet: user[1]: must be a string"),
        (replaced("users", user=["u1", "", "u3"]), "users.parquet: user[1]: must not be empty"),
        (replaced("users", user=["u1", "u2", "u1"]), "user[2]: user 'u1' is given twice"),
        (replaced("users", publishes=[1.0, 2.0, 3.0]), "publishes: must be a column of lists"),
        (replaced("users", publishes=[["a"], ["b"], ["c"]]), "publishes: must be a column of num"),
        (replaced("users", publishes=[[], [], []]), "users.parquet: publishes[0]: is empty"),
        (replaced("users", publishes=[[1.0, 0.0], None, [0.0, 0.0]]), "publishes[1]: is null"),
        (replaced("users", publishes=[[1.0, 0.0], [1.0], [0.0, 0.0]]), "publishes[1]: has 1 ent"),
        (replaced("users", publishes=[[1.0, 0.0], [0.0, None], [0.0, 0.0]]), "publishes[1][1]: is"),
        (
            replaced("users", publishes=[[1.0, 0.0], [0.0, 2.0], [float("nan"), 0.0]]),
            "users.parquet: publishes[2][0]: must be a finite number, not nan",
        ),
        (
            replaced("users", publishes=[[1.0, 0.0], [0.0, -2.0], [0.0, 0.0]]),
            "users.parquet: publishes[1][1]: must be at least 0, not -2",
        ),
        (
            replaced("users", subscribes=[[0, 1], [1, 2], [0, 0]]),
            "users.parquet: subscribes[1][1]: must be 0 or 1, not 2",
        ),
        (replaced("brokers", capacity=["a", "b"]), "brokers.parquet: capacity: must be a column"),
        (replaced("brokers", capacity=[1.0, -1.0]), "brokers.parquet: capacity[1]: must be at"),
        (replaced("brokers", capacity=[1.0, float("nan")]), "capacity[1]: must be a finite number"),
        (replaced("brokers", broker=["b1", "b1"]), "brokers.parquet: broker[1]: broker 'b1' is gi"),
        (replaced("access_costs", user=["u1", "u2", "u9"]), "user[2]: 'u9' is not a user of"),
        (replaced("access_costs", user=["u1", "u2", "u2"]), "user[2]: user 'u2' is given twice"),
        (replaced("access_costs", user=["u1", None, "u2"]), "access_costs.parquet: user[1]: is n"),
        (
            replaced("access_costs", costs=[[1.0, 4.0], [3.0], [1.0, 1.0]]),
            "costs[1]: has 1 entry for 2 brokers",
        ),
        (
            replaced("access_costs", costs=[[1.0, 4.0], [3.0, float("inf")], [1.0, 1.0]]),
            "access_costs.parquet: costs[1][1]: must be at most 1e+15, not inf",
        ),
        (
            replaced("core_costs", costs=[[0.0, 3.0], [4.0, 0.0]]),
            "core_costs.parquet: costs of 'b1' to 'b2': is 3, but the way back",
        ),
        (
            replaced("core_costs", costs=[[1.0, 3.0], [3.0, 0.0]]),
            "costs of 'b1' to 'b1': must be 0",
        ),
    ],
)
def test_faulty_tables_are_refused(
    tmp_path: Path, change: Callable[[Tables], None], place: str
) -> None:
    tables = valid()
    change(tables)
    write(tmp_path, tables)
    with pytest.raises(BadInput) as caught:
        read_problem_tables(tmp_path)
    assert place in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def emptied(table: str) -> Callable[[Tables], None]:
    def change(tables: Tables) -> None:
        columns = pa.table(tables[table])
        tables[table] = {name: columns[name].slice(0, 0) for name in columns.column_names}

    return change


@pytest.mark.parametrize("table", ["users", "brokers"])
def test_a_table_without_rows_is_refused_by_the_name_of_its_folder(
    tmp_path: Path, table: str
) -> None:
    tables = valid()
    emptied(table)(tables)
    with pytest.raises(BadInput) as caught:
        read_problem_tables(write(tmp_path, tables))
    assert str(caught.value) == f"{tmp_path}: {table}: is empty"


def not_utf8(*names: bytes) -> pa.StringArray:
    """Return text that no writer checked, as some do not."""
    starts = np.cumsum([0, *map(len, names)], dtype=np.int32)
    buffers = (pa.py_buffer(starts.tobytes()), pa.py_buffer(b"".join(names)))
    return pa.StringArray.from_buffers(len(names), *buffers)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (removed("interests"), "has no table 'interests'"),
        (removed("rates_published", "rate"), "rates_published.parquet: has no column 'rate'"),
        (removed("interests", "cell"), "interests.parquet: has no column 'cell'"),
        (replaced("rates_published", user=["u9", "u1"]), "user[0]: 'u9' is not a user of the"),
        (replaced("rates_published", rate=[2.0, -1.0]), "rates_published.parquet: rate[1]: must"),
        (
            replaced("rates_published", rate=[2.0, None]),
            "rates_published.parquet: rate[1]: is null",
        ),
        (replaced("rates_published", cell=[7, None]), "rates_published.parquet: cell[1]: is null"),
        (replaced("rates_published", cell=[7.5, 3.0]), "cell: must be a column of strings, not"),
        (
            replaced("rates_published", cell=pa.array([3, 2**63], pa.uint64())),
            "rates_published.parquet: cell[1]: must be at most 9223372036854775807, not 92233720368"
            "54775808",
        ),
        (
            replaced("interests", cell=not_utf8(b"\xff", b"a")),
            "interests.parquet: cell: is not UTF-8",
        ),
        (
            replaced("users", user=not_utf8(b"u1", b"u2", b"\xfe")),
            "users.parquet: user: is not UTF-8",
        ),
        (
            replaced("rates_published", cell=["7", "3"]),
            "interests.parquet: column 'cell' is of another type",
        ),
        (
            replaced("interests", user=["u1", "u1"], cell=[3, 3]),
            "interests.parquet: user 'u1' and cell '3' are given twice",
        ),
    ],
)
def test_faulty_rows_are_refused(
    tmp_path: Path, change: Callable[[Tables], None], place: str
) -> None:
    tables = factored()
    change(tables)
    with pytest.raises(BadInput) as caught:
        read_problem_tables(write(tmp_path, tables))
    assert place in str(caught.value)


def test_files_that_are_no_parquet_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, valid())
    (tmp_path / "users.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(BadInput, match=r"users.parquet: cannot be read"):
        read_problem_tables(tmp_path)
    whole = (tmp_path / "access_costs.parquet").read_bytes()
    write(tmp_path, valid())
    (tmp_path / "access_costs.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"access_costs.parquet: cannot be read"):
        read_problem_tables(tmp_path)


def test_a_column_given_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, valid())
    twice = pa.table([["b1", "b2"], ["b2", "b1"]], names=["broker", "broker"])
    pq.write_table(twice, tmp_path / "brokers.parquet")
    with pytest.raises(BadInput, match=r"brokers.parquet: has two columns 'broker'"):
        read_problem_tables(tmp_path)


def test_what_pyarrow_cannot_convert_is_refused_by_file_and_column() -> None:
    """Columns are converted after they are read: a fault there names them as well."""
    broken = pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["u1"]), safe=False)
    with pytest.raises(BadInput, match=r"^users.parquet: user: cannot be read: is not a sound"):
        ParquetColumn("users.parquet", "user", 0, broken).names()


def test_two_tables_of_one_meaning_are_refused(tmp_path: Path) -> None:
    tables = valid()
    tables["core_cost"] = tables["core_costs"]
    with pytest.raises(BadInput, match=r"has both 'core_costs.parquet' and 'core_cost.parquet'"):
        read_problem_tables(write(tmp_path, tables))


def test_a_table_without_files_or_with_folders_is_refused(tmp_path: Path) -> None:
    tables = valid()
    del tables["users"]
    write(tmp_path, tables)
    (tmp_path / "users").mkdir()
    with pytest.raises(BadInput, match=r"users: has no Parquet files in it"):
        read_problem_tables(tmp_path)
    (tmp_path / "users" / "old").mkdir()
    with pytest.raises(BadInput, match=r"old: is a directory inside of a table"):
        read_problem_tables(tmp_path)


def test_what_a_stream_adds_in_batches_is_part_of_the_table(tmp_path: Path) -> None:
    tables = valid()
    users = tables.pop("users")
    write(tmp_path, tables)
    rows = pa.table(users)
    for number in range(rows.num_rows):
        part = tmp_path / "users" / f"batch={number}"
        part.mkdir(parents=True)
        pq.write_table(rows.slice(number, 1), part / "part-0.parquet")
    assert read_problem_tables(tmp_path).problem.users == expected().users


def test_tables_of_others_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "users").mkdir()
    with pytest.raises(BadInput, match=r"has a table 'users' in files of its own already"):
        write_problem_tables(expected(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["users"]
