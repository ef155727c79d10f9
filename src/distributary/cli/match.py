"""`distributary match`: which subscriptions each event concerns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.event_lines import BadLines, event_lines, event_portions
from distributary.cli.lines_output import writing_lines
from distributary.cli.options import output_option
from distributary.cli.output import check_output, print_written, readable_path
from distributary.cli.progress import progress
from distributary.errors import BadInput, counted

__all__ = ["EXAMPLES", "match"]

EXAMPLES = """\
\b
Examples:
  distributary match events.jsonl subscriptions.json
  distributary match events.jsonl subscriptions.json -o matches.jsonl
  distributary match events.jsonl subscriptions.json --skip-bad
  tail -f events.jsonl | distributary match - subscriptions.json
"""

# Answered together, where nobody waits for the first.
_EVENTS_MAX = 1000
# How many bytes of progress lie between two looks at it.
_LOOK_EVERY = 2**16


def match(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS.jsonl",
            help="Events in CloudEvents JSON, one per line; - reads standard input.",
        ),
    ],
    subscriptions: Annotated[
        Path,
        typer.Argument(
            metavar="SUBSCRIPTIONS.json", help='An array of {"id": "s1", "filters": [...]}.'
        ),
    ],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Pass over lines that are no events, and count them.")
    ] = False,
    output: Annotated[Path | None, output_option("MATCHES.jsonl")] = None,
) -> None:
    """Say for every event which subscriptions it matches.

    Writes a line per event, {"event": "<id>", "matches": ["s1", ...]}, with the ids of
    subscriptions in order. A file of any length will do: memory does not grow with it. The
    answers for a file are printed when all of it is read, and none of them if a line is no
    event. Events from standard input, or from a pipe, are answered as they come.
    """
    check_output(output, "-o")
    if str(subscriptions) == str(events) == "-":
        raise BadInput("SUBSCRIPTIONS.json", "cannot be - when EVENTS.jsonl is")
    subscriptions = readable_path(subscriptions)
    from distributary.filters.index import Index
    from distributary.filters.subscriptions_file import read_subscriptions

    index = Index()
    filters = read_subscriptions(subscriptions)
    try:
        index.add_all(filters.items())
    except BadInput as error:
        raise error.within(str(subscriptions)) from None
    streamed = not events.is_file()
    size = 0 if streamed else events.stat().st_size
    bad = BadLines(skip=skip_bad)
    count = matches = looked = 0
    with progress() as observe, writing_lines(output, at_once=streamed) as write:
        lines = event_lines(events)
        for portion in event_portions(lines, bad, events_max=1 if streamed else _EVENTS_MAX):
            answers = index.match_each(portion.events)
            for event, found in zip(portion.events, answers, strict=True):
                write({"event": event.id, "matches": found})
                count += 1
                matches += len(found)
            if observe is not None and size and portion.end - looked > _LOOK_EVERY:
                looked = portion.end
                observe(f"{count:,} events, KiB", looked // 1024, size // 1024)
    if bad.count:
        verb = "was" if bad.count == 1 else "were"
        print(f"warning: {counted(bad.count, 'bad line')} {verb} skipped", file=sys.stderr)
    print_written(
        f"{counted(count, 'event')}, {counted(len(index), 'subscription')}, "
        f"{counted(matches, 'match', 'matches')}",
        output,
    )
