"""`distributary place`: where each conversion of a publication runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from distributary.cli.network_options import NetworkOptions, print_notes
from distributary.cli.option_groups import with_groups
from distributary.cli.options import (
    PlacementMethod,
    Seed,
    TimeLimit,
    check_drawing,
    check_number,
    drawing_option,
    output_option,
    problem_argument,
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
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.placement.problem_file import ProblemFile
    from distributary.topology.sites import Sites

__all__ = ["EXAMPLES", "place"]

EXAMPLES = """\
\b
Examples:
  distributary generate placement map --seed 7 -o map.json
  distributary place map.json -o plan.json
  distributary place map.json --method iterative --draw plan.html -o plan.json
  distributary place brokers.json --topology Geant2011.gml --draw plan.html
  distributary compare map.json
"""

_CONCURRENT_REFUSES = ("method", "iterations", "select", "steiner", "depth", "objective", "draw")


@with_groups
def place(
    context: typer.Context,
    problems: Annotated[list[Path], problem_argument()],
    graph: Annotated[
        Path | None,
        typer.Option(
            metavar="GRAPH.json", help="Take formats and conversions from this calibrated graph."
        ),
    ] = None,
    content_bytes: Annotated[
        int | None, typer.Option("--bytes", min=0, help="How large the content is, for --graph.")
    ] = None,
    method: Annotated[PlacementMethod, typer.Option(help="How to plan.")] = "auto",
    iterations: Annotated[int, typer.Option(min=0, help="Refinements of iterative.")] = 1000,
    select: Annotated[
        Literal["slack", "random"], typer.Option(help="How iterative picks the node to refine.")
    ] = "slack",
    steiner: Annotated[
        Literal["charikar", "exact"], typer.Option(help="How iterative refines a node.")
    ] = "charikar",
    depth: Annotated[int, typer.Option(min=1, help="Levels of tree that a refinement spans.")] = 1,
    objective: Annotated[
        Literal["cost", "time"], typer.Option(help="What to minimise: cost or latest delivery.")
    ] = "cost",
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    network: NetworkOptions = NetworkOptions(),
    draw: Annotated[Path | None, drawing_option("plan")] = None,
    concurrent: Annotated[
        bool, typer.Option("--concurrent", help="Plan several publications that share brokers.")
    ] = False,
    load_growth: Annotated[
        float, typer.Option(help="How much dearer a broker gets with load, for --concurrent.")
    ] = 0.1,
    output: Annotated[Path | None, output_option("PLAN.json")] = None,
) -> None:
    """Decide at which broker each format conversion runs, at the least cost.

    Writes the plan as JSON: what every broker receives and converts, what that costs,
    and a lower bound that no plan can beat.
    """
    check_number("--time-limit", time_limit, positive=True)
    check_number("--load-growth", load_growth)
    check_drawing(draw, output)
    check_output(output, "-o")
    if concurrent:
        for name in _CONCURRENT_REFUSES:
            if was_given(context, name):
                raise BadInput(f"--{name}", "cannot be combined with --concurrent")
    elif was_given(context, "load_growth"):
        raise BadInput("--load-growth", "needs --concurrent")
    elif len(problems) > 1:
        raise BadInput(
            str(problems[1]),
            "is a second problem file",
            hint="add --concurrent to plan them together",
        )
    sites = network.sites()
    files = _read(problems, graph, content_bytes, sites)
    if concurrent:
        summary = _place_concurrently(problems, files, load_growth, time_limit, seed, output)
    else:
        from distributary.placement import place as place_conversions
        from distributary.placement.plan_file import plan_document
        from distributary.placement.planner import load_compiled

        load_compiled(method)
        [file] = files
        with progress() as observe:
            placement = place_conversions(
                file.problem,
                method=method,
                iterations=iterations,
                select=select,
                steiner=steiner,
                depth=depth,
                objective=objective,
                time_limit=time_limit,
                seed=seed,
                observe=observe,
            )
        if draw is not None:
            from distributary.placement.draw import draw_plan

            draw_plan(file.problem, placement, draw)
        write_document(plan_document(file.problem, placement, file.node_order), output)
        chosen = f" ({placement.chosen})" if placement.chosen else ""
        summary = (
            f"{placement.method}{chosen}: cost {placement.total_cost:g}, gap {placement.gap:.2%}, "
            f"{placement.seconds:.3f} s, seed {seed}"
        )
    print_notes(sites)
    for path, file in zip(problems, files, strict=True):
        print_warnings(path, file.warnings)
    print_written(summary, output)


def _read(
    paths: list[Path], graph: Path | None, content_bytes: int | None, sites: Sites | None
) -> list[ProblemFile]:
    """Return the problems, with the calibrated graph and the network if there are any."""
    if graph is None and content_bytes is not None:
        raise BadInput("--bytes", "needs --graph")
    if graph is not None and content_bytes is None:
        raise BadInput("--graph", "needs --bytes", hint="say how large the content is")
    from distributary.content.calibrated_graph import read_graph_for
    from distributary.placement.problem_file import read_problem

    formats = None
    if graph is not None and content_bytes is not None:
        formats = read_graph_for(graph, content_bytes)
    return [read_problem(readable_path(path), graph=formats, sites=sites) for path in paths]


def _place_concurrently(
    paths: list[Path],
    files: list[ProblemFile],
    growth: float,
    time_limit: float | None,
    seed: int,
    output: Path | None,
) -> str:
    """Plan several publications on shared brokers, write the plans, and sum them up."""
    from distributary.placement.concurrent import place_concurrently
    from distributary.placement.plan_file import plan_document

    result = place_concurrently(
        [file.problem for file in files], growth=growth, time_limit=time_limit, seed=seed
    )
    plans = [
        {"problem": path.name, **plan_document(file.problem, placement, file.node_order)}
        for path, file, placement in zip(paths, files, result.placements, strict=True)
    ]
    write_document(
        {
            "total_cost": result.total_cost,
            "separate_total_cost": result.separate_total_cost,
            "rounds": result.rounds,
            "plans": plans,
        },
        output,
    )
    return (
        f"{len(plans)} publications: cost {result.total_cost:g}, planned separately "
        f"{result.separate_total_cost:g}, {result.rounds} rounds, seed {seed}"
    )
