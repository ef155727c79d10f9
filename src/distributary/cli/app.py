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


# A module has the name of its command, and so has the function in it.
for _module, _short_help in (
    (place, "Plan where each conversion runs."),
    (compare, "Compare every method."),
    (tree, "Build the tree of a stream."),
    (wire, "Attach users to brokers."),
    (match, "Match events to subscriptions."),
    (simulate, "Run brokers in virtual time."),
    (convert, "Convert a file."),
    (formats, "List formats and conversions."),
    (calibrate, "Measure what conversions cost."),
    (samples, "Write sample content."),
    (publish, "Publish files or lines."),
    (subscribe, "Get events as they come."),
    (up, "Run an overlay on this machine."),
    (broker, "Run one broker."),
    (gateway, "Run one gateway."),
    (status, "Ask brokers how they are."),
    (doctor, "Look for what is wrong here."),
    (backup, "Copy an overlay to a folder."),
    (restore, "Bring an overlay back."),
    (warm_up, "Compile the hot loops now."),
):
    _name = _module.__name__.rpartition(".")[2]
    _command = app.command(_name.replace("_", "-"), epilog=_module.EXAMPLES, short_help=_short_help)
    _command(getattr(_module, _name))
app.add_typer(token.app, name="token")
app.add_typer(token.tenants, name="tenant")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(generate.app, name="generate")
