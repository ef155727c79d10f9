"""A plug-in whose converter does what the content says, such as to crash.

It is a package of its own, installed in a folder like any other plug-in: workers find it
as they find real ones, and the product knows nothing of it.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["SCRIPT", "SCRIPT_RESULT", "install"]

SCRIPT = "application/x-script"
SCRIPT_RESULT = "application/octet-stream"

_MODULE = '''
"""Does what the content says: a word, then an argument."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from distributary.content.media_type import MediaType
from distributary.media.converter import Converter
from distributary.media.failure import Unconvertible

SOURCE = MediaType("application", "x-script")
RESULT = MediaType("application", "octet-stream")


def spin(amount):
    number = 1
    for _ in range(int(amount)):
        number = number * 48271 % 2147483647
    return str(number).encode()


def memory(amount):
    blocks = []
    while sum(map(len, blocks)) < int(amount):
        blocks.append(bytearray(b"x" * (1 << 20)))
    return b"had it"


def keep(amount):
    block = bytearray(int(amount))
    block[::4096] = b"x" * len(block[::4096])
    HELD.append(block)
    return b"kept it"


def mark_and_wait(name):
    Path(name).touch()
    threading.Event().wait()


def mark_and_await(name):
    Path("begun").touch()
    while not Path(name).exists():
        pass
    return b"it came"


def spin_for_ever(_):
    while True:
        pass


def crash(_):
    ctypes.string_at(0)


def print_everywhere(_):
    print("noise")
    print("noise", file=sys.stderr, flush=True)
    os.write(1, b"noise" * 1000)
    return sys.stdin.buffer.read() + b"printed"


def raise_message(message):
    raise ValueError(message.replace("|", chr(10)))


def link(message):
    raise ImportError(message)


def reread(number):
    # As converters do: what a library said becomes what is wrong with the content.
    try:
        raise OSError(int(number), "from a library")
    except OSError as error:
        raise Unconvertible("damaged", "it cannot be read") from error


def refuse(reason):
    raise Unconvertible("pages", reason)


def tried(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__.encode()
    return b"done"


def scribble(text):
    # The channel is the one socket there is.
    for number in range(3, 64):
        try:
            socket.socket(fileno=os.dup(number)).sendall(bytes.fromhex(text))
        except OSError:
            pass
    threading.Event().wait()


def python(code):
    names = dict(globals())
    exec(code, names)
    return names.get("result", b"")


HELD = []
ACTIONS = {
    "echo": str.encode,
    "spin": spin,
    "memory": memory,
    "keep": keep,
    "large": lambda amount: bytes(int(amount)),
    "mark-and-wait": mark_and_wait,
    "mark-and-await": mark_and_await,
    "spin-for-ever": spin_for_ever,
    "exit": lambda status: os._exit(int(status)),
    "system-exit": lambda status: sys.exit(int(status)),
    "crash": crash,
    "abort": lambda _: os.abort(),
    "print": print_everywhere,
    "raise": raise_message,
    "refuse": refuse,
    "link": link,
    "reread": reread,
    "nothing": lambda _: None,
    "pid": lambda _: str(os.getpid()).encode(),
    "directory": lambda _: os.getcwd().encode(),
    "environment": lambda _: json.dumps(dict(os.environ)).encode(),
    "leave": lambda name: (os.makedirs(name), Path(name, "left").touch(), b"left")[-1],
    "list": lambda _: json.dumps(os.listdir(os.environ["TMPDIR"])).encode(),
    "connect": lambda port: tried(lambda: socket.create_connection(("127.0.0.1", int(port)))),
    "fork": lambda _: tried(os.fork),
    "program": lambda name: tried(lambda: subprocess.run([name])),
    "write": lambda path: tried(lambda: Path(path).write_text("written")),
    "scribble": scribble,
    "python": python,
}


class Scripts(Converter):
    name = "scripts"
    version = "1"

    def conversions(self):
        return [(SOURCE, RESULT)]

    def converts(self, source, target):
        return (source, target) == (SOURCE, RESULT)

    def convert(self, content, source, target, limits):
        word, _, argument = content.decode().partition(" ")
        return ACTIONS[word](argument)
'''


def install(folder: Path) -> None:
    """Put the package and what a package manager writes about it in a folder."""
    (folder / "hostile_scripts.py").write_text(_MODULE)
    about = folder / "hostile_scripts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile-scripts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[distributary.converters]\nscripts = hostile_scripts:Scripts\n"
    )
