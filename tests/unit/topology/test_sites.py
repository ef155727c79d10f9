"""Sites of a network: found by name, with the delays, prices and ways between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.arrays import FloatArray
from distributary.errors import BadInput
from distributary.topology.prices import shortest_prices
from distributary.topology.quickest_tree import quickest_parents
from distributary.topology.sites import gml_sites, matrix_sites

NETWORK = """\
graph [
  node [ id 0 label "Auckland" Longitude 174.8 Latitude -36.8 ]
  node [ id 1 label "Honolulu" Longitude -157.9 Latitude 21.3 ]
  node [ id 2 label "Seattle" Longitude -122.3 Latitude 47.6 ]
  node [ id 3 label "somewhere" ]
  node [ id 4 label "Seattle" Longitude -122.3 Latitude 47.6 ]
  node [ id 5 label "alone" Longitude 0 Latitude 0 ]
  edge [ source 0 target 1 ] edge [ source 1 target 2 ] edge [ source 1 target 3 ]
  edge [ source 2 target 4 ]
]
"""


def test_sites_of_a_network_are_its_connected_nodes(tmp_path: Path) -> None:
    (tmp_path / "n.gml").write_text(NETWORK)
    sites = gml_sites(tmp_path / "n.gml")
    assert sites.names == ("Auckland", "Honolulu", "Seattle (2)", "somewhere", "Seattle (4)")
    assert len(sites.notes) == 2
    some = sites.indices(["Seattle (2)", "Auckland"], "at")
    assert some.tolist() == [2, 0]
    assert sites.delays_between(some)[0, 1] == sites.delays[2, 0] > 0.0
    with pytest.raises(BadInput, match="'alone' is not a connected place of"):
        sites.index("alone", "at")
    with pytest.raises(BadInput, match="did you mean 'Auckland'"):
        sites.index("Aukland", "at")
    with pytest.raises(BadInput, match="'Auckland' is given twice"):
        sites.indices(["Auckland", "Auckland"], "at")


def test_a_map_is_cut_where_it_is_empty_and_nobody_stands_on_another(tmp_path: Path) -> None:
    (tmp_path / "n.gml").write_text(NETWORK)
    points = gml_sites(tmp_path / "n.gml").points
    assert points is not None
    auckland, honolulu, seattle, somewhere, other = points
    assert auckland[0] < honolulu[0] < seattle[0], "across the Pacific, not around the world"
    assert np.linalg.norm(auckland - seattle) < 120.0
    assert somewhere == pytest.approx(honolulu, abs=6.0)
    assert 0.1 < np.linalg.norm(seattle - other) < 5.0
    assert np.isfinite(points).all()


def test_a_network_without_coordinates_has_no_map(tmp_path: Path) -> None:
    (tmp_path / "n.gml").write_text("graph [ node [ id 0 ] node [ id 1 ] ]")
    assert gml_sites(tmp_path / "n.gml").points is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0 2\n4 0\n", ("n0", "n1")),
        ("A B\n0 2\n4 0\n", ("A", "B")),
        (",New York,Bonn\nNew York,0,2\nBonn,4,0\n", ("New York", "Bonn")),
        ("host\tNew York\tBonn\nNew York\t0\t2\nBonn\t4\t0\n", ("New York", "Bonn")),
        ("# measured\nx;y\n0;2\n4;0\n", ("x", "y")),
    ],
)
def test_a_first_line_names_the_hosts(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    (tmp_path / "d.txt").write_text(text)
    sites = matrix_sites(tmp_path / "d.txt", round_trip=True)
    assert sites.names == names
    assert sites.delays.tolist() == [[0.0, 0.001], [0.002, 0.0]]
    both = np.arange(2)
    assert sites.prices(both, both).tolist() == [[0.0, 1.5], [1.5, 0.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A A\n0 1\n1 0\n", "line 1: host 'A' is given twice"),
        ("A;;B\n0;1\n1;0\n", "line 1, column 1: 'A' is not a number"),
        ("A B C\n0 1\n1 0\n", "document: names 3 hosts above 2 columns"),
        ("A B\nA 0 1\nC 1 0\n", "line 3, column 1: 'C' is not a number"),
        ("0 x\n1 0\n", "line 1, column 2: 'x' is not a number"),
    ],
)
def test_names_that_do_not_fit_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "d.txt").write_text(text)
    with pytest.raises(BadInput) as caught:
        matrix_sites(tmp_path / "d.txt")
    # A name in a row makes it look as if one row had names and another had not.
    assert said in str(caught.value)


@st.composite
def delays(draw: st.DrawFn) -> FloatArray:
    count = draw(st.integers(1, 8))
    cells = st.integers(0, 6).map(float)
    table = np.array(draw(st.lists(cells, min_size=count**2, max_size=count**2)))
    table = table.reshape(count, count)
    table = np.minimum(table, table.T)
    np.fill_diagonal(table, 0.0)
    return shortest_prices(table) if draw(st.booleans()) else table


@given(delays(), st.data())
def test_the_quickest_tree_makes_no_detours(table: FloatArray, data: st.DataObject) -> None:
    """Everybody is below the root, and the way to each is as quick as the direct one."""
    count = len(table)
    root = data.draw(st.integers(0, count - 1))
    parents = quickest_parents(table, root)
    assert parents[root] == -1
    for v in range(count):
        at, steps, took = v, 0, 0.0
        while at != root:
            parent = int(parents[at])
            took += table[parent, at]
            assert table[root, parent] + table[parent, at] <= table[root, at] + 1e-6
            at, steps = parent, steps + 1
            assert steps < count, "a cycle"
        assert took <= table[root, v] + 1e-6
    # Nobody who is on the way and nearer was passed over.
    for v in range(count):
        if v == root:
            continue
        for u in range(count):
            nearer = 0.0 < table[u, v] < table[parents[v], v]
            on_the_way = table[root, u] + table[u, v] <= table[root, v]
            assert not (u != v and nearer and on_the_way and table[root, u] < table[root, v])
