"""`distributary simulate`, as a user sees it."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.commands import check_one_line

from distributary.cli import main
from distributary.cli.sweep import run_seeds
from distributary.errors import BadInput

SCENARIO = """
size = "small"
[overlay]
brokers = 8
[content]
graph = "map"
formats = ["application/pdf", "image/jpeg;width=320"]
[workload]
publications = 6
publishers = 2
matching = 0.5
begin_s = 4
duration_s = 8
settle_s = 30
"""
# Everybody is cut off for ever: what is owed cannot arrive.
HOPELESS = SCENARIO + '[[fault]]\nkind = "partition"\nshare = 0.5\nat_s = 5\nuntil_s = 200\n'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in a folder with a scenario and return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCENARIO)
    Path("empty").mkdir()

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["simulate", *arguments])
        return (code, *capsys.readouterr())

    return command


def test_the_report_says_what_was_owed_made_sent_and_paid(run: Any) -> None:
    code, out, err = run("s.toml", "--seed", "3")
    report = json.loads(out)
    assert code == 0
    assert report["scenario"] == "s"
    assert report["seed"] == 3
    assert len(report["log_hash"]) == 64
    assert report["violations"] == []
    assert report["notes"] == []
    deliveries = report["deliveries"]
    assert deliveries["owed"] == deliveries["made"] > 0
    assert deliveries["duplicates"] == 0
    assert report["messages"]["Publish"] == 6
    assert 0 < report["bytes"]["Publish"] < 6 * 1_000, "content goes by reference"
    assert report["content"]["transmission"] > 0.0
    cost = report["cost"]
    assert cost["total"] == pytest.approx(cost["transmission"] + cost["conversion"])
    for other in ("all_in_root", "all_in_leaves"):
        assert cost[other]["total"] >= cost["total"] * (1.0 - 1e-9) > 0.0
    assert report["loss_of_fidelity"] == []
    assert report["delays_s"]["p50"] <= report["delays_s"]["p100"]
    assert "s, seed 3" in err
    assert "violations" in err


def test_the_same_seed_writes_the_same_file_twice(run: Any) -> None:
    assert run("s.toml", "-o", "one.json")[0] == 0
    assert run("s.toml", "-o", "two.json")[0] == 0
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()


def test_a_run_is_not_kept_while_the_next_one_goes_on(tmp_path: Path) -> None:
    """A night of them would take all memory."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    made: list[weakref.ref[object]] = []
    left: list[int] = []

    def keep(simulation: object) -> None:
        made.append(weakref.ref(simulation))
        left.append(sum(one() is not None for one in made))

    for _ in run_seeds([tmp_path / "s.toml"], range(4), jobs=1, keep=keep):
        pass
    assert left == [1, 1, 1, 1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_scenario_that_is_gone_when_its_turn_comes_is_named(tmp_path: Path, jobs: int) -> None:
    """Somebody tidies up while the runs of a night go on."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    paths = [tmp_path / "s.toml", tmp_path / "gone.toml"]
    with pytest.raises(BadInput, match=r"gone\.toml"):
        list(run_seeds(paths, [0], jobs=jobs))


def test_several_seeds_make_several_runs(run: Any) -> None:
    code, out, err = run("s.toml", "--seeds", "4..6")
    runs = json.loads(out)["runs"]
    assert code == 0
    assert [report["seed"] for report in runs] == [4, 5, 6]
    assert len({report["log_hash"] for report in runs}) == 3
    assert "3 seeds, 0 runs with violations" in err


def test_what_a_file_does_not_say_is_told_once_and_is_in_every_report(run: Any) -> None:
    Path("net.gml").write_text(
        "graph [ node [ id 0 ] node [ id 1 ] node [ id 2 ] edge [ source 0 target 1 ] ]"
    )
    text = 'size = "small"\n[overlay]\nbrokers = 2\ntopology = "gml"\nfile = "net.gml"\n'
    Path("net.toml").write_text(text + "[workload]\nbegin_s = 1\nduration_s = 2\n")
    code, out, err = run("net.toml", "--seeds", "0..1")
    notes = [
        "net.gml: 1 of 1 link of unknown length, taken for 5 ms",
        "net.gml: 1 of 3 nodes left out, not connected with the others",
    ]
    assert code == 0
    assert err.splitlines()[:2] == [f"note: {note}" for note in notes]
    assert err.count("note: ") == 2
    assert [report["notes"] for report in json.loads(out)["runs"]] == [notes, notes]


def test_what_goes_wrong_is_told_with_the_command_that_shows_it_again(run: Any) -> None:
    text = HOPELESS.replace("settle_s = 30", "settle_s = 0").replace("until_s = 200", "until_s = 9")
    Path("hopeless.toml").write_text(text)
    code, out, err = run("hopeless.toml", "--seeds", "1..2")
    runs = json.loads(out)["runs"]
    assert code == 1
    assert any(report["violations"] for report in runs)
    violation = next(v for report in runs for v in report["violations"])
    assert set(violation) == {"checker", "at_s", "what"}
    seed = next(report["seed"] for report in runs if report["violations"])
    assert f"replay: distributary simulate hopeless.toml --seed {seed}" in err


def test_processes_make_the_same_reports(run: Any) -> None:
    alone = run("s.toml", "--seeds", "4..6")
    assert run("s.toml", "--seeds", "4..6", "--jobs", "2") == alone


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder_is_swept(run: Any, jobs: str) -> None:
    """Small scenarios only, every failing run by its command, and all of it in one table."""
    folder = Path("scenarios")
    folder.mkdir()
    for name, text in (("fine", SCENARIO), ("large", SCENARIO.replace("small", "large"))):
        (folder / f"{name}.toml").write_text(text)
    text = HOPELESS.replace("settle_s = 30", "settle_s = 0").replace("until_s = 200", "until_s = 9")
    (folder / "hopeless.toml").write_text(text)
    code, out, err = run("scenarios", "--seeds", "1..2", "--jobs", jobs, "-o", "reports.json")
    assert code == 1
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["scenario", "seeds", "failures", "seconds"]
    assert [line[:2] for line in lines[1:3]] == [["fine", "2"], ["hopeless", "2"]]
    assert lines[1][2] == "0"
    assert lines[3][:4] == ["in", "all", "4", lines[2][2]]
    runs = json.loads(Path("reports.json").read_text())["runs"]
    names = ["fine", "fine", "hopeless", "hopeless"]
    assert [(r["scenario"], r["seed"]) for r in runs] == list(zip(names, [1, 2] * 2, strict=True))
    wrong = [report["seed"] for report in runs if report["violations"]]
    assert len(wrong) == int(lines[2][2]) > 0
    replays = [line for line in err.splitlines() if line.startswith("replay")]
    path = folder / "hopeless.toml"
    assert replays == [f"replay: distributary simulate {path} --seed {seed}" for seed in wrong]
    assert "fine: 2 seeds, 0 runs with violations" in err


def test_a_sweep_takes_large_scenarios_when_asked_and_writes_no_reports_unasked(run: Any) -> None:
    folder = Path("scenarios")
    folder.mkdir()
    (folder / "large.toml").write_text(SCENARIO.replace("small", "large"))
    code, out, err = run("scenarios")
    check_one_line(code, out, err, "scenarios: has no small scenario; hint: --large")
    code, out, _ = run("scenarios", "--large", "--seed", "3")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["scenario", "large", "in"]


@pytest.mark.parametrize("name", ["run.svg", "run.html"])
def test_a_run_can_be_drawn(run: Any, name: str) -> None:
    code, _, _ = run("s.toml", "--draw", name, "-o", "r.json")
    assert code == 0
    text = Path(name).read_text(encoding="utf-8")
    assert "messages by kind" in text
    assert "all in the root" in text


def test_a_comparison_has_the_deliveries_of_the_scenario_itself(run: Any) -> None:
    assert run("s.toml", "--deliveries", "alone.csv", "-o", "r.json")[0] == 0
    assert run("s.toml", "--compare", "--deliveries", "compared.csv", "-o", "r.json")[0] == 0
    alone = Path("alone.csv").read_text(encoding="utf-8")
    assert alone == Path("compared.csv").read_text(encoding="utf-8")
    made = json.loads(Path("r.json").read_text(encoding="utf-8"))["deliveries"]["made"]
    assert len(alone.splitlines()) == made + 1


def test_a_stream_is_drawn_with_its_loss_of_fidelity(run: Any) -> None:
    Path("q.toml").write_text(
        'size = "small"\n[overlay]\nbrokers = 6\n[workload]\nobjects = 2\nrates = [1, 2]\n'
        "publishers = 0\nduration_s = 20\nsettle_s = 20\n"
    )
    code, out, err = run("q.toml", "--draw", "q.svg")
    report = json.loads(out)
    assert code == 0
    assert all(0.0 <= point["loss"] <= 1.0 for point in report["loss_of_fidelity"])
    assert len(report["loss_of_fidelity"]) > 10
    assert "loss of fidelity" in err
    assert "percent of the time" in Path("q.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("nothing.toml",), "nothing.toml: does not exist"),
        (("s.toml", "--seeds", "4"), "--seeds: '4' is not A..B"),
        (("s.toml", "--seeds", "9..4"), "--seeds: '9..4' ends before it begins"),
        (("s.toml", "--seeds", "0..999999"), "--seeds: '0..999999' are more than"),
        (("s.toml", "--seed", "-1"), "--seed"),
        (("s.toml", "--seed", "0", "--seeds", "1..2"), "--seed: cannot be combined with --seeds"),
        (("s.toml", "--draw", "x.png"), "--draw"),
        (("s.toml", "--seeds", "1..2", "--draw", "x.svg"), "--draw: is for one run"),
        (("s.toml", "-o", "no/where.json"), "-o"),
        (("s.toml", "--jobs", "0"), "--jobs"),
        (("s.toml", "--large"), "--large: is for a folder"),
        ((".", "--draw", "x.svg"), "--draw: is for one run"),
        (("s.toml", "--seeds", "1..2", "--deliveries", "x.csv"), "--deliveries: is for one run"),
        ((".", "--deliveries", "x.csv"), "--deliveries: is for one run"),
        (("s.toml", "--deliveries", "x.xlsx"), "'x.xlsx' ends in neither .parquet nor .csv"),
        (("s.toml", "--deliveries", "no/x.csv"), "--deliveries: directory 'no' does not exist"),
        (("s.toml", "--deliveries", "x.csv", "-o", "x.csv"), "is where -o writes the report"),
        (("nowhere",), "nowhere: does not exist"),
        (("empty",), "empty: has no scenario"),
    ],
)
def test_bad_input_is_one_line(run: Any, arguments: tuple[str, ...], place: str) -> None:
    code, out, err = run(*arguments)
    check_one_line(code, out, err, place)


def test_a_bad_scenario_is_one_line_that_names_the_field(run: Any) -> None:
    Path("bad.toml").write_text('size = "small"\n[overlay]\nbrokers = "many"\n')
    code, out, err = run("bad.toml")
    check_one_line(code, out, err, "bad.toml: overlay.brokers: must be a whole number")


def test_planning_is_compared_with_every_simple_policy(run: Any) -> None:
    code, out, err = run("s.toml", "--compare", "--seed", "2")
    policies = json.loads(out)["policies"]
    assert code == 0
    assert list(policies) == ["planned", "all-in-root", "all-in-leaves", "single-format"]
    for policy, figures in policies.items():
        (line,) = (line for line in err.splitlines() if line.startswith(f"{policy} "))
        assert f"{figures['objective']:,.1f}" in line
        assert f"{figures['delay_s_p95']:.3f}" in line
    plain = json.loads(run("s.toml", "--seed", "2")[1])
    assert {**plain, "policies": policies} == json.loads(out)


def test_several_seeds_are_compared_together(run: Any) -> None:
    code, out, err = run("s.toml", "--compare", "--seeds", "1..2")
    runs = json.loads(out)["runs"]
    assert code == 0
    mean = sum(report["policies"]["planned"]["cost"] for report in runs) / 2
    (line,) = (line for line in err.splitlines() if line.startswith("planned "))
    assert f"{mean:,.1f}" in line


def test_what_goes_wrong_under_a_simple_policy_counts(run: Any) -> None:
    text = HOPELESS.replace("settle_s = 30", "settle_s = 0").replace("until_s = 200", "until_s = 9")
    Path("hopeless.toml").write_text(text)
    code, out, err = run("hopeless.toml", "--compare", "--seed", "1")
    assert code == 1
    assert all(one["violations"] > 0 for one in json.loads(out)["policies"].values())
    assert "replay: distributary simulate hopeless.toml --seed 1 --compare" in err
