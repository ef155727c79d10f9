"""What every journal must keep, whatever it is made of."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.recorded_disk import recorded_disk

from distributary.broker.encoding import journal_key
from distributary.errors import BadInput, JournalDamaged
from distributary.network.journal import SqliteJournal, is_full

BROKER = "0000000a"

JOURNALS: Mapping[str, Callable[[Path], SqliteJournal]] = {
    "sqlite": lambda folder: SqliteJournal(folder / "journal.db", BROKER),
}


@pytest.fixture(params=JOURNALS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SqliteJournal]:
    """Opens the journal in one folder, as often as it is called."""
    return lambda: JOURNALS[request.param](tmp_path)


def read_again(opened: Callable[[], SqliteJournal]) -> dict[str, bytes]:
    journal = opened()
    try:
        return journal.read()
    finally:
        journal.close()


def test_what_was_committed_is_there_again(opened: Callable[[], SqliteJournal]) -> None:
    journal = opened()
    assert journal.read() == {}
    journal.commit({"a/1": b"one", "a/2": b"", "b": bytes(range(256))})
    journal.commit({"a/1": None, "a/2": b"two", "nobody": None})
    journal.close()
    assert read_again(opened) == {"a/2": b"two", "b": bytes(range(256))}


def test_another_thread_may_commit(opened: Callable[[], SqliteJournal]) -> None:
    journal = opened()
    thread = threading.Thread(target=journal.commit, args=({"a": b"1"},))
    thread.start()
    thread.join()
    assert journal.read() == {"a": b"1"}
    journal.close()


def test_nothing_of_a_commit_that_fails_is_there(opened: Callable[[], SqliteJournal]) -> None:
    journal = opened()
    journal.commit({"a": b"old", "b": b"old"})
    bad: dict[str, bytes | None] = {"a": b"new", "b": None, "c": "no bytes"}  # type: ignore[dict-item]
    with pytest.raises(Exception, match=r"."):
        journal.commit(bad)
    journal.commit({"d": b"after"})
    wanted = {"a": b"old", "b": b"old", "d": b"after"}
    assert journal.read() == wanted
    journal.close()
    assert read_again(opened) == wanted


writes = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d/e"]), st.none() | st.binary(max_size=40), max_size=4
)


@pytest.mark.parametrize("name", JOURNALS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=st.lists(st.tuples(writes, st.booleans()), max_size=8))
def test_a_journal_is_a_dictionary(
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[tuple[dict[str, bytes | None], bool]],
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = JOURNALS[name](folder)
    wanted: dict[str, bytes] = {}
    for one, reopen in commits:
        journal.commit(one)
        for key, data in one.items():
            if data is None:
                wanted.pop(key, None)
            else:
                wanted[key] = data
        if reopen:
            journal.close()
            journal = JOURNALS[name](folder)
        assert journal.read() == wanted
    journal.close()


# Commits numbers for ever, each under ten keys, and says which are durable.
WRITER = """
import sys
from pathlib import Path
from tests.contract.test_journals import JOURNALS
journal = JOURNALS[sys.argv[1]](Path(sys.argv[2]))
number = max([int(data) for data in journal.read().values()], default=0)
while True:
    number += 1
    journal.commit({f"k/{place}": b"%d" % number for place in range(10)})
    print(number, flush=True)
"""


@pytest.mark.parametrize("name", JOURNALS)
def test_a_process_that_is_killed_in_the_middle_leaves_whole_commits(
    name: str, tmp_path: Path
) -> None:
    rng = random.Random(5)
    promised = 0
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, name, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(rng.randrange(1, 60)):
            promised = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
        promised = int(rest[-1]) if rest else promised
        process.stdout.close()
        process.wait()
        journal = JOURNALS[name](tmp_path)
        values = {int(data) for data in journal.read().values()}
        journal.close()
        assert len(values) == 1
        assert values <= {promised, promised + 1}


def test_a_hundred_thousand_records_are_read_within_two_seconds(
    opened: Callable[[], SqliteJournal],
) -> None:
    journal = opened()
    records: dict[str, bytes] = {
        f"part/{number:06d}": number.to_bytes(4, "big") * 75 for number in range(100_000)
    }
    journal.commit(records)
    journal.close()
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert read_again(opened) == records
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 2.0


def test_a_journal_has_one_process(opened: Callable[[], SqliteJournal]) -> None:
    journal = opened()
    with pytest.raises(BadInput, match="is in use"):
        opened()
    journal.close()
    opened().close()


@pytest.mark.parametrize("after_sync", ["nothing", "some"])
def test_what_was_promised_outlives_a_machine_that_loses_all_it_has_not_synced(
    tmp_path: Path, after_sync: str
) -> None:
    """Played back from what SQLite has done to its files, at every point in time."""
    rng = random.Random(9)
    states: list[dict[str, bytes]] = [{}]
    with recorded_disk("recorded") as disk:
        journal = SqliteJournal(tmp_path / "journal.db", BROKER, vfs="recorded")
        # So that the log is written back to the file several times on the way.
        journal._db.execute("PRAGMA wal_autocheckpoint=100")
        disk.mark()
        for number in range(60):
            keys = rng.sample(range(40), 5)
            change: dict[str, bytes | None] = {
                f"k/{key}": None if rng.random() < 0.2 else bytes([number]) * 9_000 for key in keys
            }
            journal.commit(change)
            disk.mark()
            state = dict(states[-1])
            for name, data in change.items():
                state.pop(name, None) if data is None else state.update({name: data})
            states.append(state)
        journal.close()
    assert any(step.kind == "write" and step.file == "journal.db" for step in disk.done[50:])
    steps = len(disk.done)
    begun = next(place for place, step in enumerate(disk.done) if step.kind == "mark") + 1
    for crash in sorted(rng.sample(range(begun, steps + 1), 60)):
        folder = tmp_path / f"{crash}"
        marks = disk.crash(folder, crash, None if after_sync == "nothing" else rng)
        journal = SqliteJournal(folder / "journal.db", BROKER)
        found = journal.read()
        journal.close()
        promised = marks - 1
        assert found in states[promised : promised + 2], f"after {crash} of {steps} steps"


def test_a_journal_that_does_not_sync_is_caught(tmp_path: Path) -> None:
    """By the test above: this is what it looks for."""
    with recorded_disk("careless") as disk:
        journal = SqliteJournal(tmp_path / "journal.db", BROKER, vfs="careless")
        journal._db.execute("PRAGMA synchronous=NORMAL")
        journal.commit({"a": b"1"})
        disk.crash(tmp_path / "lost", len(disk.done), None)
        journal.close()
    journal = SqliteJournal(tmp_path / "lost" / "journal.db", BROKER)
    assert journal.read() == {}
    journal.close()


def test_a_record_that_the_disk_has_changed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = SqliteJournal(path, BROKER)
    journal.commit({"part/a": b"what is kept", "part/b": b"what is kept too"})
    journal.close()
    path.write_bytes(path.read_bytes().replace(b"what is kept too", b"what is keqt too"))
    journal = SqliteJournal(path, BROKER)
    with pytest.raises(JournalDamaged, match="'part/b' cannot be read: the disk") as caught:
        journal.read()
    assert (caught.value.broker, caught.value.key) == (BROKER, "part/b")
    journal.close()


@pytest.mark.parametrize("kind", ["text", "cut", "hole", "other", "version", "owner"])
def test_what_is_no_journal_of_this_broker_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "journal.db"
    journal = SqliteJournal(path, "0000000b" if kind == "owner" else BROKER)
    journal.commit({f"k/{number}": bytes(3_000) for number in range(20)})
    if kind == "other":
        journal._db.execute("PRAGMA application_id=7")
    if kind == "version":
        journal._db.execute("PRAGMA user_version=7")
    journal.close()
    whole = path.read_bytes()
    if kind == "text":
        path.write_bytes(b"nothing of the kind " * 400)
    elif kind == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "hole":
        path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    words = {"version": "has version 7", "owner": "is that of '0000000b'"}
    with pytest.raises(JournalDamaged, match=words.get(kind, f"journal of broker {BROKER}: it")):
        SqliteJournal(path, BROKER).read()


def test_a_full_disk_is_told_from_a_broken_one(tmp_path: Path) -> None:
    """And what was there before is there, and room that is made is used."""
    journal = SqliteJournal(tmp_path / "journal.db", BROKER)
    journal.commit({"a": b"1"})
    journal._db.execute("PRAGMA max_page_count=8")
    with pytest.raises(Exception, match="full") as caught:
        journal.commit({"a": b"2", "b": bytes(100_000)})
    assert is_full(caught.value)
    assert not is_full(OSError(5, "input/output error"))
    assert journal.read() == {"a": b"1"}
    journal._db.execute("PRAGMA max_page_count=1000000")
    journal.commit({"b": b"2"})
    assert journal.read() == {"a": b"1", "b": b"2"}
    journal.close()


def test_a_commit_writes_little_more_than_its_records(tmp_path: Path) -> None:
    """Whatever their keys are: by digests, each would be on a page of its own."""
    journal = SqliteJournal(tmp_path / "journal.db", BROKER)
    keys = [f"part/{journal_key(str(number))}" for number in range(4_000)]
    journal.commit({key: bytes(1_000) for key in keys[:-100]})
    journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    journal.commit({key: bytes(1_000) for key in keys[-100:]})
    assert (tmp_path / "journal.db-wal").stat().st_size < 200 * 1_000
    journal.close()


def test_a_journal_of_the_version_before_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"CREATE TABLE owner(broker TEXT NOT NULL); INSERT INTO owner VALUES('{BROKER}');"
            "CREATE TABLE record(key TEXT PRIMARY KEY, sum INTEGER NOT NULL, data BLOB NOT NULL)"
            " WITHOUT ROWID;"
            f"PRAGMA application_id={int.from_bytes(b'dstr', 'big')}; PRAGMA user_version=1;"
        )
        old = {"part/b": b"two", "part/a": b"one", "part/c": b"three"}
        rows = [(key, crc32(data, crc32(key.encode())), data) for key, data in old.items()]
        db.executemany("INSERT INTO record VALUES(?, ?, ?)", rows)
        db.commit()
    journal = SqliteJournal(path, BROKER)
    journal.commit({"part/a": None, "part/b": b"2", "part/d": b"four"})
    journal.close()
    journal = SqliteJournal(path, BROKER)
    assert journal.read() == {"part/b": b"2", "part/c": b"three", "part/d": b"four"}
    journal.close()
