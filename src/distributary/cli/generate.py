"""`distributary generate`: random problems, the same for the same seed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from distributary.cli.output import check_output, write_document

__all__ = ["app"]

EXAMPLES = """\
\b
Examples:
  distributary generate placement map --seed 7 -o map.json
  distributary generate placement video --brokers 200 --heterogeneity strong
  distributary generate placement sparse --formats 100 | distributary place -
"""

Kind = Literal["map", "video", "dense", "sparse", "few-wants", "steiner"]

app = typer.Typer(help="Write a random problem, the same for the same seed.", epilog=EXAMPLES)


@app.callback()
def generate() -> None:
    """Write a random problem, the same for the same seed."""


@app.command("placement", epilog=EXAMPLES)
def placement(
    kind: Annotated[
        Kind, typer.Argument(metavar="KIND", help="The kind of problem.", show_default=False)
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    brokers: Annotated[
        int | None, typer.Option(min=1, help="Brokers in the overlay.", show_default="by kind")
    ] = None,
    formats: Annotated[
        int | None, typer.Option(min=1, help="Formats.", show_default="by kind")
    ] = None,
    matching: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Share of brokers that want something.", show_default="by kind"
        ),
    ] = None,
    wants: Annotated[
        int | None,
        typer.Option(min=0, help="Most formats that one broker wants.", show_default="by kind"),
    ] = None,
    heterogeneity: Annotated[
        Literal["none", "weak", "strong"], typer.Option(help="How brokers and links differ.")
    ] = "none",
    tree: Annotated[
        Literal["routes", "recursive"],
        typer.Option(help="A tree of overlay routes, or a random recursive one."),
    ] = "routes",
    alpha: Annotated[float, typer.Option(help="What a unit of transmission is worth.")] = 1.0,
    beta: Annotated[float, typer.Option(help="What a unit of conversion is worth.")] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PROBLEM.json",
            help="Write here, not to standard output.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a problem for `distributary place`.

    map and video are the scenarios of the published experiments; dense, sparse,
    few-wants and steiner have more formats than any exact method can manage.
    """
    check_output(output, "-o")
    from distributary.placement.generate import generate_problem
    from distributary.placement.problem_file import problem_document

    problem = generate_problem(
        kind,
        seed=seed,
        brokers=brokers,
        formats=formats,
        matching=matching,
        wants=wants,
        heterogeneity=heterogeneity,
        tree=tree,
        alpha=alpha,
        beta=beta,
    )
    write_document(problem_document(problem), output)
    if output is not None:
        print(
            f"{kind}: {problem.node_count:,} nodes, {problem.format_count} formats, "
            f"{problem.graph.conversion_count:,} conversions, seed {seed}; written to {output}",
            file=sys.stderr,
        )
