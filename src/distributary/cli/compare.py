"""`distributary compare`: every method on one problem, side by side."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.options import ProblemPath, Seed
from distributary.cli.output import print_warnings, readable_path, write_document
from distributary.cli.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from distributary.placement.comparison import MethodResult

__all__ = ["EXAMPLES", "compare", "comparison_table"]

EXAMPLES = """\
\b
Examples:
  distributary compare map.json
  distributary compare map.json --iterations 200 --json
"""


def compare(
    problem: ProblemPath,
    iterations: Annotated[int, typer.Option(min=0, help="Refinements of iterative.")] = 1000,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Write data instead of a table.")] = False,
) -> None:
    """Plan a problem with every method that can, and compare what the plans cost.

    Savings are against making everything at the root, and against making everything
    where it is wanted.
    """
    from distributary.placement.comparison import compare_methods, comparison_document
    from distributary.placement.problem_file import read_problem

    file = read_problem(readable_path(problem))
    with progress() as observe:
        results = compare_methods(file.problem, iterations=iterations, seed=seed, observe=observe)
    if json:
        write_document(comparison_document(results, seed=seed), None)
    else:
        from distributary.cli.conversion_tables import print_table

        print_table(comparison_table(results))
        for result in results:
            if result.skipped is not None:
                print(f"skipped {result.method}: {result.skipped}")
        print(f"* cheapest plan found; seed {seed}")
        sys.stdout.flush()
    print_warnings(problem, file.warnings)


def comparison_table(results: list[MethodResult]) -> Table:
    """Return the results as a table to print; the cheapest plans are marked."""
    from distributary.cli.conversion_tables import table

    figures = ("cost", "saves on all-in-root", "on all-in-leaves", "seconds", "gap")
    filled = table(("method",), figures)
    for result in results:
        placement = result.placement
        if placement is None:
            filled.add_row(result.method, "skipped", "-", "-", "-", "-")
            continue
        filled.add_row(
            f"{result.method} *" if result.best else result.method,
            f"{placement.total_cost:,.2f}",
            _share(result.saving_all_in_root),
            _share(result.saving_all_in_leaves),
            f"{placement.seconds:.3f}",
            f"{placement.gap:.2%}",
            style="bold" if result.best else "",
        )
    return filled


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"
