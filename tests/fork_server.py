"""A process that has loaded everything, and forks itself for each command.

Most commands of the tests take a tenth of a second, and loading Numba and the planners takes a
whole one before that. A fork is a process of its own all the same: it has the streams, the
folder and the environment of whoever asks, and ends as any other.

Run as `python -m tests.fork_server DESCRIPTOR`, it serves connections to the socket with that
number until its standard input ends. `fork_client.py` is whoever asks.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

_LOADED = (
    *(f"distributary.cli.{name}" for name in ("generate", "match", "place", "simulate", "tree")),
    "distributary.cli.wire",
    "distributary.client",
    "distributary.fidelity",
    "distributary.filters",
    "distributary.placement",
    "distributary.simulator",
    "distributary.wiring",
)
# Which command compiles what is nobody's business.
logging.getLogger("distributary.kernels").disabled = True
_LOOK_S = 0.01
_REQUEST_BYTES_MAX = 1 << 20


def serve(listener: socket.socket) -> list[str]:
    """Fork for every request; return, in each fork, the arguments of its command."""
    running: dict[int, socket.socket] = {}
    while True:
        waits_s = _LOOK_S if running else None
        asked = [listener.fileno(), *(one.fileno() for one in running.values())]
        ready, _, _ = select.select([0, *asked], [], [], waits_s)
        if 0 in ready:
            os._exit(0)
        if listener.fileno() in ready:
            asking, _ = listener.accept()
            request, streams = _read(asking)
            pid = os.fork()
            if pid == 0:
                return _become(request, streams)
            for stream in streams:
                os.close(stream)
            running[pid] = asking
        for pid, asking in list(running.items()):
            # Whoever waits says nothing more; it may only be killed.
            if asking.fileno() in ready:
                os.kill(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                with suppress(BrokenPipeError):
                    asking.sendall(str(code).encode())
                running.pop(pid).close()


def _read(asking: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, streams, _, _ = socket.recv_fds(asking, _REQUEST_BYTES_MAX, 3)
    while not data.endswith(b"\n"):
        more = asking.recv(_REQUEST_BYTES_MAX)
        assert more, "whoever asks has gone before it has said for what"
        data += more
    return json.loads(data), streams


def _become(request: dict[str, Any], streams: list[int]) -> list[str]:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = ""
    arguments: list[str] = request["arguments"]
    return arguments


def main() -> None:
    """Serve, and be a command in each fork."""
    for name in _LOADED:
        import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        program, *arguments = serve(listener)
    if program == "python":
        _, code, *arguments = arguments
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
        return
    sys.argv = [program, *arguments]
    sys.exit(import_module("distributary.cli").main())


if __name__ == "__main__":
    main()
