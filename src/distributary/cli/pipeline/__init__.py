"""`distributary pipeline`: jobs on tables, from one publication to all of them, on Spark."""

from __future__ import annotations

import typer

from distributary.cli.pipeline import (
    channels,
    ingest,
    match,
    plans,
    prune,
    rates,
    run,
    sample,
    stream,
    traffic,
    tree,
    wire,
)

__all__ = ["app"]

EXAMPLES = """\
\b
Examples:
  distributary pipeline sample --data data --publications 10000 --seed 7
  distributary pipeline match --data data
  distributary pipeline run market.toml
"""

# Nothing here imports Spark: each command does when it runs.
app = typer.Typer(help="Match, measure and plan over whole tables, on Spark.", epilog=EXAMPLES)


@app.callback()
def pipeline() -> None:
    """Match, measure and plan over whole tables, on Spark."""


app.command("sample", epilog=sample.EXAMPLES, short_help="Make realistic tables.")(sample.sample)
app.command("ingest", epilog=ingest.EXAMPLES, short_help="Read files into a table.")(ingest.ingest)
app.command("match", epilog=match.EXAMPLES, short_help="Publications to subscriptions.")(
    match.match
)
app.command("channels", epilog=channels.EXAMPLES, short_help="What is published and wanted where.")(
    channels.channels
)
app.command("traffic", epilog=traffic.EXAMPLES, short_help="Traffic of users and brokers.")(
    traffic.traffic
)
app.command("rates", epilog=rates.EXAMPLES, short_help="Updates that servers need.")(rates.rates)
app.command("plans", epilog=plans.EXAMPLES, short_help="Plan every publication.")(plans.plans)
app.command("wire", epilog=wire.EXAMPLES, short_help="Attach users to brokers.")(wire.wire)
app.command("tree", epilog=tree.EXAMPLES, short_help="Build the trees of streams.")(tree.tree)
app.command("stream", epilog=stream.EXAMPLES, short_help="The jobs on files that arrive.")(
    stream.stream
)
app.command("stream", epilog=stream.EXAMPLES, short_help="Do it as files arrive.")(stream.stream)
app.command("run", epilog=run.EXAMPLES, short_help="Run a chain of jobs.")(run.run)
app.command("prune", epilog=prune.EXAMPLES, short_help="Remove old rows.")(prune.prune)
