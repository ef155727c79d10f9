"""`distributary match`: which subscriptions each event concerns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.event_lines import event_lines
from distributary.cli.lines_output import writing_lines
from distributary.cli.options import output_option
from distributary.cli.output import check_output
from distributary.cli.progress import progress
from distributary.errors import BadInput

__all__ = ["EXAMPLES", "match"]

EXAMPLES = """\
\b
Examples:
  distributary match events.jsonl subscriptions.json
  distributary match events.jsonl subscriptions.json -o matches.jsonl
  distributary match events.jsonl subscriptions.json --skip-bad
  tail -f events.jsonl | distributary match - subscriptions.json
"""

_SKIPPED_SHOWN_MAX = 5
# How many events go by between two looks of the progress bar.
_LOOK_EVERY = 256


def match(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS.jsonl",
            help="Events in CloudEvents JSON, one per line; - reads standard input.",
            show_default=False,
        ),
    ],
    subscriptions: Annotated[
        Path,
        typer.Argument(
            metavar="SUBSCRIPTIONS.json",
            help='An array of {"id": "s1", "filters": [...]}.',
            show_default=False,
        ),
    ],
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Pass over lines that are no events, and count them."),
    ] = False,
    output: Annotated[Path | None, output_option("MATCHES.jsonl")] = None,
) -> None:
    """Say for every event which subscriptions it matches.

    Writes a line per event, {"event": "<id>", "matches": ["s1", ...]}, with the ids of
    subscriptions in order. Events are read and answered one at a time, so a file of any
    length will do.
    """
    check_output(output, "-o")
    streamed = str(events) == "-"
    if str(subscriptions) == "-":
        if streamed:
            raise BadInput("SUBSCRIPTIONS.json", "cannot be - when EVENTS.jsonl is")
        subscriptions = Path("/dev/stdin")
    from distributary.filters.index import Index
    from distributary.filters.subscriptions_file import read_subscriptions

    index = Index()
    filters = read_subscriptions(subscriptions)
    try:
        index.add_all(filters.items())
    except BadInput as error:
        raise error.within(str(subscriptions)) from None
    size = events.stat().st_size if events.is_file() else 0
    count = skipped = matches = 0
    with progress() as observe, writing_lines(output, at_once=streamed) as write:
        for event, end in event_lines(events):
            if isinstance(event, BadInput):
                if not skip_bad:
                    raise event
                skipped += 1
                if skipped <= _SKIPPED_SHOWN_MAX:
                    print(f"warning: {event}", file=sys.stderr)
                continue
            found = index.match(event)
            write({"event": event.id, "matches": found})
            count += 1
            matches += len(found)
            if observe is not None and size and count % _LOOK_EVERY == 0:
                observe(f"{count:,} events, KiB", end // 1024, size // 1024)
    if skipped:
        verb = "was" if skipped == 1 else "were"
        print(f"warning: {_counted(skipped, 'bad line')} {verb} skipped", file=sys.stderr)
    if output is not None:
        print(
            f"{_counted(count, 'event')}, {_counted(len(index), 'subscription')}, "
            f"{_counted(matches, 'match', 'matches')}; written to {output}",
            file=sys.stderr,
        )


def _counted(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
