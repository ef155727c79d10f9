"""Commands: data on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import typer
from tests.commands import run

from distributary import __version__
from distributary.cli import main
from distributary.cli.app import app
from distributary.placement.cost import cost
from distributary.placement.plan import check
from distributary.placement.plan_file import read_plan
from distributary.placement.problem_file import read_problem

PROBLEM = """\
{"formats": [{"name": "pdf", "size": 5.0}, {"name": "jpeg", "size": 2.0}],
 "conversions": [{"from": "pdf", "to": "jpeg", "cost": 3.0}],
 "source_format": "pdf", "alpha": 1.0, "beta": 1.0,
 "tree": [{"node": "N2", "parent": "N1", "wants": ["jpeg"], "link_cost": 1.0, "node_cost": 1.0},
          {"node": "N1", "parent": null, "wants": []}]}
"""
METHODS = [
    "auto",
    "exact",
    "optimal",
    "iterative",
    "all-in-root",
    "all-in-leaves",
    "single-format",
]


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    path.write_text(PROBLEM, encoding="utf-8")
    return path


def test_help_answers_at_once_and_imports_no_planner() -> None:
    """NumPy and Numba alone take longer than a person waits for help."""
    code = (
        "import sys; from distributary.cli import main; main(['--help'])\n"
        "heavy = {'numpy', 'numba', 'distributary.placement'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr
    assert "place" in result.stdout
    # Of the processor, which does not depend on how busy the machine is; ten times what it
    # takes here.
    assert after.ru_utime - before.ru_utime < 2.0


def commands(group: typer.core.TyperGroup, *before: str) -> Iterator[list[str]]:
    yield [*before]
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, *before, name)
        else:
            yield [*before, name]


@pytest.mark.parametrize(
    "arguments", [*commands(cast(typer.core.TyperGroup, typer.main.get_command(app)))], ids=" ".join
)
def test_every_help_has_examples_and_is_plain_when_piped(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--help"]) == 0
    stdout, stderr = capsys.readouterr()
    assert stderr == ""
    assert "Examples:\n    distributary " in stdout
    assert "\x1b" not in stdout
    assert "╭" not in stdout


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: distributary ")


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"distributary {__version__}\n"


def test_completion_can_be_shown_for_a_shell() -> None:
    detection_off = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    result = run("--show-completion", "bash", env=detection_off, fresh=True)
    assert result.returncode == 0
    assert "_DISTRIBUTARY_COMPLETE" in result.stdout


def test_place_writes_the_plan_to_standard_output(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["place", str(problem)]) == 0
    stdout, stderr = capsys.readouterr()
    assert stderr == ""
    plan = json.loads(stdout)
    assert list(plan) == [
        "method",
        "total_cost",
        "transmission_cost",
        "conversion_cost",
        "lower_bound",
        "gap",
        "optimal",
        "seconds",
        "nodes",
    ]
    assert plan["total_cost"] == 5.0
    assert plan["optimal"] is True
    assert plan["nodes"] == [
        {"node": "N2", "receives": ["jpeg"], "converts": []},
        {"node": "N1", "receives": [], "converts": [["pdf", "jpeg"]]},
    ]


def test_time_as_the_objective_adds_the_latest_delivery(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """3 s to convert at the root, then 2 units over a link of 1 unit per second."""
    assert main(["place", str(problem), "--objective", "time"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["latest_delivery"] == pytest.approx(5.0)
    assert plan["latest_delivery_bound"] <= plan["latest_delivery"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_a_valid_plan_with_its_true_cost(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, plan = tmp_path / "map.json", tmp_path / "plan.json"
    assert main(["generate", "placement", "map", "--brokers", "20", "-o", str(problem)]) == 0
    capsys.readouterr()
    assert main(["place", str(problem), "--method", method, "--seed", "4", "-o", str(plan)]) == 0
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert stderr.count("\n") == 1
    assert "seed 4" in stderr
    file = read_problem(problem)
    read = read_plan(plan, file.problem)
    check(file.problem, read)
    document = json.loads(plan.read_text(encoding="utf-8"))
    assert document["total_cost"] == pytest.approx(cost(file.problem, read).total)
    assert document["lower_bound"] <= document["total_cost"] * (1 + 1e-9)
    assert [entry["node"] for entry in document["nodes"]] == list(file.node_order)


def test_an_output_file_is_replaced_whole(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text("old", encoding="utf-8")
    assert main(["place", str(problem), "-o", str(plan)]) == 0
    assert json.loads(plan.read_text(encoding="utf-8"))["total_cost"] == 5.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json", "problem.json"]
    capsys.readouterr()


def test_stray_keys_are_reported_in_at_most_five_lines(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(PROBLEM)
    document |= {f"stray{index}": 1 for index in range(9)}
    problem.write_text(json.dumps(document), encoding="utf-8")
    assert main(["place", str(problem)]) == 0
    stdout, stderr = capsys.readouterr()
    assert json.loads(stdout)["total_cost"] == 5.0
    lines = stderr.splitlines()
    assert lines[0] == f"warning: {problem}: stray0: is not a known key, and is ignored"
    assert lines[4] == f"warning: {problem}: 5 more keys are ignored"
    assert len(lines) == 5


def test_a_problem_can_be_read_from_standard_input() -> None:
    result = run("place", "-", input=PROBLEM)
    assert result.stderr == ""
    assert json.loads(result.stdout)["total_cost"] == 5.0


def test_a_calibrated_graph_gives_formats_and_conversions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 MB of pdf: the jpeg is 0.1 + 0.5 * 2 MB, the conversion takes 1 + 0.25 * 2 s."""
    tree, graph = tmp_path / "tree.json", tmp_path / "graph.json"
    document = json.loads(PROBLEM)
    del document["formats"], document["conversions"]
    tree.write_text(json.dumps(document), encoding="utf-8")
    graph.write_text(
        json.dumps(
            {
                "formats": [
                    {"name": "pdf", "size": {"fixed": 0, "per_mb": 1}},
                    {"name": "jpeg", "size": {"fixed": 0.1, "per_mb": 0.5}},
                ],
                "conversions": [
                    {"from": "pdf", "to": "jpeg", "cost": {"fixed": 1, "per_mb": 0.25}}
                ],
            }
        ),
        encoding="utf-8",
    )
    assert main(["place", str(tree), "--graph", str(graph), "--bytes", "2000000"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["transmission_cost"] == pytest.approx(1.1)
    assert plan["conversion_cost"] == pytest.approx(1.5)


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_a_plan_can_be_drawn(
    suffix: str, problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing = tmp_path / f"plan{suffix}"
    assert main(["place", str(problem), "--draw", str(drawing)]) == 0
    assert "jpeg" in drawing.read_text(encoding="utf-8")
    assert json.loads(capsys.readouterr().out)["total_cost"] == 5.0


def test_concurrent_publications_are_planned_together(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = tmp_path / "second.json"
    second.write_text(PROBLEM, encoding="utf-8")
    arguments = ["place", str(problem), str(second), "--concurrent", "--load-growth", "0.5"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["total_cost", "separate_total_cost", "rounds", "plans"]
    assert [plan["problem"] for plan in document["plans"]] == ["problem.json", "second.json"]
    assert document["total_cost"] <= document["separate_total_cost"] * (1 + 1e-9)


def test_generate_writes_the_same_problem_for_the_same_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["generate", "placement", "video", "--brokers", "30", "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


@pytest.mark.parametrize("kind", ["map", "video", "dense", "sparse", "few-wants", "steiner"])
def test_what_generate_writes_can_be_read(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "problem.json"
    brokers = [] if kind == "steiner" else ["--brokers", "16"]
    assert main(["generate", "placement", kind, *brokers, "-o", str(path)]) == 0
    assert "seed 0" in capsys.readouterr().err
    file = read_problem(path)
    assert file.warnings == ()
    assert file.problem.served[0]


def test_compare_prints_a_table_that_fits_a_file(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(problem), "--iterations", "20"]) == 0
    stdout, stderr = capsys.readouterr()
    assert stderr == ""
    assert "\x1b" not in stdout
    rows = {line.split()[0]: line for line in stdout.splitlines() if line.strip()}
    assert set(METHODS) <= set(rows)
    assert "exact *" in rows["exact"]
    assert "5.00" in rows["exact"]
    assert "seed 0" in stdout


def test_compare_writes_data_on_request(problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(problem), "--iterations", "20", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {entry["method"] for entry in document["methods"]} == set(METHODS)
    assert all("total_cost" in entry for entry in document["methods"])


def test_a_reader_that_leaves_early_is_no_fault(tmp_path: Path) -> None:
    """As in `distributary generate ... | head`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        result = run(
            "generate",
            "placement",
            "map",
            capture_output=False,
            stdout=write_end,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(write_end)
    assert result.returncode == 1
    assert result.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("arguments", [["--help"], ["generate", "placement", "map"]])
def test_a_full_disk_gets_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        result = run(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 2
    assert result.stderr == "error: output: no space left on device\n"


def test_a_terminal_gets_progress_and_a_pipe_gets_clean_data(problem: Path) -> None:
    """The bar goes to standard error, so that standard output stays one JSON document."""
    reader, terminal = os.openpty()
    try:
        result = run(
            "place", str(problem), capture_output=False, stdout=subprocess.PIPE, stderr=terminal
        )
    finally:
        os.close(terminal)
    drawn = os.read(reader, 100_000)
    os.close(reader)
    assert result.returncode == 0
    assert json.loads(result.stdout)["total_cost"] == 5.0
    assert b"\x1b[" in drawn


def test_warm_up_compiles_everything_and_says_how_long_that_took() -> None:
    done = run("warm-up", fresh=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert re.search(r"^compiled \d+ loops in \d+\.\d s in \d+ processes$", done.stderr, re.M)


def test_a_closed_output_is_no_fault() -> None:
    script = f"{sys.executable} -m distributary formats >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
