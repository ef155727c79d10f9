"""Pictures of plans show all of the plan, and nothing a name can do breaks them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from distributary.content import AdaptationGraph
from distributary.drawing import tree_picture
from distributary.drawing.drawn import LABELLED_MAX
from distributary.errors import BadInput
from distributary.placement.cost import cost
from distributary.placement.draw import draw_plan, plan_scene
from distributary.placement.plan import NOT_MADE, Placement, Plan, check
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree

SVG = "{http://www.w3.org/2000/svg}"
FORMATS = ("jpeg", "pdf", "text", "voice")
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "two\nlines\tand a tab",
    "]]><!-- --></style></svg></script>",
    "日本語 Ωmega é 🗺️",
    "null\x00bell\x07escape\x1b lone \ud800 end",
    "right\u202eto left",
    "@@script@@ {{x}} ${y} </title>",
)


def problem_of(
    node_count: int,
    *,
    seed: int = 1,
    formats: tuple[str, ...] = FORMATS,
    names: tuple[str, ...] | None = None,
) -> PlacementProblem:
    """Return a recursive tree in which about every third node wants something."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1] + [int(rng.integers(0, v)) for v in range(1, node_count)])
    tree = DisseminationTree(
        names or tuple(f"broker-{v}" for v in range(node_count)),
        parents,
        np.ones(node_count),
        np.full(node_count, 2.0),
        np.ones(node_count),
    )
    count = len(formats)
    costs = np.full((count, count), 3.0)
    np.fill_diagonal(costs, np.inf)
    wants = (rng.random((node_count, count)) < 0.4) & (rng.random(node_count) < 0.35)[:, None]
    held = np.arange(count) == 1
    graph = AdaptationGraph(formats, np.arange(1.0, count + 1.0), costs)
    return PlacementProblem(graph, tree, wants, held)


def plan_of(problem: PlacementProblem) -> Plan:
    """Return a plan that makes some formats at the root and the others where wanted."""
    plan = Plan.empty(problem)
    source = int(np.flatnonzero(problem.held)[0])
    below = problem.wanted_below
    early = np.arange(problem.format_count) % 2 == 0
    plan.made_from[0, early & below[0]] = source
    plan.receives[1:] = below[1:] & early
    plan.receives[1:, source] = (below[1:] & ~early).any(axis=1)
    late = problem.wants & ~early & ~problem.held
    plan.made_from[late] = source
    plan.made_from[0, problem.held] = NOT_MADE
    check(problem, plan)
    return plan


def placement_of(problem: PlacementProblem) -> Placement:
    plan = plan_of(problem)
    spent = cost(problem, plan)
    return Placement(
        method="by-hand",
        plan=plan,
        transmission_cost=spent.transmission,
        conversion_cost=spent.conversion,
        total_cost=spent.total,
        lower_bound=spent.total / 2.0,
        optimal=False,
        seconds=0.25,
        problem=problem,
    )


def svg_of(problem: PlacementProblem) -> ElementTree.Element:
    source = tree_picture(plan_scene(problem, placement_of(problem))).svg()
    return ElementTree.fromstring(source)  # noqa: S314 (our own output)


def marks(tree: ElementTree.Element, role: str) -> list[tuple[int, int]]:
    """Return the sorted (node, format) pairs of everything drawn in a role.

    The format stands in the class of a group; the node in the group or its children.
    """
    found = []
    for group in tree.iter(f"{SVG}g"):
        classes = (group.get("class") or "").split()
        if role not in classes:
            continue
        kind = next(int(name[1:]) for name in classes if re.fullmatch(r"f\d+", name))
        marked = [group, *group] if group.get("data-v") is None else [group]
        found += [(int(v), kind) for part in marked if (v := part.get("data-v")) is not None]
    return sorted(found)


def pairs(chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    return [(int(v), int(k)) for v, k in np.argwhere(chosen)]


def texts(tree: ElementTree.Element) -> list[str]:
    return ["".join(part.itertext()) for part in tree.iter(f"{SVG}text")]


class Page(HTMLParser):
    """The elements of a page in order, with the text of its scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data

    @property
    def facts(self) -> dict[str, list[object]]:
        facts: dict[str, list[object]] = json.loads(self.scripts[0])
        return facts


SIZES = pytest.mark.parametrize("node_count", [1, 2, 30, LABELLED_MAX, LABELLED_MAX + 1, 300])


@SIZES
def test_every_transmitted_format_is_a_strand_of_its_link(node_count: int) -> None:
    problem = problem_of(node_count)
    assert marks(svg_of(problem), "strands") == pairs(plan_of(problem).receives)


@SIZES
def test_every_conversion_and_every_wish_is_drawn_at_its_node(node_count: int) -> None:
    problem = problem_of(node_count)
    tree = svg_of(problem)
    assert marks(tree, "made") == pairs(plan_of(problem).made_from != NOT_MADE)
    assert marks(tree, "wanted") == pairs(problem.wants)


@SIZES
def test_links_that_carry_nothing_are_drawn_apart_from_the_others(node_count: int) -> None:
    problem = problem_of(node_count)
    tree = svg_of(problem)
    idle = next(group for group in tree.iter(f"{SVG}g") if group.get("class") == "idle-links")
    drawn = sorted(int(link.get("data-v", "")) for link in idle)
    silent = ~plan_of(problem).receives[1:].any(axis=1)
    assert drawn == (np.flatnonzero(silent) + 1).tolist()


def test_a_small_picture_spells_out_names_conversions_and_formats_on_links() -> None:
    problem = problem_of(12)
    written = texts(svg_of(problem))
    assert set(problem.tree.names) <= set(written)
    plan = plan_of(problem)
    for k, name in enumerate(FORMATS):
        uses = int(plan.receives[:, k].sum()) + int(problem.wants[:, k].sum())
        # Once more in the legend, and in conversions.
        assert written.count(name) > uses


def test_the_head_gives_method_cost_gap_and_counts() -> None:
    problem = problem_of(300)
    placement = placement_of(problem)
    written = " ".join(texts(svg_of(problem)))
    assert "by-hand" in written
    assert f"total cost {placement.total_cost:,.5g} (gap at most 50 %)" in written
    assert "300 nodes" in written
    assert "4 formats" in written


def test_the_legend_counts_links_and_conversions() -> None:
    problem = problem_of(300)
    plan = plan_of(problem)
    for group in svg_of(problem).iter(f"{SVG}g"):
        classes = (group.get("class") or "").split()
        if classes[:1] == ["entry"]:
            k = int(classes[1][1:])
            cells = ["".join(cell.itertext()) for cell in group.iter(f"{SVG}text")]
            made = int((plan.made_from[:, k] != NOT_MADE).sum())
            assert cells == [FORMATS[k], str(k + 1), str(plan.receives[:, k].sum()), str(made)]


def test_the_parts_of_the_cost_in_a_scene_add_up_to_the_total() -> None:
    problem = problem_of(300)
    placement = placement_of(problem)
    scene = plan_scene(problem, placement)
    assert scene.link_costs.sum() + scene.node_costs.sum() == pytest.approx(placement.total_cost)


@pytest.mark.parametrize("node_count", [len(HOSTILE), 200])
def test_hostile_names_stay_text_in_an_svg(node_count: int) -> None:
    names = tuple(f"{HOSTILE[v % len(HOSTILE)]}{v}" for v in range(node_count))
    problem = problem_of(node_count, names=names, formats=HOSTILE)
    tree = svg_of(problem)
    tags = {part.tag.removeprefix(SVG) for part in tree.iter()}
    assert tags <= {"svg", "g", "path", "rect", "circle", "text", "title", "style"}
    assert not any(name.startswith("on") for part in tree.iter() for name in part.attrib)
    titles = {"".join(part.itertext()) for part in tree.iter(f"{SVG}title")}
    assert "<script>alert(1)</script>" in titles
    assert "\u202e" not in ElementTree.tostring(tree, encoding="unicode")


@pytest.mark.parametrize("node_count", [len(HOSTILE), 200])
def test_hostile_names_stay_text_in_a_page(node_count: int) -> None:
    names = tuple(f"{HOSTILE[v % len(HOSTILE)]}{v}" for v in range(node_count))
    problem = problem_of(node_count, names=names, formats=HOSTILE)
    source = tree_picture(plan_scene(problem, placement_of(problem))).html()
    plain = Page(tree_picture(plan_scene(problem_of(3), placement_of(problem_of(3)))).html())
    page = Page(source)
    assert len(page.scripts) == 2
    assert page.scripts[1] == plain.scripts[1]
    assert page.facts["nodes"][0] == "<script>alert(1)</script>0"
    assert page.facts["kinds"][2] == "two lines and a tab"
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    source.encode("utf-8")


def test_a_page_needs_nothing_from_elsewhere() -> None:
    problem = problem_of(100)
    source = tree_picture(plan_scene(problem, placement_of(problem))).html()
    page = Page(source)
    fetching = {"src", "href", "xlink:href", "action", "srcset", "data"}
    assert not any(fetching & attributes.keys() for _, attributes in page.tags)
    assert "@import" not in source
    assert "url(" not in source
    policy = next(
        attributes["content"]
        for tag, attributes in page.tags
        if tag == "meta" and "http-equiv" in attributes
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_a_page_knows_what_every_node_receives_makes_and_wants() -> None:
    problem = problem_of(150)
    plan = plan_of(problem)
    facts = Page(tree_picture(plan_scene(problem, placement_of(problem))).html()).facts
    for v in range(problem.node_count):
        assert facts["carried"][v] == np.flatnonzero(plan.receives[v]).tolist()
        assert facts["wanted"][v] == np.flatnonzero(problem.wants[v]).tolist()
        made = np.flatnonzero(plan.made_from[v] != NOT_MADE).tolist()
        assert facts["made"][v] == [[int(plan.made_from[v, k]), k] for k in made]


@pytest.mark.parametrize("suffix", [".svg", ".html"])
@pytest.mark.parametrize("node_count", [20, 200])
def test_the_same_plan_gives_the_same_bytes(tmp_path: Path, suffix: str, node_count: int) -> None:
    for name in ("a", "b"):
        problem = problem_of(node_count)
        draw_plan(problem, placement_of(problem), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]


@pytest.mark.parametrize("name", ["plan.png", "plan", "plan.svg.gz", ".svg"])
def test_other_suffixes_are_refused_by_the_name_of_the_option(tmp_path: Path, name: str) -> None:
    problem = problem_of(3)
    with pytest.raises(BadInput, match=r"^--draw: .* ends in neither \.svg nor \.html"):
        draw_plan(problem, placement_of(problem), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    problem = problem_of(3)
    occupied = tmp_path / "folder.svg"
    occupied.mkdir()
    for path in (tmp_path / "missing" / "plan.svg", occupied):
        with pytest.raises(BadInput, match=r"^--draw: .* cannot be written"):
            draw_plan(problem, placement_of(problem), path)
    assert list(tmp_path.iterdir()) == [occupied]


def test_drawing_through_a_link_replaces_what_it_points_to(tmp_path: Path) -> None:
    problem = problem_of(3)
    (tmp_path / "old.svg").write_text("old")
    (tmp_path / "link.svg").symlink_to("old.svg")
    draw_plan(problem, placement_of(problem), tmp_path / "link.svg")
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "old.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_thousand_nodes_make_a_file_of_sane_size() -> None:
    problem = problem_of(1024)
    scene = plan_scene(problem, placement_of(problem))
    assert len(tree_picture(scene).svg()) < 1_000_000
    assert len(tree_picture(scene).html()) < 1_500_000
