"""Pictures of wirings show users, brokers and traffic, and no name breaks them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from distributary.drawing.plane import COLOURED_HUBS_MAX, draw_plane, plane_picture
from distributary.errors import BadInput
from distributary.wiring.cost import cost
from distributary.wiring.draw import USERS_DRAWN_MAX, draw_wiring, wiring_plane
from distributary.wiring.generate import generate_positions, generate_problem
from distributary.wiring.layout import positions_from_prices
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import Wiring

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "]]><!-- --></style></svg></script>",
    "null\x00bell\x07 end",
    "@@script@@ </title>",
)


def nearest(problem: WiringProblem, core: str = "mst") -> Wiring:
    broker_of = problem.access_prices.argmin(axis=1)
    return Wiring(
        "packing", core, broker_of, cost(problem, broker_of, core=core), 1.0, 0.5, problem=problem
    )


def parsed(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(source)  # noqa: S314 (our own output)


def facts_of(html: str) -> dict[str, Any]:
    written = re.search(r'type="application/json">(.*?)</script>', html, re.DOTALL)
    assert written is not None
    facts: dict[str, Any] = json.loads(written[1])
    return facts


@pytest.mark.parametrize(("users", "brokers"), [(1, 1), (3, 5), (60, 4), (500, 150)])
@pytest.mark.parametrize("placed", [True, False])
def test_every_user_and_broker_is_drawn(users: int, brokers: int, placed: bool) -> None:
    problem = generate_problem(seed=users, users=users, brokers=brokers, channels=8)
    positions = generate_positions(seed=users, users=users, brokers=brokers) if placed else None
    plane = wiring_plane(problem, nearest(problem), positions=positions)
    picture = parsed(plane_picture(plane).svg())
    squares = [r for r in picture.iter(f"{SVG}rect") if r.get("class") == "hub"]
    assert len(squares) >= brokers
    told = ["".join(title.itertext()) for title in picture.iter(f"{SVG}title")]
    for name in problem.users + problem.brokers:
        assert any(words.startswith(f"{name} · ") for words in told)
    facts = facts_of(plane_picture(plane).html())
    assert facts["nodes"] == [*problem.brokers, *problem.users]
    assert len(facts["details"]) == users + brokers
    assert len(facts["kinds"]) <= COLOURED_HUBS_MAX + 1


def test_a_line_tells_the_traffic_between_its_brokers() -> None:
    problem = generate_problem(seed=2, users=40, brokers=4, interests=(1, 9))
    plane = wiring_plane(problem, nearest(problem))
    assert len(plane.links) >= 3
    assert plane.link_sizes.max() == 1.0
    facts = facts_of(plane_picture(plane).html())
    assert len(facts["links"]) == len(plane.links)
    first = plane.links[0]
    assert facts["links"][0][0] == f"{problem.brokers[first[0]]} \u2013 {problem.brokers[first[1]]}"
    assert facts["links"][0][1].startswith("traffic ")


def test_of_many_users_a_sample_is_drawn_and_the_picture_says_so() -> None:
    problem = generate_problem(seed=3, users=USERS_DRAWN_MAX + 500, brokers=3, channels=2)
    plane = wiring_plane(problem, nearest(problem))
    assert len(plane.points) == USERS_DRAWN_MAX
    assert "3,000 of 3,500 users drawn" in plane.subtitle


def test_brokers_without_users_and_without_limit_are_shown_as_such() -> None:
    problem = generate_problem(seed=4, users=30, brokers=5, capacity_factor=None)
    together = replace(nearest(problem), broker_of=np.zeros(30, dtype=np.int64))
    plane = wiring_plane(problem, together)
    assert np.isnan(plane.fills).all()
    assert plane.legend_columns == ("users", "traffic")
    assert "1 of 5 brokers in use" in plane.subtitle
    assert "broker without users" in plane_picture(plane).svg()


@pytest.mark.parametrize("core", ["mst", "steiner", "one-tree"])
def test_every_kind_of_core_is_drawn(core: str, tmp_path: Path) -> None:
    problem = generate_problem(seed=5, users=40, brokers=6)
    for suffix in ("svg", "html"):
        draw_wiring(problem, nearest(problem, core), tmp_path / f"w.{suffix}")
        assert (tmp_path / f"w.{suffix}").stat().st_size > 1000
    one = (tmp_path / "w.svg").read_bytes()
    draw_wiring(problem, replace(nearest(problem, core), seconds=9.0), tmp_path / "w.svg")
    assert (tmp_path / "w.svg").read_bytes() == one


def test_names_from_a_file_cannot_break_a_picture() -> None:
    problem = generate_problem(seed=6, users=len(HOSTILE), brokers=len(HOSTILE))
    hostile = replace(problem, users=HOSTILE, brokers=HOSTILE)
    plane = wiring_plane(hostile, nearest(hostile))
    html = plane_picture(plane).html()
    assert html.count("<script") == 2
    assert "alert(1)<" not in html
    parsed(plane_picture(plane).svg())


def test_places_from_prices_keep_distances_where_they_can() -> None:
    """Prices that are distances on a plane give that plane back, turned and mirrored."""
    problem = generate_problem(seed=7, users=50, brokers=12)
    places = positions_from_prices(problem, np.arange(50))
    apart = np.linalg.norm(places.brokers[:, None] - places.brokers[None, :], axis=2)
    assert apart == pytest.approx(problem.core_prices, abs=1e-9)
    # A user stands nearest to its cheapest broker, or nearly so.
    from_users = np.linalg.norm(places.users[:, None] - places.brokers[None, :], axis=2)
    ranks = from_users.argsort(axis=1).argsort(axis=1)
    cheapest = ranks[np.arange(50), problem.access_prices.argmin(axis=1)]
    assert np.median(cheapest) <= 1


def test_brokers_at_one_place_and_free_access_can_be_drawn() -> None:
    problem = generate_problem(seed=8, users=9, brokers=3, core_ratio=0.0)
    free = replace(problem, access_prices=np.zeros((9, 3)))
    places = positions_from_prices(free, np.arange(9))
    assert np.isfinite(places.users).all()
    assert len(np.unique(places.users, axis=0)) == 9
    parsed(plane_picture(wiring_plane(free, nearest(free))).svg())


@pytest.mark.parametrize(
    ("users", "brokers", "core_ratio"), [(1, 1, 1.0), (40, 1, 1.0), (40, 2, 0.0), (300, 12, 1.0)]
)
@pytest.mark.parametrize("free", [True, False])
def test_no_user_is_hidden_behind_the_square_of_its_broker(
    users: int, brokers: int, core_ratio: float, free: bool
) -> None:
    problem = generate_problem(seed=8, users=users, brokers=brokers, core_ratio=core_ratio)
    if free:
        # Everybody is at no distance from the broker, whichever that is.
        problem = replace(problem, access_prices=np.zeros((users, brokers)))
    plane = wiring_plane(problem, nearest(problem))
    drawn = draw_plane(plane)
    at = np.column_stack([drawn.xs, drawn.ys])
    apart = np.linalg.norm(at[brokers:] - at[plane.hub_of], axis=1)
    half_diagonals = np.sqrt(2.0) * drawn.radii[plane.hub_of]
    assert (apart > half_diagonals + drawn.radii[brokers:]).all()
    assert len(np.unique(at[brokers:].round(2), axis=0)) == users


def test_counts_of_one_are_in_the_singular() -> None:
    problem = generate_problem(seed=9, users=1, brokers=1, channels=1)
    plane = wiring_plane(problem, nearest(problem))
    assert "1 of 1 broker in use · 1 user" in plane.subtitle
    assert plane.point_details[0][-1].endswith("of 1 channel")


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    problem = generate_problem(seed=9, users=3, brokers=1)
    with pytest.raises(BadInput, match=r"neither .svg nor .html"):
        draw_wiring(problem, nearest(problem), tmp_path / "w.png")
