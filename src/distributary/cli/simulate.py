"""`distributary simulate`: brokers and clients in virtual time, with faults and checkers."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from distributary.cli.options import Seed, check_drawing, drawing_option, output_option
from distributary.cli.output import check_output, write_document
from distributary.cli.progress import Observe, progress
from distributary.errors import BadInput, counted, quoted

if TYPE_CHECKING:
    from distributary.simulator.scenario import Scenario

__all__ = ["EXAMPLES", "simulate"]

EXAMPLES = """\
\b
Examples:
  distributary simulate scenarios/churn.toml
  distributary simulate scenarios/partition.toml --seed 8123 -o report.json
  distributary simulate scenarios/crash-restart.toml --seeds 0..199 -o reports.json
  distributary simulate scenarios/stream-small.toml --draw stream.html
"""

_VIOLATED = 1
_SEEDS_MAX = 100_000
_SEEDS = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")


def simulate(
    scenario: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO.toml", help="What happens, and what goes wrong.", show_default=False
        ),
    ],
    seed: Seed = 0,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="A..B", help="Run every seed from A to B, not --seed.", show_default=False
        ),
    ] = None,
    draw: Annotated[Path | None, drawing_option("run")] = None,
    output: Annotated[Path | None, output_option("REPORT.json")] = None,
) -> int:
    """Run brokers and clients in virtual time, break things, and check what must hold.

    Writes a report as JSON: what was owed and made, messages and bytes by kind, costs, and
    what went wrong. Many seeds make {"runs": [...]}. The same seed gives the same report.
    Exits with 1 when something went wrong, and then prints the command that shows it again.
    """
    check_output(output, "-o")
    check_drawing(draw, output)
    wanted = range(seed, seed + 1) if seeds is None else _parsed(seeds)
    if draw is not None and len(wanted) > 1:
        raise BadInput("--draw", "draws one run, and --seeds asks for several")
    from distributary.simulator import read_scenario

    read = read_scenario(scenario)
    with progress() as observe:
        reports = [_run(read, number, observe) for number in wanted]
    _print_summary(scenario, reports)
    if draw is not None:
        from distributary.simulator.draw import draw_run

        draw_run(reports[0], draw)
    document: dict[str, object] = reports[0] if seeds is None else {"runs": reports}
    write_document(document, output)
    return _VIOLATED if any(report["violations"] for report in reports) else 0


def _run(scenario: Scenario, seed: int, observe: Observe | None) -> dict[str, object]:
    from distributary.simulator import Simulation, report_of

    simulation = Simulation(scenario, seed=seed)
    simulation.run(observe)
    return report_of(simulation)


def _print_summary(path: Path, reports: list[dict[str, object]]) -> None:
    """Tell people what happened, and how to see again what went wrong."""
    from distributary.simulator import summary_lines

    # The file is the same for all seeds.
    for note in cast("list[str]", reports[0]["notes"]):
        print(f"note: {note}", file=sys.stderr)
    if len(reports) == 1:
        report = reports[0]
        print(f"{report['scenario']}, seed {report['seed']}", file=sys.stderr)
        for line in summary_lines(report):
            print(line, file=sys.stderr)
    else:
        wrong = sum(bool(report["violations"]) for report in reports)
        print(
            f"{reports[0]['scenario']}: {counted(len(reports), 'seed')}, "
            f"{counted(wrong, 'run')} with violations",
            file=sys.stderr,
        )
    for report in reports:
        if report["violations"]:
            replay = shlex.join(
                ["distributary", "simulate", str(path), "--seed", str(report["seed"])]
            )
            print(f"replay: {replay}", file=sys.stderr)


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
