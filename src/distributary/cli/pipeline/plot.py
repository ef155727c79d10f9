"""`distributary pipeline plot`: a table as charts, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distributary.cli.output import check_output, print_written
from distributary.cli.pipeline.options import Data, Version, Where, command

__all__ = ["plot"]


@command(
    "Draw rates, traffic, savings and other tables.",
    "plot rates --data market -o rates.svg",
    "plot plans --data market -o savings.html",
    "plot quotes --data market --where object=ACME -o acme.html",
)
def plot(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table to draw.", show_default=False)
    ],
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.svg|FILE.html",
            help="Where the picture goes.",
            show_default=False,
        ),
    ],
    where: Where = None,
    version: Version = None,
) -> None:
    """Draw a table as charts with labelled axes, into one file. Spark is not started."""
    from distributary.drawing.picture import is_svg
    from distributary.pipeline.reading import plot_table

    is_svg(output, option="-o", stem="rates")
    check_output(output, "-o")

    charts = plot_table(data, table, where=where or (), version=version)
    charts.write(output, option="-o")
    print_written(f"{charts.title}: {charts.subtitle}", output)
