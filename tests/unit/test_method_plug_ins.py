"""Methods that are not ours: they are found, run, checked and costed, and fail in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.docs.test_documents import play

from distributary import fidelity, kernels, placement, wiring
from distributary.cli import main
from distributary.content import AdaptationGraph
from distributary.errors import InfeasiblePlan, MethodFailed, TooLarge
from distributary.fidelity import FidelityProblem, Forest
from distributary.kernels import clock
from distributary.methods import FIDELITY, PLACEMENT, WIRING, MethodTable, own_methods
from distributary.placement import PlacementProblem, Plan, compare_methods
from distributary.topology import DisseminationTree, TreeNode
from distributary.wiring import WiringProblem

EXAMPLE = Path(__file__).parents[2] / "examples" / "simple_rules"

PUBLICATION = PlacementProblem.from_wishes(
    AdaptationGraph.from_conversions([("pdf", 5.0), ("jpeg", 2.0)], [("pdf", "jpeg", 3.0)]),
    DisseminationTree.from_nodes([TreeNode("N1", None), TreeNode("N2", "N1")]),
    {"N2": "jpeg"},
    source="pdf",
)
STREAM = FidelityProblem.in_order(
    names=["s", "n1", "n2"],
    source="s",
    objects=["o"],
    rates=np.ones((3, 1)),
    filter_times=np.full(3, 0.001),
    send_times=np.full(3, 0.001),
    delays=np.ones((3, 3)),
)
USERS = WiringProblem.in_order(
    users=["u1", "u2"],
    brokers=["b1", "b2"],
    publishes=np.ones((2, 1)),
    subscribes=np.ones((2, 1), dtype=np.bool_),
    access_prices=np.ones((2, 2)),
    core_prices=1.0 - np.eye(2),
    capacities=np.array([2.0, 10.0]),
)


@pytest.fixture(autouse=True)
def _tables_as_they_were() -> Iterator[None]:
    before = [(table, dict(table)) for table in (PLACEMENT, FIDELITY, WIRING)]
    yield
    for table, entries in before:
        table.clear()
        table.update(entries)


def given(table: MethodTable, returned: object) -> None:
    """Have a method `mine` that returns or raises something, whatever the problem."""

    def mine(problem: object) -> object:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    table["mine"] = mine


def plan(*, at_root: bool = True) -> Plan:
    """Return the best plan of the publication, or one that converts where it is wanted."""
    made = Plan.empty(PUBLICATION)
    pdf, jpeg = (PUBLICATION.graph.names.index(name) for name in ("pdf", "jpeg"))
    made.receives[1, jpeg if at_root else pdf] = True
    made.made_from[0 if at_root else 1, jpeg] = pdf
    return made


def test_what_a_function_returns_is_costed_by_the_planner() -> None:
    given(PLACEMENT, plan(at_root=False))
    found = placement.place(PUBLICATION, method="mine")
    assert (found.method, found.total_cost, found.lower_bound) == ("mine", 8.0, 5.0)
    assert not found.optimal
    given(FIDELITY, Forest("one-tree", np.array([[-1, 0, 1]])))
    trees = fidelity.build_trees(STREAM, method="mine")
    assert trees.at("n2").parent == "n1"
    assert trees.loss.average == fidelity.loss(STREAM, trees.forest).average
    given(WIRING, [0, 1])
    wired = wiring.wire(USERS, method="mine")
    assert wired.cost == wiring.cost(USERS, np.array([0, 1]))
    assert wired.lower_bound <= wired.cost.total


def test_it_gets_the_options_that_it_takes_and_no_others() -> None:
    got: dict[str, object] = {}

    def mine(problem: WiringProblem, *, core: str, seed: int) -> list[int]:
        got.update(core=core, seed=seed)
        return [1, 1]

    WIRING["mine"] = mine
    wiring.wire(USERS, method="mine", core="one-tree", seed=7)
    assert got == {"core": "one-tree", "seed": 7}


def test_what_it_compiles_is_not_in_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run on a machine would say more about the compiler than about the method."""
    now_s = [1.0]
    monkeypatch.setattr(kernels, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))

    def pass_time(seconds: float) -> None:
        now_s[0] += seconds

    compile_something = clock.stopping(pass_time)

    def compiled(result: object) -> Callable[[Any], Any]:
        def method(problem: Any) -> Any:
            pass_time(2.0)
            compile_something(5.0)
            return result

        return method

    PLACEMENT["mine"] = compiled(plan(at_root=True))
    FIDELITY["mine"] = compiled(Forest("one-tree", np.array([[-1, 0, 1]])))
    WIRING["mine"] = compiled([0, 1])
    assert placement.place(PUBLICATION, method="mine").seconds == 2.0
    assert fidelity.build_trees(STREAM, method="mine").seconds == 2.0
    assert wiring.wire(USERS, method="mine").seconds == 2.0


def test_an_entry_point_is_loaded_when_it_runs() -> None:
    point = EntryPoint("mine", "no_such_module:plan", "distributary.methods.placement")
    PLACEMENT["mine"] = point
    with pytest.raises(MethodFailed, match=r"^method 'mine' failed: ModuleNotFoundError: No mod"):
        placement.place(PUBLICATION, method="mine")


def in_a_circle() -> Plan:
    """Return a plan that makes each format from the other, where none is."""
    made = plan()
    made.receives[1] = False
    made.made_from[1] = [1, 0]
    return made


def out_of_range() -> Plan:
    made = plan()
    made.made_from[0, 0] = 99
    return made


BAD: dict[str, tuple[MethodTable, object, str]] = {
    "nothing": (PLACEMENT, None, "plan: must be a Plan, not None"),
    "with a bound": (PLACEMENT, (plan(), 5.0), "plan: must be a Plan, not a tuple"),
    "nothing sent": (PLACEMENT, Plan.empty(PUBLICATION), "node 'N2': wants 'jpeg' and does not"),
    "a circle": (PLACEMENT, in_a_circle(), "node 'N2': makes "),
    "no such format": (PLACEMENT, out_of_range(), "node 'N1': makes 'jpeg' from a format that"),
    "wrong shape": (
        PLACEMENT,
        Plan(np.zeros((1, 2), dtype=np.bool_), np.zeros((1, 2), dtype=np.int64)),
        "receives: ",
    ),
    "wrong kind": (PLACEMENT, Plan(plan().made_from, plan().made_from), "receives: must be"),  # type: ignore[arg-type]
    "a cycle": (FIDELITY, Forest("one-tree", np.array([[-1, 2, 1]])), "is on or below a cycle"),
    "no parent": (FIDELITY, Forest("one-tree", np.array([[-1, 0, 77]])), "hangs below '77'"),
    "other approach": (FIDELITY, Forest("tree-each", np.array([[-1, 0, 0]])), "are for 'tree-"),
    "a list": (FIDELITY, [[-1, 0, 0]], "trees: must be a Forest, not a list"),
    "floats": (WIRING, np.array([0.0, 1.0]), "broker_of: must be an array of int64"),
    "too few": (WIRING, [0], "broker_of: "),
    "no broker": (WIRING, [0, 2], "node 'u2': is attached to no broker"),
    "no room": (WIRING, [0, 0], "node 'b1': carries "),
    "a fault": (WIRING, ZeroDivisionError("division by zero"), "ZeroDivisionError: division by"),
    "pages": (WIRING, ValueError("so\nmuch " * 1000), "ValueError: so much so much"),
    "no words": (WIRING, RuntimeError(), "RuntimeError; hint"),
    "the end": (WIRING, SystemExit(3), "SystemExit: 3"),
}
SOLVE: list[tuple[MethodTable, Callable[..., Any], object]] = [
    (PLACEMENT, placement.place, PUBLICATION),
    (FIDELITY, fidelity.build_trees, STREAM),
    (WIRING, wiring.wire, USERS),
]


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_valid_plan_is_refused_in_one_sentence(case: str) -> None:
    table, returned, said = BAD[case]
    given(table, returned)
    solve, problem = next((run, problem) for known, run, problem in SOLVE if known is table)
    with pytest.raises(MethodFailed) as failure:
        solve(problem, method="mine")
    message = str(failure.value)
    assert message.startswith("method 'mine' failed: ")
    assert said in message
    assert "\n" not in message
    assert len(message) < 600


def test_a_method_cannot_change_the_problem() -> None:
    def mine(problem: PlacementProblem) -> Plan:
        problem.graph.costs[:] = 0.0
        return plan()

    PLACEMENT["mine"] = mine
    with pytest.raises(MethodFailed, match="read-only"):
        placement.place(PUBLICATION, method="mine")
    assert placement.place(PUBLICATION).total_cost == 5.0


@pytest.mark.parametrize(
    "answer",
    [
        TooLarge("too much", seconds=1e9, memory_bytes=1e9),
        InfeasiblePlan("no room", shortfall=3.0),
    ],
)
def test_saying_that_it_cannot_is_no_fault(answer: Exception) -> None:
    given(WIRING, answer)
    with pytest.raises(type(answer)):
        wiring.wire(USERS, method="mine")


def test_a_comparison_goes_on_without_one_that_fails() -> None:
    given(PLACEMENT, Plan.empty(PUBLICATION))
    results = {result.method: result for result in compare_methods(PUBLICATION)}
    assert "wants 'jpeg'" in str(results["mine"].skipped)
    assert results["exact"].best
    given(PLACEMENT, plan())
    results = {result.method: result for result in compare_methods(PUBLICATION)}
    assert results.keys() == PLACEMENT.keys()
    assert results["mine"].best
    assert "mine" not in own_methods(PLACEMENT)


def test_a_command_says_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer knew the methods before: the name of one of ours stands for the bad one."""
    given(PLACEMENT, Plan.empty(PUBLICATION))
    PLACEMENT["iterative"] = PLACEMENT["mine"]
    path = tmp_path / "problem.json"
    monkeypatch.setattr("warnings.showwarning", None)
    assert main(["generate", "placement", "map", "--brokers", "4", "-o", str(path)]) == 0
    capsys.readouterr()
    assert main(["place", str(path), "--method", "iterative"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: method 'iterative' failed: ")
    assert said.err.count("\n") == 1


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the example into a folder of its own; return the path that has it."""
    folder = tmp_path_factory.mktemp("installed")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder), str(EXAMPLE)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.mark.slow
def test_the_example_does_what_its_readme_says(
    installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", installed)
    differences = play((EXAMPLE / "README.md").read_text("utf-8"), tmp_path, installed=True)
    assert not differences, "\n".join(differences)


@pytest.mark.slow
def test_a_name_that_is_taken_is_left_out_with_a_warning(installed: str, tmp_path: Path) -> None:
    """A package that claims our default must not get it."""
    information = tmp_path / "greedy-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: greedy\nVersion: 1.0\n")
    points = "[distributary.methods.wiring]\nauto = greedy:auto\nmine = greedy:mine\n"
    (information / "entry_points.txt").write_text(points)
    done = subprocess.run(
        [sys.executable, "-m", "distributary", "wire", "--help"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), installed])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == (
        "warning: method 'auto' of greedy is left out: there is one of that name already\n"
    )
    assert "auto|mine|two-homes>" in "".join(done.stdout.split())


@pytest.mark.full
def test_its_own_tests_pass(installed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": installed},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
