"""Measured delays: read in whatever form they were published, gaps closed and counted."""

from __future__ import annotations

import gzip
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary import files
from distributary.errors import BadInput
from distributary.topology import delay_matrix
from distributary.topology.delay_matrix import DelayMatrix, complete_delays, load_array, read_delays

MILLISECONDS = np.array([[0.0, 10.0, 20.0], [11.0, 0.0, 30.0], [21.0, 31.0, 0.0]])


@pytest.mark.parametrize("separator", [" ", "\t", ",", ", ", ";", "   "])
def test_text_may_be_apart_by_blanks_tabs_commas_or_semicolons(
    separator: str, tmp_path: Path
) -> None:
    rows = [separator.join(f"{value:g}" for value in row) for row in MILLISECONDS]
    path = tmp_path / "rtt.txt"
    path.write_text("# hosts\n" + "\r\n".join(rows) + "\n\n", encoding="utf-8")
    matrix = read_delays(path)
    assert np.allclose(matrix.delays, MILLISECONDS / 1000.0, rtol=1e-15, atol=0.0)
    assert matrix.missing_count == 0
    assert matrix.notes == ()


@pytest.mark.parametrize(("unit", "factor"), [("s", 1.0), ("ms", 1e-3), ("us", 1e-6)])
def test_the_unit_is_what_the_caller_says(unit: str, factor: float, tmp_path: Path) -> None:
    path = tmp_path / "rtt.npy"
    np.save(path, MILLISECONDS.astype(np.float32))
    assert np.allclose(read_delays(path, unit=unit).delays, MILLISECONDS * factor)
    assert np.allclose(
        read_delays(path, unit=unit, round_trip=True).delays, MILLISECONDS * factor / 2.0
    )


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "rtt.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n2 0\n"))
    assert read_delays(path, unit="s").delays.tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_gaps_take_the_way_back_or_a_third_host_and_are_counted(tmp_path: Path) -> None:
    """Here 0 -> 1 has a way back; 0 and 3 know each other only through 1 or 2."""
    path = tmp_path / "rtt.csv"
    path.write_text("0,nan,5,\n7,0,-1,2\n6,0,0,4\n-,3,1,99\n", encoding="utf-8")
    matrix = read_delays(path, unit="s")
    assert matrix.delays.tolist() == [
        [0.0, 7.0, 5.0, 9.0],
        [7.0, 0.0, 3.0, 2.0],
        [6.0, 7.0, 0.0, 4.0],
        [7.0, 3.0, 1.0, 0.0],
    ]
    assert matrix.missing_count == 5
    assert matrix.notes == (
        "5 delays missing; the way back, or else the best way over a third host, stands in",
    )


def test_a_host_that_nobody_reached_is_refused_by_its_place() -> None:
    table = np.array([[0.0, 1.0, np.nan], [1.0, 0.0, np.nan], [np.nan, np.nan, 0.0]])
    with pytest.raises(BadInput, match=r"matrix\[0\]\[2\]: is missing, and no third host"):
        complete_delays(table)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "document: has no numbers"),
        ("# only\n", "document: has no numbers"),
        ("0 1\n1 x\n", "line 2, column 2: 'x' is not a number"),
        ("0 1\n1\n", "line 2: has 1 numbers where others have 2"),
        ("0 1 2\n1 0 2\n", "matrix: is 2 x 3, and must have as many columns as rows"),
    ],
)
def test_text_that_is_no_matrix_is_refused_with_its_place(
    content: str, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "rtt.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_delays(path)
    assert str(caught.value) == f"{path}: {complaint}"


class Hostile:
    """Runs a program when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("pickle-was-loaded",)


def npy(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.zeros((2, 2)))
    return file.getvalue()


NOT_ARRAYS = {
    "empty": b"",
    "text": b"0 1\n1 0\n",
    "pickle": pickle.dumps(Hostile()),
    "objects": npy(np.array([[Hostile()]], dtype=object)),
    "archive": npz(),
    "complex": npy(np.zeros((2, 2), dtype=np.complex128)),
    "bool": npy(np.zeros((2, 2), dtype=np.bool_)),
    "strings": npy(np.array([["0", "1"], ["1", "0"]])),
    "cut": npy(np.zeros((2, 2)))[:-1],
    "header cut": npy(np.zeros((2, 2)))[:40],
    "header damaged": npy(np.zeros((2, 2))).replace(b"'descr'", b"'dexcr'"),
    "header unbalanced": npy(np.zeros((2, 2))).replace(b"(2, 2)", b"((((2,"),
    "more promised than held": npy(np.zeros((2, 2))).replace(b"(2, 2), }   ", b"(99999, 99)}"),
}


@pytest.mark.parametrize("kind", sorted(NOT_ARRAYS))
def test_what_is_not_an_array_of_numbers_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("delays.npy").write_bytes(NOT_ARRAYS[kind])
    with pytest.raises(BadInput, match=r"^delays\.npy: document: is not a NumPy array of numbers$"):
        read_delays("delays.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["delays.npy"]


def test_an_array_of_the_wrong_shape_is_refused(tmp_path: Path) -> None:
    for shape in ((2, 3), (4,), (), (2, 2, 2)):
        np.save(tmp_path / "delays.npy", np.zeros(shape))
        with pytest.raises(BadInput, match="matrix: is "):
            read_delays(tmp_path / "delays.npy")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "delays.npy")
    with pytest.raises(BadInput, match="is not a regular file"):
        load_array(tmp_path / "delays.npy")


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delay_matrix, "_BYTES_MAX", 2**20)
    path = tmp_path / "rtt.gz"
    path.write_bytes(gzip.compress(b"0 " * 2**20))
    with pytest.raises(BadInput, match="document: is larger than 1 MiB"):
        read_delays(path)


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"0 1\n1 0\n", mtime=0)[:-3]])
def test_a_damaged_packed_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rtt.gz"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="document: is not a whole gzip file"):
        read_delays(path)


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(BadInput, match="unit: 'min' is not one of s, ms, us"):
        read_delays("missing.txt", unit="min")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, complaint in (("no.txt", "does not exist"), ("no.npy", "does not exist")):
        with pytest.raises(BadInput, match=complaint):
            read_delays(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read: not a directory"), files.naming("x"):
        raise NotADirectoryError(20, "Not a directory")


def complaint(read: Callable[[], DelayMatrix]) -> str:
    """Return what reading complains about, if anything; any other error escapes."""
    try:
        delays = read().delays
    except BadInput as error:
        return str(error)
    return "" if bool(np.all(np.isfinite(delays))) else "infinite\n"


@given(st.one_of(st.binary(max_size=80), st.text("0123456789.,; -nainfe\n\t", max_size=80)))
def test_arbitrary_text_is_read_or_refused_politely(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    path = tmp_path_factory.getbasetemp() / "arbitrary.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert complaint(lambda: read_delays(path)).count("\n") == 0


@given(st.data())
def test_a_damaged_array_is_read_or_refused_politely(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(npy(MILLISECONDS))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    path.write_bytes(whole)
    assert complaint(lambda: read_delays(path)).count("\n") == 0
