"""`distributary gateway`: HTTP for an overlay, against a NATS server that is there."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from distributary.errors import BadInput

__all__ = ["EXAMPLES", "gateway"]

EXAMPLES = """\
\b
Examples:
  distributary gateway --config operator.toml --prepare
  distributary gateway --config gateway.toml
  DISTRIBUTARY_NATS_PASSWORD=... distributary gateway --config gateway.toml
"""


def gateway(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE.toml", help="Where it listens, and NATS is.")
    ],
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Make what gateways share, as an operator whom the file names, and end.",
        ),
    ] = False,
    replicas: Annotated[
        int, typer.Option(min=1, max=5, help="With --prepare: how many servers keep a copy.")
    ] = 1,
) -> int:
    """Run one gateway until it is told to stop; several may run side by side.

    Every setting can be given by the environment too: DISTRIBUTARY_GATEWAY_PORT is `port` in
    the table [gateway].
    """
    from distributary.console.pages import PAGES
    from distributary.network.gateway.config import read_gateway_config
    from distributary.network.gateway.process import run_gateway
    from distributary.network.logs import log_to_stderr

    read = read_gateway_config(config, os.environ)
    if prepare:
        from distributary.network.buckets import make_buckets
        from distributary.network.subjects import Subjects

        # What is wrong is said once, as the error that it is.
        logging.getLogger("distributary").addHandler(logging.NullHandler())
        overlay, user = Subjects(read.gateway.overlay), read.server.user
        try:
            asyncio.run(make_buckets(overlay, read.server, user, replicas=replicas))
        except OSError as error:
            raise BadInput(
                read.server.urls[0],
                f"what gateways share cannot be made: {error}",
                hint="the server needs JetStream, and the user permission to make streams",
            ) from None
        return os.EX_OK
    log_to_stderr(read.gateway.name)
    return run_gateway(read, token=read.token, pages=PAGES)
