"""The benchmarks at their small size, so that they do not rot."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import pipeline
from benchmarks.chart import chart_svg
from benchmarks.fidelity.tree_objects import least_until_frozen
from benchmarks.machine import provenance
from benchmarks.placement.steiner_optimum import steiner_optimum
from benchmarks.process import peak_memory_bytes
from benchmarks.report import table_lines
from benchmarks.results import Results
from benchmarks.studies import STUDIES
from benchmarks.study import Chart, Claim, Column, Findings, Line, Study, Table, result_hash
from tests.reference.placement_mip import minimum_cost

from distributary.fidelity import build_trees
from distributary.fidelity.anneal import AnnealingSchedule
from distributary.fidelity.generate import generate_problem as generate_stream
from distributary.placement.cost import cost
from distributary.placement.exact import exact_plan
from distributary.placement.generate import generate_problem

# Claims in these units depend on what else the machine does; the others do not.
CLOCK_UNITS = {
    "s",
    "ms",
    "times as long",
    "million/s",
    "% of seconds",
    "times the rate",
    "% of a broker's CPU",
    "times the CPU",
}
# Each of their runs is a process of its own, and nearly all its time goes into starting it.
STARTING_PROCESSES = {
    "exact-speed",
    "tree-large",
    "wiring-large",
    "live-one-hop",
    "live-three-hops",
    "live-outages",
    "live-telemetry",
    "live-gateway",
}


# These start Spark, for half a minute each.
ON_SPARK = {study.name for study in pipeline.STUDIES}
# What the first finds, `media/test_prediction.py` looks for as well, in as many conversions; the
# others measure nothing but time, on overlays like those of the tests of running ones.
LONG = {*ON_SPARK, "video-prediction", "live-gateway", "live-outages", "live-telemetry"}
CASES = [
    pytest.param(study, id=study.name, marks=[pytest.mark.full] if study.name in LONG else [])
    for study in STUDIES
]


def silent(step: str) -> None:
    """Take progress and say nothing."""
    assert step


@pytest.mark.parametrize("study", CASES)
def test_a_small_study_runs_and_its_claims_hold(study: Study) -> None:
    found = study.run("small", silent)
    assert len(found.result_hash) == 12
    assert found.tables
    assert all(table.rows for table in found.tables)
    assert found.claims
    for claim in found.claims:
        assert math.isfinite(claim.measured)
        assert claim.holds or claim.unit in CLOCK_UNITS, claim


@pytest.mark.full
@pytest.mark.parametrize(
    "study",
    [study for study in STUDIES if study.name not in STARTING_PROCESSES | ON_SPARK],
    ids=lambda study: study.name,
)
def test_a_small_study_finds_the_same_again(study: Study) -> None:
    """That planners, brokers and the simulator repeat themselves has tests of its own."""
    first, second = (study.run("small", silent) for _ in range(2))
    assert first.result_hash == second.result_hash


CHART = Chart("curve", "A < curve", "x", "y", (Line("a", ((0.0, 0.0), (3.0, 7.0))),))


def findings(*, measured: float = 1.0, gap: float = 2.0) -> Findings:
    """Return findings of every kind, small enough to read."""
    return Findings(
        tables=(
            Table("How fast", "speed", (Column("name"), Column("s", 2)), (("a", 1.234),)),
            Table(
                "How good",
                "quality",
                (Column("name"), Column("%", 1)),
                (("a", None),),
                notes="A note.",
                chart=CHART,
            ),
        ),
        claims=(Claim("fast enough", measured, "<=", 1.0, "s"),),
        result_hash=result_hash(["a", 1.0]),
        gaps={"family": gap},
    )


STUDY = Study("curious", "What it is about.", 1.0, lambda size, progress: findings())


def test_stored_results_make_the_page_and_survive_a_partial_run(tmp_path: Path) -> None:
    other = replace(STUDY, name="other")
    results = Results(tmp_path)
    for study in (other, STUDY):
        results.add(study, findings(), size="large", seconds=1.0, provenance=provenance())
    results.save(["curious", "other"])
    again = Results(tmp_path)
    again.add(other, findings(measured=2.0), size="large", seconds=1.0, provenance=provenance())
    again.save(["curious", "other"])
    stored = json.loads((tmp_path / "benchmarks" / "results.json").read_text("utf-8"))
    assert list(stored["studies"]) == ["curious", "other"]
    assert [study["claims"][0]["holds"] for study in stored["studies"].values()] == [True, False]
    assert {"machine", "versions", "commit", "date"} <= set(stored)
    page = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert "1 of 2 claims hold" in page
    assert page.index("## Speed") < page.index("How fast") < page.index("## Quality")
    assert page.index("## Quality") < page.index("How good")
    assert "`python -m benchmarks other --size large`" in page
    assert "small size" not in page
    assert (tmp_path / "benchmarks" / "curve.svg").exists()


def test_runs_at_the_same_time_keep_what_the_other_found(tmp_path: Path) -> None:
    """Each stores its own study only, not what it read of the others when it started."""
    other = replace(STUDY, name="other")
    order = ["curious", "other"]
    earlier = Results(tmp_path)
    for study in (STUDY, other):
        earlier.add(study, findings(), size="large", seconds=1.0, provenance=provenance())
    earlier.save(order)
    one, two = Results(tmp_path), Results(tmp_path)
    one.add(STUDY, findings(gap=3.0), size="large", seconds=2.0, provenance=provenance())
    two.add(other, findings(), size="small", seconds=3.0, provenance=provenance())
    one.save(order)
    two.save(order)
    stored = json.loads((tmp_path / "benchmarks" / "results.json").read_text("utf-8"))
    seconds = {name: study["seconds"] for name, study in stored["studies"].items()}
    assert seconds == {"curious": 2.0, "other": 3.0}
    assert stored["history"][0]["gaps"] == {"family": 3.0}
    page = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert "2 s in all" in page
    assert "3 s in all" in page


def test_a_page_of_small_results_says_so_and_makes_no_history(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(STUDY, findings(), size="small", seconds=1.0, provenance=provenance())
    results.save(["curious"])
    page = (tmp_path / "benchmarks.md").read_text("utf-8")
    assert "All of these results are from the small size" in page
    assert "## History" not in page


def test_the_history_has_one_row_for_each_version(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for version, gap in (("0.1", 3.0), ("0.1", 2.0), ("0.2", 1.0)):
        origin = provenance()
        origin["versions"] = {
            "distributary": version,
            "python": "3",
            "numpy": "2",
            "numba": "0",
            "highspy": "1",
        }
        results.add(STUDY, findings(gap=gap), size="large", seconds=1.0, provenance=origin)
    rows = [(row["version"], row["gaps"]["family"]) for row in results.document["history"]]
    assert rows == [("0.1", 2.0), ("0.2", 1.0)]


def test_the_stored_page_is_what_the_stored_results_make(tmp_path: Path) -> None:
    documents = Path(__file__).parents[2] / "docs"
    results = Results(documents)
    results.page = tmp_path / "benchmarks.md"
    results.store = tmp_path / "results.json"
    results.save([study.name for study in STUDIES])
    assert results.page.read_text("utf-8") == (documents / "benchmarks.md").read_text("utf-8")


def test_the_command_exits_with_1_when_a_claim_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = replace(STUDY, name="failing", run=lambda size, progress: findings(measured=2.0))
    monkeypatch.setattr(command, "STUDIES", (STUDY, failing))
    assert command.main(["--size", "small", "curious"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 1 claims hold"
    assert command.main(["--size", "small"]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == "1 of 2 claims hold"
    assert "FAILS: fast enough: 2 s, must be at most 1 s" in output.out
    with pytest.raises(SystemExit, match="2"):
        command.main(["no-such-study"])


def test_no_provenance_names_a_place() -> None:
    origin = provenance()
    assert set(origin) == {"machine", "versions", "commit", "date"}
    text = json.dumps(origin)
    assert str(Path.home()) not in text
    assert str(Path.cwd()) not in text


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [("<=", 1.0, True), ("<", 1.0, False), (">=", 0.9, False), ("==", 1.0, True)],
)
def test_a_claim_holds_when_its_value_keeps_to_the_limit(
    relation: str, measured: float, holds: bool
) -> None:
    claim = Claim("a", measured, relation, 1.0)  # type: ignore[arg-type]
    assert claim.holds is holds


def test_a_hash_overlooks_rounding_and_nothing_else() -> None:
    assert result_hash([0.1 + 0.2, "a"]) == result_hash((0.3, "a"))
    assert result_hash([0.3, "a"]) != result_hash([0.30001, "a"])
    assert result_hash([0.3, "a"]) != result_hash([0.3, "b"])


def test_a_value_that_is_not_known_says_so() -> None:
    table = asdict(Table("t", "quality", (Column("n"), Column("%", 1)), ((1000, None), (2, 0.25))))
    assert table_lines(table) == [
        "|     n |       % |",
        "| ----: | ------: |",
        "| 1,000 | unknown |",
        "|     2 |     0.2 |",
    ]


def test_a_chart_is_well_formed_and_stays_within_its_frame() -> None:
    picture = ElementTree.fromstring(chart_svg(asdict(CHART)))  # noqa: S314 (our own text)
    _, _, width, height = (float(part) for part in picture.attrib["viewBox"].split())
    points = [
        tuple(float(part) for part in point.split(","))
        for line in picture.iter("{http://www.w3.org/2000/svg}polyline")
        for point in line.attrib["points"].split()
    ]
    assert len(points) > 10
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


def test_peak_memory_is_that_of_the_command_and_not_of_this_process() -> None:
    megabytes = bytearray(200 * 2**20)
    little = peak_memory_bytes(["-c", "pass"])
    much = peak_memory_bytes(["-c", "len(bytearray(100 * 2**20))"])
    assert little < 50 * 2**20 < len(megabytes)
    assert 100 * 2**20 < much < 150 * 2**20
    with pytest.raises(RuntimeError, match="no such thing"):
        peak_memory_bytes(["-c", "raise SystemExit('no such thing')"])


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
def test_annealing_weighs_no_less_than_the_least_until_it_is_frozen(approach: str) -> None:
    """Nor much more, if it finds nothing better when it is that cold."""
    problem = generate_stream(seed=3, servers=20, routers=40, objects=5, interest=0.6)
    schedule = AnnealingSchedule(moves_per_server=8.0, frozen_below=3e-4)
    least = least_until_frozen(problem, approach, 1, schedule)
    annealed = build_trees(
        problem, method="anneal", approach=approach, seed=1, schedule=schedule
    ).evaluations
    assert annealed is not None
    assert least <= annealed <= 1.5 * least


@pytest.mark.parametrize("seed", range(6))
def test_the_independent_optimum_is_the_optimum(seed: int) -> None:
    """Given the optimum it proves it, and given a dearer plan it finds it."""
    problem = generate_problem("steiner", seed=seed, formats=12 + seed, wants=4 + seed)
    optimum = cost(problem, exact_plan(problem)).total
    for plan_cost in (optimum, optimum + 1.0, optimum + 40.0):
        assert steiner_optimum(problem, plan_cost=plan_cost, seconds_max=60.0) == optimum


def test_the_independent_optimum_agrees_with_the_flow_program() -> None:
    problem = generate_problem("steiner", seed=3, formats=9, wants=4)
    expected = minimum_cost(problem)
    found = steiner_optimum(problem, plan_cost=expected + 10.0, seconds_max=60.0)
    assert found == pytest.approx(expected)


def test_without_time_the_optimum_stays_unknown() -> None:
    problem = generate_problem("steiner", seed=3, formats=40, wants=20)
    assert steiner_optimum(problem, plan_cost=1e6, seconds_max=0.0) is None
