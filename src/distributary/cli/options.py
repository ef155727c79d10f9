"""Arguments that commands share: how they are declared, and what they may be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from distributary.cli.output import check_output, output_name
from distributary.errors import BadInput, quoted
from distributary.methods import FIDELITY, PLACEMENT, WIRING

__all__ = [
    "FidelityMethod",
    "PlacementMethod",
    "ProblemPath",
    "Seed",
    "TimeLimit",
    "WiringMethod",
    "check_drawing",
    "check_number",
    "drawing_option",
    "output_option",
    "problem_argument",
    "was_given",
]


def problem_argument() -> Any:
    """Return the argument that names a problem, or several."""
    return typer.Argument(metavar="PROBLEM.json", help="The problem; - reads standard input.")


def output_option(metavar: str) -> Any:
    """Return the option that says where the result goes."""
    return typer.Option(
        "-o",
        "--output",
        metavar=metavar,
        parser=lambda given: None if (name := output_name(given)) is None else Path(name),
        help="Write here, not to standard output.",
    )


def drawing_option(noun: str) -> Any:
    """Return the option that says where a picture of the result goes."""
    return typer.Option(metavar="FILE.html|FILE.svg", help=f"Draw the {noun} into this file.")


if TYPE_CHECKING:
    PlacementMethod: TypeAlias = str
    FidelityMethod: TypeAlias = str
    WiringMethod: TypeAlias = str
else:
    # Typer offers what the tables have; a type checker cannot know.
    PlacementMethod = Literal[tuple(PLACEMENT)]
    FidelityMethod = Literal[tuple(FIDELITY)]
    WiringMethod = Literal[tuple(WIRING)]

ProblemPath = Annotated[Path, problem_argument()]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop after this.")]


def check_number(option: str, value: float | None, *, positive: bool = False) -> None:
    """Raise `BadInput` unless `value` is finite and at least 0, or greater if `positive`."""
    if value is None:
        return
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        rule = "greater than 0" if positive else "at least 0"
        raise BadInput(option, f"must be a finite number {rule}, not {value:g}")


def check_drawing(path: Path | None, output: Path | str | None) -> None:
    """Raise `BadInput` if no picture can be written at `path`, before any work is done.

    The result goes to `output`, which must be elsewhere.
    """
    if path is None:
        return
    from distributary.drawing.picture import is_svg

    is_svg(path, option="--draw")
    check_output(path, "--draw")
    if output is not None and path.resolve() == Path(output).resolve():
        raise BadInput("--draw", f"{quoted(path)} is where -o writes the result")


def was_given(context: typer.Context, name: str) -> bool:
    """Return whether an option stands on the command line, whatever its value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
