"""`distributary restore`: an overlay as it was, or new brokers for those that it has lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.up import State, default_state
from distributary.errors import counted

__all__ = ["EXAMPLES", "restore"]

EXAMPLES = """\
\b
Examples:
  distributary restore monday
  distributary restore monday --state overlay --fresh
"""


def restore(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="What backup has written.")],
    state: State = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what is there, even if it is well.")
    ] = False,
) -> None:
    """Bring back the overlay in a backup; it must not run.

    Where some brokers are well they have gone on, and the backup is older than what they
    remember: those whose journals are gone get new identifiers, and nothing of theirs comes back.
    """
    from distributary.network import backup as backups

    restored = backups.restore(source, default_state() if state is None else state, fresh=fresh)
    for old, new in restored.replaced.items():
        print(f"{old} is lost to the others, who have gone on; {new} takes its place")
    if not restored.replaced:
        print(f"{counted(len(restored.brokers), 'broker')} as they were")
