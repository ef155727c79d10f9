"""`distributary up`: a whole overlay on this machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.client.here import default_state
from distributary.errors import counted

if TYPE_CHECKING:
    from distributary.network.gateway.pages import PageRoutes

__all__ = ["EXAMPLES", "PORT", "PORT_MAX", "State", "default_state", "up"]

EXAMPLES = """\
\b
Examples:
  distributary up
  distributary up --brokers 3 --state overlay --json
  distributary up --fresh
  distributary up --demo
"""

_BROKERS_MAX = 256
PORT = 8480
PORT_MAX = 65_534


State = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="Where all that survives is; a folder of yours unless given."
    ),
]


def _pages() -> PageRoutes:
    from distributary.console.pages import PAGES

    return PAGES


def up(
    brokers: Annotated[int, typer.Option(min=1, max=_BROKERS_MAX, help="How many brokers.")] = 8,
    state: State = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=PORT_MAX,
            help="Of the gateway; NATS has the next one. Others if taken, or with 0. As before, "
            f"or {PORT}, unless given.",
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what was there.")] = False,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Have maps and prices published, and devices that follow."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say what there is in one line of JSON.")
    ] = False,
) -> None:
    """Start a NATS server and brokers on this machine, and run them until Ctrl-C.

    What dies is started again. What was accepted survives until --fresh forgets it. --demo gives
    the console something to show: an annotated map every few seconds for devices of many kinds,
    and prices that change.
    """
    from distributary.cli.demo import SETTINGS, check_packages, run_demo

    if demo:
        check_packages()
    # Brokers are forked: threads of libraries would not survive that.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from distributary.console import ADDRESS
    from distributary.network.supervisor import supervise

    def ready(there: dict[str, object]) -> None:
        there = {**there, "console": f"{there['gateway']}{ADDRESS}"}
        if as_json:
            print(json.dumps(there), flush=True)
            return
        running = there["brokers"]
        assert isinstance(running, dict)
        print(f"{counted(len(running), 'broker')} ready: {', '.join(running)}", flush=True)
        print(f"Gateway at {there['gateway']}, token {there['token']}", flush=True)
        print(f"Console: open {there['login']} (works once)", flush=True)
        print(f"NATS at {there['nats']}, state in {there['state']}", flush=True)
        if demo:
            print("Demo: maps of a flood and prices, published as /demo/...", flush=True)
        print("Ctrl-C stops everything.", flush=True)

    supervise(
        default_state() if state is None else state,
        brokers=brokers,
        port=PORT if port is None else port,
        port_given=port is not None,
        fresh=fresh,
        ready=ready,
        say=lambda sentence: print(sentence, file=sys.stderr, flush=True),
        pages=_pages,
        settings=SETTINGS if demo else "",
        beside=run_demo if demo else None,
    )
