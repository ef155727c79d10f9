"""`distributary publish`: files, or lines as they come, as events."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer

from distributary.cli.gateway_options import (
    State,
    Url,
    assigned,
    gateway_connection,
    run_until_told,
)
from distributary.cli.progress import StatusLine
from distributary.errors import BadInput, counted
from distributary.files import naming

__all__ = ["EXAMPLES", "publish"]

EXAMPLES = """\
\b
Examples:
  distributary publish map.pdf --type map.published
  distributary publish map.pdf --type map.published --attr region=north --attr source=/maps
  distributary publish *.jpg --type photo --url https://gateway.example
  tail -f access.log | distributary publish --lines --type log.line
  distributary publish --lines --type t --attr datacontenttype=application/json < readings.jsonl
"""

_PATIENCE_S = 60.0
_LINE_BYTES_MAX = 16 * 2**20
_READ_BYTES = 65_536
_LINES_AHEAD = 1024
_STANDARD_INPUT = 0
_SHOWN_EVERY = 1000
# What tools write; a line that is not UTF-8 goes as it is.
_AS_TEXT = {"datacontenttype": "text/plain;charset=utf-8"}


def publish(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="What to publish, each an event.")
    ] = None,
    type: Annotated[str, typer.Option(metavar="TYPE", help="What kind of event it is.")] = "",
    attr: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An attribute: source, subject, id, time, datacontenttype, or any other.",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Publish each line of standard input as it comes.")
    ] = False,
    url: Url = None,
    state: State = None,
) -> None:
    """Publish files, or lines, by way of a gateway.

    Returns when everything is stored, and prints the source and the id of each file's event. The
    format is what the name of a file ends in, and lines are text, unless the attribute
    datacontenttype says otherwise. DISTRIBUTARY_TOKEN is the token.
    """
    said = assigned("--attr", attr or [])
    if "type" in said and type:
        raise BadInput("--attr", "gives the type, and so does --type")
    said = {"type": type, **said} if type else said
    if not said.get("type"):
        raise BadInput("--type", "is missing", hint="name what kind of event it is")
    if lines == bool(files):
        problem = "cannot be given together with --lines" if files else "is missing"
        raise BadInput("FILE", problem, hint=None if files else "--lines reads standard input")
    for file in files or []:
        with naming(file):
            if not file.is_file():
                file.stat()
                raise BadInput("FILE", "is not a regular file", hint="--lines reads lines")
    if len(files or []) > 1 and "id" in said:
        raise BadInput("--attr", "gives one id to several events")
    line = StatusLine()
    try:
        if lines:
            run_until_told(lambda: _publish_lines(url, state, said, line))
        else:
            run_until_told(lambda: _publish_files(url, state, files or [], said, line))
    finally:
        line.show("")


async def _publish_files(
    url: str | None, state: Path | None, files: list[Path], said: Any, line: StatusLine
) -> None:
    name = ""

    def observe(kind: str, done: int, total: int) -> None:
        line.show(f"{name}: {done:,} of {total:,} {kind}")

    async with gateway_connection(url, state, patience_s=_PATIENCE_S, observe=observe) as gateway:
        for file in files:
            name = file.name
            line.show(name)
            source, identifier = await gateway.publish(file, **said)
            line.show("")
            print(json.dumps({"source": source, "id": identifier}), flush=True)


async def _publish_lines(url: str | None, state: Path | None, said: Any, line: StatusLine) -> None:
    async with gateway_connection(url, state, patience_s=_PATIENCE_S) as gateway:
        await gateway.publish_all(_lines(line), **{**_AS_TEXT, **said})


async def _lines(status: StatusLine) -> AsyncIterator[bytes]:
    """Yield the lines of standard input as they come, without their ends.

    A thread waits for them. It reads by itself and not through `sys.stdin`, whose lock it would
    hold when the process ends; and it is not waited for then, as nothing may come any more.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
    room = threading.Semaphore(_LINES_AHEAD)

    def hand(item: bytes | BaseException | None) -> None:
        room.acquire()
        loop.call_soon_threadsafe(ready.put_nowait, item)

    def read() -> None:
        try:
            rest = b""
            while chunk := os.read(_STANDARD_INPUT, _READ_BYTES):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    hand(line)
                if len(rest) > _LINE_BYTES_MAX:
                    raise BadInput(
                        "standard input", f"has a line of more than {_LINE_BYTES_MAX:,} bytes"
                    )
            if rest:
                hand(rest)
            hand(None)
        except (OSError, BadInput) as error:
            hand(error)
        except RuntimeError:
            pass  # The loop is over, and nobody waits for lines.

    threading.Thread(target=read, daemon=True).start()
    count = 0
    while (item := await ready.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        count += 1
        if count % _SHOWN_EVERY == 0 or ready.empty():
            status.show(f"{counted(count, 'line')}; Ctrl-C ends it")
        yield item.removesuffix(b"\r")
        room.release()
