"""Networks in GML files: read as published, and refused with the place when they are not GML."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.errors import BadInput
from distributary.topology.gml import parse_gml, read_gml

SAMPLE = """\
# A comment
graph [
  label "Down under" directed 0
  Creator "somebody [with brackets] # and a hash"
  node [ id 0 label "Sydney" Longitude 151.20732 Latitude -33.86785
         graphics [ x 1 y [ deep 2 ] ] ]
  node [ id 1 label "Perth" Longitude 115.8605 Latitude -31.9505 ]
  node [ id 2 label "Tasmania &amp; south" ]
  node [ id 3 label "Sydney" Longitude "151.20732" Latitude "-33.86785" ]
  node [ id 7 ]
  edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" LinkSpeedRaw 10000000000.0 ]
  edge [ source 1 target 2 LinkSpeed "155" LinkSpeedUnits "M" ]
  edge [ source 0 target 3 id "e3" ]
  edge [ source 2 target 2 ]
  edge [ source 2 target 3 LinkSpeed "fast" ]
]
"""


def test_nodes_and_links_are_those_of_the_file() -> None:
    network = parse_gml(SAMPLE)
    assert network.names == ("Sydney (0)", "Perth", "Tasmania & south", "Sydney (3)", "node '7'")
    assert network.links.tolist() == [[0, 1], [1, 2], [0, 3], [2, 3]]


def test_delays_follow_from_where_the_ends_are() -> None:
    """Sydney and Perth are about 3,290 km apart, and light in glass does 200,000 km/s."""
    delays = parse_gml(SAMPLE).link_delays
    assert delays[0] == pytest.approx(3290.0 / 199_861.6, rel=0.01)
    assert delays[2] == 0.0


def test_links_to_an_unknown_place_take_as_long_as_others_do() -> None:
    """A fixed guess would be most of the delay in a network of a town; a median is in scale."""
    network = parse_gml(
        "graph [ node [ id 0 longitude 0 latitude 0 ] node [ id 1 longitude 0 latitude 0.1 ]"
        " node [ id 2 longitude 0 latitude 0.3 ] node [ id 3 longitude 0 latitude 0.6 ]"
        " node [ id 4 longitude 0 ] edge [ source 0 target 1 ] edge [ source 1 target 2 ]"
        " edge [ source 2 target 3 ] edge [ source 3 target 4 ] edge [ source 4 target 0 ] ]"
    )
    delays = network.link_delays.tolist()
    assert network.guessed.tolist() == [3, 4]
    assert delays[3] == delays[4] == delays[1]
    assert delays[0] < delays[1] < delays[2]
    assert network.notes == (
        "2 of 5 links of unknown length, taken for 0.111 ms each, the median of the others",
    )


def test_links_within_a_town_say_nothing_about_those_of_unknown_length() -> None:
    """Sydney has two nodes in one place; what counts is how far away Perth is."""
    network = parse_gml(SAMPLE)
    assert network.guessed.tolist() == [1, 3]
    assert network.link_delays[[1, 3]].tolist() == [network.link_delays[0]] * 2


@pytest.mark.parametrize(
    ("nodes", "note"),
    [
        ("node [ id 0 ] node [ id 1 ]", "1 of 1 link of unknown length, taken for 5 ms"),
        (
            "node [ id 0 latitude 1 longitude 1 ] node [ id 1 latitude 1 longitude 1 ]"
            " node [ id 2 ] node [ id 3 ] edge [ source 1 target 2 ] edge [ source 2 target 3 ]",
            "2 of 3 links of unknown length, taken for 5 ms each",
        ),
    ],
)
def test_where_no_link_has_a_length_it_is_five_milliseconds(nodes: str, note: str) -> None:
    network = parse_gml(f"graph [ {nodes} edge [ source 0 target 1 ] ]")
    assert set(network.link_delays[network.guessed].tolist()) == {0.005}
    assert network.notes == (note,)


def test_a_network_that_is_known_in_full_needs_no_notes() -> None:
    network = parse_gml(
        "graph [ node [ id 0 longitude 0 latitude 0 ] node [ id 1 longitude 1 latitude 1 ]"
        " edge [ source 0 target 1 ] edge [ source 0 target 1 ] ]"
    )
    assert network.guessed.tolist() == []
    assert network.notes == ()


def test_nodes_apart_from_the_others_are_counted() -> None:
    assert parse_gml(SAMPLE).notes[1:] == ("1 of 5 nodes left out, not connected with the others",)


def test_a_network_without_links_has_one_node_at_most() -> None:
    network = parse_gml("graph [ node [ id 0 ] node [ id 1 ] ]")
    assert network.delays_between(network.largest_part).tolist() == [[0.0]]
    assert network.notes == ("1 of 2 nodes left out, not connected with the others",)


def test_half_way_around_the_earth_is_not_too_far() -> None:
    network = parse_gml(
        "graph [ node [ id 0 longitude 0 latitude 0 ] node [ id 1 longitude 180 latitude 0 ]"
        " edge [ source 0 target 1 ] ]"
    )
    assert network.link_delays[0] == pytest.approx(math.pi * 6371.0 / 199_861.6, rel=1e-4)


def test_nodes_without_links_are_not_in_the_largest_part() -> None:
    assert parse_gml(SAMPLE).largest_part.tolist() == [0, 1, 2, 3]


def test_names_are_distinct_even_when_the_way_out_is_taken() -> None:
    network = parse_gml(
        'graph [ node [ id 1 label "A" ] node [ id 2 label "A" ] node [ id 3 label "A (2)" ] ]'
    )
    assert network.names == ("A (1)", "A (2)'", "A (2)")


def test_a_file_in_the_old_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "network.gml"
    path.write_bytes('graph [ node [ id 0 label "Zürich" ] ]'.encode("latin-1"))
    assert read_gml(path).names == ("Zürich",)
    path.write_text('\ufeffgraph [ node [ id 0 label "Zürich" ] ]', encoding="utf-8")
    assert read_gml(path).names == ("Zürich",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_a_file_in_another_encoding_is_refused(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "network.gml"
    path.write_bytes(SAMPLE.encode(encoding))
    with pytest.raises(BadInput, match="document: is not text; hint: save it as UTF-8"):
        read_gml(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "document: has no graph"),
        ("graph 3", "document: has no graph"),
        ("Creator x", "document: has no graph"),
        ("graph [ ]", "graph: has no nodes"),
        ("graph [", "line 1, column 7: malformed GML: '[' is never closed"),
        ("graph\n[ node [ id 1 ]", "line 2, column 1: malformed GML: '[' is never closed"),
        ("graph [ ] ]", "line 1, column 11: malformed GML: ']' closes nothing"),
        ("graph [ node ]", "line 1, column 14: malformed GML: 'node' has no value"),
        ("graph", "line 1, column 6: malformed GML: 'graph' has no value"),
        ("[ ]", "line 1, column 1: malformed GML: a key must stand here, not '['"),
        ('graph [ label "x ]', "line 1, column 15: malformed GML: a string is never closed"),
        ("a [ " * 100, "malformed GML: is nested too deeply"),
        ("a [ " * 1_000_000, "malformed GML: is nested too deeply"),
        ("graph [ node [ label 1 ] ]", "node 0.id: is missing"),
        ("graph [ node [ id 1 ] node [ id 1 ] ]", "node 1.id: '1' is also node 0"),
        ("graph [ node [ id 1 ] edge [ source 1 ] ]", "edge 0.target: is missing"),
        (
            "graph [ node [ id 1 ] edge [ source 1 target 9 ] ]",
            "edge 0.target: '9' is no node's id",
        ),
        ("graph [ node [ id 1 Latitude 91 ] ]", "node 0.latitude: is 91, and must be from -90"),
        ("graph [ node [ id 1 Longitude -inf ] ]", "node 0.longitude: is -inf, and must be"),
    ],
)
def test_what_is_not_a_network_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_gml(text)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("missing.gml", "does not exist"), (".", "is a directory"), ("bad.gml", "has no graph")],
)
def test_complaints_name_the_file(name: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "bad.gml").write_text("x y", encoding="utf-8")
    with pytest.raises(BadInput, match=complaint) as caught:
        read_gml(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))


WORDS = st.sampled_from(
    ["graph", "node", "edge", "id", "source", "target", "label", "Latitude", "LinkSpeed"]
)
VALUES = st.one_of(
    st.integers(-3, 3).map(str),
    st.floats().map(str),
    st.sampled_from(["[", "]", '"', '"x"', "#", "\n", "nan", "1e999"]),
    st.text(max_size=4),
)


def complaint(text: str) -> str:
    """Return what reading complains about, if anything; any other error escapes."""
    try:
        network = parse_gml(text)
    except BadInput as error:
        return str(error)
    sound = len(set(network.names)) == network.node_count and (network.link_delays >= 0.0).all()
    return "" if sound else "unsound\n"


@given(st.lists(st.one_of(WORDS, VALUES, st.just("["), st.just("]")), max_size=40))
def test_arbitrary_text_is_read_or_refused_politely(words: list[str]) -> None:
    assert complaint(" ".join(words)).count("\n") == 0


@given(st.data())
def test_a_damaged_file_is_read_or_refused_politely(data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(SAMPLE))] * 2)))
    damaged = SAMPLE[:start] + data.draw(st.text(max_size=3)) + SAMPLE[end:]
    assert complaint(damaged).count("\n") == 0
