"""`distributary pipeline run`: a chain of jobs from one configuration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from distributary.cli.output import write_document
from distributary.cli.pipeline.options import SparkOptions, command
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.pipeline.report import JobReport

__all__ = ["run", "summary_lines"]


@command("Run a chain of jobs.", "run market.toml", "run market.toml --data elsewhere --json")
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
) -> None:
    """Run a chain of jobs with one Spark session, and sum up what each did.

    The configuration has a table for every job to run, with the job's options in it:
    sample or ingest, match, channels, traffic, rates, plans, wire, tree.
    """
    from distributary.pipeline.config import read_config

    chain = read_config(config)
    folder = data or chain.data
    if folder is None:
        raise BadInput(
            str(config), "does not say where the tables are", hint="add [data], or give --data"
        )
    from distributary.pipeline.chain_check import check_chain
    from distributary.pipeline.jobs.run import run as run_steps
    from distributary.pipeline.store import Store

    if not urlsplit(folder).scheme:
        try:
            check_chain(Store(folder), chain.steps)
        except BadInput as error:
            raise error.within(str(config)) from None
    done: list[JobReport] = []

    def finished(report: JobReport) -> None:
        done.append(report)
        print(f"{report.job}: {report.seconds:.1f} s", file=sys.stderr, flush=True)

    try:
        with spark.session() as (session, observe):
            run_steps(
                Store(folder, session),
                chain.steps,
                observe=observe,
                warn=lambda text: print(f"warning: {text}", file=sys.stderr),
                finished=finished,
            )
    finally:
        # What was done stays done, and is told, whatever became of the rest.
        if done:
            _tell(done, [step.job for step in chain.steps[len(done) :]], as_json=spark.as_json)


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
    from distributary.pipeline.jobs.run import comparison

    lines = [f"{'step':<10}{'rows in':>14}{'rows out':>14}{'seconds':>10}  costs"]
    for report in reports:
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
