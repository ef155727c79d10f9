"""A NATS server for a study, as people run it who want to lose nothing."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributary.network.server import free_port, is_listening, server_program

__all__ = ["running_server"]

_STARTS_S = 30.0
_LOOK_S = 0.01
_PAYLOAD_BYTES_MAX = 2**20


@contextmanager
def running_server(folder: Path, *, streams: bool) -> Iterator[str]:
    """Run a server on this machine; yield its address.

    Parameters
    ----------
    streams
        Whether it has JetStream, which syncs every message before it acknowledges it.
    """
    folder.mkdir(parents=True)
    port = free_port()
    name = f"study-{port}"
    config: dict[str, object] = {
        "server_name": name,
        "host": "127.0.0.1",
        "port": port,
        "max_payload": _PAYLOAD_BYTES_MAX,
    }
    if streams:
        config["jetstream"] = {"store_dir": str(folder / "streams"), "sync_interval": "always"}
    path = folder / "nats.conf"
    path.write_text(json.dumps(config), encoding="utf-8")
    server = subprocess.Popen(
        [str(server_program()), "-c", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + _STARTS_S
        while not is_listening(port, name):
            assert time.monotonic() < end, "the server does not listen"
            time.sleep(_LOOK_S)
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
