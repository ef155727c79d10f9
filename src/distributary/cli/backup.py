"""`distributary backup`: a copy of an overlay, from one moment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.up import State, default_state
from distributary.errors import counted

__all__ = ["EXAMPLES", "backup"]

EXAMPLES = """\
\b
Examples:
  distributary backup monday
  distributary backup monday --state overlay
"""


def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    state: State = None,
) -> None:
    """Copy the journals and the content of the overlay on this machine, whether it runs or not.

    One that runs stands still while its journals are copied.
    """
    from distributary.network import backup as backups

    brokers = backups.backup(default_state() if state is None else state, target)
    print(f"{target}: {counted(len(brokers), 'broker')}, as they were at one moment")
