"""Bad streams get one line that names the place, exit code 2, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.bad_documents import Case, Document, Variants, named
from tests.commands import check_one_line, run

from distributary.cli import main

VALID: Document = {
    "source": "s",
    "objects": ["o1", "o2"],
    "nodes": [
        {"node": "s", "filter_time": 0.001, "send_time": 0.000125, "rates": {"o1": 1.5}},
        {"node": "n1", "filter_time": 0.005, "send_time": 0.001, "rates": {"o1": 1.0, "o2": 2.0}},
        {"node": "n2", "filter_time": 0.005, "send_time": 0.001, "rates": {"o2": 1.0}},
    ],
    "delays": [[0.0, 0.02, 0.01], [0.02, 0.0, 0.03], [0.01, 0.03, 0.0]],
    "adaptation": {
        "collect_time": 1e-6,
        "collect_period": 50.0,
        "decide_time": 1e-6,
        "decide_period": 200.0,
    },
}
VALID_TEXT = json.dumps(VALID)

VARIANTS = Variants(VALID)
with_value, without = VARIANTS.with_value, VARIANTS.without
with_literal = VARIANTS.with_literal


FILTER = ("nodes", 1, "filter_time")
SEND = ("nodes", 2, "send_time")
RATE = ("nodes", 1, "rates", "o1")
DELAY = ("delays", 1, 2)


CASES = [
    Case("malformed JSON", "document: is empty", ""),
    Case("malformed JSON", "line 1, column", VALID_TEXT[:-1]),
    Case("malformed JSON", "line 2, column 1", VALID_TEXT + "\n{}"),
    Case("malformed JSON", "byte 0: is not UTF-8", VALID_TEXT.encode("utf-16")),
    Case("malformed JSON", "document: is nested too deeply", '{"delays":' + "[" * 100_000),
    Case("wrong type", "document: must be an object, not a list", "[]"),
    with_value("wrong type", "source: must be a string, not 1", 1, "source"),
    with_value("wrong type", "source: must not be empty", "", "source"),
    with_value("wrong type", "objects: must be a list, not the string", "o1", "objects"),
    with_value("wrong type", "objects[1]: must be a string, not 2", ["o1", 2], "objects"),
    with_value("wrong type", "nodes: must be a list, not an object", {}, "nodes"),
    with_value("wrong type", "nodes[1]: must be an object, not the string", "n1", "nodes", 1),
    with_value("wrong type", "nodes[1].node: must be a string, not null", None, "nodes", 1, "node"),
    with_value("wrong type", "nodes[1].filter_time: must be a number, not the", "5", *FILTER),
    with_value("wrong type", "nodes[2].send_time: must be a number, not true", True, *SEND),
    with_value("wrong type", "nodes[1].rates: must be an object", ["o1"], "nodes", 1, "rates"),
    with_value("wrong type", "nodes[1].rates.o1: must be a number, not null", None, *RATE),
    with_value("wrong type", "nodes[1].rates.o1: must be a number, not false", False, *RATE),
    with_value("wrong type", "delays: must be a list, not 0.02", 0.02, "delays"),
    with_value("wrong type", "delays[1]: must be a list of numbers", 0.02, "delays", 1),
    with_value("wrong type", "delays[1][2]: must be a number, not the string", "0.02", *DELAY),
    with_value("wrong type", "delays[1][2]: must be a number, not true", True, *DELAY),
    with_value("wrong type", "delays[1][2]: must be a number, not null", None, *DELAY),
    with_value("wrong type", "delays[1][2]: must be a number, not a list", [1], *DELAY),
    with_value("wrong type", "adaptation: must be an object, not null", None, "adaptation"),
    with_value(
        "wrong type", "adaptation.collect_time: must be a", "1", "adaptation", "collect_time"
    ),
    with_value("unknown name", "source: 'S' is not a node", "S", "source"),
    with_value(
        "unknown name", "nodes[2].rates.o3: 'o3' is not an object", {"o3": 1}, "nodes", 2, "rates"
    ),
    with_value(
        "unknown name", "nodes[2].rates.'a\\nb': 'a\\nb' is", {"a\nb": 1}, "nodes", 2, "rates"
    ),
    with_value("duplicate", "objects[1]: 'o1' is given twice", ["o1", "o1"], "objects"),
    with_value("duplicate", "nodes[2].node: node 'n1' is given twice", "n1", "nodes", 2, "node"),
    Case(
        "duplicate",
        "nodes[1].rates.o2: is given twice",
        VALID_TEXT.replace('"o2": 2.0', '"o2": 2.0, "o2": 2.0'),
    ),
    with_value("negative", "nodes[1].filter_time: must be at least 0, not -1", -1, *FILTER),
    with_value("negative", "nodes[2].send_time: must be at least 0", -1e-9, *SEND),
    with_value("negative", "nodes[1].rates.o1: must be greater than 0, not -1", -1, *RATE),
    with_value("negative", "delays[1][2]: must be at least 0, not -0.5", -0.5, *DELAY),
    with_value("negative", "adaptation.decide_time: must be at", -1, "adaptation", "decide_time"),
    with_value("zero", "nodes[1].rates.o1: must be greater than 0, not 0; hint: leave", 0, *RATE),
    with_value("zero", "nodes[1].rates.o1: must be greater than 0, not -0; hint", -0.0, *RATE),
    with_value("zero", "adaptation.collect_period: must be gr", 0, "adaptation", "collect_period"),
    with_value("zero", "adaptation.decide_period: must be gr", 0, "adaptation", "decide_period"),
    with_literal("NaN", "nodes[1].filter_time: is NaN", "NaN", *FILTER),
    with_literal("NaN", "nodes[1].rates.o1: is NaN", "NaN", *RATE),
    with_literal("NaN", "delays[1][2]: is NaN", "NaN", *DELAY),
    with_literal("infinite", "nodes[2].send_time: is Infinity", "Infinity", *SEND),
    with_literal("infinite", "delays[1][2]: is -Infinity", "-Infinity", *DELAY),
    with_literal("infinite", "delays[1][2]: must be at most 1e+15, not inf", "1e999", *DELAY),
    with_literal("infinite", "nodes[1].rates.o1: must be at most 1e+15", "1e999", *RATE),
    with_literal("huge number", "nodes[1].filter_time: must be at most", "1e16", *FILTER),
    with_literal("huge number", "nodes[1].rates.o1: must be at most 1e+15", "9" * 400, *RATE),
    with_literal("huge number", "delays[1][2]: must be at most 1e+15", "9" * 200, *DELAY),
    with_literal("huge number", "delays[1][2]: must be at most 1e+15", "9" * 10_000, *DELAY),
    with_literal("huge number", "delays[1][2]: must be at least 1e-100", "1e-300", *DELAY),
    with_value("empty", "nodes: is empty", [], "nodes"),
    with_value("empty", "objects: is empty", [], "objects"),
    with_value("wrong shape", "delays: has 0 rows for 3 nodes", [], "delays"),
    with_value("wrong shape", "delays: has 2 rows for 3 nodes", [[0, 1, 2]] * 2, "delays"),
    with_value("wrong shape", "delays[1]: has 2 entries for 3 nodes", [0, 1], "delays", 1),
    with_value("wrong shape", "delays[2]: has 4 entries for 3 nodes", [0] * 4, "delays", 2),
    with_value("file beside", "delays: '../d.npy' is not the plain name", "../d.npy", "delays"),
    with_value("file beside", "delays: '/etc/d.npy' is not the plain", "/etc/d.npy", "delays"),
    with_value("file beside", "delays: must be a matrix or the name of", "d.pickle", "delays"),
    with_value("file beside", "delays: d.npy: does not exist", "d.npy", "delays"),
    without("source: is missing", "source"),
    without("objects: is missing", "objects"),
    without("nodes: is missing", "nodes"),
    without("delays: is missing", "delays"),
    without("nodes[1].node: is missing", "nodes", 1, "node"),
    without("nodes[1].filter_time: is missing", "nodes", 1, "filter_time"),
    without("nodes[1].send_time: is missing", "nodes", 1, "send_time"),
    without("nodes[1].rates: is missing", "nodes", 1, "rates"),
    without("adaptation.collect_time: is missing", "adaptation", "collect_time"),
    without("adaptation.decide_period: is missing", "adaptation", "decide_period"),
]
KINDS = {
    *("malformed JSON", "wrong type", "unknown name", "duplicate", "negative", "zero", "NaN"),
    *("infinite", "huge number", "empty", "wrong shape", "file beside", "missing key"),
}


def test_every_kind_of_bad_input_has_several_variants() -> None:
    counts = {kind: sum(case.kind == kind for case in CASES) for kind in KINDS}
    assert {case.kind for case in CASES} == KINDS
    assert len(KINDS) >= 13
    assert min(counts.values()) >= 2


@pytest.mark.parametrize("case", CASES, ids=named)
def test_tree_answers_bad_input_with_one_line(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, the file and the place on one line, and no tree anywhere."""
    problem, tree = tmp_path / "problem.json", tmp_path / "tree.json"
    problem.write_bytes(case.content)
    code = main(["tree", str(problem), "-o", str(tree)])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, f"{problem}: {case.place}")
    assert [path.name for path in tmp_path.iterdir()] == ["problem.json"]


def test_a_real_process_on_a_narrow_terminal_writes_one_unwrapped_line(tmp_path: Path) -> None:
    problem, tree = tmp_path / "problem.json", tmp_path / "tree.json"
    problem.write_text(VALID_TEXT.replace("0.03]", "-0.03]"), encoding="utf-8")
    narrow = {"COLUMNS": "20", "FORCE_COLOR": "1"}
    result = run("tree", str(problem), "-o", str(tree), env=narrow, fresh=True)
    check_one_line(result.returncode, result.stdout, result.stderr, "delays[1][2]: must be at")
    assert not tree.exists()


def test_a_stream_on_standard_input_has_no_file_beside_it(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.zeros((3, 3)))
    document = json.dumps({**VALID, "delays": "d.npy"})
    result = run("tree", "-", input=document, cwd=tmp_path)
    check_one_line(
        result.returncode, result.stdout, result.stderr, "delays: names the file 'd.npy', but"
    )


START = json.dumps({"trees": [{"objects": ["o1", "o2"], "parents": {"n1": "n2", "n2": "n1"}}]})
TREE = ["tree", "problem.json"]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["tree", "missing.json"], "missing.json: does not exist"),
        (["tree", "."], ".: is a directory"),
        (["tree"], "Missing argument 'PROBLEM.json'; hint: distributary tree --help"),
        ([*TREE, "-o", "no/tree.json"], "-o: directory 'no'"),
        ([*TREE, "-o", "."], "-o: '.' is a directory"),
        ([*TREE, "--draw", "tree.png"], "--draw: 'tree.png' ends in neither"),
        ([*TREE, "--draw", "no/tree.svg"], "--draw: directory 'no'"),
        ([*TREE, "--method", "magic"], "'--method': 'magic' is not one of"),
        ([*TREE, "--objects", "none"], "'--objects': 'none' is not one of"),
        ([*TREE, "--seed", "-1"], "'--seed'"),
        ([*TREE, "--time-limit", "nan"], "--time-limit: must be a finite number"),
        ([*TREE, "--time-limit", "0"], "--time-limit: must be a finite number"),
        ([*TREE, "--time-limit", "inf"], "--time-limit: must be a finite number"),
        ([*TREE, "--fanout", "3"], "--fanout: is for dita, not for auto"),
        ([*TREE, "--method", "dita", "--fanout", "0"], "'--fanout'"),
        ([*TREE, "--start", "start.json"], "--start: is for anneal and adapt, not for auto"),
        ([*TREE, "--method", "adapt", "--start", "no.json"], "no.json: does not exist"),
        (
            [*TREE, "--method", "adapt", "--start", "start.json"],
            "start.json: trees[0].parents: node 'n1' is on a cycle",
        ),
        (
            [*TREE, "--method", "anneal", "--start", "start.json", "--objects", "tree-each"],
            "start.json: trees[0].objects: has 2 objects, where every object",
        ),
        (["generate", "tree", "--load", "0"], "load: is 0, and must be from 0.2"),
        (["generate", "tree", "--load", "nan"], "load: is nan"),
        (["generate", "tree", "--interest", "2"], "'--interest'"),
        (["generate", "tree", "--servers", "0"], "'--servers'"),
        (["generate", "tree", "--servers", "99999", "-o", "x.json"], "servers: is 99,999"),
        (["generate", "tree", "--servers", "5000"], "the delays between 5,001 nodes do not go"),
        (["generate", "tree", "--routers", "1"], "'--routers'"),
        (["generate", "tree", "--rates", "2", "1"], "rates: are from 2 to 1"),
        (["generate", "tree", "--round-trip"], "--round-trip: needs --delays"),
        (["generate", "tree", "--unit", "s"], "--unit: needs --delays"),
        (["generate", "tree", "--topology", "a.gml", "--delays", "b"], "--delays: cannot be"),
        (["generate", "tree", "--topology", "problem.json"], "problem.json: line 1, column"),
        (["generate", "tree", "--delays", "problem.json"], "problem.json: line 1, column 1"),
        (["generate", "tree", "--delays", "no.npy"], "no.npy: does not exist"),
        (["generate", "tree", "-o", "no/x.json"], "-o: directory 'no'"),
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


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        (
            "--topology",
            "graph [ node [ id 1 ] node [ id 2 ] ]",
            "places: has no two places that are connected: one for the source, one for a server; "
            "1 of 2 nodes left out, not connected with the others",
        ),
        ("--delays", "5", "places: has no two places that are connected"),
        (
            "--topology",
            "graph [ "
            + " ".join(f"node [ id {k} ] edge [ source 0 target {k} ]" for k in range(20_000))
            + " ]",
            "places: has 20,000 connected places that are asked for; "
            "delays between 16,384 are kept",
        ),
    ],
    ids=["nothing connected", "one host", "too many nodes"],
)
def test_a_file_with_too_few_or_too_many_places_is_named(
    option: str,
    text: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("places").write_text(text, encoding="utf-8")
    code = main(["generate", "tree", option, "places", "-o", "x.json"])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, complaint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["places"]
