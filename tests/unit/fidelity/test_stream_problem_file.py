"""Fidelity problem files: what they say is what is solved, delays inside or beside them."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distributary.errors import BadInput
from distributary.fidelity import problem_file
from distributary.fidelity.delays_file import write_delays
from distributary.fidelity.generate import generate_problem
from distributary.fidelity.problem import Adaptation
from distributary.fidelity.problem_file import parse_problem, problem_document, read_problem


def sample() -> dict[str, Any]:
    return {
        "source": "s",
        "objects": ["o2", "o1"],
        "nodes": [
            {"node": "n2", "filter_time": 0.5, "send_time": 0.25, "rates": {}},
            {"node": "s", "filter_time": 0, "send_time": 0.125, "rates": {"o1": 1.5, "o2": 2}},
            {"node": "n1", "filter_time": 0.75, "send_time": 0.0, "rates": {"o2": 1.0}},
        ],
        "delays": [[0, 1, 2], [3, 0.0, 4], [5, 6, 0]],
    }


def saved(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def test_a_problem_is_what_its_file_says() -> None:
    problem = parse_problem(sample()).problem
    assert problem.names == ("s", "n1", "n2")
    assert problem.objects == ("o1", "o2")
    assert problem.rates.tolist() == [[1.5, 2.0], [0.0, 1.0], [0.0, 0.0]]
    assert problem.filter_times.tolist() == [0.0, 0.75, 0.5]
    assert problem.send_times.tolist() == [0.125, 0.0, 0.25]
    assert problem.delays.tolist() == [[0.0, 4.0, 3.0], [6.0, 0.0, 5.0], [1.0, 2.0, 0.0]]
    assert problem.adaptation is None


def test_the_order_of_the_file_is_kept_for_the_trees() -> None:
    assert parse_problem(sample()).node_order == ("n2", "s", "n1")


def test_the_cost_of_adapting_is_read() -> None:
    document = sample()
    table = {"collect_time": 0, "collect_period": 50, "decide_time": 1e-6, "decide_period": 200}
    document["adaptation"] = table
    assert parse_problem(document).problem.adaptation == Adaptation(0.0, 50.0, 1e-6, 200.0)


def test_stray_keys_are_ignored_and_reported() -> None:
    document = sample()
    document["comment"] = "draft"
    document["nodes"][1]["filtertime"] = 7
    document["adaptation"] = {
        **{"collect_time": 0, "collect_period": 1, "decide_time": 0, "decide_period": 1},
        "period": 3,
    }
    assert parse_problem(document).warnings == (
        "comment: is not a known key, and is ignored",
        "nodes[1].filtertime: is not a known key, and is ignored",
        "adaptation.period: is not a known key, and is ignored",
    )
    assert parse_problem(sample()).warnings == ()


def test_the_source_alone_is_a_problem() -> None:
    document = sample()
    document["nodes"] = document["nodes"][1:2]
    document["delays"] = [[0]]
    assert parse_problem(document).problem.node_count == 1


def test_minus_zero_is_zero() -> None:
    document = sample()
    document["delays"][0][1] = -0.0
    document["nodes"][1]["filter_time"] = -0.0
    problem = parse_problem(document).problem
    assert not np.signbit(problem.delays).any()
    assert not np.signbit(problem.filter_times).any()


def test_delays_are_found_in_a_file_beside_the_problem(tmp_path: Path) -> None:
    inside = parse_problem(sample()).problem
    for kind in ("f8", ">f4", "i8", "u2"):
        np.save(tmp_path / "far.npy", np.array(sample()["delays"], dtype=kind))
        document = {**sample(), "delays": "far.npy"}
        (tmp_path / "p.json").write_text(json.dumps(document), encoding="utf-8")
        assert np.array_equal(read_problem(tmp_path / "p.json").problem.delays, inside.delays)


@pytest.mark.parametrize(
    "name",
    [
        *("../far.npy", "/far.npy", "sub/far.npy", "sub\\far.npy", "..npy", ".far.npy"),
        *("C:far.npy", "far\x00.npy", "far\n.npy", "./far.npy", "/etc/../far.npy"),
    ],
)
def test_only_a_plain_name_is_followed(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub", tmp_path.parent):
        np.save(folder / "far.npy", np.array(sample()["delays"]))
    with pytest.raises(BadInput, match=r"delays: .* is not the plain name of a file") as caught:
        parse_problem({**sample(), "delays": name}, folder=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "far", "far.npz", "far.npy.exe", "far.NPY", "matrix.pkl"])
def test_only_npy_files_are_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"delays: must be a matrix or the name of a \.npy file"):
        parse_problem({**sample(), "delays": name}, folder=tmp_path)


def test_a_document_from_nowhere_has_no_file_beside_it() -> None:
    with pytest.raises(BadInput, match=r"names the file 'far\.npy', but this problem has no files"):
        parse_problem({**sample(), "delays": "far.npy"})


class Hostile:
    """Makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("pickle-was-loaded",)


BAD_ARRAYS = {
    "array: is 2 x 2, and must be 3 x 3": saved(np.zeros((2, 2))),
    "array: is 9, and must be 3 x 3": saved(np.zeros(9)),
    "array: is a single number, and must": saved(1.0),
    "array[1][2]: must be at least 0, not -1": saved([[0, 0, 0], [0, 0, -1], [0, 0, 0]]),
    "array[0][1]: must be a finite number": saved([[0, np.nan, 0], [0, 0, 0], [0, 0, 0]]),
    "array[2][0]: must be at most 1e+15": saved([[0, 0, 0], [0, 0, 0], [np.inf, 0, 0]]),
    "array[2][1]: must be at least 1e-100": saved([[0, 0, 0], [0, 0, 0], [0, 1e-200, 0]]),
    "document: is not a NumPy": saved(np.full((3, 3), Hostile(), dtype=object)),
}


@pytest.mark.parametrize("complaint", sorted(BAD_ARRAYS))
def test_a_bad_array_is_refused_with_its_place(
    complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("far.npy").write_bytes(BAD_ARRAYS[complaint])
    Path("p.json").write_text(json.dumps({**sample(), "delays": "far.npy"}), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_problem("p.json")
    assert str(caught.value).startswith(f"p.json: delays: far.npy: {complaint}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["far.npy", "p.json"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^delays: far\.npy: does not exist$"):
        parse_problem({**sample(), "delays": "far.npy"}, folder=tmp_path)
    (tmp_path / "far.npy").mkdir()
    with pytest.raises(BadInput, match="is not a regular file"):
        parse_problem({**sample(), "delays": "far.npy"}, folder=tmp_path)


def test_a_problem_too_large_to_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_file, "CELLS_MAX", 5)
    with pytest.raises(BadInput, match="nodes: has 3 nodes for 2 objects"):
        parse_problem(sample())
    monkeypatch.setattr(problem_file, "NODES_MAX", 2)
    with pytest.raises(BadInput, match="nodes: has 3 entries; at most 2 are read"):
        parse_problem(sample())


def test_a_problem_survives_a_file_of_delays_in_any_order(tmp_path: Path) -> None:
    problem = generate_problem(seed=5, servers=6, routers=20, objects=3, interest=0.5)
    order = ("n3", "n1", "source", "n6", "n2", "n5", "n4")
    write_delays(problem, tmp_path / "p.delays.npy")
    document: Any = problem_document(problem, delays_file="p.delays.npy")
    assert document["delays"] == "p.delays.npy"
    file = parse_problem(document, folder=tmp_path)
    assert np.array_equal(file.problem.delays, problem.delays)
    at = [problem.names.index(name) for name in order]
    np.save(tmp_path / "p.delays.npy", problem.delays[np.ix_(at, at)])
    document["nodes"] = [document["nodes"][i] for i in at]
    file = parse_problem(document, folder=tmp_path)
    assert file.node_order == order
    assert np.array_equal(file.problem.delays, problem.delays)
    assert np.array_equal(file.problem.rates, problem.rates)
    assert [path.name for path in tmp_path.iterdir()] == ["p.delays.npy"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    problem = generate_problem(seed=5, servers=2, routers=5)
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_delays(problem, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
