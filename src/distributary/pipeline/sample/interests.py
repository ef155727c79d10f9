"""The filters of subscriptions, in every dialect, about what publications are about.

Filters are written as JSON, column by column. For each kind the comment on its rungs says
what a filter asks for; the shares beside them are the probability that a random filter of
the rung matches a random event, which is a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.sample import events as about
from distributary.pipeline.sample.counter_rng import CounterRng, picked
from distributary.pipeline.sample.events import (
    CATEGORIES,
    CLIP,
    KIND_NAMES,
    KIND_SHARES,
    NOTICE,
    QUOTE,
    REGIONS,
    SENSOR,
    TYPES,
)
from distributary.pipeline.sample.ladders import Ladder
from distributary.pipeline.sample.texts import decimals, hexadecimals, joined, padded

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["INTERESTS", "interest_filters"]

INTERESTS = ("area", "reading", "tile", "exact", "sql", "mixed")
"""The kinds of filters, apart from those that follow a quoted object."""

_LOCATED = 1.0 - float(KIND_SHARES[QUOTE])
_SEEN = float(KIND_SHARES[NOTICE] + KIND_SHARES[CLIP])
# SQL expressions ask for at least one of these.
_SEVERITIES = (2, 3)
_TILE_DIGITS = 3


@dataclass(frozen=True, eq=False)
class _Picks:
    """What each of some filters is about; every array has one entry per filter."""

    rng: CounterRng
    seed: int
    rows: IntArray
    places: IntArray
    width: float

    def uniform(self, purpose: str) -> FloatArray:
        return self.rng.uniform(purpose, self.rows)

    def texts(self, known: tuple[str, ...], at: IntArray) -> pa.Array:
        import pyarrow as pa

        return pa.array(known).take(pa.array(at))

    @property
    def regions(self) -> pa.Array:
        return self.texts(REGIONS, about.REGION_OF_PLACE[self.places])

    @property
    def sources(self) -> pa.Array:
        return self.texts(about.SOURCES, self.places)

    def types(self, *kinds: int) -> pa.Array:
        known = TYPES.of_kinds(*kinds)
        chosen = picked(self.uniform(f"type {kinds}"), TYPES.shares[known])
        return self.texts(TYPES.names, known[chosen])

    def tiles(self, digits: int) -> pa.Array:
        tiles = self.rng.below("tile", self.rows, 16**digits)
        place = joined(padded(self.places, 3), "/")
        return joined(place, hexadecimals(tiles, digits)) if digits else place

    def box(self, prefix: str) -> pa.Array:
        """Return a range of latitudes and longitudes that holds `width` of its place."""
        # Some boxes are larger than others, as long as none has to be larger than its place.
        factors = 0.5 + self.uniform("box factor") if self.width < 0.6 else 1.0
        sides = np.sqrt(np.minimum(self.width * factors, 1.0)) * np.ones(len(self.rows))
        south = self.uniform("south") * (1.0 - sides)
        west = self.uniform("west") * (1.0 - sides)
        bounds = (
            about.latitudes(self.seed, self.places, south),
            about.latitudes(self.seed, self.places, south + sides),
            about.longitudes(self.seed, self.places, west),
            about.longitudes(self.seed, self.places, west + sides),
        )
        low, high, left, right = (decimals(bound, before=2, after=5) for bound in bounds)
        return joined(
            f'{{"range":{{"{prefix}latitude":{{"min":', low, ',"max_exclusive":', high,
            f'}},"{prefix}longitude":{{"min":', left, ',"max_exclusive":', right, "}}}",
        )  # fmt: skip


def _ladder(kind: str) -> Ladder:
    """Return the ladder of a kind of filters; `_written` says what is on its rungs."""
    region = float((about.REGION_SHARES**2).sum())
    place = float((about.PLACE_SHARES**2).sum())
    if kind == "area":
        return Ladder((_SEEN, _SEEN * region, _SEEN * place), shrinks=True)
    if kind == "reading":
        category = float(KIND_SHARES[SENSOR] * (about.CATEGORY_SHARES**2).sum())
        return Ladder((category, category * region, category * place), shrinks=True)
    if kind == "tile":
        kinds = float((KIND_SHARES[:QUOTE] ** 2).sum()) / _LOCATED
        tiles = tuple(_LOCATED * place / 16.0**digits for digits in range(_TILE_DIGITS + 1))
        return Ladder((kinds, _LOCATED * region, *tiles))
    if kind == "exact":
        shares = TYPES.shares[TYPES.of_kinds(NOTICE, SENSOR, CLIP)]
        type_ = float((shares**2).sum()) / _LOCATED
        return Ladder((type_, type_ * region, type_ * place, _LOCATED * place / about.TILES))
    if kind == "sql":
        least = [about.SEVERITY_SHARES[severity - 1 :].sum() for severity in _SEVERITIES]
        severe = _LOCATED * float(np.mean(least))
        tiles = tuple(severe * place / 16.0**digits for digits in range(_TILE_DIGITS + 1))
        return Ladder((severe, severe * region, *tiles))
    assert kind == "mixed"
    topics = [TYPES.shares[TYPES.of_kinds(kind)] for kind in (NOTICE, CLIP)]
    either = sum(float((shares**2).sum() / shares.sum()) for shares in topics)
    either *= 1.0 - float(about.SEVERITY_SHARES[0])
    return Ladder((either, either * region, either * place), shrinks=True)


def _area(picks: _Picks, rung: int) -> pa.Array:
    # Anything with a latitude; in a region; in a box.
    import pyarrow as pa

    if rung == 0:
        return pa.repeat('[{"range":{"latitude":{}}}]', len(picks.rows))
    if rung == 1:
        return joined('[{"range":{"latitude":{}}},{"exact":{"region":"', picks.regions, '"}}]')
    return joined("[", picks.box(""), "]")


def _reading(picks: _Picks, rung: int) -> pa.Array:
    # Readings of a category; in a region; in a box.
    chosen = picked(picks.uniform("category"), about.CATEGORY_SHARES)
    begin = joined('[{"exact":{"/category":"', picks.texts(CATEGORIES, chosen), '"}}')
    if rung == 0:
        return joined(begin, "]")
    if rung == 1:
        return joined(begin, ',{"exact":{"region":"', picks.regions, '"}}]')
    return joined(begin, ",", picks.box("/"), "]")


def _tile(picks: _Picks, rung: int) -> pa.Array:
    # Events of a kind; of a region; of a place; of a tile within it, smaller and smaller.
    if rung == 0:
        chosen = picked(picks.uniform("kind of event"), KIND_SHARES[:QUOTE])
        return joined('[{"prefix":{"type":"', picks.texts(KIND_NAMES, chosen), '."}}]')
    if rung == 1:
        return joined('[{"prefix":{"source":"/', picks.regions, '/"}}]')
    return joined('[{"prefix":{"subject":"', picks.tiles(rung - 2), '"}}]')


def _exact(picks: _Picks, rung: int) -> pa.Array:
    # A type; in a region; at a place; whatever it is, in one tile.
    begin = joined('[{"exact":{"type":"', picks.types(NOTICE, SENSOR, CLIP), '"')
    if rung == 0:
        return joined(begin, "}}]")
    if rung == 1:
        return joined(begin, ',"region":"', picks.regions, '"}}]')
    if rung == 2:
        return joined(begin, ',"source":"', picks.sources, '"}}]')
    return joined('[{"exact":{"subject":"', picks.tiles(_TILE_DIGITS), '"}}]')


def _sql(picks: _Picks, rung: int) -> pa.Array:
    # Something severe; in a region; at a place; in a tile within it, smaller and smaller.
    chosen = picks.rng.below("severity", picks.rows, len(_SEVERITIES))
    severities = picks.texts(tuple(str(least) for least in _SEVERITIES), chosen)
    begin = joined('[{"sql":"severity >= ', severities)
    if rung == 0:
        return joined(begin, '"}]')
    if rung == 1:
        return joined(begin, " AND region = '", picks.regions, "'\"}]")
    if rung == 2:
        return joined(begin, " AND source = '", picks.sources, "'\"}]")
    return joined(begin, " AND subject LIKE '", picks.tiles(rung - 2), "%'\"}]")


def _mixed(picks: _Picks, rung: int) -> pa.Array:
    # A topic of notices or one of clips, unless it is harmless; in a region; in a box.
    import pyarrow.compute as compute

    topics = compute.replace_substring(picks.types(NOTICE), f"{KIND_NAMES[NOTICE]}.", ".")
    begin = joined(
        '[{"any":[{"suffix":{"type":"', topics, '"}},{"exact":{"type":"', picks.types(CLIP),
        '"}}]},{"not":{"exact":{"severity":"1"}}}',
    )  # fmt: skip
    if rung == 0:
        return joined(begin, "]")
    if rung == 1:
        return joined(begin, ',{"exact":{"region":"', picks.regions, '"}}]')
    return joined(begin, ",", picks.box(""), "]")


_WRITTEN = {
    "area": _area,
    "reading": _reading,
    "tile": _tile,
    "exact": _exact,
    "sql": _sql,
    "mixed": _mixed,
}


def interest_filters(
    seed: int, rng: CounterRng, kind: str, rows: IntArray, *, wanted: float
) -> tuple[IntArray, pa.Array]:
    """Return filters of one kind as JSON, and the rows they belong to.

    `wanted` is the share of events that one of them matches, on average.
    """
    import pyarrow as pa

    ladder = _ladder(kind)
    rungs = ladder.rungs(wanted, rng.uniform("rung", rows))
    placed: list[IntArray] = []
    written: list[pa.Array] = []
    for rung in np.unique(rungs).tolist():
        there = rows[rungs == rung]
        places = picked(rng.uniform("place", there), about.PLACE_SHARES)
        picks = _Picks(rng, seed, there, places, ladder.width(wanted))
        placed.append(there)
        written.append(_WRITTEN[kind](picks, rung))
    if not written:
        return rows, pa.array([], pa.string())
    return np.concatenate(placed), pa.concat_arrays(written)
