"""What commands that go to a gateway share: where it is, and how a run of theirs ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from distributary.cli.up import State
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from distributary.client.connection import Connection
    from distributary.client.gateway import Observe

__all__ = ["State", "Url", "assigned", "gateway_connection", "run_until_told"]

Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The gateway; DISTRIBUTARY_URL, or that of the overlay here, unless given.",
    ),
]


def gateway_connection(
    url: str | None, state: State, *, patience_s: float, observe: Observe | None = None
) -> Connection:
    """Return a connection to the gateway that the options and the environment name."""
    from distributary.client.connection import Connection
    from distributary.client.here import find_gateway

    address = find_gateway(url, state=state)
    return Connection(address, patience_s=patience_s, observe=observe)


def run_until_told(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something until it ends or Ctrl-C or SIGTERM ends it, in good order both times."""

    async def run() -> None:
        task = asyncio.ensure_future(work())
        loop = asyncio.get_running_loop()
        told = False

        def stop() -> None:
            nonlocal told
            told = True
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        try:
            await task
        except asyncio.CancelledError:
            if not told:
                raise

    asyncio.run(run())


def assigned(option: str, texts: list[str]) -> dict[str, str]:
    """Return what texts such as `region=north` say, by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadInput(
                option, f"{quoted(text)} has no name and value", hint="write it as in region=north"
            )
        if name in found:
            raise BadInput(option, f"gives {quoted(name)} twice")
        found[name] = value
    return found
