"""`publish`, `subscribe` and `status --url` against a real gateway, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.commands import check_one_line, run
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

import distributary
from distributary.cli import main
from distributary.client import SyncConnection
from distributary.media.samples import map_pdf

pytestmark = pytest.mark.slow

ENDS_S = 60.0


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    # Where commands look for it when nobody names it.
    state = tmp_path_factory.mktemp("home") / "distributary"
    with running_overlay(state, brokers=3) as running:
        yield running


@pytest.fixture
def environment(overlay: RunningOverlay) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DISTRIBUTARY_")}
    return kept | {"XDG_STATE_HOME": str(overlay.state.parent)}


@pytest.fixture
def connected(overlay: RunningOverlay) -> Iterator[SyncConnection]:
    with distributary.connect_sync(overlay.line["gateway"], overlay.line["token"]) as connection:
        yield connection


@contextmanager
def started(
    *arguments: str, env: dict[str, str], cwd: Path, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "distributary", *arguments],
        env=env,
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def subscribed(
    connected: SyncConnection, *arguments: str, env: dict[str, str], cwd: Path
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`distributary subscribe`, once it is registered, and its subscription."""
    before = subscriptions(connected)
    with started("subscribe", *arguments, env=env, cwd=cwd) as process:
        wait_until(lambda: subscriptions(connected, registered=True) - before)
        (name,) = subscriptions(connected) - before
        yield process, name


def subscriptions(connected: SyncConnection, *, registered: bool = False) -> set[str]:
    """All that there are, or only those to which what is published now is owed."""
    found = connected.subscriptions()
    owed = ("registered", "covered")
    return {one["id"] for one in found if not registered or one["state"] in owed}


def test_a_document_arrives_as_a_picture(
    connected: SyncConnection, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "map.pdf").write_bytes(map_pdf())
    options = ["--accept", "image/jpeg", "--screen", "640x480", "--save-to", "pictures"]
    with subscribed(connected, *options, env=environment, cwd=tmp_path) as (process, name):
        done = run("publish", "map.pdf", "--type", "map", env=environment, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["source"] == "/client"
        assert process.stdout is not None
        assert process.stdout.readline() == "pictures/map.jpg\n"
        assert (tmp_path / "pictures" / "map.jpg").read_bytes().startswith(b"\xff\xd8\xff")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=ENDS_S)
        assert (process.returncode, out, err) == (0, "", "")
    assert name not in subscriptions(connected)


def test_each_line_goes_when_it_comes(
    connected: SyncConnection, environment: dict[str, str], tmp_path: Path
) -> None:
    lines = [b"first", b"", "grün".encode(), b"\xff\xfe no text", b"x" * 200_000]
    with (
        connected.subscribe("type = 'line'") as events,
        subprocess.Popen(
            [sys.executable, "-m", "distributary", "publish", "--lines", "--type", "line"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdin is not None
        expected = iter(lines)
        process.stdin.write(next(expected) + b"\n")
        process.stdin.flush()
        found = []
        for event in events:
            # Only now does the next one come: nothing waits for more.
            found.append(event.read())
            line = next(expected, None)
            if line is None:
                break
            process.stdin.write(line + b"\r\n")
            process.stdin.flush()
        out, err = process.communicate(timeout=ENDS_S)
        assert (process.returncode, out, err) == (0, b"", b"")
    assert found == lines


def test_lines_can_be_json(
    connected: SyncConnection, environment: dict[str, str], tmp_path: Path
) -> None:
    with connected.subscribe([{"range": {"/price": {"min": 10}}}]) as events:
        text = '{"price": 5}\n{"price": 12.5}\n'
        options = ["--type", "price", "--attr", "datacontenttype=application/json"]
        done = run("publish", "--lines", *options, env=environment, input=text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        for event in events:
            assert event.data == {"price": 12.5}
            break
        bad = run("publish", "--lines", *options, env=environment, input="{}\n{\n")
        check_one_line(bad.returncode, bad.stdout, bad.stderr, "malformed JSON")


def test_a_line_that_is_refused_is_said_while_input_is_open(
    overlay: RunningOverlay, environment: dict[str, str], tmp_path: Path
) -> None:
    environment |= {
        "DISTRIBUTARY_TOKEN": "not-a-token",
        "DISTRIBUTARY_URL": overlay.line["gateway"],
    }
    with started(
        *("publish", "--lines", "--type", "t"), env=environment, cwd=tmp_path, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write("one\n")
        process.stdin.flush()
        process.wait(ENDS_S)
        assert process.stdout is not None
        assert process.stderr is not None
        check_one_line(process.returncode, process.stdout.read(), process.stderr.read(), "token")


def test_events_are_printed_as_lines_and_a_kept_subscription_goes_on(
    connected: SyncConnection, environment: dict[str, str], tmp_path: Path
) -> None:
    options = ["--filter", '{"exact": {"type": "kept"}}', "--filter", "n > 0", "--keep"]
    with subscribed(connected, *options, "--count", "1", env=environment, cwd=tmp_path) as (
        process,
        kept,
    ):
        for number in range(3):
            connected.publish({"n": number}, type="kept", source="/k", n=number)
        out, err = process.communicate(timeout=ENDS_S)
        assert process.returncode == 0
        event = json.loads(out)
        assert (event["type"], event["source"], event["data"]) == ("kept", "/k", {"n": 1})
        assert err == f"subscription {kept} is kept\n"
    done = run("subscribe", "--id", kept, "--count", "1", env=environment)
    assert json.loads(done.stdout)["data"] == {"n": 2}
    connected.unsubscribe(kept)
    gone = run("subscribe", "--id", kept, env=environment)
    check_one_line(gone.returncode, gone.stdout, gone.stderr, kept)


def test_a_reader_that_goes_away_ends_it(
    connected: SyncConnection, environment: dict[str, str], tmp_path: Path
) -> None:
    with subscribed(connected, env=environment, cwd=tmp_path) as (process, name):
        assert process.stdout is not None
        process.stdout.close()
        connected.publish(1, type="any")
        assert process.wait(ENDS_S) == 1
        process.stdout = None
    assert name not in subscriptions(connected)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["--filter", "type ="], "filter"),
        (["--filter", '{"unheard": {"a": "b"}}'], "unheard"),
        (["--tolerance", "/a sideways 1"], "sideways"),
        (["--accept", "nonsense"], "accept"),
        (["--id", "no-such-subscription"], "no-such-subscription"),
    ],
)
def test_what_the_gateway_refuses_is_one_line(
    overlay: RunningOverlay,
    arguments: list[str],
    place: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["subscribe", *arguments, "--state", str(overlay.state)])
    check_one_line(code, *capsys.readouterr(), place)


def test_status_asks_a_gateway(
    overlay: RunningOverlay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTRIBUTARY_TOKEN", overlay.line["token"])
    url = overlay.line["gateway"]
    assert main(["status", "--url", url]) == 0
    shown, warned = capsys.readouterr()
    assert warned == ""
    assert all(name in shown for name in overlay.brokers)
    assert main(["status", "--url", url, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sorted(told["brokers"]) == sorted(overlay.brokers)
