"""`distributary gateway`: HTTP for an overlay, against a NATS server that is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["EXAMPLES", "gateway"]

EXAMPLES = """\
\b
Examples:
  distributary gateway --config gateway.toml
  DISTRIBUTARY_NATS_PASSWORD=... distributary gateway --config gateway.toml
"""


def gateway(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE.toml", help="Where it listens, and NATS is.")
    ],
) -> int:
    """Run one gateway until it is told to stop; several may run side by side.

    Every setting can be given by the environment too: DISTRIBUTARY_GATEWAY_PORT is `port` in
    the table [gateway].
    """
    from distributary.console.pages import PAGES
    from distributary.network.gateway.config import read_gateway_config
    from distributary.network.gateway.process import run_gateway
    from distributary.network.process import log_to_stderr

    read = read_gateway_config(config, os.environ)
    log_to_stderr(read.gateway.name)
    return run_gateway(read, pages=PAGES)
