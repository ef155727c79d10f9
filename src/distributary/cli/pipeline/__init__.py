"""`distributary pipeline`: jobs on tables, from one publication to all of them, on Spark."""

from __future__ import annotations

# Each makes itself a command when it is imported, and commands are listed in this order.
from distributary.cli.pipeline import sample, ingest, load, match, channels, traffic, rates  # isort: skip # noqa: F401
from distributary.cli.pipeline import plans, wire, tree, stream, run, history, show, plot  # isort: skip # noqa: F401
from distributary.cli.pipeline import prune, erase, convert, compact, vacuum  # isort: skip # noqa: F401
from distributary.cli.pipeline.options import app

__all__ = ["app"]
