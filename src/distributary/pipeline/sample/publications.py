"""Publications: annotated map notices, sensor readings, video clips and quotes.

A row is what `content.publication.parse_event` gives for the event. So only events with
JSON data have numbers and texts inside; the others carry where they happened in their
attributes, as texts that ranges read as numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content.publication_table import publications_schema
from distributary.pipeline.sample import events as about
from distributary.pipeline.sample.counter_rng import CounterRng, picked, zipf_picked
from distributary.pipeline.sample.events import CATEGORIES, KIND_NAMES, MEDIA, REGIONS, TYPES
from distributary.pipeline.sample.maps import map_column
from distributary.pipeline.sample.quotes import object_means, object_publishers
from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.texts import (
    decimals,
    hexadecimals,
    joined,
    json_lengths,
    object_names,
    padded,
    timestamps,
    user_names,
)
from distributary.pipeline.sample.timeline import publication_times

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EXCHANGE", "MEAN_BYTES", "publications_block"]

EXCHANGE = "/exchange"
"""The source of all quotes."""

# Base64 makes it a third larger, and an event is refused beyond 16 MiB.
_BYTES_MAX = 12_000_000
_JSON_BYTES = 80.0

_ATTRIBUTES = (
    ("specversion", "String"),
    ("id", "String"),
    ("source", "String"),
    ("type", "String"),
    ("time", "String"),
    ("datacontenttype", "String"),
    ("subject", "String"),
    ("region", "String"),
    ("severity", "Integer"),
    ("verified", "Boolean"),
    ("latitude", "String"),
    ("longitude", "String"),
    ("sequence", "Integer"),
)
_NUMBERS = ("/latitude", "/longitude", "/magnitude", "/level", "/price", "/volume")
_NUMBER_DECIMALS = (5, 5, 2, 1, 2, 0)
_TEXTS = ("/category", "/symbol")


def _has(names: tuple[str, ...], by_kind: dict[int, tuple[str, ...]]) -> BoolArray:
    """Return which of the names each kind of events has, shape (kinds, names)."""
    table = np.zeros((len(KIND_NAMES), len(names)), dtype=np.bool_)
    for kind, present in by_kind.items():
        table[kind] = [name in present for name in names]
    return table


_ALWAYS = ("specversion", "id", "source", "type", "time", "datacontenttype", "subject")
_SEEN = (*_ALWAYS, "region", "severity", "verified", "latitude", "longitude")
_HAS_ATTRIBUTE = _has(
    tuple(name for name, _ in _ATTRIBUTES),
    {
        about.NOTICE: _SEEN,
        about.SENSOR: (*_ALWAYS, "region", "severity"),
        about.CLIP: _SEEN,
        about.QUOTE: (*_ALWAYS, "sequence"),
    },
)
_HAS_NUMBER = _has(_NUMBERS, {about.SENSOR: _NUMBERS[:4], about.QUOTE: _NUMBERS[4:]})
_HAS_TEXT = _has(_TEXTS, {about.SENSOR: _TEXTS[:1], about.QUOTE: _TEXTS[1:]})

MEAN_BYTES = float(
    sum(
        about.KIND_SHARES[media.kind]
        * media.share
        * (media.median_bytes * np.exp(0.5 * media.spread**2) or _JSON_BYTES)
        for media in MEDIA
    )
)
"""About how many bytes an event has on average."""


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What was drawn for each row of a block; every array has one entry per row."""

    rows: IntArray
    types: IntArray
    kinds: IntArray
    places: IntArray
    media: IntArray
    severities: IntArray
    verified: BoolArray
    east: FloatArray
    north: FloatArray
    objects: IntArray


def publications_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return some rows of the table `publications`."""
    import pyarrow as pa

    rng = CounterRng(seed, "publications")
    drawn = _draw(sizes, rng, rows)
    quotes = drawn.kinds == about.QUOTE
    # A stream's sequence numbers rise with its times, so quotes are never late.
    lateness = np.where(quotes, 0.0, rng.uniform("lateness", rows))
    times = publication_times(sizes, rows, lateness)
    publishers = zipf_picked(rng.uniform("publisher", rows), sizes.users)
    publishers = np.where(quotes, object_publishers(sizes, seed, drawn.objects), publishers)

    ids, written = padded(rows, 10), timestamps(times)
    media_names = pa.array([media.name for media in MEDIA])
    sources = pa.array([*about.SOURCES, EXCHANGE])
    source_at = np.where(quotes, about.PLACES, drawn.places)
    media_types = media_names.take(pa.array(drawn.media))
    latitudes = about.latitudes(seed, drawn.places, drawn.north)
    longitudes = about.longitudes(seed, drawn.places, drawn.east)
    subjects = _subjects(drawn)
    attributes = map_column(
        [name for name, _ in _ATTRIBUTES],
        _HAS_ATTRIBUTE[drawn.kinds],
        [
            "1.0",
            ids,
            (sources, source_at),
            (pa.array(TYPES.names), drawn.types),
            written,
            media_types,
            subjects,
            (pa.array(REGIONS), about.REGION_OF_PLACE[drawn.places]),
            (pa.array(["1", "2", "3", "4", "5"]), drawn.severities),
            (pa.array(["false", "true"]), drawn.verified.astype(np.int64)),
            decimals(latitudes, before=2, after=5),
            decimals(longitudes, before=2, after=5),
            pa.array(rows).cast(pa.string()),
        ],
        kinds=[kind for _, kind in _ATTRIBUTES],
    )
    steps = _steps(rng, seed, drawn, latitudes, longitudes)
    numbers = map_column(
        _NUMBERS,
        _HAS_NUMBER[drawn.kinds],
        steps / 10.0 ** np.array(_NUMBER_DECIMALS),
    )
    categories = picked(rng.uniform("category", rows), about.CATEGORY_SHARES)
    texts = map_column(
        _TEXTS, _HAS_TEXT[drawn.kinds], [(pa.array(CATEGORIES), categories), subjects]
    )
    return pa.record_batch(
        [
            sources.take(pa.array(source_at)),
            ids,
            user_names(publishers),
            pa.array(times, pa.timestamp("us", tz="UTC")),
            attributes,
            numbers,
            texts,
            media_types,
            pa.array(_bytes(rng, drawn, steps, categories)),
        ],
        schema=publications_schema(),
    )


def _draw(sizes: SampleSizes, rng: CounterRng, rows: IntArray) -> _Drawn:
    types = picked(rng.uniform("type", rows), TYPES.shares)
    kinds = TYPES.kinds[types]
    choice = rng.uniform("media", rows)
    media = np.zeros(len(rows), dtype=np.int64)
    for kind in range(len(KIND_NAMES)):
        known = [place for place, item in enumerate(MEDIA) if item.kind == kind]
        shares = np.array([MEDIA[place].share for place in known])
        media = np.where(kinds == kind, np.array(known)[picked(choice, shares)], media)
    return _Drawn(
        rows=rows,
        types=types,
        kinds=kinds,
        places=picked(rng.uniform("place", rows), about.PLACE_SHARES),
        media=media,
        severities=picked(rng.uniform("severity", rows), about.SEVERITY_SHARES),
        verified=rng.uniform("verified", rows) < 0.7,
        east=rng.uniform("east", rows),
        north=rng.uniform("north", rows),
        objects=zipf_picked(rng.uniform("object", rows), sizes.objects, 0.5),
    )


def _subjects(drawn: _Drawn) -> pa.Array:
    """Return what events are about: a tile of a place, as in `012/a3f`, or an object."""
    import pyarrow.compute as compute

    columns = (drawn.east * 64).astype(np.int64)
    lines = (drawn.north * 64).astype(np.int64)
    tiles = np.zeros(len(drawn.rows), dtype=np.int64)
    for shift in (4, 2, 0):
        tiles = tiles * 16 + ((lines >> shift) & 3) * 4 + ((columns >> shift) & 3)
    placed = joined(padded(drawn.places, 3), "/", hexadecimals(tiles, 3))
    return compute.if_else(drawn.kinds == about.QUOTE, object_names(drawn.objects), placed)


def _steps(
    rng: CounterRng, seed: int, drawn: _Drawn, latitudes: IntArray, longitudes: IntArray
) -> IntArray:
    """Return the numbers in all columns of `_NUMBERS`, as multiples of their last digit."""
    rows = drawn.rows
    magnitudes = np.minimum(-100.0 * np.log1p(-rng.uniform("magnitude", rows)), 999.0)
    levels = 1000.0 * rng.uniform("level", rows) ** 2
    prices = object_means(seed, drawn.objects) * (1.0 + 0.01 * rng.normal("price", rows))
    volumes = 100.0 * np.exp(rng.normal("volume", rows))
    columns = (magnitudes, levels, prices * 100.0, np.minimum(volumes, 1e6) + 1.0)
    measured = [np.floor(column).astype(np.int64) for column in columns]
    return np.column_stack([latitudes, longitudes, *measured])


def _bytes(rng: CounterRng, drawn: _Drawn, steps: IntArray, categories: IntArray) -> IntArray:
    medians = np.array([media.median_bytes for media in MEDIA])[drawn.media]
    spreads = np.array([media.spread for media in MEDIA])[drawn.media]
    sizes = medians * np.exp(spreads * rng.normal("bytes", drawn.rows))
    counts = np.clip(sizes, 1.0, _BYTES_MAX).astype(np.int64)
    # Data in JSON takes braces, and for every leaf its name in quotes, a colon and a comma.
    present, texts = _HAS_NUMBER[drawn.kinds], _HAS_TEXT[drawn.kinds]
    written = np.ones(len(counts), dtype=np.int64)
    for column, (name, after) in enumerate(zip(_NUMBERS, _NUMBER_DECIMALS, strict=True)):
        taken = json_lengths(steps[:, column], after) + len(name) + 3
        written += np.where(present[:, column], taken, 0)
    text_lengths = (
        np.array([len(name) for name in CATEGORIES])[categories],
        np.full(len(counts), len("stock-0000")),
    )
    for column, (name, lengths) in enumerate(zip(_TEXTS, text_lengths, strict=True)):
        written += np.where(texts[:, column], lengths + 2 + len(name) + 3, 0)
    return np.where(medians > 0.0, counts, written)
