"""`distributary simulate`: brokers and clients in virtual time, with faults and checkers."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from distributary.cli.options import Seed, check_drawing, drawing_option, output_option, was_given
from distributary.cli.output import check_output, write_document
from distributary.cli.progress import progress
from distributary.cli.sweep import replay_line, run_seeds, sweep
from distributary.errors import BadInput, counted, quoted

if TYPE_CHECKING:
    from distributary.simulator import Simulation

__all__ = ["EXAMPLES", "simulate"]

EXAMPLES = """\
\b
Examples:
  distributary simulate scenarios/churn.toml
  distributary simulate scenarios/partition.toml --seed 8123 -o report.json
  distributary simulate scenarios/crash-restart.toml --seeds 0..199 -o reports.json
  distributary simulate scenarios/stream-small.toml --draw stream.html
  distributary simulate scenarios/map-small.toml --deliveries deliveries.parquet
  distributary simulate scenarios/video-small.toml --compare -o report.json
  distributary simulate scenarios --seeds 0..9999 --jobs 8
"""

_VIOLATED = 1
_SEEDS_MAX = 100_000
_JOBS_MAX = 256
_SEEDS = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")


def simulate(
    context: typer.Context,
    scenario: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO.toml|FOLDER",
            help="What happens, and what goes wrong; of a folder, every small scenario.",
        ),
    ],
    seed: Seed = 0,
    seeds: Annotated[
        str | None, typer.Option(metavar="A..B", help="Run every seed from A to B, not --seed.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Run each simple way of planning as well, with queues of its own, and compare.",
        ),
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=_JOBS_MAX, help="How many processes.")] = 1,
    large: Annotated[
        bool, typer.Option("--large", help="Of a folder, run the large scenarios too.")
    ] = False,
    deliveries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.parquet|FILE.csv", help="Write who got what as a table into this file."
        ),
    ] = None,
    draw: Annotated[Path | None, drawing_option("run")] = None,
    output: Annotated[Path | None, output_option("REPORT.json")] = None,
) -> int:
    """Run brokers and clients in virtual time, break things, and check what must hold.

    Writes a report as JSON: what was owed and made, messages and bytes by kind, costs, and
    what went wrong. Many seeds make {"runs": [...]}. The same seed gives the same report.
    --compare adds a table of what planning saves, in cost and in delay.
    Exits with 1 when something went wrong, and then prints the command that shows it again.
    A folder is a sweep: prints a table of its scenarios, and writes reports only with -o.
    """
    check_output(output, "-o")
    check_drawing(draw, output)
    if seeds is not None and was_given(context, "seed"):
        raise BadInput("--seed", "cannot be combined with --seeds")
    wanted = range(seed, seed + 1) if seeds is None else _parsed(seeds)
    of_one_run = [
        option
        for option, path in (("--draw", draw), ("--deliveries", deliveries))
        if path is not None
    ]
    if of_one_run and len(wanted) > 1:
        raise BadInput(of_one_run[0], "is for one run, and --seeds asks for several")
    if deliveries is not None:
        from distributary.simulator.deliveries import check_deliveries_path

        check_output(deliveries, "--deliveries")
        if output is not None and deliveries.resolve() == output.resolve():
            raise BadInput("--deliveries", f"{quoted(deliveries)} is where -o writes the report")
        check_deliveries_path(deliveries, "--deliveries")
    if scenario.is_dir():
        if of_one_run:
            raise BadInput(of_one_run[0], f"is for one run, and {quoted(scenario)} is a folder")
        if compare:
            raise BadInput("--compare", f"is for a scenario, and {quoted(scenario)} is a folder")
        failing = sweep(scenario, wanted, jobs=jobs, with_large=large, output=output)
        return _VIOLATED if failing else 0
    if large:
        raise BadInput("--large", f"is for a folder, and {quoted(scenario)} is none")

    def keep(simulation: Simulation) -> None:
        if deliveries is not None:
            from distributary.simulator.deliveries import write_deliveries

            write_deliveries(simulation, deliveries)
        if draw is not None:
            from distributary.simulator.draw import draw_run

            draw_run(simulation, draw)

    with progress() as observe:
        runs = run_seeds(
            [scenario],
            wanted,
            jobs=min(jobs, len(wanted)),
            compare=compare,
            observe=observe,
            keep=keep,
        )
        reports = [report for _, report, _ in runs]
    # The last run is a net of cycles. To take it apart before the process ends takes long.
    gc.freeze()
    _print_summary(scenario, reports)
    document: dict[str, object] = reports[0] if seeds is None else {"runs": reports}
    write_document(document, output)
    return _VIOLATED if any(_is_wrong(report) for report in reports) else 0


def _is_wrong(report: dict[str, Any]) -> bool:
    """Whether something went wrong in a run, or in one that it is compared with."""
    policies = report.get("policies", {})
    return bool(report["violations"]) or any(one["violations"] for one in policies.values())


def _print_summary(path: Path, reports: list[dict[str, Any]]) -> None:
    """Tell people what happened, and how to see again what went wrong."""
    from distributary.simulator import comparison_lines, summary_lines

    # The file is the same for all seeds.
    for note in cast("list[str]", reports[0]["notes"]):
        print(f"note: {note}", file=sys.stderr)
    if len(reports) == 1:
        report = reports[0]
        print(f"{report['scenario']}, seed {report['seed']}", file=sys.stderr)
        for line in summary_lines(report):
            print(line, file=sys.stderr)
    else:
        wrong = sum(map(_is_wrong, reports))
        print(
            f"{reports[0]['scenario']}: {counted(len(reports), 'seed')}, "
            f"{counted(wrong, 'run')} with violations",
            file=sys.stderr,
        )
    compared = "policies" in reports[0]
    if compared:
        for line in comparison_lines(reports):
            print(line, file=sys.stderr)
    for report in reports:
        if _is_wrong(report):
            print(replay_line(path, report["seed"], compare=compared), file=sys.stderr)


def _parsed(seeds: str) -> range:
    match = _SEEDS.fullmatch(seeds)
    if match is None:
        raise BadInput("--seeds", f"{quoted(seeds)} is not A..B", hint="write it as in 0..99")
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise BadInput("--seeds", f"{quoted(seeds)} ends before it begins")
    if last - first >= _SEEDS_MAX:
        raise BadInput("--seeds", f"{quoted(seeds)} are more than {_SEEDS_MAX:,} seeds")
    return range(first, last + 1)
