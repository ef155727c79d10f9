"""Bad wiring problems and options get one line that names the place, and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.bad_documents import Case, Document, Variants, named
from tests.commands import check_one_line

from distributary.cli import main

VALID: Document = {
    "brokers": [
        {"broker": "b1", "capacity": 100.0, "position": [0.0, -1.5]},
        {"broker": "b2", "capacity": None},
        {"broker": "b3"},
    ],
    "users": [
        {"user": "u1", "publishes": [1.0, 0.0], "subscribes": [0, 1]},
        {"user": "u2", "publishes": [0.0, 2.0], "subscribes": [1, 0]},
    ],
    "access_cost": [[1.0, 4.0, 2.0], [3.0, 1.0, 2.0]],
    "core_cost": [[0.0, 3.0, 2.0], [3.0, 0.0, 2.0], [2.0, 2.0, 0.0]],
}
VALID_TEXT = json.dumps(VALID)

VARIANTS = Variants(VALID)
with_value, without = VARIANTS.with_value, VARIANTS.without
with_literal, with_more = VARIANTS.with_literal, VARIANTS.with_more

RATE = ("users", 1, "publishes", 1)
FLAG = ("users", 0, "subscribes", 0)
CAPACITY = ("brokers", 0, "capacity")
ACCESS = ("access_cost", 1, 2)
CORE = ("core_cost", 0, 1)
PLACE = ("brokers", 0, "position")
HUGE = 10**400

CASES = [
    Case("malformed JSON", "document: is empty", ""),
    Case("malformed JSON", "line 1, column", VALID_TEXT[:-1]),
    Case("wrong type", "document: must be an object, not a list", "[]"),
    with_value("wrong type", "brokers: must be a list, not an object", {}, "brokers"),
    with_value("wrong type", "users: must be a list, not null", None, "users"),
    with_value("wrong type", "brokers[1]: must be an object", "b2", "brokers", 1),
    with_value(
        "wrong type", "brokers[1].broker: must be a string, not 2", 2, "brokers", 1, "broker"
    ),
    with_value("wrong type", "users[1].user: must not be empty", "", "users", 1, "user"),
    with_value(
        "wrong type", "users[0].publishes: must be a list, not 1", 1, "users", 0, "publishes"
    ),
    with_value("wrong type", "users[1].publishes: must be a list", "ab", "users", 1, "publishes"),
    with_value("wrong type", "users[1].publishes[1]: must be a number, not the", "2", *RATE),
    with_value("wrong type", "users[1].publishes[1]: must be a number, not true", True, *RATE),
    with_value("wrong type", "users[1].publishes[1]: must be a number, not null", None, *RATE),
    with_value("wrong type", "users[1].publishes[1]: must be a number, not a list", [2], *RATE),
    with_value("wrong type", "users[0].subscribes: must be a list", {}, "users", 0, "subscribes"),
    with_value("wrong type", "users[0].subscribes[0]: must be 0 or 1, not a list", [1], *FLAG),
    with_value("wrong type", "users[0].subscribes[0]: must be 0 or 1, not the string", "1", *FLAG),
    with_value("wrong type", "users[0].subscribes[0]: must be 0 or 1, not null", None, *FLAG),
    with_value("wrong type", "brokers[0].capacity: must be a number, not the", "9", *CAPACITY),
    with_value("wrong type", "access_cost: must be a list", 1, "access_cost"),
    with_value("wrong type", "access_cost[1]: must be a list, not 3", 3, "access_cost", 1),
    with_value("wrong type", "access_cost[1][2]: must be a number, not the", "2", *ACCESS),
    with_value("wrong type", "core_cost[0][1]: must be a number, not null", None, *CORE),
    with_value("wrong type", "brokers[0].position: must be a list of two", 3, *PLACE),
    with_value("wrong type", "brokers[0].position: must be a list of two", [1, 2, 3], *PLACE),
    with_value("wrong type", "brokers[0].position: must be a list of two", [1, "2"], *PLACE),
    with_value("wrong type", "brokers[0].position: must be a list of two", [1, True], *PLACE),
    with_value("wrong type", "brokers[0].position: must be a list of two", [1, 1e300], *PLACE),
    without("brokers: is missing", "brokers"),
    without("users: is missing", "users"),
    without("access_cost: is missing", "access_cost"),
    without("core_cost: is missing", "core_cost"),
    without("brokers[0].broker: is missing", "brokers", 0, "broker"),
    without("users[1].user: is missing", "users", 1, "user"),
    without("users[1].publishes: is missing", "users", 1, "publishes"),
    without("users[1].subscribes: is missing", "users", 1, "subscribes"),
    with_value("empty", "brokers: is empty", [], "brokers"),
    with_value("empty", "users: is empty", [], "users"),
    with_value("empty", "users[0].publishes: is empty", [], "users", 0, "publishes"),
    with_value("duplicate", "users[1].user: user 'u1' is given twice", "u1", "users", 1, "user"),
    with_value("duplicate", "brokers[1].broker: broker 'b1' is", "b1", "brokers", 1, "broker"),
    Case("duplicate", "core_cost: is given twice", VALID_TEXT[:-1] + ', "core_cost": []}'),
    with_value(
        "length", "users[1].publishes: has 1 entry for 2 chan", [1], "users", 1, "publishes"
    ),
    with_value("length", "users[1].subscribes: has 0 entries for 2", [], "users", 1, "subscribes"),
    with_more("length", "access_cost: has 3 rows for 2 users", [1, 1, 1], "access_cost"),
    with_more("length", "access_cost[0]: has 4 entries for 3 brokers", 1.0, "access_cost", 0),
    with_value("length", "core_cost: has 1 row for 3 brokers", [[0, 0, 0]], "core_cost"),
    with_value("length", "core_cost[1]: has 2 entries for 3", [3.0, 0.0], "core_cost", 1),
    with_value("negative", "users[1].publishes[1]: must be at least 0, not -2", -2.0, *RATE),
    with_value("negative", "users[0].subscribes[0]: must be 0 or 1, not -1", -1, *FLAG),
    with_value("negative", "brokers[0].capacity: must be at least 0, not -1", -1, *CAPACITY),
    with_value("negative", "access_cost[1][2]: must be at least 0, not -0.5", -0.5, *ACCESS),
    with_value("negative", "core_cost[0][1]: must be at least 0, not -3", -3, *CORE),
    with_value("range", "users[0].subscribes[0]: must be 0 or 1, not 2", 2, *FLAG),
    with_value("range", "users[0].subscribes[0]: must be 0 or 1, not 0.5", 0.5, *FLAG),
    with_value("range", "users[0].subscribes[0]: must be 0 or 1, not inf", HUGE, *FLAG),
    with_value("range", "users[1].publishes[1]: must be at most 1e+15", 1e300, *RATE),
    with_value("range", "users[1].publishes[1]: must be at most 1e+15", HUGE, *RATE),
    with_value("range", "users[1].publishes[1]: must be at least 1e-100, or 0", 1e-200, *RATE),
    with_literal("NaN", "users[1].publishes[1]: is NaN", "NaN", *RATE),
    with_literal("NaN", "users[0].subscribes[0]: is NaN", "NaN", *FLAG),
    with_literal("NaN", "brokers[0].capacity: is NaN", "NaN", *CAPACITY),
    with_literal("infinite", "brokers[0].capacity: is Infinity", "Infinity", *CAPACITY),
    with_literal("infinite", "access_cost[1][2]: must be at most 1e+15, not inf", "1e999", *ACCESS),
    with_literal("infinite", "core_cost[0][1]: is -Infinity", "-Infinity", *CORE),
    with_value("asymmetric", "core_cost[0][1]: is 4, but the way back, core_cost[1][0]", 4, *CORE),
    with_value("diagonal", "core_cost[2][2]: must be 0, not 5", 5.0, "core_cost", 2, 2),
]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_faulty_problem_gets_one_line_and_exit_code_2(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_bytes(case.content)
    code = main(["wire", "problem.json", "-o", "wiring.json"])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, case.place)
    assert stderr.startswith("error: problem.json: ")
    assert [path.name for path in tmp_path.iterdir()] == ["problem.json"]


WIRE = ["wire", "problem.json"]
START = json.dumps({"assignment": {"u1": "b1", "u2": 7}})


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["wire", "missing.json"], "missing.json: does not exist"),
        (["wire", "."], ".: has no table 'brokers'"),
        (["wire"], "Missing argument 'PROBLEM'; hint: distributary wire --help"),
        ([*WIRE, "-o", "no/wiring.json"], "-o: directory 'no'"),
        ([*WIRE, "-o", "no/tables/"], "-o: directory 'no'"),
        ([*WIRE, "-o", "start.json/"], "-o: 'start.json' is not a directory"),
        ([*WIRE, "--draw", "wiring.png"], "--draw: 'wiring.png' ends in neither"),
        ([*WIRE, "--draw", "no/wiring.svg"], "--draw: directory 'no'"),
        (
            [*WIRE, "-o", "w.svg", "--draw", "./w.svg"],
            "--draw: 'w.svg' is where -o writes the result",
        ),
        ([*WIRE, "-o", "w.svg/", "--draw", "w.svg"], "--draw: 'w.svg' is where -o writes"),
        (["place", "p.json", "-o", "p.svg", "--draw", "p.svg"], "--draw: 'p.svg' is where -o"),
        (["tree", "t.json", "-o", "t.html", "--draw", "t.html"], "--draw: 't.html' is where -o"),
        (["wire", "-", "--from", "-"], "--from: cannot be standard input when PROBLEM is"),
        ([*WIRE, "--method", "magic"], "'--method': 'magic' is not one of"),
        ([*WIRE, "--core", "ring"], "'--core': 'ring' is not one of"),
        ([*WIRE, "--seed", "-1"], "'--seed'"),
        ([*WIRE, "--time-limit", "nan"], "--time-limit: must be a finite number"),
        ([*WIRE, "--time-limit", "0"], "--time-limit: must be a finite number"),
        ([*WIRE, "--moves", "3"], "--moves: needs --from"),
        ([*WIRE, "--from", "start.json", "--moves", "-1"], "'--moves'"),
        ([*WIRE, "--from", "start.json", "--method", "mixing"], "--from: is for auto and search"),
        ([*WIRE, "--from", "no.json"], "no.json: does not exist"),
        ([*WIRE, "--from", "start.json"], "start.json: assignment.u2: must be a string, not 7"),
        ([*WIRE, "--from", "problem.json"], "problem.json: assignment: is missing"),
        ([*WIRE, "--from", "."], ".: has no table 'wiring'"),
        (["generate", "wiring", "--users", "0"], "'--users'"),
        (["generate", "wiring", "--brokers", "0"], "'--brokers'"),
        (["generate", "wiring", "--channels", "9000", "-o", "x/"], "--channels: is 9,000, and"),
        (["generate", "wiring", "--dimensions", "30", "--channels", "1"], "--dimensions: is 30"),
        (["generate", "wiring", "--core-ratio", "-1"], "--core-ratio: is -1"),
        (["generate", "wiring", "--capacity-factor", "0"], "--capacity-factor: must be a finite"),
        (["generate", "wiring", "--interests", "5", "2"], "--interests: are from 5 to 2"),
        (["generate", "wiring", "--channels", "100000"], "--channels: is 100,000, and must be"),
        (["generate", "wiring", "--dimensions", "50"], "--dimensions: is 50, and must be from 1"),
        (["generate", "wiring", "--dimensions", "3"], "--dimensions: 64 channels in each of 3"),
        (["generate", "wiring", "--users", "2000000"], "--users: is 2,000,000, and must be"),
        (["generate", "wiring", "--capacity-factor", "1e9"], "--capacity-factor: is 1e+09"),
        (["generate", "wiring", "--brokers", "9000"], "--brokers: a problem of 1,000 users, 9,000"),
        (
            ["generate", "wiring", "--unlimited", "--capacity-factor", "2"],
            "--capacity-factor: cannot be combined with --unlimited",
        ),
        (["generate", "wiring", "--layout", "ring"], "'--layout': 'ring' is not one of"),
        (["generate", "wiring", "--users", "100000"], "--users: a problem of 100,000 users"),
        (["generate", "wiring", "--users", "100000", "-o", "x.json"], "too large for JSON; hint"),
        (["generate", "wiring", "-o", "no/x.json"], "-o: directory 'no'"),
        (["generate", "wiring", "-o", "no/x/"], "-o: directory 'no'"),
    ],
)
def test_bad_arguments_get_one_line_too(
    arguments: list[str],
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_text(VALID_TEXT, encoding="utf-8")
    Path("start.json").write_text(START, encoding="utf-8")
    code = main(arguments)
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem.json", "start.json"]


def test_a_folder_of_tables_that_is_not_ours_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "users").mkdir(parents=True)
    code = main(["generate", "wiring", "--users", "9", "--brokers", "2", "-o", "data"])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, "-o: data: has a table 'users' in files of its own")
