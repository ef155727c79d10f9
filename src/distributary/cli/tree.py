"""`distributary tree`: which tree a stream of updates follows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from distributary.cli.network_options import NetworkOptions, print_notes
from distributary.cli.option_groups import with_groups
from distributary.cli.options import (
    FidelityMethod,
    ProblemPath,
    Seed,
    TimeLimit,
    check_drawing,
    check_number,
    drawing_option,
    output_option,
    was_given,
)
from distributary.cli.output import (
    check_output,
    print_warnings,
    print_written,
    readable_path,
    write_document,
)
from distributary.cli.progress import progress
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from distributary.fidelity.planner import StreamTrees

__all__ = ["EXAMPLES", "tree"]

EXAMPLES = """\
\b
Examples:
  distributary generate tree --seed 7 -o stream.json
  distributary tree stream.json -o tree.json
  distributary tree stream.json --method greedy --draw tree.html -o tree.json
  distributary tree stream.json --method adapt --start tree.json
  distributary tree servers.json --topology Geant2011.gml --draw tree.html
"""

_STARTED = ("anneal", "adapt")
_OPTIONS_OF = {
    "dita": ("fanout",),
    "adapt": ("rounds",),
    "anneal": (
        "start_factor",
        "cooling",
        "moves_per_server",
        "frozen_below",
        "patience",
        "evaluations",
    ),
}
_NAMED_MAX = 5
# Reasons that a warning gives why nothing can be done about it.
_REASONS_MAX = 3


@with_groups
def tree(
    context: typer.Context,
    problem: ProblemPath,
    method: Annotated[FidelityMethod, typer.Option(help="How to build the tree.")] = "auto",
    objects: Annotated[
        Literal["one-tree", "tree-each"],
        typer.Option(help="One tree for all objects, or a tree for each."),
    ] = "one-tree",
    seed: Seed = 0,
    start: Annotated[
        Path | None, typer.Option(metavar="TREE.json", help="Where adapt and anneal begin.")
    ] = None,
    fanout: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most children that dita gives a server.", show_default="searched"
        ),
    ] = None,
    time_limit: TimeLimit = None,
    start_factor: Annotated[
        float, typer.Option(help="anneal: first temperature, as a multiple of the start's loss.")
    ] = 2.0,
    cooling: Annotated[
        float, typer.Option(help="anneal: factor on the temperature each time.")
    ] = 0.95,
    moves_per_server: Annotated[
        float, typer.Option(help="anneal: moves per server at each temperature.")
    ] = 64.0,
    frozen_below: Annotated[
        float, typer.Option(help="anneal: temperature below which it may end.")
    ] = 0.001,
    patience: Annotated[
        int, typer.Option(min=0, help="anneal: temperatures without a better tree to end.")
    ] = 10,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="anneal: end after this many moves.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="adapt: end after this many rounds.")
    ] = None,
    network: NetworkOptions = NetworkOptions(),
    draw: Annotated[Path | None, drawing_option("tree")] = None,
    output: Annotated[Path | None, output_option("TREE.json")] = None,
) -> None:
    """Decide from whom each server receives its updates, at the least loss of fidelity.

    Writes the tree as JSON: the parent of every server, the share of time that copies
    are out of date on average, and the servers that the tree overloads.
    """
    check_number("--time-limit", time_limit, positive=True)
    if start is not None and method not in _STARTED:
        raise BadInput("--start", f"is for {' and '.join(_STARTED)}, not for {method}")
    for owner, names in _OPTIONS_OF.items():
        for name in names:
            if method != owner and was_given(context, name):
                raise BadInput(f"--{name.replace('_', '-')}", f"is for {owner}, not for {method}")
    check_drawing(draw, output)
    check_output(output, "-o")
    from distributary.fidelity.problem_file import read_problem
    from distributary.fidelity.tree_file import read_trees, trees_document

    sites = network.sites()
    file = read_problem(readable_path(problem), alone=str(problem) == "-", sites=sites)
    begin = None if start is None else read_trees(start, file.problem, approach=objects)
    from distributary.fidelity.anneal import AnnealingSchedule
    from distributary.fidelity.overload import unservable
    from distributary.fidelity.planner import build_trees

    schedule = AnnealingSchedule(
        start_factor=start_factor,
        cooling=cooling,
        moves_per_server=moves_per_server,
        frozen_below=frozen_below,
        patience=patience,
        evaluations_max=AnnealingSchedule.evaluations_max if evaluations is None else evaluations,
    )
    with progress() as observe:
        result = build_trees(
            file.problem,
            method=method,
            approach=objects,
            seed=seed,
            time_limit=time_limit,
            observe=observe,
            start=begin,
            fanout=fanout,
            schedule=schedule,
            rounds=rounds,
        )
    if draw is not None:
        from distributary.fidelity.draw import draw_trees

        draw_trees(file.problem, result, draw)
    write_document(trees_document(file.problem, result, file.node_order), output)
    print_notes(sites)
    print_warnings(problem, file.warnings)
    if result.loss.overloaded:
        print(f"warning: {_overload(result)}", file=sys.stderr)
        for shortfall in unservable(file.problem, objects)[:_REASONS_MAX]:
            print(f"warning: no tree can serve this: {shortfall.reason}", file=sys.stderr)
    print_written(
        f"{result.method}: average loss {result.loss.average:.6g}, "
        f"{result.seconds:.3f} s, seed {seed}",
        output,
    )


def _overload(result: StreamTrees) -> str:
    """Return a sentence about the servers that cannot keep up."""
    names = result.loss.overloaded
    shown = ", ".join(quoted(name) for name in names[:_NAMED_MAX])
    more = f" and {len(names) - _NAMED_MAX:,} more" if len(names) > _NAMED_MAX else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{shown}{more} {verb} overloaded, so updates fall behind without bound"
