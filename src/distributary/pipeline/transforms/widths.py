"""Tables whose rows must agree with each other: lists of one length, identifiers too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from distributary.pipeline.schemas import TableSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["WIDTHS", "misfit", "usual_widths", "width_bounds"]

WIDTHS = {
    "access_costs": {"costs": "size(costs)"},
    "core_costs": {"costs": "size(costs)"},
    "overlay": {"identifier": "length(identifier)", "delays": "size(delays)"},
}
"""By table and column: what must be the same in all rows."""


def width_bounds(target: TableSchema) -> list[Column]:
    """Return aggregates that tell whether rows agree: the least and the most of each width."""
    from pyspark.sql import functions as f

    return [
        bound(f.expr(width)).alias(f"{column}_{name}")
        for column, width in WIDTHS.get(target.name, {}).items()
        for name, bound in (("least", f.min), ("most", f.max))
    ]


def usual_widths(rows: DataFrame, target: TableSchema) -> dict[str, int]:
    """Return the width that most rows have, by column; the larger one of two."""
    from pyspark.sql import functions as f

    usual = {}
    for column, width in WIDTHS.get(target.name, {}).items():
        counted = rows.groupBy(f.expr(width).alias("width")).count()
        most = counted.orderBy(f.desc("count"), f.desc("width")).first()
        if most is not None:
            usual[column] = int(most["width"])
    return usual


def misfit(target: TableSchema, expected: Mapping[str, int]) -> Column:
    """Return the reason why a row does not agree with the others; null when it does."""
    from pyspark.sql import functions as f

    reason = f.lit(None).cast("string")
    for column, width in WIDTHS.get(target.name, {}).items():
        if column in expected:
            found = f.expr(width)
            text = f.format_string(
                f"{column}: has a length of %d where the table has {expected[column]}", found
            )
            reason = f.coalesce(reason, f.when(found != expected[column], text))
    return reason
