"""`distributary match`: a line per event, and one line for whatever is wrong."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.commands import check_one_line, run

from distributary.cli import main
from distributary.cli.event_lines import BadLines, event_lines, event_portions
from distributary.content.publication import Publication

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "e1",
    "source": "/sensors/7",
    "type": "temperature",
    "time": "2026-01-05T10:00:00Z",
    "level": 3,
    "data": {"celsius": 21.5, "room": "lab"},
}
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "warm", "filters": [{"range": {"/celsius": {"min": 20}}}]},
    {"id": "all", "filters": []},
    {"id": "cold", "filters": [{"range": {"/celsius": {"max_exclusive": 20}}}]},
    {"id": "high", "filters": [{"sql": "level > 2 AND type = 'temperature'"}], "profile": {}},
    {"id": "lab", "filters": [{"prefix": {"/room": "la"}}, {"not": {"exact": {"type": "x"}}}]},
]


def event(**changes: Any) -> str:
    fields = {key: value for key, value in {**EVENT, **changes}.items() if value != "absent"}
    return json.dumps(fields, ensure_ascii=False)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("subscriptions.json").write_text(json.dumps(SUBSCRIPTIONS), encoding="utf-8")
    Path("events.jsonl").write_text(
        "\n".join((event(), event(id="e2", data={"celsius": 3}), "", event(id="é3", level=1))),
        encoding="utf-8",
    )


EXPECTED = [
    {"event": "e1", "matches": ["all", "high", "lab", "warm"]},
    {"event": "e2", "matches": ["all", "cold", "high"]},
    {"event": "é3", "matches": ["all", "lab", "warm"]},
]


def test_a_line_per_event_with_sorted_matches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "events.jsonl", "subscriptions.json"]) == 0
    stdout, stderr = capsys.readouterr()
    assert [json.loads(line) for line in stdout.splitlines()] == EXPECTED
    assert stdout.startswith('{"event": "e1", "matches": ["all", "high", "lab", "warm"]}\n')
    assert stderr == ""


def test_the_output_file_is_whole_and_the_summary_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["match", "events.jsonl", "subscriptions.json", "-o", "matches.jsonl"]) == 0
    lines = Path("matches.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == EXPECTED
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert stderr == "3 events, 5 subscriptions, 10 matches; written to matches.jsonl\n"


def stream(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let standard input have this text."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))


def test_events_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(Path("events.jsonl").read_text(encoding="utf-8"), monkeypatch)
    assert main(["match", "-", "subscriptions.json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == EXPECTED


def test_subscriptions_come_from_standard_input_too() -> None:
    result = run("match", "events.jsonl", "-", input=json.dumps(SUBSCRIPTIONS))
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == len(EXPECTED)


def test_an_event_is_answered_while_the_next_is_awaited() -> None:
    """Whoever watches a stream sees each line when it is there, not when a buffer is full."""
    process = "import sys; from distributary.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", process, "match", "-", "subscriptions.json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for expected in ("a", "b"):
            running.stdin.write(event(id=expected) + "\n")
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["event"] == expected
        running.stdin.close()
        assert running.wait(timeout=300) == 0


def test_a_fault_on_a_late_line_leaves_standard_output_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever was answered before it, even more than waits in memory."""
    line = event(id="x" * 4000)
    Path("events.jsonl").write_text(f"{line}\n" * 2500 + "{}\n", encoding="utf-8")
    code = main(["match", "events.jsonl", "subscriptions.json"])
    check_one_line(code, *capsys.readouterr(), "events.jsonl: line 2501: ")


def test_more_than_waits_in_memory_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{i}é" + "x" * 4000 for i in range(2500)]
    Path("events.jsonl").write_text("\n".join(event(id=name) for name in names), encoding="utf-8")
    assert main(["match", "events.jsonl", "subscriptions.json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in found] == names
    assert all(line["matches"] == EXPECTED[0]["matches"] for line in found)


def test_a_stream_is_answered_up_to_its_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(f"{event()}\n{{}}\n{event()}\n", monkeypatch)
    assert main(["match", "-", "subscriptions.json"]) == 2
    stdout, stderr = capsys.readouterr()
    assert [json.loads(line) for line in stdout.splitlines()] == EXPECTED[:1]
    assert stderr.startswith("error: standard input: line 2: ")


def many_lines() -> str:
    """Return events of many shapes, and bad lines among them."""
    shapes = [
        event(),
        event(id="é2", data={"celsius": 3, "room": "lab"}),
        event(level="absent", time="absent", data="absent"),
        event(data="absent", data_base64="AAEC", datacontenttype="image/png"),
        event(level="+4", urgent=True, subject="\U0001f4a7"),
        event(data=[{"celsius": 20}], datacontenttype="text/json"),
        event(data={"celsius": 10**30, "room": None}),
        event(data={f"k{i}": i for i in range(300)}),
        "",
        "{}",
    ]
    return "\n".join(shapes[(7 * i + i // 10) % len(shapes)] for i in range(2900))


def test_a_file_and_a_stream_get_the_same_answers_byte_for_byte(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is answered in portions, and a stream event by event."""
    given = many_lines()
    Path("events.jsonl").write_text(given, encoding="utf-8")
    assert main(["match", "events.jsonl", "subscriptions.json", "--skip-bad"]) == 0
    together = capsys.readouterr().out
    assert len(together.splitlines()) > 2000
    assert len(set(together.splitlines())) == 5
    stream(given, monkeypatch)
    assert main(["match", "-", "subscriptions.json", "--skip-bad"]) == 0
    assert capsys.readouterr().out == together


def test_the_first_bad_line_of_many_portions_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [event()] * 2345 + ["{}"] + [event()] * 800 + ["[]"]
    Path("events.jsonl").write_text("\n".join(lines), encoding="utf-8")
    code = main(["match", "events.jsonl", "subscriptions.json"])
    check_one_line(code, *capsys.readouterr(), "events.jsonl: line 2346: ")


def test_portions_are_bounded_by_events_and_by_bytes() -> None:
    """An event may have megabytes."""
    small, large = event() + "\n", event(data="x" * 2_200_000) + "\n"
    Path("events.jsonl").write_text(small * 25 + large * 5, encoding="utf-8")
    portions = event_portions(
        event_lines(Path("events.jsonl")), BadLines(skip=False), events_max=10
    )
    assert [len(portion.events) for portion in portions] == [10, 10, 7, 2, 1]


def test_no_events_are_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Path("events.jsonl").write_text("\n\n", encoding="utf-8")
    assert main(["match", "events.jsonl", "subscriptions.json"]) == 0
    assert capsys.readouterr() == ("", "")


BAD_EVENTS = [
    ("{", "column 2: malformed JSON"),
    ("[]", "event: must be an object"),
    ("7", "event: must be an object"),
    (event(id="absent"), "id: is missing"),
    (event(source="absent"), "source: is missing"),
    (event(type=""), "type: must not be empty"),
    (event(specversion="0.3"), "specversion: must be '1.0'"),
    (event(time="2026-01-05T10:00:00"), "time: "),
    (event(time="yesterday"), "time: "),
    (event(level=2**31), "level: is an integer beyond 32 bits"),
    (event(level=1.5), "level: must be a string, an integer or a boolean"),
    (event(level=[1]), "level: must be a string, an integer or a boolean"),
    (event(Level=1), "'Level': is not the name of an attribute"),
    (event(data_base64="AA=="), "data_base64: cannot be given together with data"),
    ('{"id": "a", "id": "b"}', "id: is given twice"),
    ('{"data": NaN}', "data: is NaN"),
    ("[" * 100_000, "document: is nested too deeply"),
    ("\xff", "byte 0: is not UTF-8"),
    ("null", "event: must be an object"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_EVENTS)
def test_a_bad_event_is_named_by_file_and_line(
    line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = f"{event()}\n\n{line}\n{event(id='e2')}\n"
    Path("events.jsonl").write_text(content, encoding="latin-1")
    code = main(["match", "events.jsonl", "subscriptions.json", "-o", "matches.jsonl"])
    stdout, stderr = capsys.readouterr()
    check_one_line(code, stdout, stderr, f"error: events.jsonl: line 3: {problem}")
    assert sorted(path.name for path in Path().iterdir()) == ["events.jsonl", "subscriptions.json"]


@pytest.mark.parametrize(("line", "problem"), BAD_EVENTS[:3])
def test_a_bad_event_is_skipped_and_counted_on_request(
    line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("events.jsonl").write_text(f"{event()}\n{line}\n{event(id='e2')}\n", encoding="utf-8")
    assert main(["match", "events.jsonl", "subscriptions.json", "--skip-bad"]) == 0
    stdout, stderr = capsys.readouterr()
    assert [json.loads(row)["event"] for row in stdout.splitlines()] == ["e1", "e2"]
    warnings = stderr.splitlines()
    assert warnings[0].startswith(f"warning: events.jsonl: line 2: {problem}")
    assert warnings[1:] == ["warning: 1 bad line was skipped"]


def test_many_bad_events_are_not_all_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("events.jsonl").write_text("{}\n" * 1200, encoding="utf-8")
    assert main(["match", "events.jsonl", "subscriptions.json", "--skip-bad"]) == 0
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert len(stderr.splitlines()) == 6
    assert stderr.endswith("warning: 1,200 bad lines were skipped\n")


BAD_SUBSCRIPTIONS: list[tuple[object, str]] = [
    ({}, "document: must be an array of subscriptions"),
    ([1], "[0]: must be an object"),
    ([{"filters": []}], "[0].id: is missing"),
    ([{"id": "a"}], "[0].filters: is missing"),
    ([{"id": 1, "filters": []}], "[0].id: must be a string"),
    ([{"id": "", "filters": []}], "[0].id: must be a string that is not empty"),
    ([{"id": "a" * 2000, "filters": []}], "subscription: 'aaa"),
    ([{"id": "a", "filters": []}] * 2, "[1].id: 'a' is given twice"),
    ([{"id": "a", "filters": {}}], "[0].filters: must be an array"),
    ([{"id": "a", "filters": [{"equals": {}}]}], "[0].filters[0].equals: 'equals' is not a"),
    ([{"id": "a", "filters": [{"any": []}]}], "[0].filters[0].any: must not be empty"),
    ([{"id": "a", "filters": [{"sql": "type ="}]}], "[0].filters[0].sql: expression, char"),
    (
        [{"id": "a", "filters": [{"range": {"/p": {"min": "1"}}}]}],
        '[0].filters[0].range["/p"].min: must be a number',
    ),
]


@pytest.mark.parametrize(("document", "place"), BAD_SUBSCRIPTIONS)
def test_bad_subscriptions_get_one_line(
    document: object, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("subscriptions.json").write_text(json.dumps(document), encoding="utf-8")
    code = main(["match", "events.jsonl", "subscriptions.json"])
    check_one_line(code, *capsys.readouterr(), f"subscriptions.json: {place}")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["missing.jsonl", "subscriptions.json"], "missing.jsonl: does not exist"),
        (["events.jsonl", "missing.json"], "missing.json: does not exist"),
        ([".", "subscriptions.json"], ".: is a directory"),
        (["events.jsonl", "."], ".: is a directory"),
        (["-", "-"], "SUBSCRIPTIONS.json: cannot be - when EVENTS.jsonl is"),
        (["events.jsonl"], "Missing argument 'SUBSCRIPTIONS.json'"),
        (["events.jsonl", "subscriptions.json", "-o", "no/x.jsonl"], "-o: directory 'no'"),
        (["events.jsonl", "subscriptions.json", "-o", "."], "-o: '.' is a directory"),
        (["events.jsonl", "events.jsonl"], "events.jsonl: line 2, column 1: malformed JSON"),
    ],
)
def test_bad_arguments_get_one_line(
    arguments: list[str], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["match", *arguments])
    check_one_line(code, *capsys.readouterr(), place)


def test_a_line_longer_than_an_event_is_one_bad_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of it is passed over in pieces, and is not taken for further lines."""
    monkeypatch.setattr("distributary.content.publication.EVENT_BYTES_MAX", 1000)
    long = event(data="x" * 5000)
    Path("events.jsonl").write_text(f"{long}\n{event(id='e2')}\n", encoding="utf-8")
    found = list(event_lines(Path("events.jsonl")))
    assert "line 1: event: is larger than" in str(found[0].event)
    assert isinstance(found[1].event, Publication)
    assert found[1].event.id == "e2"
    assert len(found) == 2
    assert found[1].end == Path("events.jsonl").stat().st_size


def test_memory_does_not_grow_with_the_file() -> None:
    """Ten megabytes of events pass in less than two."""
    line = event(data={"celsius": 1, "note": "x" * 10_000}) + "\n"
    Path("events.jsonl").write_text(line * 1000, encoding="utf-8")
    count = 0
    tracemalloc.start()
    try:
        for found in event_lines(Path("events.jsonl")):
            assert isinstance(found.event, Publication)
            count += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1000
    assert peak < 2 * 2**20
