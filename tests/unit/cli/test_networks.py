"""A network of one's own in every command: the same options, the same names, the same errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.commands import check_one_line

from distributary.cli import main

CITIES = """\
graph [
  node [ id 0 label "Sydney" Longitude 151.2 Latitude -33.9 ]
  node [ id 1 label "Melbourne" Longitude 145.0 Latitude -37.8 ]
  node [ id 2 label "Adelaide" Longitude 138.6 Latitude -34.9 ]
  node [ id 3 label "Perth" Longitude 115.9 Latitude -32.0 ]
  edge [ source 0 target 1 ] edge [ source 1 target 2 ] edge [ source 2 target 3 ]
]
"""
MATRIX = "a b c\n0 10 20\n12 0 10\n20 10 0\n"
PLACEMENT: dict[str, Any] = {
    "formats": [{"name": "pdf", "size": 5.0}, {"name": "jpeg", "size": 2.0}],
    "conversions": [{"from": "pdf", "to": "jpeg", "cost": 3.0}],
    "source_format": "pdf",
    "tree": [
        {"node": "Sydney", "wants": ["jpeg"]},
        {"node": "Perth", "parent": None, "wants": []},
        {"node": "Melbourne", "wants": ["pdf"]},
    ],
}
WIRING: dict[str, Any] = {
    "brokers": [{"broker": "Sydney"}, {"broker": "west", "place": "Perth"}],
    "users": [
        {"user": f"u{k}", "place": place, "publishes": [1.0], "subscribes": [1]}
        for k, place in enumerate(["Perth", "Perth", "Perth", "Sydney", "Adelaide"])
    ],
}
STREAM: dict[str, Any] = {
    "source": "b",
    "objects": ["o"],
    "nodes": [
        {"node": name, "filter_time": 0.001, "send_time": 0.001, "rates": {"o": 1.0}}
        for name in ("a", "b", "c")
    ],
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in a folder with networks and problems; return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    Path("n.gml").write_text(CITIES)
    Path("d.txt").write_text(MATRIX)
    for name, document in (("place", PLACEMENT), ("wire", WIRING), ("tree", STREAM)):
        Path(f"{name}.json").write_text(json.dumps(document))

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        return (code, *capsys.readouterr())

    return command


def check_refused(answer: tuple[int, str, str], said: str) -> None:
    code, out, err = answer
    check_one_line(code, out, err, said)


def test_place_takes_the_tree_from_the_network(run: Any) -> None:
    code, out, err = run("place", "place.json", "--topology", "n.gml", "--draw", "plan.svg")
    assert (code, err) == (0, "")
    plan = json.loads(out)
    assert [node["node"] for node in plan["nodes"]] == ["Sydney", "Perth", "Melbourne"]
    sydney, perth, melbourne = plan["nodes"]
    assert perth["receives"] == []
    assert melbourne["receives"] == ["pdf"]
    assert sydney["receives"] == ["jpeg"], "made at Melbourne, which is on the way"
    assert melbourne["converts"] == [["pdf", "jpeg"]]
    # Two links of mean 1, one about four times as long as the other.
    assert plan["transmission_cost"] == pytest.approx(5.0 * 1.6 + 2.0 * 0.4, rel=0.05)
    assert "Melbourne" in Path("plan.svg").read_text(encoding="utf-8")


def test_wire_takes_prices_from_the_network_and_draws_users_with_their_number(run: Any) -> None:
    code, out, err = run(
        "wire", "wire.json", "--topology", "n.gml", "--method", "packing", "--draw", "w.svg"
    )
    assert (code, err) == (0, "")
    wiring = json.loads(out)
    assert wiring["assignment"] == {
        "u0": "west", "u1": "west", "u2": "west", "u3": "Sydney", "u4": "Sydney",
    }  # fmt: skip
    picture = Path("w.svg").read_text(encoding="utf-8")
    assert "3 users in Perth: u0, u1, u2" in picture
    assert re.search(r'<g class="badges"><text [^>]*>3</text></g>', picture)
    assert "u4 (Adelaide)" in picture


def test_tables_of_users_stand_in_a_network_too(run: Any) -> None:
    Path("tables").mkdir()
    users = WIRING["users"]
    pyarrow.parquet.write_table(pa.Table.from_pylist(users), "tables/users.parquet")
    brokers = [{"broker": "Sydney", "place": "Sydney"}, {"broker": "west", "place": "Perth"}]
    pyarrow.parquet.write_table(pa.Table.from_pylist(brokers), "tables/brokers.parquet")
    arguments = ("--topology", "n.gml", "--method", "packing")
    tables = json.loads(run("wire", "tables", *arguments)[1])
    document = json.loads(run("wire", "wire.json", *arguments)[1])
    tables["seconds"] = document["seconds"]
    assert tables == document


def test_tree_takes_delays_from_a_matrix(run: Any) -> None:
    code, out, err = run("tree", "tree.json", "--delays", "d.txt", "--round-trip")
    assert (code, err) == (0, "")
    assert json.loads(out)["trees"] == [{"objects": ["o"], "parents": {"a": "b", "c": "b"}}]


@pytest.mark.parametrize("network", [("--topology", "n.gml"), ("--delays", "d.txt")])
@pytest.mark.parametrize("kind", ["placement", "wiring", "tree"])
def test_what_is_generated_in_a_network_can_be_planned(
    run: Any, network: tuple[str, str], kind: str
) -> None:
    kinds = {"placement": ("map",), "wiring": ("--users", "30"), "tree": ()}
    planner = {"placement": "place", "wiring": "wire", "tree": "tree"}[kind]
    names = ("Perth", "Sydney") if network[0] == "--topology" else ("c", "a")
    at = [word for name in names for word in ("--at", name)]
    for more in ((), at):
        code, _, _ = run("generate", kind, *kinds[kind], *network, *more, "-o", "p.json")
        assert code == 0
        method = ("--method", "packing") if planner == "wire" else ()
        assert run(planner, "p.json", *method)[0] == 0
    problem = json.loads(Path("p.json").read_text(encoding="utf-8"))
    if kind == "placement":
        assert problem["tree"][0]["node"] == names[0]
    elif kind == "tree":
        assert problem["source"] == names[0]
    else:
        assert sorted(broker["broker"] for broker in problem["brokers"]) == sorted(names)
        assert all("place" in user for user in problem["users"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("place", "place.json", "--topology", "n.gml", "--delays", "d.txt"), "--delays: cannot"),
        (("place", "place.json", "--unit", "s"), "--unit: needs --delays"),
        (("place", "place.json", "--delays", "d.txt"), "tree[].node: 'Perth' is not a connected"),
        (("wire", "wire.json", "--delays", "d.txt"), "users[].place: 'Perth' is not a connected"),
        (("wire", "wire.json", "--topology", "none.gml"), "none.gml: does not exist"),
        (("tree", "tree.json", "--topology", "n.gml"), "nodes[].node: 'a' is not a connected"),
        (("generate", "tree", "--at", "Perth"), "--at: needs --topology or --delays"),
        (("generate", "tree", "--topology", "n.gml", "--at", "Perth"), "--at: names one place"),
        (("generate", "wiring", "--topology", "n.gml", "--at", "Pert"), "did you mean 'Perth'?"),
        (
            ("generate", "wiring", "--topology", "n.gml", "--at", "Perth", "--brokers", "1"),
            "--brokers: cannot be combined with --at",
        ),
        (
            ("generate", "placement", "map", "--topology", "n.gml", "--brokers", "5"),
            "brokers: is 5, and n.gml has 4 connected places",
        ),
        (
            ("generate", "placement", "map", "--topology", "n.gml", "--tree", "routes"),
            "--tree: cannot be combined with a network",
        ),
    ],
)
def test_what_does_not_fit_the_network_is_named(
    run: Any, arguments: tuple[str, ...], said: str
) -> None:
    check_refused(run(*arguments), said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parent": "Perth"}, "tree[0].parent: is given both here and by the network"),
        ({"link_cost": 2.0}, "tree[0].link_cost: is given both here and by the network"),
        ({"parent": None}, "tree: node 'Perth' is a second root"),
    ],
)
def test_a_tree_is_not_given_twice(run: Any, change: dict[str, object], said: str) -> None:
    first, *others = PLACEMENT["tree"]
    document = {**PLACEMENT, "tree": [{**first, **change}, *others]}
    Path("p.json").write_text(json.dumps(document))
    check_refused(run("place", "p.json", "--topology", "n.gml"), said)


def test_prices_are_not_given_twice_and_users_stand_somewhere(run: Any) -> None:
    Path("p.json").write_text(json.dumps({**WIRING, "core_cost": [[0, 1], [1, 0]]}))
    said = "core_cost: is given both here and by the network"
    check_refused(run("wire", "p.json", "--topology", "n.gml"), said)
    users = [{k: v for k, v in user.items() if k != "place"} for user in WIRING["users"]]
    Path("p.json").write_text(json.dumps({**WIRING, "users": users}))
    check_refused(run("wire", "p.json", "--topology", "n.gml"), "users[].place: is missing")
