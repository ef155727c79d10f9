"""What every job takes, and how it begins and ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.progress import Observe
    from distributary.pipeline.report import JobReport
    from distributary.pipeline.store import Store

__all__ = [
    "AsJson",
    "Data",
    "DriverMemory",
    "Explain",
    "Graph",
    "Job",
    "Master",
    "Output",
    "Remote",
    "job",
    "print_plans",
    "print_report",
]

Data = Annotated[
    str, typer.Option("--data", metavar="DIR", help="The folder of tables.", show_default=False)
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Put results here, not into --data.",
        show_default=False,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Run on this Spark master.", show_default="local[*]"),
]
Remote = Annotated[
    str | None,
    typer.Option(
        metavar="sc://HOST:PORT",
        help="Run through this Spark Connect server.",
        show_default=False,
    ),
]
DriverMemory = Annotated[
    str, typer.Option("--driver-memory", metavar="SIZE", help="Heap of the driver.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show Spark's plan of the job and do not run it.")
]

Graph = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help="The adaptation graph, as `distributary calibrate` writes it.",
        show_default="those that come with distributary",
    ),
]


@dataclass(frozen=True)
class Job:
    """What a job works with.

    Attributes
    ----------
    source, target
        The tables it reads, and those it writes.
    observe
        Who is shown the progress; None when nobody looks.
    """

    source: Store
    target: Store
    observe: Observe | None


@contextmanager
def job(
    name: str,
    *,
    data: str,
    output: str | None,
    master: str | None,
    remote: str | None,
    driver_memory: str,
) -> Iterator[Job]:
    """Yield the stores of a job on a session of its own, with a progress bar."""
    from distributary.pipeline.progress import watched
    from distributary.pipeline.session import session
    from distributary.pipeline.store import Store

    with (
        session(master=master, remote=remote, driver_memory=driver_memory) as spark,
        progress() as observe,
        watched(spark, name, observe),
    ):
        source = Store(spark, data)
        target = source if output is None else Store(spark, output)
        yield Job(source, target, observe)


def print_plans(frames: Mapping[str, DataFrame]) -> None:
    """Print how Spark would make the tables of a job."""
    for frame in frames.values():
        frame.explain("formatted")


def print_report(report: JobReport, *, as_json: bool) -> None:
    """Print what a job did: JSON to standard output, or a table for people."""
    if as_json:
        from distributary.cli.output import write_document

        write_document(report.document(), None)
        return
    width = max(len(name) for name in (*report.rows_in, *report.rows_out, *report.figures, "job"))
    for heading, rows in (("in", report.rows_in), ("out", report.rows_out)):
        for table, count in rows.items():
            print(f"{table:<{width}}  {count:>14,} rows {heading}")
    for figure, value in report.figures.items():
        shown = (
            f"{value:,.6g}"
            if isinstance(value, float)
            else f"{value:,}"
            if isinstance(value, int)
            else str(value)
        )
        print(f"{figure:<{width}}  {shown:>14}")
    # A job that makes its rows up has read none.
    read = f"{sum(report.rows_in.values()):,} rows in " if report.rows_in else ""
    print(f"{report.job}: {read}{report.seconds:.1f} s")
