"""A content space made to measure: bins that suit the publications there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray
from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import CELLS_MAX
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["WAYS", "chosen_space", "mass_edges", "types_space", "width_edges"]

WAYS = ("width", "mass")
"""How numbers are divided: into bins equally wide, or with equally many publications."""

TYPES_MAX = CELLS_MAX - 2
"""So many types can have cells of their own, beside those for absent and for others."""

# Longer texts are not among the values of a dimension.
_VALUE_CHARACTERS_MAX = 256
# The largest number that an edge may be.
_EDGE_MAX = 1e300
# Edges of equal mass come from about so many publications; from all if there are fewer.
_SAMPLED = 100_000


def chosen_space(
    publications: DataFrame, names: Sequence[str], *, bins: int, by: str = "width"
) -> ContentSpace:
    """Return a space over some attributes and JSON Pointers.

    A pointer at which publications have numbers is divided by edges; other pointers, and
    attributes, into buckets. Publications are read once, and some of them once more for bins
    of equal mass: which ones is decided by their identity, so that the edges are the same
    however the table is spread over tasks.

    Each gets so many bins beside that for absent; fewer where numbers repeat a lot.
    """
    from pyspark.sql import functions as f

    if by not in WAYS:
        raise BadInput("--by", f"must be one of {', '.join(WAYS)}, not {quoted(by)}")
    if bins < 1:
        raise BadInput("--bins", f"must be at least 1, not {bins}")
    if not names:
        raise BadInput("--dimension", "must be given at least once")
    pointers = list(dict.fromkeys(name for name in names if name.startswith("/")))
    edges: dict[str, tuple[float, ...]] = {}
    if pointers:
        spread = [
            end(_number(name)).alias(f"{end.__name__}{place}")
            for place, name in enumerate(pointers)
            for end in (f.min, f.max)
        ]
        found = publications.agg(f.count(f.lit(1)).alias("rows"), *spread).first()
        assert found is not None
        ends = {
            name: (found[f"min{place}"], found[f"max{place}"])
            for place, name in enumerate(pointers)
            if found[f"min{place}"] is not None
        }
        if by == "width":
            edges = {name: width_edges(low, high, bins) for name, (low, high) in ends.items()}
        else:
            values = _sampled(publications, list(ends), int(found["rows"]))
            edges = {
                # A pointer so rare that the sample has none of it is divided by width.
                name: mass_edges(values[name], bins) or width_edges(*ends[name], bins)
                for name in ends
            }
    return ContentSpace.parse(
        {
            "dimensions": [
                {"name": name, "edges": list(edges[name])}
                if name in edges
                else {"name": name, "buckets": bins}
                for name in names
            ]
        }
    )


def types_space(publications: DataFrame, *, types_max: int) -> ContentSpace:
    """Return the space of the types that occur: a cell for each, and one for all others.

    Of more than `types_max` types, those with the most bytes have cells of their own. Without
    any the space is the default one, which is as good as any other.
    """
    from pyspark.sql import functions as f

    if not 1 <= types_max <= TYPES_MAX:
        raise BadInput("--bins", f"must be between 1 and {TYPES_MAX:,}, not {types_max}")
    kind = f.col("attributes").getItem("type").getItem("text")
    rows = (
        publications.select(kind.alias("type"), "bytes")
        .filter(f.length("type").between(1, _VALUE_CHARACTERS_MAX))
        .groupBy("type")
        .agg(f.sum("bytes").alias("bytes"))
        .orderBy(f.desc("bytes"), "type")
        .limit(types_max)
        .collect()
    )
    if not rows:
        return ContentSpace.default()
    values = sorted(row["type"] for row in rows)
    return ContentSpace.parse({"dimensions": [{"name": "type", "values": values}]})


def width_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges between bins of equal width from `low` to `high`; at least one."""
    # Halved first: the difference of two large numbers may be more than a double holds.
    steps = [low + 2.0 * ((high / 2 - low / 2) * (i / bins)) for i in range(1, bins)]
    return _increasing(steps) or (low + 0.0,)


def mass_edges(values: FloatArray, bins: int) -> tuple[float, ...]:
    """Return edges that leave equally many values in each bin, as far as they can be told apart.

    There is at least one, unless there are no values.
    """
    ordered = np.sort(values)
    if not len(ordered):
        return ()
    places = [len(ordered) * i // bins for i in range(1, bins)]
    return _increasing([float(ordered[place]) for place in places]) or (float(ordered[0]) + 0.0,)


def _increasing(edges: list[float]) -> tuple[float, ...]:
    ordered = sorted({edge + 0.0 for edge in edges})
    assert all(before < after for before, after in pairwise(ordered))
    return tuple(ordered)


def _number(name: str) -> Column:
    """Return the number at a pointer; null where it is none that an edge could be."""
    from pyspark.sql import functions as f

    number = f.col("numbers").getItem(name)
    return f.when(f.abs(number) <= _EDGE_MAX, number)


def _sampled(publications: DataFrame, names: list[str], rows: int) -> dict[str, FloatArray]:
    from pyspark.sql import functions as f

    every = max(1, rows // _SAMPLED)
    drawn = f.pmod(f.xxhash64("source", "event_id"), f.lit(every)) == 0
    columns = [_number(name).alias(str(place)) for place, name in enumerate(names)]
    found = publications.filter(drawn).select(*columns).toArrow()
    return {
        name: np.asarray(found.column(place).drop_null().to_numpy(), np.float64)
        for place, name in enumerate(names)
    }
