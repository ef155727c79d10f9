"""`distributary status`: how the brokers of an overlay are."""

from __future__ import annotations

import asyncio
import json
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


def status(
    state: State = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The gateway to ask, not the overlay here.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that is known, as JSON.")] = False,
) -> int:
    """Ask every broker of the overlay on this machine how it is.

    Exits with 1 when one does not answer.
    """
    from distributary.network.connection import Server
    from distributary.network.status import ask
    from distributary.network.subjects import Subjects
    from distributary.network.supervisor import read_operator

    if url is not None:
        raise BadInput("--url", "there is no gateway yet", hint="--state names an overlay here")
    operator = read_operator(default_state() if state is None else state)
    server = Server((operator.url,), operator.user, operator.password)
    try:
        brokers = asyncio.run(
            ask(Subjects(operator.overlay), server, operator.user, operator.brokers)
        )
    except TimeoutError:
        raise BadInput(operator.url, "does not answer", hint="distributary doctor") from None
    if as_json:
        print(json.dumps({"nats": operator.url, "brokers": brokers}))
    else:
        _print_table(brokers)
    return _SOME_AWAY if None in brokers.values() else 0


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
