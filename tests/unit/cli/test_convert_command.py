"""`distributary convert` writes the whole result or nothing, and says why in one line."""

from __future__ import annotations

import io
import re
import stat
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from PIL import Image
from tests.commands import check_one_line, run
from tests.tiny_media import tiny

from distributary.cli import main

PROCESS = "import sys; from distributary.cli import main; sys.exit(main())"


@pytest.fixture(autouse=True)
def in_a_folder_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("map.pdf").write_bytes(tiny("application/pdf"))
    Path("photo.jpg").write_bytes(tiny("image/jpeg"))
    Path("notice.txt").write_bytes(tiny("text/plain"))
    Path("clip.mp4").write_bytes(tiny("video/mp4"))


def listing() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def test_the_suffix_says_what_to_make_and_the_last_line_what_was_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["convert", "map.pdf", "map.png", "--to", "image/png;width=320"]) == 0
    with Image.open("map.png") as picture:
        assert (picture.format, picture.width) == ("PNG", 320)
    assert main(["convert", "photo.jpg", "photo.webp"]) == 0
    with Image.open("photo.webp") as picture:
        assert (picture.format, picture.size) == ("WEBP", (200, 150))
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    first, second = stderr.splitlines()
    size = Path("map.png").stat().st_size
    expected = rf"application/pdf -> image/png;width=320: 825 bytes -> {size:,} bytes, \d+\.\d+ s"
    assert re.fullmatch(expected, first)
    assert second.startswith("image/jpeg -> image/webp: ")


def test_what_takes_several_conversions_names_the_formats_on_the_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["convert", "map.pdf", "map.wav"]) == 0
    with wave.open("map.wav") as sound:
        assert sound.getnframes() > 10_000
    said = capsys.readouterr().err
    assert said.startswith("application/pdf -> text/plain;charset=utf-8 -> audio/wav: ")


def test_standard_input_and_output_carry_any_content() -> None:
    command = ["convert", "-", "-", "--to", "image/png;width=50"]
    ran = subprocess.run(
        [sys.executable, "-c", PROCESS, *command],
        input=tiny("image/jpeg"),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    with Image.open(io.BytesIO(ran.stdout)) as picture:
        assert (picture.format, picture.width) == ("PNG", 50)
    assert ran.stderr.startswith(b"image/jpeg -> image/png;width=50: ")


def test_from_overrules_what_the_file_looks_like(capsys: pytest.CaptureFixture[str]) -> None:
    Path("latin.txt").write_bytes("Grüße".encode("latin-1"))
    arguments = ["latin.txt", "out.txt", "--from", "text/plain;charset=iso-8859-1"]
    assert main(["convert", *arguments, "--to", "text/plain;charset=utf-8"]) == 0
    assert Path("out.txt").read_text("utf-8") == "Grüße"
    assert main(["convert", "photo.jpg", "out.png", "--from", "image/webp"]) == 2
    assert "photo.jpg: image/webp cannot be converted to image/png" in capsys.readouterr().err


def test_content_counts_for_more_than_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("photo.png").write_bytes(tiny("image/jpeg"))
    assert main(["convert", "photo.png", "out.webp"]) == 0
    assert capsys.readouterr().err.startswith("image/jpeg -> image/webp")


def test_a_file_that_is_in_the_format_already_is_copied() -> None:
    assert main(["convert", "photo.jpg", "again.jpeg"]) == 0
    assert Path("again.jpeg").read_bytes() == tiny("image/jpeg")


def test_text_is_utf_8_unless_told_otherwise() -> None:
    Path("wide.txt").write_bytes("Grüße".encode("utf-16"))
    assert main(["convert", "wide.txt", "plain.txt"]) == 0
    assert Path("plain.txt").read_bytes() == "Grüße".encode()
    assert main(["convert", "plain.txt", "again.txt"]) == 0
    assert Path("again.txt").read_bytes() == "Grüße".encode()


def test_a_file_may_be_converted_into_its_own_place() -> None:
    assert main(["convert", "photo.jpg", "photo.jpg", "--to", "image/jpeg;width=100"]) == 0
    with Image.open("photo.jpg") as picture:
        assert picture.width == 100


def test_the_second_time_is_taken_from_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for name in ("a.webp", "b.webp"):
        assert main(["convert", "photo.jpg", name, "--cache", "kept"]) == 0
        said.append(capsys.readouterr().err)
    assert [line.rstrip().endswith("s, cached") for line in said] == [False, True]
    assert Path("a.webp").read_bytes() == Path("b.webp").read_bytes()
    assert stat.S_IMODE(Path("kept").stat().st_mode) == 0o700


def test_a_cache_that_is_a_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("occupied").write_bytes(b"")
    assert main(["convert", "photo.jpg", "photo.webp", "--cache", "occupied"]) == 2
    assert capsys.readouterr().err == "error: --cache: 'occupied' is not a directory\n"


def test_a_file_that_cannot_be_converted_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("broken.pdf").write_bytes(tiny("application/pdf")[:200])
    Path("old.png").write_bytes(b"what was there before")
    before = listing()
    code = main(["convert", "broken.pdf", "old.png"])
    check_one_line(code, *capsys.readouterr(), "broken.pdf: application/pdf cannot be converted")
    assert listing() == before
    assert Path("old.png").read_bytes() == b"what was there before"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.pdf", "a.png"], "nowhere.pdf: cannot be read: no such file"),
        ([".", "a.png"], ".: is a directory"),
        (["map.pdf", "."], "OUT: '.' does not say which format to make; hint: --to says it"),
        (["map.pdf", ".", "--to", "image/png"], "OUT: '.' is a directory"),
        (["map.pdf", "nowhere/a.png"], "OUT: directory 'nowhere' does not exist"),
        (["map.pdf", "a.xyz"], "OUT: 'a.xyz' does not say which format to make"),
        (["map.pdf", "-"], "OUT: '-' does not say which format to make"),
        (["map.pdf", "a.png", "--to", "png"], "--to: 'png' is not a media type"),
        (["map.pdf", "a.png", "--from", "pdf"], "--from: 'pdf' is not a media type"),
        (["photo.jpg", "a.mp4"], "photo.jpg: nothing converts 'image/jpeg' to 'video/mp4'; hint: "),
        (["photo.jpg", "a.png", "--to", "image/png;depth=8"], "photo.jpg: nothing converts"),
        (["photo.jpg", "a.png", "--to", "image/png;width=400"], "photo.jpg: image/jpeg cannot be"),
        (["blob", "a.png"], "blob: "),
        (["blob", "a.png"], "hint: --from says what it is"),
        (["map.pdf", "a.png", "--seconds", "0"], "--seconds: must be a finite number greater"),
        (["map.pdf", "a.png", "--memory", "nan"], "--memory: must be a finite number greater"),
        (["map.pdf", "a.png", "--seconds", "1e300"], "--seconds: must be at most 1,000,000, not"),
        (["map.pdf", "a.png", "--memory", "1e15"], "--memory: must be at most 1,000,000,000, not"),
        (["map.pdf", "a.png", "--size", "1e15"], "--size: must be at most 1,000,000,000, not"),
        (["map.pdf", "a.png", "--pages", "9" * 20], "--pages: must be at most 1,000,000,000,000"),
        (["blob", "a.png", "--from", "image/png"], "blob: is not image/png"),
        (
            ["map.pdf", "a.jpg", "--from", "image/jpg"],
            "map.pdf: is application/pdf, not image/jpeg",
        ),
        (["map.pdf", "a.png", "--pages", "0"], "--pages: must be at least 1, not 0"),
        (["map.pdf", "a.png", "--size", "0.0001"], "map.pdf: has 825 bytes; at most 100 bytes"),
        (["map.pdf", "a.png", "--pages", "1"], "hint: --pages allows more"),
        (["photo.jpg", "a.png", "--pixels", "900"], "hint: --pixels allows more"),
        (["notice.txt", "a.wav", "--size", "0.01"], "hint: --size allows more"),
        (["clip.mp4", "a.flv", "--frames", "3"], "hint: --frames allows more"),
        (["clip.mp4", "a.flv", "--seconds", "0.001"], "hint: --seconds allows more"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("blob").write_bytes(bytes(range(256)))
    before = listing()
    code = main(["convert", *arguments])
    check_one_line(code, *capsys.readouterr(), said)
    assert listing() == before


def test_a_pipe_without_end_is_refused_when_it_is_too_long() -> None:
    with Path("/dev/zero").open("rb") as endless:
        ran = run("convert", "-", "a.png", "--size", "3", stdin=endless)
    check_one_line(
        ran.returncode, ran.stdout, ran.stderr, "standard input: has more; at most 3,000,000"
    )


def test_a_disk_that_is_full_is_reported() -> None:
    ran = run("convert", "photo.jpg", "/dev/full", "--to", "image/png")
    check_one_line(ran.returncode, ran.stdout, ran.stderr, "OUT: '/dev/full' cannot be written: no")


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--help"]) == 0
    assert "distributary convert map.pdf map.jpg" in capsys.readouterr().out
