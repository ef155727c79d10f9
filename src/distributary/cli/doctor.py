"""`distributary doctor`: what may be wrong with this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.up import PORT, PORT_MAX, State, default_state
from distributary.errors import MissingPackage

__all__ = ["EXAMPLES", "doctor"]

EXAMPLES = """\
\b
Examples:
  distributary doctor
  distributary doctor --state overlay
  distributary doctor --config broker.toml
"""

_NOT_WELL = 1


def doctor(
    state: State = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Of a broker, to reach its NATS.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=PORT_MAX, help="As for up.")] = PORT,
) -> int:
    """Look for what keeps brokers from running well here, and say what to do about it.

    Exits with 1 when something is not as it should be.
    """
    from distributary.network.config import read_config
    from distributary.network.doctor import Finding, examine, reach
    from distributary.pipeline.java import ensure_java

    found = list(examine(default_state() if state is None else state, port))
    if config is not None:
        found.append(reach(read_config(config, os.environ).server))
    try:
        ensure_java()
        found.append(Finding("Java", True, "is there, for the pipeline"))
    except MissingPackage as error:
        found.append(Finding("Java", False, str(error)))
    width = max(len(one.what) for one in found)
    for one in found:
        print(f"{'ok' if one.well else '!!'}  {one.what.ljust(width)}  {one.detail}")
    return 0 if all(one.well for one in found) else _NOT_WELL
