"""`distributary calibrate`: samples in, a graph out that `place` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import check_one_line

from distributary.cli import main
from distributary.media.samples import clip_mp4, tone_wav

TEXT = "text/plain;charset=utf-8"
# The first paragraph alone is read aloud, so that long texts are measured quickly too.
PARAGRAPH = "1. The old mill by the river.\n\n"
# From text: three other encodings, speech, and the two other kinds of sound.
FORMATS = 7
CONVERSIONS = 12 + 1 + 6


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "short.txt", tmp_path / "long.txt"]
    for path, count in zip(paths, (40, 4000), strict=True):
        path.write_text(PARAGRAPH * count, encoding="utf-8")
    return [str(path) for path in paths]


def written(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def test_samples_become_a_graph_that_place_reads(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, tree = tmp_path / "graph.json", tmp_path / "tree.json"
    assert main(["calibrate", *texts, "--repeat", "2", "-o", str(graph)]) == 0
    printed = capsys.readouterr()
    assert printed.err.endswith(f"; written to {graph}\n")
    assert f"{CONVERSIONS} conversions between {FORMATS} formats measured on 2 samples" in (
        printed.err
    )
    assert printed.err.count("\n") == 1
    assert "text/plain" in printed.out
    document = written(graph)
    assert len(document["formats"]) == FORMATS
    assert len(document["conversions"]) == CONVERSIONS
    assert [item["format"] for item in document["samples"]] == [TEXT, TEXT]
    assert document["command"] == "distributary calibrate short.txt long.txt --repeat 2 --seed 0"
    assert [item["name"] for item in document["samples"]] == ["short.txt", "long.txt"]
    assert str(tmp_path) not in graph.read_text(encoding="utf-8")
    sizes = {item["name"]: item["size"] for item in document["formats"]}
    assert sizes[TEXT] == {"fixed": 0.0, "per_mb": 1.0}
    assert sizes["text/plain;charset=utf-16"]["per_mb"] == pytest.approx(2.0, rel=0.01)
    assert sizes["audio/wav"]["fixed"] > 0.01, "the first item is as long in both"
    tree.write_text(
        json.dumps(
            {
                "source_format": TEXT,
                "alpha": 1.0,
                "beta": 1.0,
                "tree": [
                    {"node": "N1", "parent": None, "wants": []},
                    {"node": "N2", "parent": "N1", "wants": ["audio/mpeg", TEXT]},
                ],
            }
        ),
        encoding="utf-8",
    )
    for content_bytes in ("0", "1", "10000", "10000000", "1000000000000"):
        assert main(["place", str(tree), "--graph", str(graph), "--bytes", content_bytes]) == 0
        assert json.loads(capsys.readouterr().out)["gap"] == 0.0


def test_a_graph_says_how_well_it_predicts_other_samples(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, graph = tmp_path / "other.txt", tmp_path / "graph.json"
    other.write_text(PARAGRAPH * 700, encoding="utf-8")
    arguments = ["--check", str(other), "--repeat", "1", "-o", str(graph)]
    assert main(["calibrate", *texts, *arguments]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert told[0].startswith("1 other sample predicted: sizes off by 0.0% (median) and 0.")
    document = written(graph)
    assert document["command"].startswith("distributary calibrate short.txt long.txt --check other")
    assert [item["name"] for item in document["samples"]] == ["short.txt", "long.txt"]
    check = document["check"]
    assert [item["name"] for item in check["samples"]] == ["other.txt"]
    assert (check["sizes"]["count"], check["seconds"]["count"]) == (FORMATS - 1, CONVERSIONS)
    assert check["sizes"]["worst"] < 0.01


def test_without_a_file_to_write_the_tables_are_all_there_is(
    texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    assert main(["calibrate", texts[0], "--repeat", "1", "--all"]) == 0
    printed = capsys.readouterr()
    assert sorted(tmp_path.iterdir()) == before
    warning, summary = printed.err.splitlines()
    assert warning.startswith(f"warning: {TEXT}: samples are of one size")
    assert summary.endswith("; -o GRAPH.json saves it")
    rows = [line.split()[:2] for line in printed.out.splitlines()]
    assert [TEXT, "audio/wav"] in rows
    assert ["audio/wav", "audio/aac"] in rows


def test_a_minus_is_standard_output_which_has_the_graph_alone(
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["calibrate", *texts, "--repeat", "1", "-o", "-"]) == 0
    printed = capsys.readouterr()
    assert sorted(tmp_path.iterdir()) == before
    assert len(json.loads(printed.out)["formats"]) == FORMATS
    assert printed.err.endswith(" s, seed 0\n")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["nowhere.pdf"], "nowhere.pdf: cannot be read: no such file"),
        (["."], ".: is a directory"),
        (["empty.txt"], "empty.txt"),
        (["noise.bin"], "noise.bin"),
        (["notes.txt", "map.pdf"], "samples: 'application/pdf' and 'text/plain;charset=utf-8'"),
        (["notes.txt", "--family", "map"], "--family: is for sample content"),
        (["notes.txt", "--check", "nowhere.txt"], "nowhere.txt: cannot be read: no such file"),
        (["notes.txt", "--check", "tone.wav"], "tone.wav: is 'audio/wav', and no sample is"),
        (["notes.txt", "-o", "nowhere/graph.json"], "-o: directory 'nowhere' does not exist"),
        (["notes.txt", "-o", ""], "'-o'"),
        (["--repeat", "0"], "--repeat"),
        (["--family", "sounds"], "--family"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_in_one_line(
    arguments: list[str],
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text(PARAGRAPH, encoding="utf-8")
    Path("empty.txt").write_bytes(b"")
    Path("tone.wav").write_bytes(tone_wav(0.1))
    Path("noise.bin").write_bytes(bytes(range(256)))
    Path("map.pdf").write_bytes(b"%PDF-1.7\n%damaged from here on\n")
    code = main(["calibrate", *arguments])
    printed = capsys.readouterr()
    check_one_line(code, printed.out, printed.err, place)


def test_a_damaged_sample_leaves_the_old_graph_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample, graph = tmp_path / "map.pdf", tmp_path / "graph.json"
    sample.write_bytes(b"%PDF-1.7\n%damaged from here on\n")
    graph.write_text("{}", encoding="utf-8")
    code = main(["calibrate", str(sample), "-o", str(graph)])
    printed = capsys.readouterr()
    check_one_line(code, printed.out, printed.err, "nothing can be made from 'application/pdf'")
    assert graph.read_text(encoding="utf-8") == "{}"
    assert sorted(tmp_path.iterdir()) == [graph, sample]


@pytest.mark.full
def test_sample_maps_measure_a_whole_family(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "graph.json"
    assert main(["calibrate", "--family", "map", "--repeat", "1", "-o", str(graph)]) == 0
    assert "110 conversions between 20 formats measured on 3 samples" in capsys.readouterr().err
    document = written(graph)
    assert document["failed"] == []
    assert len(document["check"]["samples"]) == 2
    assert document["check"]["sizes"]["worst"] < 0.15


@pytest.mark.full
def test_clips_measure_a_whole_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Short ones: those of `--family video` take 25 minutes."""
    graph = tmp_path / "graph.json"
    clips = [str(tmp_path / name) for name in ("one.mp4", "two.mp4", "other.mp4")]
    for path, seconds in zip(clips, (1, 2.5, 1.5), strict=True):
        Path(path).write_bytes(clip_mp4(seconds))
    arguments = [*clips[:2], "--check", clips[2], "--repeat", "1", "-o", str(graph)]
    assert main(["calibrate", *arguments]) == 0
    assert "144 conversions between 16 formats" in capsys.readouterr().err
    document = written(graph)
    assert document["failed"] == []
    assert document["check"]["sizes"]["worst"] < 0.15
