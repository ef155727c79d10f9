"""-o is the same in every command: - is standard output, and a name is not empty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import check_one_line

from distributary.cli import main

EVENT = '{"specversion": "1.0", "id": "1", "source": "/", "type": "a"}\n'
GENERATE = {
    "place": ["generate", "placement", "map", "--brokers", "4"],
    "tree": ["generate", "tree", "--servers", "3", "--routers", "10"],
    "wire": ["generate", "wiring", "--users", "4", "--brokers", "2"],
}
COMMANDS = [
    *GENERATE.values(),
    *([command, f"{command}.json"] for command in GENERATE),
    ["match", "events.jsonl", "subscriptions.json"],
]


def test_a_minus_is_standard_output_and_nothing_is_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command, arguments in GENERATE.items():
        assert main([*arguments, "-o", f"{command}.json"]) == 0
    Path("events.jsonl").write_text(EVENT, encoding="utf-8")
    Path("subscriptions.json").write_text('[{"id": "s", "filters": []}]', encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    for arguments in COMMANDS:
        documents = []
        for output in ([], ["-o", "-"]):
            assert main([*arguments, *output]) == 0
            documents.append({**json.loads(capsys.readouterr().out), "seconds": 0.0})
        assert documents[0] == documents[1]
        code = main([*arguments, "-o", ""])
        check_one_line(code, *capsys.readouterr(), "'-o'")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", ["", "-"])
def test_tables_go_into_a_folder(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["pipeline", "match", "--data", "tables", "-o", output])
    check_one_line(code, *capsys.readouterr(), "'-o'")
    assert not list(tmp_path.iterdir())
