"""Bad input gets one line that names the place, exit code 2, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.bad_documents import Case, Document, Variants, named
from tests.commands import check_one_line, run

from distributary.cli import main

VALID: Document = {
    "formats": [
        {"name": "pdf", "size": 5.0},
        {"name": "jpeg", "size": 2.0},
        {"name": "text", "size": 0.1},
        {"name": "svg", "size": 1.0},
    ],
    "conversions": [
        {"from": "pdf", "to": "jpeg", "cost": 3.0},
        {"from": "pdf", "to": "text", "cost": 1.0},
    ],
    "source_format": "pdf",
    "alpha": 1.0,
    "beta": 1.0,
    "tree": [
        {"node": "N1", "parent": None, "wants": []},
        {"node": "N2", "parent": "N1", "wants": ["jpeg"], "link_cost": 1.0},
        {"node": "N3", "parent": "N2", "wants": ["text"], "node_cost": 2.0},
        {"node": "N4", "parent": "N2", "wants": []},
    ],
}
VALID_TEXT = json.dumps(VALID)

VARIANTS = Variants(VALID)
with_value, without = VARIANTS.with_value, VARIANTS.without
with_literal, with_more = VARIANTS.with_literal, VARIANTS.with_more


LINK = ("tree", 1, "link_cost")
SIZE = ("formats", 1, "size")
COST = ("conversions", 0, "cost")

CASES = [
    Case("malformed JSON", "document: is empty", ""),
    Case("malformed JSON", "document: is empty", " \n\t "),
    Case("malformed JSON", "line 1, column 2", "{"),
    Case("malformed JSON", "line 1, column", VALID_TEXT[:-1]),
    Case("malformed JSON", "line 2, column 1", VALID_TEXT + "\n{}"),
    Case("malformed JSON", "line 1, column 3", "{'formats': []}".replace("{", "{ ")),
    Case("malformed JSON", "line 3, column", '{"formats": [],\n\n "tree": oops}'),
    Case("malformed JSON", "byte 12: is not UTF-8", b'{"formats": \xff[]}'),
    Case("malformed JSON", "byte 0: is not UTF-8", VALID_TEXT.encode("utf-16")),
    Case("malformed JSON", "document: is nested too deeply", "[" * 100_000),
    Case("malformed JSON", "document: is nested too deeply", '{"a":' * 100_000),
    Case("wrong type", "document: must be an object, not a list", "[]"),
    Case("wrong type", "document: must be an object, not null", "null"),
    Case("wrong type", "document: must be an object, not the string", '"problem"'),
    Case("wrong type", "document: must be an object, not 3", "3"),
    with_value("wrong type", "formats: must be a list, not an object", {}, "formats"),
    with_value("wrong type", "formats[0]: must be an object", "pdf", "formats", 0),
    with_value("wrong type", "formats[1].name: must be a string, not 7", 7, "formats", 1, "name"),
    with_value("wrong type", "formats[1].name: must not be empty", "", "formats", 1, "name"),
    with_value("wrong type", "formats[1].name: has 300 char", "x" * 300, "formats", 1, "name"),
    with_value("wrong type", "formats[1].name: '\\ud800'", "\ud800", "formats", 1, "name"),
    with_value("wrong type", "formats[1].size: must be a number, not the", "2.0", *SIZE),
    with_value("wrong type", "formats[1].size: must be a number, not true", True, *SIZE),
    with_value("wrong type", "formats[1].size: must be a number, not null", None, *SIZE),
    with_value("wrong type", "formats[1].size: must be a number, not a list", [2.0], *SIZE),
    with_value("wrong type", "alpha: must be a number, not false", False, "alpha"),
    with_value("wrong type", "beta: must be a number, not the string", "1", "beta"),
    with_value("wrong type", "conversions: must be a list, not null", None, "conversions"),
    with_value("wrong type", "source_format: must be a string", ["pdf"], "source_format"),
    with_value("wrong type", "tree: must be a list", {"N1": None}, "tree"),
    with_value("wrong type", "tree[2]: must be an object", ["N3"], "tree", 2),
    with_value("wrong type", "tree[2].parent: must be a string", 2, "tree", 2, "parent"),
    with_value("wrong type", "tree[2].wants: must be a list", "text", "tree", 2, "wants"),
    with_value("wrong type", "tree[2].wants[0]: must be a string", [1], "tree", 2, "wants"),
    with_value("wrong type", "tree[1].link_cost: must be a number", "1", *LINK),
    with_value("wrong type", "tree[0].bandwidth: must be a", None, "tree", 0, "bandwidth"),
    with_value("unknown name", "source_format: 'pfd' is not a", "pfd", "source_format"),
    with_value("unknown name", "conversions[0].from: 'ps'", "ps", "conversions", 0, "from"),
    with_value("unknown name", "conversions[1].to: 'Text'", "Text", "conversions", 1, "to"),
    with_value("unknown name", "tree[3].parent: 'N9' is not a node", "N9", "tree", 3, "parent"),
    with_value("unknown name", "tree[2].wants[1]: 'gif'", ["text", "gif"], "tree", 2, "wants"),
    with_value("unknown name", "tree[2].wants[0]: 'a\\nb'", ["a\nb"], "tree", 2, "wants"),
    with_value("cycle", "tree[1].parent: node 'N2' is on a cycle", "N3", "tree", 1, "parent"),
    with_value("cycle", "tree[3].parent: node 'N4' is on a cycle", "N4", "tree", 3, "parent"),
    with_value("cycle", "tree[0].parent: node 'N1' is on a cycle", "N3", "tree", 0, "parent"),
    with_value("two roots", "tree[3].parent: node 'N4' is a second", None, "tree", 3, "parent"),
    with_more(
        "two roots",
        "tree[4].parent: node 'X' is a second root beside 'N1'",
        {"node": "X", "parent": None, "wants": []},
        "tree",
    ),
    with_value("duplicate", "formats[2].name: format 'pdf' is", "pdf", "formats", 2, "name"),
    with_value("duplicate", "tree[3].node: node 'N2' is given twice", "N2", "tree", 3, "node"),
    with_value("duplicate", "conversions[1]: conversion from", "jpeg", "conversions", 1, "to"),
    with_value("duplicate", "conversions[1].to: 'pdf' is conv", "pdf", "conversions", 1, "to"),
    with_value("duplicate", "tree[2].wants[1]: 'text'", ["text", "text"], "tree", 2, "wants"),
    Case(
        "duplicate",
        "formats[1].size: is given twice",
        VALID_TEXT.replace('"size": 2.0', '"size": 2.0, "size": 2.0'),
    ),
    Case("duplicate", "tree: is given twice", VALID_TEXT[:-1] + ', "tree": []}'),
    with_value("negative", "formats[1].size: must be at least 0, not -1", -1, *SIZE),
    with_value("negative", "conversions[0].cost: must be at least 0, not -0.5", -0.5, *COST),
    with_value("negative", "tree[1].link_cost: must be at least 0", -1e-9, *LINK),
    with_value("negative", "tree[0].node_cost: must be at least 0", -2, "tree", 0, "node_cost"),
    with_value("negative", "alpha: must be at least 0", -1.0, "alpha"),
    with_value("negative", "beta: must be at least 0", -1.0, "beta"),
    with_value("negative", "tree[1].bandwidth: must be greater", -1, "tree", 1, "bandwidth"),
    with_value("negative", "tree[1].bandwidth: must be greater", 0, "tree", 1, "bandwidth"),
    with_literal("NaN", "formats[1].size: is NaN", "NaN", *SIZE),
    with_literal("NaN", "conversions[0].cost: is NaN", "NaN", *COST),
    with_literal("NaN", "tree[1].link_cost: is NaN", "NaN", *LINK),
    with_literal("NaN", "tree[1].note: is NaN", "NaN", "tree", 1, "note"),
    Case("NaN", "document: is NaN", "NaN"),
    with_literal("infinite", "formats[1].size: is Infinity", "Infinity", *SIZE),
    with_literal("infinite", "conversions[0].cost: is -Infinity", "-Infinity", *COST),
    with_literal("infinite", "alpha: is Infinity", "Infinity", "alpha"),
    with_literal("infinite", "tree[1].link_cost: must be at most 1e+15, not inf", "1e999", *LINK),
    with_literal("infinite", "tree[1].link_cost: must be at least 0, not -inf", "-1e999", *LINK),
    with_value("unreachable want", "tree: node 'N2': wants 'jpeg'", "text", "source_format"),
    with_value("unreachable want", "tree: node 'N2': wants 'jpeg'", [], "conversions"),
    with_value("unreachable want", "tree: node 'N1': wants 'svg'", ["svg"], "tree", 0, "wants"),
    with_value("empty", "tree: is empty", [], "tree"),
    with_value("empty", "formats: is empty", [], "formats"),
    with_literal("huge number", "formats[1].size: must be at most", "1e16", *SIZE),
    with_literal("huge number", "conversions[0].cost: must be at most", "1e308", *COST),
    with_literal("huge number", "tree[1].link_cost: must be at most", "9" * 200, *LINK),
    with_literal("huge number", "tree[1].link_cost: must be at most", "9" * 400, *LINK),
    with_literal("huge number", "beta: must be at most 1e+15", "9" * 10_000, "beta"),
    with_literal("huge number", "alpha: must be at least 0", "-" + "9" * 10_000, "alpha"),
    with_literal("huge number", "alpha: must be at least 1e-100", "1e-300", "alpha"),
    without("formats: is missing", "formats"),
    without("conversions: is missing", "conversions"),
    without("source_format: is missing", "source_format"),
    without("tree: is missing", "tree"),
    without("formats[1].name: is missing", "formats", 1, "name"),
    without("formats[1].size: is missing", "formats", 1, "size"),
    without("conversions[0].from: is missing", "conversions", 0, "from"),
    without("conversions[1].to: is missing", "conversions", 1, "to"),
    without("conversions[1].cost: is missing", "conversions", 1, "cost"),
    without("tree[2].node: is missing", "tree", 2, "node"),
    without("tree[0].parent: is missing", "tree", 0, "parent"),
    without("tree[3].wants: is missing", "tree", 3, "wants"),
]
KINDS = {
    "malformed JSON",
    "wrong type",
    "unknown name",
    "cycle",
    "two roots",
    "duplicate",
    "negative",
    "NaN",
    "infinite",
    "unreachable want",
    "empty",
    "huge number",
    "missing key",
}


def test_every_kind_of_bad_input_has_several_variants() -> None:
    counts = {kind: sum(case.kind == kind for case in CASES) for kind in KINDS}
    assert {case.kind for case in CASES} == KINDS
    assert min(counts.values()) >= 2


@pytest.mark.parametrize("case", CASES, ids=named)
def test_place_answers_bad_input_with_one_line(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, the file and the place on one line, and no plan anywhere."""
    problem, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    problem.write_bytes(case.content)
    code = main(["place", str(problem), "-o", str(plan)])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, f"{problem}: {case.place}")
    assert [path.name for path in tmp_path.iterdir()] == ["problem.json"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_compare_reads_as_strictly_as_place(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(case for case in CASES if case.kind == kind)
    problem = tmp_path / "problem.json"
    problem.write_bytes(case.content)
    code = main(["compare", str(problem)])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, case.place)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (VALID_TEXT.replace('"parent": "N2"', '"parent": "N4"'), "tree[3].parent"),
        (VALID_TEXT.replace("3.0", "NaN"), "conversions[0].cost"),
        ("x" * 500, "line 1, column 1"),
    ],
)
def test_a_real_process_on_a_narrow_terminal_writes_one_unwrapped_line(
    content: str, place: str, tmp_path: Path
) -> None:
    problem, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    problem.write_text(content, encoding="utf-8")
    narrow = {"COLUMNS": "20", "FORCE_COLOR": "1"}
    result = run("place", str(problem), "-o", str(plan), env=narrow, fresh=True)
    check_one_line(result.returncode, result.stdout, result.stderr, place)
    assert not plan.exists()


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["place", "missing.json"], "missing.json: does not exist"),
        (["place", "."], ".: is a directory"),
        (["place", "problem.json", "problem.json"], "problem.json: is a second problem file"),
        (["place", "problem.json/x.json"], "problem.json/x.json: cannot be read: not a directory"),
        (["place", "problem.json", "-o", "no/such/plan.json"], "-o: directory 'no/such'"),
        (["place", "problem.json", "-o", "."], "-o: '.' is a directory"),
        (["place", "problem.json", "--draw", "plan.png"], "--draw: 'plan.png' ends in neither"),
        (["place", "problem.json", "--draw", "no/plan.svg"], "--draw: directory 'no'"),
        (["place", "problem.json", "--graph", "graph.json"], "--graph: needs --bytes"),
        (["place", "problem.json", "--bytes", "5"], "--bytes: needs --graph"),
        (["place", "problem.json", "--graph", "g.json", "--bytes", "-5"], "'--bytes'"),
        (["place", "problem.json", "--graph", "g.json", "--bytes", "5"], "g.json: does not exist"),
        (["place", "problem.json", "--time-limit", "nan"], "--time-limit: must be a finite"),
        (["place", "problem.json", "--time-limit", "0"], "--time-limit: must be a finite"),
        (["place", "problem.json", "--load-growth", "1"], "--load-growth: needs --concurrent"),
        (["place", "problem.json", "--concurrent", "--load-growth", "inf"], "--load-growth: must"),
        (["place", "problem.json", "--concurrent", "--method", "exact"], "--method: cannot be"),
        (["place", "problem.json", "--method", "magic"], "'--method': 'magic' is not one of"),
        (["place", "problem.json", "--iterations", "-1"], "'--iterations'"),
        (["place", "problem.json", "--seed", "x"], "'--seed'"),
        (["place", "problem.json", "--depth", "0"], "'--depth'"),
        (["place", "problem.json", "--colour"], "No such option: --colour"),
        (["place"], "Missing argument 'PROBLEM.json'; hint: distributary place --help"),
        (["plase"], "No such command 'plase'. Did you mean 'place'?"),
        (["compare", "missing.json"], "missing.json: does not exist"),
        (["generate"], "distributary generate: Missing command"),
        (["generate", "placement", "cube"], "'KIND': 'cube' is not one of"),
        (["generate", "placement", "map", "--alpha", "nan"], "alpha: is nan"),
        (["generate", "placement", "map", "--formats", "5"], "formats: is 5"),
        (["generate", "placement", "map", "-o", "no/map.json"], "-o: directory 'no'"),
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
    code = main(arguments)
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, place)
    assert [path.name for path in tmp_path.iterdir()] == ["problem.json"]


def test_a_file_name_with_a_line_break_does_not_break_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["place", str(tmp_path / "two\nlines.json")])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, "two\\nlines.json': does not exist")


def test_a_calibrated_graph_with_a_fault_is_named_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, graph = tmp_path / "tree.json", tmp_path / "graph.json"
    tree.write_text(json.dumps({"source_format": "pdf", "tree": VALID["tree"]}), encoding="utf-8")
    graph.write_text(
        json.dumps(
            {
                "formats": [{"name": "pdf", "size": {"fixed": 0, "per_mb": -1}}],
                "conversions": [],
            }
        ),
        encoding="utf-8",
    )
    code = main(["place", str(tree), "--graph", str(graph), "--bytes", "1000000"])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, f"{graph}: formats[0].size.per_mb: must be at least 0")


def test_formats_come_from_one_place_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, graph = tmp_path / "problem.json", tmp_path / "graph.json"
    problem.write_text(VALID_TEXT, encoding="utf-8")
    line = {"fixed": 0, "per_mb": 1}
    graph.write_text(
        json.dumps({"formats": [{"name": "pdf", "size": line}], "conversions": []}),
        encoding="utf-8",
    )
    code = main(["place", str(problem), "--graph", str(graph), "--bytes", "1"])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, f"{problem}: formats: is given both here and by")
