"""Pictures of trees show every server with its figures, and no name breaks them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from distributary.drawing.drawn import LABELLED_MAX
from distributary.drawing.shaded import BANDS_MAX, shaded_picture
from distributary.errors import BadInput
from distributary.fidelity.baselines import random_tree
from distributary.fidelity.draw import draw_trees, shaded_tree
from distributary.fidelity.generate import generate_problem
from distributary.fidelity.loss import loss
from distributary.fidelity.planner import StreamTrees
from distributary.fidelity.problem import FidelityProblem

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "two\nlines\tand a tab",
    "]]><!-- --></style></svg></script>",
    "日本語 Ωmega é",
    "null\x00bell\x07 end",
    "right\u202eto left",
    "@@script@@ </title>",
)


def problem_of(servers: int, *, objects: int = 1, load: float = 1.0) -> FidelityProblem:
    return generate_problem(
        seed=servers, servers=servers, routers=servers + 2, objects=objects, interest=0.5, load=load
    )


def result_of(problem: FidelityProblem, approach: str = "one-tree") -> StreamTrees:
    forest = random_tree(problem, approach, seed=1)
    return StreamTrees("random", forest, loss(problem, forest), 0.25, None, problem=problem)


def parsed(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(source)  # noqa: S314 (our own output)


def titles(picture: ElementTree.Element) -> list[str]:
    return ["".join(title.itertext()) for title in picture.iter(f"{SVG}title")]


def facts_of(html: str) -> dict[str, Any]:
    written = re.search(r'type="application/json">(.*?)</script>', html, re.DOTALL)
    assert written is not None
    facts: dict[str, Any] = json.loads(written[1])
    return facts


@pytest.mark.parametrize("servers", [1, 5, LABELLED_MAX - 1, LABELLED_MAX, 200])
def test_every_server_is_drawn_with_its_figures(servers: int) -> None:
    problem = problem_of(servers)
    result = result_of(problem)
    picture = parsed(shaded_picture(shaded_tree(problem, result)).svg())
    told = titles(picture)
    for i in range(1, problem.node_count):
        start = f"{problem.names[i]} · loss {result.loss.servers[i]:.3g} · delay "
        delay = f"{1000.0 * result.loss.delays[i, 0]:.4g} ms"
        load = f"load {100.0 * result.loss.loads[i]:.3g} %"
        assert sum(t.startswith(start) and delay in t and load in t for t in told) == 1
        parent = problem.names[int(result.forest.parents[0, i])]
        assert sum(t.startswith(f"{parent} → {problem.names[i]} · ") for t in told) == 1
    assert any(t.startswith("source · source · load ") for t in told)


@pytest.mark.parametrize("servers", [5, 200])
def test_a_page_tells_the_figures_of_every_node(servers: int) -> None:
    """In its tooltips, which for other pictures tell of kinds of content."""
    problem = problem_of(servers)
    tree = shaded_tree(problem, result_of(problem))
    html = shaded_picture(tree).html()
    assert facts_of(html)["details"] == [list(lines) for lines in tree.details]
    assert "facts.details[v]" in html
    assert "facts.carried[v]" not in html


def test_colour_rises_with_loss() -> None:
    problem = problem_of(150)
    tree = shaded_tree(problem, result_of(problem))
    loss_of = {
        name: float(lines[0].split()[1])
        for name, lines in zip(tree.nodes[1:], tree.details[1:], strict=True)
    }
    order = sorted(range(1, len(tree.nodes)), key=lambda v: loss_of[tree.nodes[v]])
    bands = tree.band[order]
    assert bool(np.all(np.diff(bands) >= 0))
    assert len(set(bands.tolist())) >= 3
    assert len(tree.bands) <= BANDS_MAX


def test_the_busiest_node_is_drawn_heaviest() -> None:
    problem = problem_of(100)
    result = result_of(problem)
    tree = shaded_tree(problem, result)
    assert tree.busy.max() == 1.0
    assert tree.nodes[int(tree.busy.argmax())] == problem.names[int(result.loss.loads.argmax())]


def test_of_several_trees_the_largest_is_drawn_and_named() -> None:
    problem = problem_of(30, objects=4)
    tree = shaded_tree(problem, result_of(problem, "tree-each"))
    most = int(problem.wanted.sum(axis=0).argmax())
    assert len(tree.nodes) == 1 + int(problem.wanted[:, most].sum())
    assert f"tree of '{problem.objects[most]}', the object with most servers, out of 4" in (
        tree.subtitle
    )


@pytest.mark.parametrize("servers", [20, 120])
def test_an_overloaded_tree_says_so(servers: int) -> None:
    problem = problem_of(servers, load=300.0)
    result = result_of(problem)
    assert result.loss.overloaded
    tree = shaded_tree(problem, result)
    assert tree.subtitle.startswith("overloaded · ")
    assert tree.bands[-1] == "without bound"
    assert "loss without bound · delay without bound" in shaded_picture(tree).svg()
    assert "Infinity" not in shaded_picture(tree).html()


def test_a_source_alone_and_a_stream_without_loss_can_be_drawn() -> None:
    for count in (1, 3):
        problem = FidelityProblem(
            ("s", "a", "b")[:count],
            ("x",),
            np.ones((count, 1)),
            np.zeros(count),
            np.zeros(count),
            np.zeros((count, count)),
        )
        tree = shaded_tree(problem, result_of(problem))
        assert tree.bands == ("none",)
        assert len(parsed(shaded_picture(tree).svg())) > 0
        assert "</html>" in shaded_picture(tree).html()


@pytest.mark.parametrize("servers", [7, 90])
def test_hostile_names_stay_text(servers: int) -> None:
    plain = problem_of(servers)
    names = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(plain.node_count)]
    problem = FidelityProblem.in_order(
        names=names,
        source=names[0],
        objects=["</svg>"],
        rates=plain.rates,
        filter_times=plain.filter_times,
        send_times=plain.send_times,
        delays=plain.delays,
    )
    tree = shaded_tree(problem, result_of(problem))
    picture = parsed(shaded_picture(tree).svg())
    assert not list(picture.iter(f"{SVG}script"))
    html = shaded_picture(tree).html()
    assert len(re.findall(r"<script", html)) == 2
    assert len(facts_of(html)["nodes"]) == problem.node_count


def test_the_same_result_gives_the_same_bytes_whatever_time_it_took(tmp_path: Path) -> None:
    problem = problem_of(40)
    result = result_of(problem)
    slower = StreamTrees(
        result.method, result.forest, result.loss, 99.0, None, problem=result.problem
    )
    for suffix in ("svg", "html"):
        draw_trees(problem, result, tmp_path / f"one.{suffix}")
        draw_trees(problem, slower, tmp_path / f"two.{suffix}")
        one, two = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
        assert one == two
    assert len(list(tmp_path.iterdir())) == 4


def test_a_picture_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    problem = problem_of(3)
    with pytest.raises(BadInput, match=r"--draw: .* ends in neither \.svg nor \.html"):
        draw_trees(problem, result_of(problem), tmp_path / "tree.png")
    with pytest.raises(BadInput, match=r"--draw: .* cannot be written: no such file"):
        draw_trees(problem, result_of(problem), tmp_path / "no" / "tree.svg")
    assert list(tmp_path.iterdir()) == []
