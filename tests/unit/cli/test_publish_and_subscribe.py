"""What `publish` and `subscribe` answer to bad input, before any gateway is asked."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.commands import check_one_line, run

from distributary.cli.progress import StatusLine
from distributary.cli.subscribe import _written

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Nothing runs here."""
    ours = {"XDG_STATE_HOME": str(tmp_path)}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DISTRIBUTARY_")}
    return kept | ours


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["publish"], "--type"),
        (["publish", "--type", "t"], "FILE"),
        (["publish", "FILE", "--lines", "--type", "t"], "FILE"),
        (["publish", "missing.pdf", "--type", "t"], "missing.pdf: does not exist"),
        (["publish", ".", "--type", "t"], "not a regular file"),
        (["publish", "/dev/zero", "--type", "t"], "not a regular file"),
        (["publish", "FILE", "--type", "t", "--attr", "region"], "--attr"),
        (["publish", "FILE", "--type", "t", "--attr", "=x"], "--attr"),
        (["publish", "FILE", "--type", "t", "--attr", "a=1", "--attr", "a=2"], "--attr"),
        (["publish", "FILE", "--type", "t", "--attr", "type=u"], "--attr"),
        (["publish", "FILE", "FILE", "--type", "t", "--attr", "id=u"], "--attr"),
        (["publish", "FILE", "--type", "t", "--url", "nonsense"], "nonsense"),
        (["publish", "FILE", "--type", "t"], "has no gateway that runs"),
        (["publish", "FILE", "--type", "t", "--url", "http://gateway.invalid"], "clear text"),
        (["subscribe"], "has no gateway that runs"),
        (["subscribe", "--filter", '{"exact"', "--url", NOWHERE], "--filter"),
        (["subscribe", "--tolerance", "0.5", "--url", NOWHERE], "--tolerance"),
        (["subscribe", "--tolerance", "/a absolute much", "--url", NOWHERE], "--tolerance"),
        (["subscribe", "--save-to", "FILE", "--url", NOWHERE], "--save-to"),
        (["subscribe", "--count", "0"], "--count"),
        (["subscribe", "--url", "ftp://gateway"], "is no gateway"),
        (["status", "--url", "nonsense"], "is no gateway"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], place: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "FILE").write_text("x")
    environment |= {"DISTRIBUTARY_TOKEN": "secret-token"}
    done = run(*arguments, cwd=tmp_path, env=environment, input="")
    check_one_line(done.returncode, done.stdout, done.stderr, place)
    assert "secret-token" not in done.stderr


def test_a_gateway_that_is_not_there_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "FILE").write_text("x")
    done = run(
        "publish", "FILE", "--type", "t", "--url", NOWHERE, cwd=tmp_path, env=environment, input=""
    )
    check_one_line(done.returncode, done.stdout, done.stderr, f"{NOWHERE}: does not answer")


@pytest.mark.parametrize("command", ["publish", "subscribe"])
def test_the_help_has_examples(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert f"distributary {command} " in done.stdout


def test_why_something_is_not_saved_is_said_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "nothing the device accepts (text/plain) and can show can be made of image/jpeg"
    delivery: Any = SimpleNamespace(id="e1", undeliverable=reason)
    assert asyncio.run(_written(delivery, Path(), StatusLine())) is None
    assert reason in capsys.readouterr().err
