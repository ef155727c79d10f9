"""`distributary tree` and `distributary generate tree`, as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distributary.cli import main
from distributary.fidelity.planner import METHODS
from distributary.fidelity.problem_file import read_problem

Run = tuple[int, str, str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in an empty folder and return its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Run:
        code = main(list(arguments))
        return (code, *capsys.readouterr())

    return command


def stream(run: Any, *options: str) -> Path:
    code, out, _ = run("generate", "tree", "--routers", "60", *options, "-o", "stream.json")
    assert (code, out) == (0, "")
    return Path("stream.json")


def heavy() -> dict[str, Any]:
    """Return a stream that nobody can keep up with."""
    nodes = [
        {"node": name, "filter_time": 10.0, "send_time": 10.0, "rates": {"o": 1.0}}
        for name in ("s", "a", "b")
    ]
    return {"source": "s", "objects": ["o"], "nodes": nodes, "delays": [[0.0] * 3] * 3}


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
def test_a_tree_is_written_for_every_server(run: Any, approach: str) -> None:
    stream(run, "--servers", "6", "--objects", "3", "--interest", "0.5")
    code, out, err = run("tree", "stream.json", "--objects", approach, "--seed", "3")
    assert (code, err) == (0, "")
    document = json.loads(out)
    problem = read_problem("stream.json").problem
    assert document["average_loss"] > 0.0
    assert document["overloaded"] == []
    trees = document["trees"]
    assert [tree["objects"] for tree in trees] == (
        [["o1", "o2", "o3"]] if approach == "one-tree" else [["o1"], ["o2"], ["o3"]]
    )
    for x, tree in enumerate(trees):
        wanting = problem.served if approach == "one-tree" else problem.wanted[:, x]
        assert sorted(tree["parents"]) == [problem.names[i] for i in np.flatnonzero(wanting)]


def test_the_summary_names_method_loss_seed_and_file(run: Any) -> None:
    stream(run, "--servers", "5")
    code, out, err = run("tree", "stream.json", "--method", "greedy", "-o", "tree.json")
    assert (code, out) == (0, "")
    assert err.startswith("greedy: average loss 0.")
    assert err.endswith("seed 0; written to tree.json\n")
    assert json.loads(Path("tree.json").read_text(encoding="utf-8"))["method"] == "greedy"


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_can_be_asked_for(run: Any, method: str) -> None:
    stream(run, "--servers", "4")
    code, out, _ = run("tree", "stream.json", "--method", method, "--time-limit", "5")
    assert code == 0
    assert json.loads(out)["method"] == method


def test_adaptation_starts_from_the_tree_given_and_does_not_make_it_worse(run: Any) -> None:
    stream(run, "--servers", "12", "--objects", "2")
    run("tree", "stream.json", "--method", "random", "-o", "start.json")
    code, out, _ = run("tree", "stream.json", "--method", "adapt", "--start", "start.json")
    assert code == 0
    before = json.loads(Path("start.json").read_text(encoding="utf-8"))["average_loss"]
    assert json.loads(out)["average_loss"] <= before


def test_the_fanout_of_dita_is_kept(run: Any) -> None:
    stream(run, "--servers", "12")
    code, out, _ = run("tree", "stream.json", "--method", "dita", "--fanout", "2")
    assert code == 0
    parents = list(json.loads(out)["trees"][0]["parents"].values())
    assert max(parents.count(parent) for parent in parents) <= 2


def test_an_overloaded_tree_is_an_answer_with_a_warning(run: Any) -> None:
    """The exit code is 0: the file says what is wrong with the tree."""
    Path("heavy.json").write_text(json.dumps(heavy()), encoding="utf-8")
    code, out, err = run("tree", "heavy.json", "--method", "source")
    assert code == 0
    assert json.loads(out)["average_loss"] is None
    assert json.loads(out)["overloaded"] == ["s"]
    first, *reasons = err.splitlines()
    assert first == "warning: 's' is overloaded, so updates fall behind without bound"
    assert reasons
    assert all(reason.startswith("warning: no tree can serve this: ") for reason in reasons)
    code, _, again = run("tree", "heavy.json", "--method", "source", "-o", "tree.json")
    assert code == 0
    assert again.count("\n") == err.count("\n") + 1


@pytest.mark.parametrize(
    ("option", "owner"), [("--rounds", "adapt"), ("--patience", "anneal"), ("--fanout", "dita")]
)
def test_an_option_of_another_method_is_refused(run: Any, option: str, owner: str) -> None:
    Path("heavy.json").write_text(json.dumps(heavy()), encoding="utf-8")
    code, out, err = run("tree", "heavy.json", "--method", "source", option, "3")
    assert (code, out) == (2, "")
    assert err == f"error: {option}: is for {owner}, not for source\n"


def test_stray_keys_are_warned_about(run: Any) -> None:
    document = {**heavy(), "comment": "draft"}
    for node in document["nodes"]:
        node["filter_time"] = node["send_time"] = 0.001
    Path("p.json").write_text(json.dumps(document), encoding="utf-8")
    code, _, err = run("tree", "p.json", "--method", "source")
    assert (code, err) == (
        0,
        "warning: p.json: comment: is not a known key, and is ignored\n",
    )


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_the_tree_is_drawn(run: Any, suffix: str) -> None:
    stream(run, "--servers", "5")
    code, _, _ = run("tree", "stream.json", "--draw", f"tree.{suffix}", "-o", "tree.json")
    assert code == 0
    drawn = Path(f"tree.{suffix}").read_text(encoding="utf-8")
    assert "Which tree the stream follows (auto)" in drawn
    assert "n5" in drawn


def test_generated_streams_repeat_with_their_seed(run: Any) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        stream(run, "--servers", "5", "--seed", seed, "--adaptation")
        texts.append(Path("stream.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1] != texts[2]
    assert "decide_period" in texts[0]


@pytest.mark.parametrize(
    ("servers", "objects", "counted"),
    [("1", "1", "1 server, 1 object, "), ("2", "3", "2 servers, 3 objects, ")],
)
def test_what_was_generated_is_counted_in_words(
    run: Any, servers: str, objects: str, counted: str
) -> None:
    code, _, err = run(
        "generate", "tree", "--servers", servers, "--objects", objects, "-o", "stream.json"
    )
    assert (code, err) == (0, f"tree: {counted}seed 0; written to stream.json\n")


def test_a_large_stream_has_its_delays_beside_it(run: Any) -> None:
    stream(run, "--servers", "520")
    document = json.loads(Path("stream.json").read_text(encoding="utf-8"))
    assert document["delays"] == "stream.delays.npy"
    file = read_problem("stream.json")
    assert np.array_equal(file.problem.delays, np.load("stream.delays.npy"))
    assert sorted(path.name for path in Path().iterdir()) == ["stream.delays.npy", "stream.json"]
    code, out, _ = run("tree", "stream.json", "--method", "source")
    assert code == 0
    assert len(json.loads(out)["trees"][0]["parents"]) == 520


def test_a_stream_can_stand_in_a_network_from_a_file(run: Any) -> None:
    Path("net.gml").write_text(
        'graph [ node [ id 1 label "Rome" ] node [ id 2 label "Oslo" ] node [ id 3 ]'
        " edge [ source 1 target 2 ] ]",
        encoding="utf-8",
    )
    code, out, err = run("generate", "tree", "--topology", "net.gml")
    assert code == 0
    assert err == (
        "note: net.gml: 1 of 1 link of unknown length, taken for 5 ms\n"
        "note: net.gml: 1 of 3 nodes left out, not connected with the others\n"
    )
    document = json.loads(out)
    assert sorted(node["node"] for node in document["nodes"]) == ["Oslo", "Rome"]
    assert document["delays"] == [[0.0, 0.005], [0.005, 0.0]]


def test_a_stream_can_stand_at_measured_hosts(run: Any) -> None:
    Path("rtt.txt").write_text("0 40\n-1 0\n", encoding="utf-8")
    code, out, err = run("generate", "tree", "--delays", "rtt.txt", "--round-trip")
    assert code == 0
    assert err.startswith("note: rtt.txt: 1 delay missing; ")
    assert json.loads(out)["delays"] == [[0.0, 0.02], [0.02, 0.0]]
