"""`distributary wire` and `distributary generate wiring`, as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.commands import run as run_process

from distributary.cli import main
from distributary.wiring.cost import cost
from distributary.wiring.planner import METHODS
from distributary.wiring.problem_file import read_problem
from distributary.wiring.wiring_file import read_wiring

SMALL: dict[str, Any] = {
    "brokers": [{"broker": "b1", "capacity": 100.0}, {"broker": "b2", "capacity": 100.0}],
    "users": [
        {"user": "u1", "publishes": [1.0, 0.0], "subscribes": [0, 1]},
        {"user": "u2", "publishes": [0.0, 2.0], "subscribes": [1, 0]},
    ],
    "access_cost": [[1.0, 4.0], [3.0, 1.0]],
    "core_cost": [[0.0, 3.0], [3.0, 0.0]],
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in an empty folder and return its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        return (code, *capsys.readouterr())

    return command


def generated(run: Any, *options: str, output: str = "users.json") -> str:
    code, out, err = run("generate", "wiring", *options, "-o", output)
    assert (code, out) == (0, "")
    assert err.endswith(f"written to {output}\n")
    return output


def write(document: dict[str, Any], name: str = "users.json") -> None:
    Path(name).write_text(json.dumps(document), encoding="utf-8")


def test_the_example_of_two_users_is_solved(run: Any) -> None:
    write(SMALL)
    code, out, err = run("wire", "users.json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["total_cost"] == 12.0
    assert (document["access_cost"], document["core_cost"]) == (12.0, 0.0)
    assert document["lower_bound"] == pytest.approx(12.0)
    assert document["assignment"] == {"u1": "b1", "u2": "b1"}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_a_wiring_and_what_it_costs(run: Any, method: str) -> None:
    size = ("--users", "7", "--brokers", "3", "--channels", "4", "--capacity-factor", "3")
    generated(run, *size)
    code, out, err = run("wire", "users.json", "--method", method, "--seed", "3")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["method"] == method
    problem = read_problem("users.json").problem
    Path("w.json").write_text(out, encoding="utf-8")
    broker_of = read_wiring("w.json", problem).broker_of
    assert document["total_cost"] == pytest.approx(cost(problem, broker_of).total)
    assert 0.0 <= document["lower_bound"] <= document["total_cost"] * (1 + 1e-9)


@pytest.mark.parametrize("core", ["mst", "steiner", "one-tree"])
def test_the_core_is_chosen_and_named(run: Any, core: str) -> None:
    generated(run, "--users", "12", "--brokers", "5", "--channels", "4")
    code, out, _ = run("wire", "users.json", "--method", "packing", "--core", core)
    document = json.loads(out)
    assert code == 0
    assert document["core"] == core
    assert ("steiner_saving" in document) == (core == "steiner")


def test_a_summary_goes_to_standard_error_when_the_result_goes_to_a_file(run: Any) -> None:
    write(SMALL)
    code, out, err = run("wire", "users.json", "--core", "steiner", "-o", "w.json")
    assert (code, out) == (0, "")
    assert err.startswith("auto: cost 12 (access 12, core 0), gap 0.00%, branching saves 0, ")
    assert err.endswith(" s, seed 0; written to w.json\n")
    assert json.loads(Path("w.json").read_text(encoding="utf-8"))["total_cost"] == 12.0


def test_a_wiring_can_be_improved_with_few_moves(run: Any) -> None:
    generated(run, "--users", "40", "--brokers", "4", "--channels", "4", "--unlimited")
    run("wire", "users.json", "--method", "random", "-o", "start.json")
    start = json.loads(Path("start.json").read_text(encoding="utf-8"))
    code, _, err = run("wire", "users.json", "--from", "start.json", "--moves", "3", "-o", "w.json")
    assert code == 0
    better = json.loads(Path("w.json").read_text(encoding="utf-8"))
    moved = sum(start["assignment"][user] != at for user, at in better["assignment"].items())
    assert better["moved"] == moved <= 3
    assert better["total_cost"] < start["total_cost"]
    assert f"{moved} users moved" in err
    code, out, _ = run("wire", "users.json", "--from", "start.json", "--moves", "0")
    assert json.loads(out)["assignment"] == start["assignment"]
    assert json.loads(out)["moved"] == 0


def test_users_that_have_come_and_gone_are_named(run: Any) -> None:
    write(SMALL)
    write({"assignment": {"u1": "b9", "u7": "b1"}}, "start.json")
    code, out, err = run("wire", "users.json", "--from", "start.json")
    assert code == 0
    assert json.loads(out)["assignment"].keys() == {"u1", "u2"}
    assert err == (
        "warning: start.json: users not in the problem, ignored: 'u7'\n"
        "warning: start.json: users new, attached to any broker: 'u2'\n"
        "warning: start.json: users at brokers that are not in the problem, attached to any "
        "other: 'u1'\n"
    )


def test_users_who_do_not_fit_are_a_sentence_and_exit_code_2(run: Any) -> None:
    tight = json.loads(json.dumps(SMALL))
    for broker in tight["brokers"]:
        broker["capacity"] = 1.0
    write(tight)
    code, out, err = run("wire", "users.json", "-o", "w.json")
    assert (code, out) == (2, "")
    assert err.startswith("error: users.json: all users together have 6 of traffic")
    assert err.count("\n") == 1
    assert not Path("w.json").exists()


def test_core_prices_that_shortest_paths_beat_are_mentioned(run: Any) -> None:
    crooked = json.loads(json.dumps(SMALL))
    crooked["brokers"].append({"broker": "b3", "capacity": None})
    crooked["access_cost"] = [[1.0, 4.0, 9.0], [3.0, 1.0, 9.0]]
    crooked["core_cost"] = [[0.0, 3.0, 1.0], [3.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    write(crooked)
    code, out, err = run("wire", "users.json")
    assert code == 0
    assert json.loads(out)["core_cost_shortened"] is True
    assert err == (
        "warning: users.json: core prices break the triangle inequality; the prices of "
        "shortest paths stand in\n"
    )


def test_keys_that_nobody_reads_are_mentioned(run: Any) -> None:
    noted = json.loads(json.dumps(SMALL))
    noted["note"] = "for the record"
    noted["users"][1]["subscribe"] = [1, 0]
    write(noted)
    code, _, err = run("wire", "users.json")
    assert code == 0
    assert err == (
        "warning: users.json: note: is not a known key, and is ignored\n"
        "warning: users.json: users[1].subscribe: is not a known key, and is ignored\n"
    )


def test_tables_go_in_and_out(run: Any) -> None:
    size = ("--users", "30", "--brokers", "3", "--channels", "4")
    generated(run, *size, output="tables/")
    generated(run, *size)
    _, out, _ = run("wire", "users.json", "--method", "packing")
    document = json.loads(out)
    # A folder for a folder, whether it is there already or not.
    for output in ("tables/", "tables", "result", "other/"):
        code, out, err = run("wire", "tables", "--method", "packing", "-o", output)
        assert (code, out) == (0, "")
        assert err.endswith(f"written to {output}\n")
        rows = pq.read_table(Path(output) / "wiring.parquet").to_pylist()
        assert {row["user"]: row["broker"] for row in rows} == document["assignment"]
    code, _, _ = run("wire", "tables", "--method", "packing", "-o", "w.json")
    assert code == 0
    assert json.loads(Path("w.json").read_text())["assignment"] == document["assignment"]
    code, out, _ = run("wire", "users.json", "--from", "tables", "--moves", "0")
    assert code == 0
    assert json.loads(out)["assignment"] == document["assignment"]


def test_a_problem_comes_from_standard_input() -> None:
    result = run_process("wire", "-", input=json.dumps(SMALL))
    assert result.returncode == 0
    assert json.loads(result.stdout)["total_cost"] == 12.0


def test_errors_and_warnings_say_standard_input() -> None:
    for text, place in (("{}", "brokers: is missing"), ("", "document: is empty")):
        result = run_process("wire", "-", input=text)
        assert result.stderr == f"error: standard input: {place}\n"
    tight = json.loads(json.dumps(SMALL))
    tight["brokers"][0]["capacity"] = tight["brokers"][1]["capacity"] = 1.0
    result = run_process("wire", "-", input=json.dumps(tight))
    assert result.stderr.startswith("error: standard input: all users together have")
    result = run_process("wire", "-", input=json.dumps({**SMALL, "note": 1}))
    assert result.stderr.startswith("warning: standard input: note: ")


def test_the_start_comes_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text(json.dumps(SMALL), encoding="utf-8")
    given = json.dumps({"assignment": {"u1": "b2", "u2": "b1"}})
    options = ("--from", "-", "--moves", "0")
    result = run_process("wire", "users.json", *options, input=given, cwd=tmp_path)
    assert json.loads(result.stdout)["assignment"] == {"u1": "b2", "u2": "b1"}
    result = run_process("wire", "users.json", *options, input="[]", cwd=tmp_path)
    assert result.stderr == "error: standard input: document: must be an object, not a list\n"


def test_interests_may_be_true_and_false(run: Any) -> None:
    flagged = json.loads(json.dumps(SMALL))
    flagged["users"][0]["subscribes"] = [False, 1.0]
    flagged["users"][1]["subscribes"] = [True, False]
    write(flagged)
    write(SMALL, "numbers.json")
    _, out, _ = run("wire", "users.json")
    _, expected, _ = run("wire", "numbers.json")
    document, other = json.loads(out), json.loads(expected)
    assert document | {"seconds": 0} == other | {"seconds": 0}


def test_a_wiring_of_many_users_has_a_line_for_each(run: Any) -> None:
    generated(run, "--users", "40", "--brokers", "3", "--channels", "4")
    run("wire", "users.json", "--method", "packing", "-o", "w.json")
    lines = Path("w.json").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('  "u') for line in lines) == 40


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_picture_is_drawn(run: Any, suffix: str) -> None:
    generated(run, "--users", "20", "--brokers", "3", "--channels", "4")
    code, _, _ = run("wire", "users.json", "--method", "packing", "--draw", f"w.{suffix}")
    assert code == 0
    assert "Who attaches to which broker (packing)" in Path(f"w.{suffix}").read_text()


def test_the_same_seed_writes_the_same_problem(run: Any) -> None:
    size = ("--users", "20", "--brokers", "3", "--seed", "5", "--interests", "1", "3")
    generated(run, *size, "--layout", "towns", output="one.json")
    generated(run, *size, "--layout", "towns", output="other.json")
    assert Path("one.json").read_bytes() == Path("other.json").read_bytes()
    file = read_problem("one.json")
    assert file.positions is not None
    assert file.problem.subscribes.sum(axis=1).max() <= 3
