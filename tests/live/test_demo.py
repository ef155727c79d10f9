"""`distributary up --demo`: maps and prices flow, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.live.gateways import Http
from tests.live.overlays import RunningOverlay, running_overlay, wait_until

import distributary

pytestmark = pytest.mark.slow

# Conversions of a machine that is busy take their time.
_WAIT_S = 180.0


def brokers(http: Http) -> list[dict[str, Any]]:
    """How each broker is that answers."""
    return [one for one in http.get("/brokers").json()["brokers"].values() if one is not None]


def subscriptions(http: Http) -> int:
    """How many there are, as soon as everybody answers: on a busy machine somebody may not."""
    wait_until(lambda: None not in http.get("/brokers").json()["brokers"].values())
    return sum(one.get("subscriptions", 0) for one in brokers(http))


def delivered(http: Http) -> int:
    return sum(one["reports"].get("Delivered", 0) for one in brokers(http))


def maps(http: Http) -> list[dict[str, Any]]:
    """What was planned for maps."""
    return [one for one in http.get("/plans").json()["plans"] if one["source"] == "/demo/survey"]


def followed(http: Http) -> set[str]:
    """What objects somebody follows."""
    streams = http.get("/streams").json()["streams"]
    return {one["subject"] for one in streams if one["followers"]}


def connected(overlay: RunningOverlay) -> Http:
    return Http(overlay.line["gateway"], overlay.line["token"])


def test_maps_and_prices_flow_and_nothing_is_left_of_a_demo(tmp_path: Path) -> None:
    with running_overlay(tmp_path / "state", "--demo", brokers=4) as overlay:
        assert len(overlay.brokers) == 4
        with connected(overlay) as http:
            wait_until(lambda: delivered(http) > 10, _WAIT_S)
            wait_until(lambda: len({kind for one in maps(http) for kind in one["formats"]}) > 2)
            wait_until(lambda: followed(http) > {"ACME"})
        with (
            distributary.connect_sync(overlay.line["gateway"], overlay.line["token"]) as visitor,
            visitor.subscribe("type = 'map.flood'", accept=["text/plain;charset=utf-8"]) as events,
        ):
            assert "Flood situation" in next(iter(events)).read().decode()
    with running_overlay(tmp_path / "state", brokers=4) as overlay, connected(overlay) as http:
        assert "demo" not in overlay.pids()
        assert subscriptions(http) == 0


def test_a_demo_that_is_killed_begins_anew_without_its_old_subscriptions(tmp_path: Path) -> None:
    with (
        running_overlay(tmp_path / "state", "--demo", brokers=2) as overlay,
        connected(overlay) as http,
    ):
        wait_until(lambda: delivered(http) > 0, _WAIT_S)
        count = subscriptions(http)
        before = overlay.pids()["demo"]
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: overlay.pids().get("demo", before) != before)
        since = time.time_ns()
        wait_until(lambda: any(one["published_ns"] > since for one in maps(http)), _WAIT_S)
        wait_until(lambda: subscriptions(http) == count)


def test_what_a_demo_lacks_is_one_sentence(tmp_path: Path) -> None:
    """The package is there, but Python is told that it is not."""
    program = (
        "import sys, importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'pypdfium2' else found(name, *rest)\n"
        "from distributary.cli import main\n"
        "sys.exit(main(['up', '--demo', '--json', '--state', sys.argv[1]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "state")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "the demo needs pypdfium2" in line
    assert 'pip install "distributary[media]"' in line
    assert not (tmp_path / "state").exists()
