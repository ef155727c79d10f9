"""`distributary formats`: everything that can be converted, and what it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.commands import check_one_line

from distributary.cli import main
from distributary.media.converters import BUILT_IN
from distributary.media.registry import Registry, installed

PDF_TO_TEXT = {"from": "application/pdf", "to": "text/plain;charset=utf-8"}


def listing(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["formats", "--json", *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = json.loads(printed.out)
    assert isinstance(found, dict)
    return found


def test_data_names_every_format_and_conversion(capsys: pytest.CaptureFixture[str]) -> None:
    found = listing(capsys)
    assert found["formats"] == list(installed().formats)
    assert [(item["from"], item["to"], item["converter"]) for item in found["conversions"]] == [
        (item.source, item.target, item.converter) for item in installed().conversions
    ]
    assert found["missing"] == []


def test_every_conversion_of_our_own_has_a_cost_and_every_format_a_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = listing(capsys)
    ours = Registry(kind() for kind in BUILT_IN)
    costs = {(item["from"], item["to"]): item["cost"] for item in found["conversions"]}
    for item in ours.conversions:
        cost = costs[item.source, item.target]
        assert cost.keys() == {"fixed", "per_mb"}
        assert cost["fixed"] + cost["per_mb"] > 0
    assert set(ours.formats) <= found["sizes"].keys()
    assert found["sizes"]["application/pdf"] == {"fixed": 0.0, "per_mb": 1.0}


def test_filters_keep_what_they_admit(capsys: pytest.CaptureFixture[str]) -> None:
    found = listing(capsys, "--from", "application/pdf", "--to", "text/*")
    assert [{key: item[key] for key in ("from", "to")} for item in found["conversions"]] == [
        PDF_TO_TEXT
    ]
    assert found["formats"] == sorted(PDF_TO_TEXT.values())
    wide = listing(capsys, "--to", "video/mp4;width=640")
    assert {item["to"] for item in wide["conversions"]} == {"video/mp4;width=640;bitrate=1000k"}
    assert len(wide["conversions"]) == 3


def test_other_names_of_a_format_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing(capsys, "--to", "audio/mp3") == listing(capsys, "--to", "audio/mpeg")


def test_the_table_groups_what_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert len(lines) < 70
    assert max(map(len, lines)) <= 120
    [line] = [line for line in lines if "video/*" in line and "video/x-flv" in line]
    assert line.split()[3] == "36"
    assert sum("video/*;width=640;bitrate=1000k" in line for line in lines) == 1
    assert f"{len(installed().conversions)} conversions" in lines[-1]


def test_all_conversions_can_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "--all"]) == 0
    printed = capsys.readouterr().out
    for item in installed().conversions:
        assert any(
            line.split()[:2] == [item.source, item.target] for line in printed.splitlines()
        ), item


def test_sizes_are_those_of_the_content_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "--from", "application/pdf", "--bytes", "2500000"]) == 0
    printed = capsys.readouterr().out
    assert ["application/pdf", "2.50"] in [line.split() for line in printed.splitlines()]
    assert "2,500,000 bytes" in printed


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["--from", "nonsense"], "--from: 'nonsense' is not a media type"),
        (["--from", "image/x-unheard"], "--from: no listed conversion reads"),
        (["--to", "application/pdf"], "--to: no listed conversion writes"),
        (["--from", "audio/wav", "--to", "image/*"], "--to: nothing converts"),
        (["--bytes", "-1"], "--bytes"),
        (["--bytes", str(10**15 + 1)], "--bytes"),
    ],
)
def test_filters_that_let_nothing_through_are_refused(
    arguments: list[str], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["formats", *arguments])
    printed = capsys.readouterr()
    check_one_line(code, printed.out, printed.err, place)


def test_converters_without_their_packages_are_named_with_what_to_install() -> None:
    """The video family is gone with its package, and the rest works."""
    code = (
        "import sys; sys.modules['av'] = None\n"
        "from distributary.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    def answer(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, "formats", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout

    assert 'not installed: video; pip install "distributary[video]" adds it' in answer()
    found = json.loads(answer("--json"))
    assert {"converter": "video", "install": "distributary[video]"} in found["missing"]
    assert not any(name.startswith("video/") for name in found["formats"])
    assert "application/pdf" in found["formats"]
