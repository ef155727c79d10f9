"""The audit log: one line each, bounded, and nobody writes lines of their own."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from distributary.network.gateway import audit as module
from distributary.network.gateway.audit import Audit
from distributary.network.gateway.tokens import Access

ACCESS = Access("alice", "north", ("publish",))


class Clock:
    now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_it_says_who_did_what_and_when(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.jsonl"
    audit = Audit(path, Clock())
    audit.note("DELETE /tokens/bob", ACCESS, remote="127.0.0.1", status=204)
    audit.note("GET /tokens\n{}", None, status=401)
    audit.close()
    again = Audit(path, Clock())
    again.note("x" * 10_000, ACCESS)
    again.close()
    first, second, third = lines(path)
    assert first == {
        "time": "2001-09-09T01:46:40Z",
        "what": "DELETE /tokens/bob",
        "tenant": "north",
        "token": "alice",
        "remote": "127.0.0.1",
        "status": 204,
    }
    assert second["what"] == "GET /tokens\n{}"
    assert "token" not in second
    assert len(str(third["what"])) == 200
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_strangers_do_not_push_out_what_others_did(tmp_path: Path) -> None:
    clock = Clock()
    audit = Audit(tmp_path / "a", clock)
    for _ in range(10_000):
        audit.note("GET /", None, status=401)
    audit.note("POST /tokens", ACCESS)
    clock.now += 1
    audit.note("GET /", None, status=401)
    audit.close()
    found = lines(tmp_path / "a")
    assert len(found) == 102
    assert found[100]["left_out"] == 9_900
    assert found[100]["token"] == ACCESS.name


def test_publications_are_summed_up(tmp_path: Path) -> None:
    clock = Clock()
    audit = Audit(tmp_path / "a", clock)
    for _ in range(1000):
        audit.published(ACCESS, 20)
    assert lines(tmp_path / "a") == []
    clock.now += 60
    audit.published(ACCESS, 1)
    audit.published(ACCESS, 1)
    audit.close()
    assert [line["events"] for line in lines(tmp_path / "a")] == [20_001, 1]


def test_it_takes_no_more_room_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILE_BYTES_MAX", 1000)
    audit = Audit(tmp_path / "a", Clock())
    for number in range(200):
        audit.note(f"{number}", ACCESS)
    audit.close()
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["a", "a.1", "a.2", "a.3", "a.4"]
    assert all(path.stat().st_size <= 1000 for path in files)
    newest_first = [line["what"] for path in files for line in reversed(lines(path))]
    assert newest_first == [str(number) for number in range(199, 199 - len(newest_first), -1)]
