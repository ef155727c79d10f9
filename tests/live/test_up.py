"""`distributary up`: an overlay on this machine, from its first line to its last process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.live.overlays import RunningOverlay, is_there, processes_of, running_overlay, wait_until
from tests.live.traffic import Traffic

from distributary.network.server import listening_at

pytestmark = pytest.mark.slow


def distributary(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "distributary", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_up_says_in_one_line_what_there_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with running_overlay(tmp_path / "state", brokers=3) as overlay:
        line = overlay.line
        assert [*line] == [
            "gateway",
            "console",
            "login",
            "nats",
            "state",
            "token",
            "brokers",
            "server",
        ]
        assert line["state"] == str(tmp_path / "state")
        assert len(line["brokers"]) == 3
        gateway = overlay.pids()["gateway"]
        processes = {*line["brokers"].values(), line["server"], gateway}
        assert processes == {*processes_of(overlay.process.pid)}
        assert overlay.pids() == {**line["brokers"], "nats": line["server"], "gateway": gateway}
        told = distributary("status", "--state", str(overlay.state), "--json")
        assert told.returncode == 0, told.stderr
        brokers = json.loads(told.stdout)["brokers"]
        assert {name: one["pid"] for name, one in brokers.items()} == line["brokers"]
        for one in brokers.values():
            assert one["members_up"] == 3
            assert one["memory_bytes"] < 60 * 2**20
        table = distributary("status", "--state", str(overlay.state))
        assert len(table.stdout.splitlines()) == 4
    after = distributary("status", "--state", str(overlay.state))
    assert after.returncode == 2
    assert "has no overlay that runs" in after.stderr


def test_what_was_owed_is_delivered_after_a_restart_and_fresh_forgets(tmp_path: Path) -> None:
    state = tmp_path / "state"

    async def publish() -> None:
        with running_overlay(state, brokers=3) as overlay:
            async with overlay.gate() as gate:
                traffic = Traffic(gate, overlay.brokers)
                await traffic.subscribe(1)
                await traffic.publish("p", 5)
                await traffic.settled()
                await traffic.subscribers["s0"].close()
                await traffic.publish("p", 5)
        with running_overlay(state, brokers=2) as overlay:
            assert len(overlay.brokers) == 3
            async with overlay.gate() as gate:
                subscriber = gate.client("s0", overlay.brokers[0])
                status = await subscriber.status("all")
                assert status is not None
                assert status.acknowledged == 5
                while status is not None and status.last < 10:
                    status = await subscriber.status("all")
                assert status is not None
        with running_overlay(state, "--fresh", brokers=3) as overlay:
            async with overlay.gate() as gate:
                assert await gate.client("s0", overlay.brokers[0]).status("all") is None

    asyncio.run(publish())


def test_ports_that_are_taken_are_replaced_and_one_folder_has_one_overlay(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = ("--port", str(port - 1))
        with running_overlay(tmp_path / "state", *options, brokers=1) as overlay:
            assert overlay.line["nats"] != f"nats://127.0.0.1:{port}"
            before = overlay.line["gateway"]
            second = distributary("up", "--state", str(overlay.state), "--json")
            assert second.returncode == 2
            assert second.stdout == ""
            assert "is in use by another overlay" in second.stderr
    # Where it is told to be, and otherwise where it was.
    with running_overlay(tmp_path / "state", "--port", "0", brokers=1) as overlay:
        chosen = overlay.line["gateway"]
        assert chosen != before
    with running_overlay(tmp_path / "state", brokers=1) as overlay:
        assert overlay.line["gateway"] == chosen


def test_what_dies_is_started_again_and_soon_not_at_once(tmp_path: Path) -> None:
    with running_overlay(tmp_path / "state", brokers=1) as overlay:
        (name,) = overlay.brokers
        for _ in range(2):
            overlay.kill(name)
            wait_until(lambda: name in overlay.pids())
        overlay.kill(name)
        wait_until(lambda: any("is started in 1 s" in line for line in overlay.said))
        wait_until(lambda: name in overlay.pids())
        overlay.kill("nats")
        wait_until(lambda: "nats" in overlay.pids())
        again = [line for line in overlay.said if line.endswith("and is started again")]
        assert [line.split()[0] for line in again] == [name, name, "nats"]
        assert "was killed by signal 9" in again[0]


def test_everything_ends_with_an_overlay_that_is_killed_and_it_starts_again_at_once(
    tmp_path: Path,
) -> None:
    """Whoever is left of the first has its journal until it has ended."""
    command = [sys.executable, "-m", "distributary", "up", "--json", "--brokers", "2"]
    process = subprocess.Popen(
        [*command, "--state", str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    pids = [*line["brokers"].values(), line["server"]]
    with running_overlay(tmp_path / "state", brokers=2) as overlay:
        assert overlay.brokers == [*line["brokers"]]
        wait_until(lambda: not any(is_there(pid) for pid in pids))


def test_a_folder_whose_path_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    state = tmp_path.joinpath(*(["x" * 100] * 5))
    result = distributary("up", "--state", str(state), "--brokers", "1", "--json")
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "shorter" in line


def test_secrets_are_for_their_owner_and_in_no_log(tmp_path: Path) -> None:
    with running_overlay(tmp_path / "state", brokers=2) as overlay:
        asyncio.run(_some_traffic(overlay.brokers, overlay))
        users = json.loads((overlay.state / "nats" / "nats.conf").read_text())
        secrets = [one["password"] for one in users["authorization"]["users"]]
        assert len({*secrets}) == 4
        said = "\n".join(overlay.said)
        for path in overlay.state.rglob("*"):
            if not path.is_file():
                continue
            data = path.read_bytes()
            if any(secret.encode() in data for secret in secrets):
                assert path.name in ("nats.conf", "password", "operator.json")
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not any(secret in said for secret in secrets)
    for path in (tmp_path / "state" / "logs").iterdir():
        assert not any(secret in path.read_text() for secret in secrets)


async def _some_traffic(homes: list[str], overlay: object) -> None:
    assert isinstance(overlay, RunningOverlay)
    async with overlay.gate() as gate:
        traffic = Traffic(gate, homes)
        await traffic.subscribe(1)
        await traffic.publish("p", 3)
        await traffic.settled()


def test_overlays_that_start_at_once_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    """All of them find the same port free."""
    with ExitStack() as stack, ThreadPoolExecutor(3) as threads:

        def start(number: int) -> RunningOverlay:
            return stack.enter_context(running_overlay(tmp_path / str(number), brokers=1))

        overlays = list(threads.map(start, range(3)))
        urls = [overlay.line["gateway"] for overlay in overlays]
        assert len({*urls}) == 3
        for overlay, url in zip(overlays, urls, strict=True):
            answer = httpx.get(
                f"{url}/session", headers={"authorization": f"Bearer {overlay.line['token']}"}
            )
            assert answer.status_code == 200
            told = distributary("token", "list", "--state", str(overlay.state))
            assert told.returncode == 0, told.stderr


def test_nobody_else_gets_the_port_of_a_gateway_that_is_killed(tmp_path: Path) -> None:
    """Else its clients show somebody else their tokens. Whoever connects meanwhile waits."""
    with running_overlay(tmp_path / "state", brokers=1) as overlay:
        url = httpx.URL(overlay.line["gateway"])
        pid = overlay.pids()["gateway"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_there(pid))
        with pytest.raises(OSError, match="in use"):
            listening_at(url.host, url.port or 0)
        answer = httpx.get(
            f"{url}/session",
            headers={"authorization": f"Bearer {overlay.line['token']}"},
            timeout=60,
        )
        assert answer.status_code == 200
