"""What every job takes, and how it begins and ends: one decorator makes each a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.option_groups import with_groups
from distributary.cli.progress import progress
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from distributary.pipeline.days import Days
    from distributary.pipeline.progress import Observe
    from distributary.pipeline.report import JobReport
    from distributary.pipeline.store import Store

__all__ = [
    "AsJson",
    "Data",
    "DayJobOptions",
    "Graph",
    "JobOptions",
    "Since",
    "SparkOptions",
    "StorageOption",
    "Tables",
    "Until",
    "Version",
    "Where",
    "app",
    "check_there",
    "command",
    "examples",
    "opened",
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


Since = Annotated[
    str | None,
    typer.Option(metavar="DAY", help="The first day, as in 2026-01-31.", show_default=False),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="DAY", help="The first day left out.", show_default=False),
]


Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Only rows with user=ann, value>=2 or failure!=null; may be repeated.",
        show_default=False,
    ),
]
Version = Annotated[
    int | None,
    typer.Option(help="The table as it was.", show_default="the latest", min=0),
]
Data = Annotated[
    str, typer.Option("--data", metavar="DIR", help="The folder of tables.", show_default=False)
]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="A setting of the file system that tables are on, for delta-rs; may be repeated.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def check_there(location: str) -> None:
    """Raise `BadInput` unless there is such a folder; those of other machines are not looked at.

    For commands that tidy up: nothing to do in a folder that is misspelt looks like success.
    """
    if "://" not in location and not Path(location).is_dir():
        raise BadInput("--data", f"there is no folder {quoted(location)}")


def opened(
    location: str, storage_option: list[str] | None, spark: SparkSession | None = None
) -> Store:
    """Return the tables in a folder."""
    from distributary.pipeline.store import Store

    options: dict[str, str] = {}
    for text in storage_option or ():
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise BadInput(
                "--storage-option", f"{quoted(text)} is not KEY=VALUE", hint="as in timeout=30s"
            )
        options[name] = value
    return Store(location, spark, storage_options=options)


def examples(*lines: str) -> str:
    """Return examples of commands as the end of a help text."""
    return "\b\nExamples:\n" + "".join(f"  distributary pipeline {line}\n" for line in lines)


# Nothing here imports Spark: each command does when it runs.
app = typer.Typer(
    help="Match, measure and plan over whole tables, on Spark.",
    epilog=examples(
        "sample --data data --publications 10000 --seed 7", "match --data data", "run market.toml"
    ),
)


@app.callback()
def pipeline() -> None:
    """Match, measure and plan over whole tables, on Spark."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What commands have that tidy up or tell: Spark is not started for them."""

    data: Data
    storage_option: StorageOption = None
    as_json: AsJson = False

    def store(self) -> Store:
        """Return the tables, or raise `BadInput` if there is no such folder."""
        check_there(self.data)
        return opened(self.data, self.storage_option)


@dataclass(frozen=True, kw_only=True)
class SparkOptions:
    """Which Spark does it, and how the command answers."""

    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Run on this Spark master.", show_default="local[*]"),
    ] = None
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="sc://HOST:PORT",
            help="Run through this Spark Connect server.",
            show_default=False,
        ),
    ] = None
    driver_memory: Annotated[
        str, typer.Option("--driver-memory", metavar="SIZE", help="Heap of the driver.")
    ] = "2g"
    as_json: AsJson = False
    storage_option: StorageOption = None

    @contextmanager
    def session(self) -> Iterator[tuple[SparkSession, Observe | None]]:
        """Yield a session of its own, and who is shown the progress: None when nobody looks."""
        from distributary.pipeline.failures import explained
        from distributary.pipeline.session import session

        started = session(master=self.master, remote=self.remote, driver_memory=self.driver_memory)
        # Jobs explain what they know more about themselves.
        with explained("the job", "its tables"), started as spark, progress() as observe:
            yield spark, observe


def _folder(given: str) -> str:
    """Return where -o says that tables go: a folder, which standard output is not."""
    if given in ("", "-"):
        raise typer.BadParameter("tables go into a folder")
    return given


@dataclass(frozen=True, kw_only=True)
class JobOptions(SparkOptions):
    """What every job was given on the command line."""

    data: Data
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            parser=_folder,
            help="Put results here, not into --data.",
            show_default=False,
        ),
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Show Spark's plan of the job and do not run it.")
    ] = False

    def run(
        self,
        name: str,
        work: Callable[[Running], JobReport],
        *,
        frames: Callable[[Running], Mapping[str, DataFrame]],
    ) -> None:
        """Do the work and print its report; with --explain, only show the plan of `frames`."""
        from distributary.pipeline.progress import watched

        with self.session() as (spark, observe), watched(spark, name, observe):
            source = opened(self.data, self.storage_option, spark)
            target = source
            if self.output is not None:
                target = opened(self.output, self.storage_option, spark)
            running = Running(source, target, observe)
            if self.explain:
                for frame in frames(running).values():
                    frame.explain("formatted")
                return
            report = work(running)
        print_report(report, as_json=self.as_json)


@dataclass(frozen=True, kw_only=True)
class DayJobOptions(JobOptions):
    """The same of a job that does some days."""

    since: Since = None
    until: Until = None

    @property
    def days(self) -> Days:
        """The days that were named; all, and rows without a time, when none were."""
        from distributary.pipeline.days import parse_days

        return parse_days(self.since, self.until)


@dataclass(frozen=True)
class Running:
    """What a job that runs works with: the tables it reads, those it writes, and an observer."""

    source: Store
    target: Store
    observe: Observe | None


Command = Callable[..., None]

_LAST = ("explain", "master", "remote", "driver_memory", "as_json", "storage_option")


def command(short_help: str, *lines: str, output: bool = True) -> Callable[[Command], Command]:
    """Make a function a command of `pipeline`, with the options that all jobs have.

    The parameter that is a `JobOptions` or `DayJobOptions`, or `SparkOptions` or `Tables` alone,
    stands for the options in it: the tables' in its place, the others after all of the function's
    own. Without `output` there is no option for it. The list of commands has the short help, and
    the command's own help the lines, as examples.
    """

    def decorate(function: Command) -> Command:
        run = with_groups(function, last=_LAST, without=() if output else ("output",))
        app.command(function.__name__, epilog=examples(*lines), short_help=short_help)(run)
        return run

    return decorate


def print_report(report: JobReport, *, as_json: bool) -> None:
    """Print what a job did: JSON to standard output, or a table for people."""
    from distributary.pipeline.days import shown_days

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
    if report.days is not None:
        print(f"{'days':<{width}}  {shown_days(report.days)}")
    # A job that makes its rows up has read none.
    read = f"{sum(report.rows_in.values()):,} rows in " if report.rows_in else ""
    print(f"{report.job}: {read}{report.seconds:.1f} s")
