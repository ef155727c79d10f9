"""`distributary pipeline ingest`: files into a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from distributary.cli.pipeline.options import JobOptions, command

__all__ = ["AnyPublisher", "Publisher", "ingest"]

Publisher = Annotated[
    str | None,
    typer.Option(
        metavar="ATTRIBUTE",
        help="The attribute of events that names the user who published them.",
        show_default="publisher, or else source",
    ),
]
AnyPublisher = Annotated[
    bool,
    typer.Option(
        "--any-publisher",
        help="Keep publications whose publisher is not in users, as nobody's.",
    ),
]


@command(
    "Read files into a table.",
    "ingest publications events.jsonl --data market",
    "ingest publications events.jsonl --publisher clientid --data market",
    "ingest quotes trades/*.csv.gz --data market",
    "ingest users more-users.parquet --add --data market",
    output=False,
)
def ingest(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table to fill.", show_default=False)
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            help="CSV, JSON lines (.json, .jsonl, .ndjson) or Parquet, or folders of them; "
            "lines may be packed (.gz, .zst, .bz2).",
            show_default=False,
        ),
    ],
    job: JobOptions,
    add: Annotated[
        bool, typer.Option("--add", help="Add to the rows of the table; do not replace them.")
    ] = False,
    publisher: Publisher = None,
    any_publisher: AnyPublisher = False,
) -> None:
    """Read files into a table, and into quarantine what does not belong there.

    Every row is in one of the two, and both are counted. The same files again give the
    same table: of rows with one key, the first by file and line is kept. Publications are
    CloudEvents in JSON, one per line, or rows of the table; other tables have their columns
    by name. CSV needs a line of names, times an offset, and a record is one line.

    With a table users, publications whose publisher is not in it go to quarantine.
    """
    from distributary.pipeline.jobs import ingest as jobs

    # Before Spark is started, which takes seconds.
    jobs.check(table, files, publisher=publisher, any_publisher=any_publisher)
    job.run(
        "ingest",
        lambda running: jobs.ingest(
            running.target,
            table,
            files,
            add=add,
            publisher=publisher,
            any_publisher=any_publisher,
            warn=lambda text: print(f"warning: {text}", file=sys.stderr),
        ),
        frames=lambda running: jobs.frames(
            running.target, table, files, publisher=publisher, any_publisher=any_publisher
        ),
    )
