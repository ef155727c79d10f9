"""`distributary broker`: one broker of an overlay, against a NATS server that is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["EXAMPLES", "broker"]

EXAMPLES = """\
\b
Examples:
  distributary broker --config broker.toml
  DISTRIBUTARY_NATS_PASSWORD=... distributary broker --config broker.toml
"""


def broker(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE.toml", help="Who it is, and where NATS is.")
    ],
) -> int:
    """Run one broker until it is told to stop; what was accepted survives.

    Every setting can be given by the environment too: DISTRIBUTARY_NATS_USER is `user` in
    the table [nats].
    """
    from distributary.network.config import read_config
    from distributary.network.logs import log_to_stderr
    from distributary.network.process import run_broker

    read = read_config(config, os.environ)
    log_to_stderr(read.broker.identity)
    return run_broker(read)
