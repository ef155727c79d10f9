"""The command and its subcommands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from distributary import __version__
from distributary.cli import (
    backup,
    broker,
    calibrate,
    compare,
    convert,
    doctor,
    formats,
    gateway,
    generate,
    match,
    pipeline,
    place,
    publish,
    restore,
    samples,
    simulate,
    status,
    subscribe,
    token,
    tree,
    up,
    warm_up,
    wire,
)

__all__ = ["app"]

EXAMPLES = """\
\b
Examples:
  distributary generate placement map --seed 7 -o map.json
  distributary place map.json --draw plan.html -o plan.json
  distributary tree stream.json -o tree.json
  distributary wire users.json -o wiring.json
  distributary match events.jsonl subscriptions.json
"""

# Nothing here imports NumPy: each command imports its planner when it runs, so that
# help and completion answer at once.
app = typer.Typer(
    name="distributary",
    help="Publish once; every subscriber gets what it asked for, in the format it can use.",
    epilog=EXAMPLES,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    # Boxes and colours are for people; what goes into a file or a pipe stays plain.
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"distributary {__version__}")
        raise typer.Exit


@app.callback()
def distributary(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Show the help when no subcommand is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("place", epilog=place.EXAMPLES, short_help="Plan where each conversion runs.")(
    place.place
)
app.command("compare", epilog=compare.EXAMPLES, short_help="Compare every method.")(compare.compare)
app.command("tree", epilog=tree.EXAMPLES, short_help="Build the tree of a stream.")(tree.tree)
app.command("wire", epilog=wire.EXAMPLES, short_help="Attach users to brokers.")(wire.wire)
app.command("match", epilog=match.EXAMPLES, short_help="Match events to subscriptions.")(
    match.match
)
app.command("simulate", epilog=simulate.EXAMPLES, short_help="Run brokers in virtual time.")(
    simulate.simulate
)
app.command("convert", epilog=convert.EXAMPLES, short_help="Convert a file.")(convert.convert)
app.command("formats", epilog=formats.EXAMPLES, short_help="List formats and conversions.")(
    formats.formats
)
app.command("calibrate", epilog=calibrate.EXAMPLES, short_help="Measure what conversions cost.")(
    calibrate.calibrate
)
app.command("samples", epilog=samples.EXAMPLES, short_help="Write sample content.")(samples.samples)
app.command("publish", epilog=publish.EXAMPLES, short_help="Publish files or lines.")(
    publish.publish
)
app.command("subscribe", epilog=subscribe.EXAMPLES, short_help="Get events as they come.")(
    subscribe.subscribe
)
app.command("up", epilog=up.EXAMPLES, short_help="Run an overlay on this machine.")(up.up)
app.command("broker", epilog=broker.EXAMPLES, short_help="Run one broker.")(broker.broker)
app.command("gateway", epilog=gateway.EXAMPLES, short_help="Run one gateway.")(gateway.gateway)
app.command("status", epilog=status.EXAMPLES, short_help="Ask brokers how they are.")(status.status)
app.command("doctor", epilog=doctor.EXAMPLES, short_help="Look for what is wrong here.")(
    doctor.doctor
)
app.command("backup", epilog=backup.EXAMPLES, short_help="Copy an overlay to a folder.")(
    backup.backup
)
app.command("restore", epilog=restore.EXAMPLES, short_help="Bring an overlay back.")(
    restore.restore
)
app.add_typer(token.app, name="token")
app.add_typer(token.tenants, name="tenant")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(generate.app, name="generate")
app.command("warm-up", epilog=warm_up.EXAMPLES, short_help="Compile the hot loops now.")(
    warm_up.warm_up
)
