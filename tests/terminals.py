"""Terminals: commands that believe that somebody is looking, and that Ctrl-C ends."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.live.overlays import wait_until

__all__ = ["Terminal", "terminal"]

_ENDS_S = 60.0
_CONTROL_C = b"\x03"


class Terminal:
    """A terminal in which one command runs."""

    def __init__(self, command: str, folder: Path, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # So that Ctrl-C is for this command.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.shown = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        # Reading a terminal that nobody has open any more is an error.
        with suppress(OSError):
            while data := os.read(self._ours, 4096):
                self.shown += data.decode("utf-8", "replace")

    def wait_for(self, text: str) -> None:
        """Wait until something is shown."""
        wait_until(lambda: text in self.shown or self.process.poll() is not None)
        assert text in self.shown, self.shown

    def end(self) -> int:
        """Press Ctrl-C; return the exit code."""
        os.write(self._ours, _CONTROL_C)
        return self.process.wait(_ENDS_S)

    def close(self) -> None:
        """End it however it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(_ENDS_S)
        os.close(self._ours)


@contextmanager
def terminal(command: str, folder: Path, env: dict[str, str]) -> Iterator[Terminal]:
    """Run a command in a terminal."""
    opened = Terminal(command, folder, env)
    try:
        yield opened
    finally:
        opened.close()
