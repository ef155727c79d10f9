"""Streams: the tables of the batch jobs, however files arrive and however often it restarts."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.arriving_files import (
    DELAY_US,
    arriving,
    micros,
    sorted_rows,
    write_batch_result,
    write_tables,
)
from tests.reference import pipeline_rates as slow

from distributary.cli.pipeline.durations import microseconds
from distributary.errors import BadInput
from distributary.pipeline.jobs.stream import StreamOptions, stream
from distributary.pipeline.jobs.stream_files import BatchFiles, table_told_by
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import SourceFile
from distributary.pipeline.store import Store

WINDOW_US = 30_000_000
KEY = ("source", "event_id")


@pytest.fixture
def options(tmp_path: Path) -> StreamOptions:
    (tmp_path / "in").mkdir()
    return StreamOptions(
        str(tmp_path / "in"),
        str(tmp_path / "checkpoint"),
        once=True,
        window_us=WINDOW_US,
        delay_us=DELAY_US,
    )


@pytest.fixture
def live(store: Store, tmp_path: Path) -> Store:
    """Where the stream puts its tables."""
    return Store(str(tmp_path / "live"), store.spark)


def decided(live: Store, kind: str) -> dict[tuple[str, str], list[tuple[int, float, Any]]]:
    """What was decided about each subject and object: window, value and the value before."""
    rows = live.frame("decisions").filter(f"kind = '{kind}'").toArrow().to_pylist()
    found: dict[tuple[str, str], list[tuple[int, float, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["window_start"]):
        window, end = micros([row["window_start"], row["window_end"]]).tolist()
        assert end - window == WINDOW_US
        found.setdefault((row["subject"], row["object"]), []).append(
            (window, row["value"], row["previous"])
        )
    return found


def test_a_stream_gives_the_tables_of_the_batch_jobs(
    store: Store, live: Store, options: StreamOptions, tmp_path: Path
) -> None:
    """In batches, with a restart in between, and a batch that Spark does not know is done."""
    write_tables(store)
    files = arriving(store, tmp_path / "in", files=2)
    next(files)
    first = stream(store, live, options)
    assert (first.figures["batches"], first.figures["files"]) == (1, 2)
    for done in (tmp_path / "checkpoint" / "spark" / "commits").glob("*0*"):
        done.unlink()
    later = [*files]
    second = stream(store, live, replace(options, files_max=2, collected_max=5))
    assert second.figures["batches"] == 1 + len(later)
    assert second.rows_out["quarantine"] == second.figures["late"] == 0

    whole = Store(str(tmp_path / "whole"), store.spark)
    write_batch_result(whole, tmp_path / "in")
    for name in ("publications", "quotes", "deliveries", "rates", "traffic"):
        expected = sorted_rows(whole, name)
        assert expected
        assert sorted_rows(live, name) == expected, name
    check_rate_decisions(store, live)
    check_traffic_decisions(live)


def check_rate_decisions(store: Store, live: Store) -> None:
    quotes = live.frame("quotes").toArrow()
    times = micros(quotes.column("time"))
    watermark = int(times.max()) - DELAY_US
    subscriptions = store.frame("subscriptions").toArrow().to_pylist()
    homes = {row["user"]: row["broker"] for row in store.frame("users").toArrow().to_pylist()}
    expected = {}
    for name in sorted(set(quotes.column("object").to_pylist())):
        own = np.asarray(pa.compute.equal(quotes.column("object"), name))
        values = quotes.column("value").to_numpy()[own]
        versions = sorted(zip(times[own].tolist(), values.tolist(), strict=True))
        for server, wanted in slow.wanted_by(name, subscriptions, homes).items():
            told = slow.news_one_by_one(
                slow.sent_times(versions, wanted),
                versions[0][0],
                watermark_us=watermark,
                length_us=WINDOW_US,
                tau=0.2,
            )
            expected[server, name] = told
    assert decided(live, "rate") == expected
    assert max(len(told) for told in expected.values()) > 1


def check_traffic_decisions(live: Store) -> None:
    rows = live.frame("publications").select(*KEY, "publisher", "time", "bytes").toArrow()
    times, sizes = micros(rows.column("time")), rows.column("bytes").to_numpy()
    watermark = int(times.max()) - DELAY_US
    first = int(times.min()) // WINDOW_US * WINDOW_US
    expected = {}
    for user in sorted(set(rows.column("publisher").to_pylist())):
        own = np.asarray(pa.compute.equal(rows.column("publisher"), user))
        starts = range(first, watermark - WINDOW_US + 1, WINDOW_US)
        values = [
            float(sizes[own & (times // WINDOW_US * WINDOW_US == start)].sum()) / (WINDOW_US / 1e6)
            for start in starts
        ]
        told = slow.reported_one_by_one(values, None, 0.2)
        expected[user, "out"] = [
            (start, value, before)
            for start, value, (news, before) in zip(starts, values, told, strict=True)
            if news
        ]
    at = dict(zip(zip(*(rows[name].to_pylist() for name in KEY), strict=True), times, strict=True))
    once = {
        (row["user"], row["source"], row["event_id"]): row["bytes"]
        for row in live.frame("deliveries").toArrow().to_pylist()
    }
    # Whoever subscribes to something is told of, even of receiving nothing.
    starts = range(first, watermark - WINDOW_US + 1, WINDOW_US)
    for user in sorted({user for user, _, _ in once}):
        received = dict.fromkeys(starts, 0)
        for (who, source, event_id), size in once.items():
            start = int(at[source, event_id]) // WINDOW_US * WINDOW_US
            if who == user and start in received:
                received[start] += size
        values = [total / (WINDOW_US / 1e6) for total in received.values()]
        told = slow.reported_one_by_one(values, None, 0.2)
        expected[user, "in"] = [
            (start, value, before)
            for start, value, (news, before) in zip(starts, values, told, strict=True)
            if news
        ]
    found = decided(live, "traffic")
    known = {about: told for about, told in found.items() if about in expected}
    assert set(known) == {about for about, told in expected.items() if told}
    assert {way for _, way in known} == {"in", "out"}
    for about, found_there in known.items():
        # Bytes are added up before they are divided there, and after that here.
        assert np.array(found_there, float) == pytest.approx(
            np.array(expected[about], float), rel=1e-12, nan_ok=True
        )
    # The others neither publish nor receive anything.
    assert all(value == 0.0 for about in set(found) - set(known) for _, value, _ in found[about])


def test_every_row_is_in_the_table_or_in_quarantine(
    store: Store, live: Store, options: StreamOptions, tmp_path: Path
) -> None:
    """Late rows, rows that are there already, broken lines and files that are none."""
    write_tables(store)
    head = "object,time,value\n"

    def line(second: int, value: float = 1.0, name: str = "stock-0000") -> str:
        return f"{name},2026-01-05T00:{second // 60:02d}:{second % 60:02d}Z,{value}\n"

    arrived = tmp_path / "in"
    (arrived / "1.csv").write_text(head + line(100) + line(90) + line(90, 7.0) + "nonsense\n")
    stream(store, live, options)
    # The watermark is at 80 seconds now.
    (arrived / "2.csv").write_text(
        head + line(79) + line(80) + line(90) + line(100, name="stock-0001") + line(120)
    )
    (arrived / "3.parquet").write_bytes(b"PAR1 and then nothing")
    (arrived / "notes.txt").write_text("not a table\n")
    report = stream(store, live, options)
    assert report.rows_in["quotes"] == 7
    assert report.rows_out["quotes"] == 3
    assert report.rows_out["quarantine"] == 4
    assert report.figures["late"] == 1
    kept = live.frame("quotes").toArrow().to_pylist()
    seconds = sorted((row["time"].minute * 60 + row["time"].second, row["value"]) for row in kept)
    assert seconds == [(80, 1.0), (90, 1.0), (100, 1.0), (100, 1.0), (120, 1.0)]
    apart = live.frame("quarantine").toArrow().to_pylist()
    assert {row["table"] for row in apart} == {"quotes"}
    reasons = sorted((Path(row["file"]).name, row["line"], row["reason"]) for row in apart[:])
    assert [item[:2] for item in reasons] == [
        ("1.csv", 4), ("1.csv", 5), ("2.csv", 2), ("2.csv", 4), ("3.parquet", None),
        ("notes.txt", None),
    ]  # fmt: skip
    assert [item[2] for item in reasons][:4] == [
        "repeated", "line has 1 fields where 3 are expected", "late", "already there",
    ]  # fmt: skip
    assert next(row["raw"] for row in apart if row["reason"] == "late") == line(79).strip()
    rates = live.frame("rates").toArrow().to_pylist()
    assert {row["object"] for row in rates} <= {"stock-0000", "stock-0001"}
    assert all(math.isfinite(row["updates_per_second"]) for row in rates)


def test_a_stream_stops_when_it_is_asked_to(
    store: Store, live: Store, options: StreamOptions, tmp_path: Path
) -> None:
    write_tables(store)
    (tmp_path / "in" / "quotes").mkdir()
    text = "object,time,value\nstock-0000,2026-01-05T00:00:00Z,1\n"
    (tmp_path / "in" / "quotes" / "1.csv").write_text(text)
    state = tmp_path / "checkpoint" / "batch=0.json"
    report = stream(
        store, live, replace(options, once=False, every_us=100_000), stopped=state.exists
    )
    assert report.rows_out["quotes"] == 1
    assert live.frame("quotes").count() == 1


def test_tables_of_other_jobs_are_left_alone(
    store: Store, options: StreamOptions, tmp_path: Path
) -> None:
    write_tables(store)
    (tmp_path / "data" / "publications").mkdir()
    (tmp_path / "data" / "publications" / "part-0.parquet").write_bytes(b"")
    with pytest.raises(BadInput, match=r"publications: was written by another job.*-o another"):
        stream(store, store, options)
    assert not (tmp_path / "checkpoint").exists()
    other = Store(str(tmp_path / "other"), store.spark)
    nothing = table_schema("decisions").arrow.empty_table()
    other.publish(other.draft("decisions", nothing), append=True, batch=("stream-a", 3))
    for _ in range(2):
        with pytest.raises(BadInput, match=r"decisions: is there, and a stream that begins"):
            stream(store, other, options)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"table": "users"}, "--table: 'users' is not fed by streams"),
        ({"window_us": 0}, "--window: must be greater than 0"),
        ({"files_max": 0}, "--max-files: must be greater than 0"),
        ({"delay_us": -1}, "--watermark: must be at least 0"),
        ({"tau": -0.1}, "--tau: must be at least 0"),
        ({"folder": "no/such/folder"}, "no/such/folder: does not exist"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    store: Store, options: StreamOptions, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        stream(store, store, replace(options, **change))


def test_a_checkpoint_of_another_stream_is_refused(
    store: Store, live: Store, options: StreamOptions, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="subscriptions: there is no such table"):
        stream(store, live, options)
    with pytest.raises(BadInput, match=r"a stream with window_us '30000000', not '1'"):
        stream(store, live, replace(options, window_us=1))
    with pytest.raises(BadInput, match="not the checkpoint of a stream"):
        stream(store, live, replace(options, checkpoint=str(tmp_path)))


def test_files_tell_which_table_they_are_for(tmp_path: Path) -> None:
    event = '{"specversion": "1.0", "id": "1", "source": "/", "type": "a"}\n'
    texts = {
        "a.csv": "time,value,object\n",
        "b.json": '{"object": "x", "time": "2026-01-05T00:00:00Z", "value": 1}\n',
        "c.jsonl": f"\n{event}",
        "d.ndjson": '{"specversion": "1.0", "data": "' + "x" * 2**17 + '"}\n',
        "e.csv": "source,event_id\n",
        "f.json": "",
        "g.parquet": "PAR1",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    told = dict.fromkeys(("a.csv", "b.json"), "quotes")
    told |= dict.fromkeys(("c.jsonl", "d.ndjson", "e.csv"), "publications")
    assert {name: table_told_by(str(tmp_path / name)) for name in told} == told
    with pytest.raises(BadInput, match="does not tell whether"):
        table_told_by(str(tmp_path / "f.json"))
    with pytest.raises(BadInput, match="cannot be read"):
        table_told_by(str(tmp_path / "g.parquet"))
    files = [SourceFile(str(tmp_path / name), 1) for name in ("f.json", "g.parquet", "h.csv")]
    with pytest.raises(BadInput, match=r"h\.csv: does not exist"):
        BatchFiles.of(files, str(tmp_path), others=None)
    (tmp_path / "h.csv").write_text("object,value\n")
    assert BatchFiles.of(files, str(tmp_path), others=None).files == {"quotes": files}


def test_files_are_sorted_by_folder_and_the_first_other_one_tells() -> None:
    files = [
        SourceFile(f"file:/in/{name}", 1)
        for name in ("quotes/b.csv", "quotes/a.csv", "publications/x/y.json", "z.csv")
    ]
    found = BatchFiles.of(files, "/in", others="publications")
    assert {name: [file.path for file in some] for name, some in found.files.items()} == {
        "publications": ["/in/publications/x/y.json", "/in/z.csv"],
        "quotes": ["/in/quotes/a.csv", "/in/quotes/b.csv"],
    }
    assert found.others == "publications"
    assert BatchFiles.of(files[:3], "/in/", others=None).others is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("60s", 60_000_000), ("1.5ms", 1_500), ("2m", 120_000_000), ("1d", 86_400_000_000)],
)
def test_lengths_of_time_are_read(text: str, expected: int) -> None:
    assert microseconds("--window", text) == expected


@pytest.mark.parametrize("text", ["", "60", "s", "-1s", "1.5us", "1 s", "1e3s"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"--window: .* is not a length of time"):
        microseconds("--window", text)
