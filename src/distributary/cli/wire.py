"""`distributary wire`: which broker every user attaches to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from distributary.cli.network_options import NetworkOptions, print_notes
from distributary.cli.option_groups import with_groups
from distributary.cli.options import (
    Seed,
    TimeLimit,
    WiringMethod,
    check_drawing,
    check_number,
    drawing_option,
)
from distributary.cli.output import (
    print_warnings,
    print_written,
    readable_path,
    shown_path,
    write_document,
)
from distributary.cli.progress import progress
from distributary.cli.tables_output import tables_folder, tables_option, writing_tables
from distributary.errors import BadInput, InfeasiblePlan, counted

if TYPE_CHECKING:
    from distributary.topology.sites import Sites
    from distributary.wiring.problem import WiringProblem
    from distributary.wiring.problem_file import ProblemFile
    from distributary.wiring.wiring import Wiring
    from distributary.wiring.wiring_file import Assignment

__all__ = ["EXAMPLES", "wire"]

EXAMPLES = """\
\b
Examples:
  distributary generate wiring --seed 7 -o users.json
  distributary wire users.json -o wiring.json
  distributary wire users.json --method mixing --core steiner --draw wiring.html
  distributary wire users.json --from wiring.json --moves 50 -o better.json
  distributary wire users.json --topology Geant2011.gml --draw wiring.html
  distributary generate wiring --users 100000 --brokers 1000 -o tables/
  distributary wire tables/ --time-limit 60 -o tables/
"""

_STARTED = ("auto", "search")


@with_groups
def wire(
    problem: Annotated[
        Path,
        typer.Argument(
            metavar="PROBLEM",
            help="A JSON file, a directory of Parquet tables, or - for standard input.",
        ),
    ],
    method: Annotated[WiringMethod, typer.Option(help="How to attach users.")] = "auto",
    core: Annotated[
        Literal["mst", "steiner", "one-tree"],
        typer.Option(help="How traffic travels between brokers."),
    ] = "mst",
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="WIRING.json",
            help="Re-wire from this wiring; - reads standard input.",
        ),
    ] = None,
    moves: Annotated[
        int | None, typer.Option(min=0, help="With --from: most users to move.", show_default="all")
    ] = None,
    network: NetworkOptions = NetworkOptions(),
    draw: Annotated[Path | None, drawing_option("wiring")] = None,
    output: Annotated[str | None, tables_option("WIRING")] = None,
) -> None:
    """Attach every user to a broker, at the least cost of traffic.

    Writes the wiring as JSON: the broker of every user, what access to brokers and
    traffic between them cost, and a lower bound that no wiring can beat.
    """
    check_number("--time-limit", time_limit, positive=True)
    if moves is not None and start is None:
        raise BadInput("--moves", "needs --from", hint="say which wiring users move from")
    if start is not None and method not in _STARTED:
        raise BadInput("--from", f"is for {' and '.join(_STARTED)}, not for {method}")
    if str(start) == str(problem) == "-":
        raise BadInput("--from", "cannot be standard input when PROBLEM is")
    check_drawing(draw, output)
    folder = tables_folder(output, prefer_tables=problem.is_dir())
    sites = network.sites()
    file = _read(problem, sites)
    begin = None if start is None else _read_start(start, file.problem)
    from distributary.wiring.planner import wire as plan

    with progress() as observe:
        try:
            wiring = plan(
                file.problem,
                method=method,
                core=core,
                seed=seed,
                time_limit=time_limit,
                start=None if begin is None else begin.broker_of,
                moves=moves,
                observe=observe,
            )
        except InfeasiblePlan as error:
            sentence = f"{shown_path(problem)}: {error}"
            raise InfeasiblePlan(sentence, shortfall=error.shortfall) from None
    if draw is not None:
        from distributary.wiring.draw import draw_wiring

        draw_wiring(file.problem, wiring, draw, positions=file.positions)
    _write(file, wiring, folder, output)
    print_notes(sites)
    print_warnings(problem, file.warnings)
    if file.problem.shortened:
        print(
            f"warning: {shown_path(problem)}: core prices break the triangle inequality; the "
            "prices of shortest paths stand in",
            file=sys.stderr,
        )
    if start is not None and begin is not None:
        print_warnings(start, begin.warnings)
    print_written(_summary(wiring, seed), output)


def _read(path: Path, sites: Sites | None) -> ProblemFile:
    if path.is_dir():
        from distributary.wiring.problem_tables import read_problem_tables

        return read_problem_tables(path, sites=sites)
    from distributary.wiring.problem_file import read_problem

    return read_problem(readable_path(path), sites=sites)


def _read_start(path: Path, problem: WiringProblem) -> Assignment:
    if path.is_dir():
        from distributary.wiring.wiring_tables import read_wiring_tables

        return read_wiring_tables(path, problem)
    from distributary.wiring.wiring_file import read_wiring

    return read_wiring(readable_path(path), problem)


def _write(file: ProblemFile, wiring: Wiring, folder: Path | None, output: str | None) -> None:
    if folder is not None:
        from distributary.wiring.wiring_tables import write_wiring_tables

        with writing_tables(folder):
            write_wiring_tables(file.problem, wiring, folder, file.user_order)
        return
    from distributary.wiring.wiring_file import wiring_document

    document = wiring_document(file.problem, wiring, file.user_order)
    write_document(document, None if output is None else Path(output))


def _summary(wiring: Wiring, seed: int) -> str:
    """Return the figures of a wiring on one line."""
    cost = wiring.cost
    parts = [
        f"{wiring.method}: cost {cost.total:.6g} (access {cost.access:.6g}, core {cost.core:.6g})",
        f"gap {wiring.gap:.2%}",
    ]
    if wiring.steiner_saving is not None:
        parts.append(f"branching saves {wiring.steiner_saving:.6g}")
    if wiring.moved is not None:
        parts.append(f"{counted(wiring.moved, 'user')} moved")
    return ", ".join((*parts, f"{wiring.seconds:.3f} s", f"seed {seed}"))
