"""`distributary pipeline stream`: the jobs on files as they arrive."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.pipeline.durations import microseconds
from distributary.cli.pipeline.ingest import AnyPublisher, Publisher
from distributary.cli.pipeline.options import Graph, JobOptions, Running, command
from distributary.cli.pipeline.rates import QuoteSource, QuoteType, QuoteValue

if TYPE_CHECKING:
    from distributary.content.content_space import ContentSpace
    from distributary.pipeline.jobs.stream import StreamOptions
    from distributary.pipeline.report import JobReport

__all__ = ["stream"]


@command(
    "Do it as files arrive.",
    "stream --input arriving --checkpoint state --data market -o live --once",
    "stream --input arriving --checkpoint state --data market -o live --window 5m --watermark 30s",
    "stream --input quotes --table quotes --checkpoint state --data market -o live --every 2s",
)
def stream(
    folder: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="DIR",
            help="Where files arrive: in its folders publications and quotes, or in itself. "
            "Move them there when they are complete.",
            show_default=False,
        ),
    ],
    checkpoint: Annotated[
        str,
        typer.Option(
            metavar="DIR", help="Where the stream keeps what it remembers.", show_default=False
        ),
    ],
    job: JobOptions,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What files in none of the two folders hold: publications or quotes.",
            show_default="as the first one tells",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all files that are there are done.")
    ] = False,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="How often to look for files.")
    ] = "10s",
    max_files: Annotated[
        int, typer.Option("--max-files", help="How many files make a batch at most.")
    ] = 1_000,
    window: Annotated[
        str, typer.Option(metavar="TIME", help="The length of windows of time.")
    ] = "60s",
    watermark: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait for rows that come late.")
    ] = "10s",
    tau: Annotated[
        float, typer.Option(help="By which share a value may rise before it is reported again.")
    ] = 0.2,
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The content space in which traffic is expected, as channels has it.",
            show_default="the attribute type in 64 buckets",
        ),
    ] = None,
    graph: Graph = None,
    publisher: Publisher = None,
    any_publisher: AnyPublisher = False,
    source: QuoteSource = "/exchange",
    event_type: QuoteType = "quote",
    value: QuoteValue = None,
) -> None:
    """Ingest, match and measure files as they arrive, until Ctrl-C.

    Adds a batch of rows at a time to publications, quotes, deliveries, quarantine and
    decisions: rates and traffic in windows of time, reported when they have changed by more
    than --tau. In the end it writes rates and traffic over all rows. Killed and started
    again, it loses nothing and repeats nothing.
    """
    from distributary.pipeline.jobs import stream as jobs
    from distributary.pipeline.transforms.followers import ObjectEvents
    from distributary.pipeline.transforms.publishers import PublisherRule

    lengths = {
        option: microseconds(f"--{option}", text)
        for option, text in (("every", every), ("window", window), ("watermark", watermark))
    }

    def options() -> StreamOptions:
        return jobs.StreamOptions(
            folder,
            checkpoint,
            table=table,
            once=once,
            every_us=lengths["every"],
            files_max=max_files,
            window_us=lengths["window"],
            delay_us=lengths["watermark"],
            tau=tau,
            events=ObjectEvents(source, event_type, value),
            space=_space(space),
            graph=graph,
            publishers=PublisherRule(publisher, any_publisher),
        )

    def work(running: Running) -> JobReport:
        chosen = options()
        with _asked_to_stop() as asked:
            return jobs.stream(running.source, running.target, chosen, stopped=asked.is_set)

    job.run("stream", work, frames=lambda running: jobs.frames(running.source, options()))


def _space(file: Path | None) -> ContentSpace:
    from distributary.content.content_space import ContentSpace
    from distributary.content.documents import read_document

    return ContentSpace.default() if file is None else read_document(file, ContentSpace.parse)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Yield what is set by Ctrl-C and by SIGTERM; the second Ctrl-C interrupts as usual."""
    asked = threading.Event()

    def ask(number: int, _: object) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
