"""The doctor finds what is wrong, and says what to do."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.nats_server import shared_server

from distributary.cli import main
from distributary.network.connection import Server
from distributary.network.doctor import Finding, examine, reach
from distributary.network.server import free_port
from distributary.network.supervisor import Operator


def findings(state: Path, port: int) -> dict[str, Finding]:
    return {one.what: one for one in examine(state, port)}


def test_a_machine_on_which_tests_run_has_what_brokers_need(tmp_path: Path) -> None:
    found = findings(tmp_path / "not" / "yet", free_port())
    assert found["NATS server"].well
    assert "2." in found["NATS server"].detail
    assert found["disk speed"].detail.startswith("a sync takes")
    assert not (tmp_path / "not").exists()


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = findings(tmp_path, port)["ports"]
    assert not found.well
    # The next one may be somebody else's.
    assert found.detail.startswith(str(port))
    assert "in use" in found.detail


def test_ports_of_the_overlay_that_runs_here_are_as_they_should_be(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        operator = Operator("up", [], f"nats://127.0.0.1:{port + 1}", "", "", os.getpid(), url)
        file = tmp_path / "operator.json"
        file.write_bytes(msgspec.json.encode(operator))
        assert findings(tmp_path, port)["ports"].well
        # After it was killed, they are somebody else's.
        gone = subprocess.Popen(["true"])
        gone.wait()
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(operator, process=gone.pid)))
        assert not findings(tmp_path, port)["ports"].well


def test_a_server_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "nats-server"
    old.write_text("#!/bin/sh\necho nats-server: v2.9.1\n")
    old.chmod(0o755)
    monkeypatch.setattr("distributary.network.doctor.server_program", lambda: old)
    found = findings(tmp_path, free_port())["NATS server"]
    assert not found.well
    assert "too old; hint: 2.10 or newer" in found.detail


def test_a_server_out_of_reach_is_named() -> None:
    url = shared_server().url
    assert reach(Server((url,), "test", "test")).well
    wrong = reach(Server((url,), "test", "wrong"))
    assert not wrong.well
    assert "uthorization" in wrong.detail
    nobody = reach(Server((f"nats://127.0.0.1:{free_port()}",)))
    assert not nobody.well
    assert "is it up" in nobody.detail


def test_the_command_says_it_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["doctor", "--state", str(tmp_path), "--port", str(free_port())])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert all(line[:2] in ("ok", "!!") for line in lines)
    assert code == (1 if any(line.startswith("!!") for line in lines) else 0)
