"""`distributary pipeline run`: a chain of jobs from one configuration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from distributary.cli.output import write_document, write_documents
from distributary.cli.pipeline.options import Since, SparkOptions, Until, command, opened
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.pipeline.config import Step
    from distributary.pipeline.days import Days
    from distributary.pipeline.report import JobReport
    from distributary.pipeline.store import Store

__all__ = ["run", "summary_lines"]


@command(
    "Run a chain of jobs.",
    "run market.toml",
    "run market.toml --plan",
    "run market.toml --since 2026-01-05",
    "run market.toml --data elsewhere --json",
)
def run(
    spark: SparkOptions,
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG.toml", help="Which jobs to run, and how.", show_default=False
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="The folder of tables.",
            show_default="that of the configuration",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="List what is to be done, and why; do nothing.")
    ] = False,
    since: Since = None,
    until: Until = None,
) -> None:
    """Run what is stale in a chain of jobs with one Spark session, and sum up what each did.

    The configuration has a table for every job to run, with the job's options in it:
    sample or ingest, match, channels, traffic, rates, plans, wire, tree.

    A job whose tables, options and code are as they were is left out; of one that works by day,
    the days are done that are not up to date, and in any case those from --since until before
    --until.
    """
    from distributary.pipeline.config import read_config
    from distributary.pipeline.days import parse_days

    chain = read_config(config)
    forced = None if since is None and until is None else parse_days(since, until)
    folder = data or chain.data
    if folder is None:
        raise BadInput(
            str(config), "does not say where the tables are", hint="add [data], or give --data"
        )
    from distributary.pipeline.chain_check import check_chain
    from distributary.pipeline.jobs.run import UP_TO_DATE
    from distributary.pipeline.jobs.run import run as run_steps

    if not urlsplit(folder).scheme:
        try:
            check_chain(opened(folder, spark.storage_option), chain.steps)
        except BadInput as error:
            raise error.within(str(config)) from None
    if plan:
        _tell_plan(opened(folder, spark.storage_option), chain.steps, forced, as_json=spark.as_json)
        return
    done: list[JobReport] = []

    def finished(report: JobReport) -> None:
        done.append(report)
        took = "up to date" if UP_TO_DATE in report.figures else f"{report.seconds:.1f} s"
        print(f"{report.job}: {took}", file=sys.stderr, flush=True)

    try:
        with spark.session() as (session, observe):
            run_steps(
                opened(folder, spark.storage_option, session),
                chain.steps,
                days=forced,
                observe=observe,
                warn=lambda text: print(f"warning: {text}", file=sys.stderr),
                finished=finished,
            )
    finally:
        # What was done stays done, and is told, whatever became of the rest.
        if done:
            _tell(done, [step.job for step in chain.steps[len(done) :]], as_json=spark.as_json)


def _tell_plan(store: Store, steps: Sequence[Step], days: Days | None, *, as_json: bool) -> None:
    from distributary.pipeline.days import shown_days
    from distributary.pipeline.jobs.run import todo

    found = todo(store, steps, days=days)
    if as_json:
        write_documents([item.document() for item in found])
        return
    for item in found:
        stale = item.stale
        if not stale:
            print(f"{item.step.job:<10}up to date")
            continue
        which = f"  {shown_days(stale.days)}" if stale.days else ""
        print(f"{item.step.job:<10}to do{which}")
        for line in stale.lines():
            print(f"{'':<10}  {line}")


def _tell(done: list[JobReport], left: list[str], *, as_json: bool) -> None:
    if as_json:
        seconds = round(sum(report.seconds for report in done), 3)
        documents = [report.document() for report in done]
        write_document({"seconds": seconds, "steps": documents, "not_done": left}, None)
        return
    for line in summary_lines(done, left):
        print(line)


def summary_lines(reports: list[JobReport], left: Sequence[str] = ()) -> list[str]:
    """Return one table for all jobs: rows, seconds, and costs against baselines.

    `left` are those that were not done, because one of them failed.
    """
    from distributary.pipeline.jobs.run import UP_TO_DATE, comparison

    lines = [f"{'step':<10}{'rows in':>14}{'rows out':>14}{'seconds':>10}  costs"]
    for report in reports:
        if UP_TO_DATE in report.figures:
            lines.append(f"{report.job:<10}{'up to date':>14}")
            continue
        rows_in, rows_out = sum(report.rows_in.values()), sum(report.rows_out.values())
        begin = f"{report.job:<10}{rows_in:>14,}{rows_out:>14,}{report.seconds:>10.1f}"
        compared = comparison(report)
        if compared is None:
            lines.append(begin)
            continue
        name, cost, baselines = compared
        costs = [f"{name.replace('_', ' ')} {_shown(cost)}"]
        costs += [
            f"{other.replace('_', ' ')} {_shown(value)}" for other, value in baselines.items()
        ]
        lines.append(f"{begin}  {', '.join(costs)}")
    total = sum(report.seconds for report in reports)
    lines.append(f"{'together':<38}{total:>10.1f}")
    if left:
        lines.append(f"not done  {', '.join(left)}")
    return lines


def _shown(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:,.6g}"
