"""Where brokers stand: generated networks, and files."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from distributary.errors import BadInput
from distributary.simulator.places import Places, find_places
from distributary.simulator.scenario import OverlayTable


def places(folder: Path = Path(), seed: int = 1, **overlay: object) -> Places:
    return find_places(
        OverlayTable(**overlay),  # type: ignore[arg-type]
        folder,
        np.random.default_rng(seed),
    )


@pytest.mark.parametrize("topology", ["unit-square", "power-law"])
def test_generated_delays_have_the_mean_that_is_asked_for(topology: str) -> None:
    found = places(brokers=20, topology=topology, routers=50, delay_ms_mean=12.0)
    off_diagonal = found.delays_ns[~np.eye(20, dtype=bool)]
    assert off_diagonal.mean() == pytest.approx(12e6, rel=1e-3)
    assert len(set(found.identifiers)) == 20
    assert (found.delays_ns == found.delays_ns.T).all()


def test_the_mean_is_twenty_milliseconds_unless_said() -> None:
    found = places(brokers=10)
    assert found.delays_ns.sum() / 90 == pytest.approx(20e6, rel=1e-3)


def test_a_delay_of_nothing_is_no_delay() -> None:
    assert not places(brokers=5, delay_ms_mean=0.0).delays_ns.any()


def test_delays_come_from_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("0 10 20\n10 0 30\n20 30 0\n")
    found = places(tmp_path, brokers=3, topology="delays", file="d.txt")
    assert sorted(set(found.delays_ns.ravel().tolist())) == [0, 10**7, 2 * 10**7, 3 * 10**7]


def test_delays_come_from_a_network(tmp_path: Path) -> None:
    (tmp_path / "n.gml").write_text(
        "graph [ node [ id 0 ] node [ id 1 ] node [ id 2 ] edge [ source 0 target 1 ]"
        " edge [ source 1 target 2 ] ]"
    )
    found = places(tmp_path, brokers=3, topology="gml", file="n.gml")
    assert sorted(set(found.delays_ns.ravel().tolist())) == [0, 5 * 10**6, 10**7]
    assert found.notes == ("n.gml: 2 of 2 links of unknown length, taken for 5 ms each",)


def test_a_large_network_costs_no_more_than_the_brokers_in_it(tmp_path: Path) -> None:
    """All delays between its nodes would take three gigabytes, and most of a minute."""
    count = 20_000
    nodes = " ".join(f"node [ id {k} latitude 0 longitude {k / 200} ]" for k in range(count))
    edges = " ".join(f"edge [ source {k} target {k + 1} ]" for k in range(count - 1))
    (tmp_path / "n.gml").write_text(f"graph [ {nodes} {edges} node [ id x ] ]")
    tracemalloc.start()
    try:
        found = places(tmp_path, brokers=4, topology="gml", file="n.gml")
        assert tracemalloc.get_traced_memory()[1] < 500_000_000
    finally:
        tracemalloc.stop()
    assert found.delays_ns.shape == (4, 4)
    assert (found.delays_ns[~np.eye(4, dtype=bool)] > 0).all()
    assert found.notes == ("n.gml: 1 of 20,001 nodes left out, not connected with the others",)


def test_what_a_matrix_lacks_is_noted(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("0 10\n- 0\n")
    found = places(tmp_path, brokers=2, topology="delays", file="d.txt")
    assert [note.partition(";")[0] for note in found.notes] == ["d.txt: 1 delay missing"]


def test_delays_beyond_the_clock_of_a_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("0 1e18\n1e18 0\n")
    with pytest.raises(BadInput, match=r"^overlay: puts brokers 1e\+15 s apart; .*hint: unit"):
        places(tmp_path, brokers=2, topology="delays", file="d.txt")
    scaled = places(tmp_path, brokers=2, topology="delays", file="d.txt", delay_ms_mean=5.0)
    assert scaled.delays_ns.max() == 5_000_000


def test_a_file_with_too_few_places_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("0 10\n10 0\n")
    with pytest.raises(BadInput, match=r"is 3, and d.txt has 2 hosts"):
        places(tmp_path, brokers=3, topology="delays", file="d.txt")


@pytest.mark.parametrize(("heterogeneity", "most"), [("none", 1.0), ("weak", 100.0)])
def test_links_cost_the_same_in_both_directions(heterogeneity: str, most: float) -> None:
    found = places(brokers=12, heterogeneity=heterogeneity)
    assert (found.link_costs == found.link_costs.T).all()
    assert found.link_costs.max() <= most
    assert (found.node_costs >= 1.0).all()


def test_a_broker_is_told_of_everybody_but_itself() -> None:
    found = places(brokers=4)
    told = found.surroundings(2, members=found.identifiers)
    assert [n.identity for n in told.neighbours] == [
        i for k, i in enumerate(found.identifiers) if k != 2
    ]
    assert told.neighbours[0].delay_ns == found.delays_ns[2, 0]


def test_a_client_on_a_link_takes_the_shorter_way_along_it() -> None:
    costs = np.array([[1.0, 4.0, 9.0], [4.0, 1.0, 2.0], [9.0, 2.0, 1.0]])
    delays = np.array([[0, 100, 30], [100, 0, 50], [30, 50, 0]])
    found = Places(("aa", "bb", "cc"), delays, costs, np.ones(3))
    access = found.access(0, 1, 0.25)
    # A byte costs 1 to the one end and 3 to the other, and 6 by way of both between the ends.
    assert access.prices.tolist() == [1.0, 3.0, 5.0]
    assert access.delays_ns.tolist() == [25, 75, 55]


def test_a_client_at_a_broker_pays_what_that_broker_pays() -> None:
    found = places(brokers=9, heterogeneity="weak")
    access = found.access(4, 4, 0.7)
    assert access.prices[4] == access.delays_ns[4] == 0
    # No way is dearer than the link itself, and some are cheaper.
    others = np.arange(9) != 4
    assert (access.prices[others] <= found.link_costs[4, others]).all()
    assert (access.delays_ns == found.delays_ns[4]).all()
