"""`distributary status`: how the brokers of an overlay are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from distributary.cli.up import State, default_state
from distributary.errors import BadInput

__all__ = ["EXAMPLES", "status"]

EXAMPLES = """\
\b
Examples:
  distributary status
  distributary status --state overlay --json
  distributary status --url https://gateway.example
"""

_COLUMNS = (
    ("broker", "broker"),
    ("up", "members_up"),
    ("subscriptions", "subscriptions"),
    ("cells", "cells"),
    ("queued", "queued"),
    ("owed", "owed"),
    ("outbox", "outbox"),
    ("converting", "converting"),
    ("cpu s", "cpu_s"),
)
_SOME_AWAY = 1
_PATIENCE_S = 10.0


def status(
    state: State = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="The gateway to ask, not the overlay here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that is known, as JSON.")] = False,
) -> int:
    """Ask every broker of an overlay how it is: that on this machine, or that of a gateway.

    A gateway wants a token with the scope admin, in DISTRIBUTARY_TOKEN. Exits with 1 when a
    broker does not answer.
    """
    if url is not None:
        asked, brokers = url, asyncio.run(_ask_gateway(url, state))
    else:
        asked, brokers = _ask_brokers(default_state() if state is None else state)
    if as_json:
        print(json.dumps({"gateway" if url else "nats": asked, "brokers": brokers}))
    else:
        _print_table(brokers)
    return _SOME_AWAY if None in brokers.values() else 0


async def _ask_gateway(url: str, state: Path | None) -> dict[str, dict[str, Any] | None]:
    from distributary.cli.gateway_options import gateway_connection

    async with gateway_connection(url, state, patience_s=_PATIENCE_S) as gateway:
        return await gateway.brokers()


def _ask_brokers(state: Path) -> tuple[str, dict[str, dict[str, Any] | None]]:
    from distributary.network.connection import Server
    from distributary.network.status import ask
    from distributary.network.subjects import Subjects
    from distributary.network.supervisor import read_operator

    operator = read_operator(state)
    server = Server((operator.url,), operator.user, operator.password)
    try:
        brokers = asyncio.run(
            ask(Subjects(operator.overlay), server, operator.user, operator.brokers)
        )
    except TimeoutError:
        raise BadInput(operator.url, "does not answer", hint="distributary doctor") from None
    return operator.url, brokers


def _print_table(brokers: dict[str, dict[str, Any] | None]) -> None:
    rows = [[title for title, _ in _COLUMNS]]
    for name, told in brokers.items():
        if told is None:
            rows.append([name, "does not answer"])
        else:
            rows.append([str(told.get(key, "")) for _, key in _COLUMNS])
    widths = [max(len(row[k]) for row in rows if k < len(row)) for k in range(len(_COLUMNS))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False)]
        print("  ".join([row[0].ljust(widths[0]), *cells]))
