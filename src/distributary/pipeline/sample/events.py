"""What events are about: places, kinds of events and their shares.

Publications and subscriptions are drawn from the same shares, which is why they meet. They are
kept so simple that the share of events that a filter matches is a product of shares: the
place of an event, its type, its severity and where in the place it is are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.sample.counter_rng import CounterRng, zipf_weights

__all__ = [
    "CATEGORIES",
    "CATEGORY_SHARES",
    "CLIP",
    "KIND_NAMES",
    "KIND_SHARES",
    "MEDIA",
    "NOTICE",
    "PLACES",
    "PLACE_SHARES",
    "QUOTE",
    "REGIONS",
    "REGION_OF_PLACE",
    "REGION_SHARES",
    "SENSOR",
    "SEVERITY_SHARES",
    "SOURCES",
    "START_US",
    "TILES",
    "TYPES",
    "latitudes",
    "longitudes",
]

START_US = 1_767_571_200_000_000
"""2026-01-05T00:00:00Z, a Monday, in microseconds since 1970."""

NOTICE, SENSOR, CLIP, QUOTE = range(4)
KIND_NAMES = ("notice", "sensor", "clip", "quote")
KIND_SHARES = np.array([0.35, 0.40, 0.20, 0.05])
_TOPICS = (
    ("road", "weather", "flood", "fire", "power"),
    ("wind", "rain", "temperature", "water", "quake"),
    ("traffic", "river", "crowd"),
    (),
)
REGIONS = ("north", "south", "east", "west", "centre", "coast", "hills", "islands")
CATEGORIES = ("routine", "watch", "warning", "alarm")

_GRID = 16
PLACES = _GRID * _GRID
"""Places are the squares of a grid, one degree wide, some far more popular than others."""

TILES = 16**3
"""Tiles of a place, numbered so that a shorter number is a larger tile."""

# South-west of all places; far from 0, so that every degree has two digits before the point.
_LATITUDE, _LONGITUDE = 44, 10


@dataclass(frozen=True)
class Media:
    """A format that events come in.

    Named as the converters name it. Sizes are log-normal: the median, and the deviation of
    the logarithm.
    """

    kind: int
    name: str
    share: float
    median_bytes: float = 0.0
    spread: float = 0.0


_JSON = "application/json"
MEDIA = (
    Media(NOTICE, "application/pdf", 0.5, 300_000, 0.8),
    Media(NOTICE, "image/jpeg;width=2560", 0.25, 900_000, 0.5),
    Media(NOTICE, "text/plain;charset=utf-8", 0.25, 2_000, 1.0),
    Media(SENSOR, _JSON, 1.0),
    Media(CLIP, "video/mp4;width=640;bitrate=1000k", 0.6, 700_000, 0.7),
    Media(CLIP, "video/x-msvideo;width=640;bitrate=1000k", 0.2, 800_000, 0.7),
    Media(CLIP, "video/3gpp;width=320;bitrate=200k", 0.2, 230_000, 0.7),
    Media(QUOTE, _JSON, 1.0),
)


@dataclass(frozen=True, eq=False)
class Types:
    """The types of events, of all kinds in one list.

    Names are as in `notice.flood`, shares those of all events.
    """

    names: tuple[str, ...]
    kinds: IntArray
    shares: FloatArray

    def of_kinds(self, *kinds: int) -> IntArray:
        """Return the indices of the types of some kinds."""
        return np.flatnonzero(np.isin(self.kinds, kinds))


def _types() -> Types:
    names: list[str] = []
    kinds: list[int] = []
    shares: list[float] = []
    for kind, (name, topics) in enumerate(zip(KIND_NAMES, _TOPICS, strict=True)):
        known = [f"{name}.{topic}" for topic in topics] or [name]
        names += known
        kinds += [kind] * len(known)
        shares += (KIND_SHARES[kind] * zipf_weights(len(known))).tolist()
    return Types(tuple(names), np.array(kinds), np.array(shares))


TYPES = _types()


PLACE_SHARES = zipf_weights(PLACES)
"""How many of the events that have a place are in each, shape (places,)."""

REGION_OF_PLACE = np.arange(PLACES) % len(REGIONS)
"""The region of each place: the popular ones are spread over all of them."""

REGION_SHARES = np.bincount(REGION_OF_PLACE, weights=PLACE_SHARES).astype(np.float64)
"""How many of the events that have a place are in each region."""

SEVERITY_SHARES = zipf_weights(5)
"""How many events have severity 1, 2 and so on."""

CATEGORY_SHARES = zipf_weights(len(CATEGORIES), 1.5)
"""How many readings are in each category."""

SOURCES = tuple(f"/{REGIONS[region]}/{place:03d}" for place, region in enumerate(REGION_OF_PLACE))
"""What events of each place are published under."""


def latitudes(seed: int, places: IntArray, quantiles: FloatArray) -> IntArray:
    """Return latitudes in some places, in steps of 0.00001 degrees.

    Quantiles, in [0, 1], are the share of the place's events that are farther south.
    """
    return _steps(_LATITUDE + _squares(seed)[places] // _GRID, quantiles)


def longitudes(seed: int, places: IntArray, quantiles: FloatArray) -> IntArray:
    """Return longitudes in the same way, from the west."""
    return _steps(_LONGITUDE + _squares(seed)[places] % _GRID, quantiles)


@lru_cache(maxsize=8)
def _squares(seed: int) -> IntArray:
    """Return the square of the grid that each place has, for one seed."""
    uniforms = CounterRng(seed, "world").uniform("squares", np.arange(PLACES))
    return np.argsort(uniforms, kind="stable")


def _steps(degrees: IntArray, quantiles: FloatArray) -> IntArray:
    # A cubic that rises from 0 to 1 and is flat in the middle: events crowd around the
    # middle of a place, eight times as densely as at its edge. Without functions of the
    # mathematical library, whose last digit is not the same on every machine.
    off = quantiles - 0.5
    inside = np.minimum(np.floor((0.5 + 0.3 * off + 2.8 * off**3) * 1e5), 1e5)
    return degrees * 100_000 + inside.astype(np.int64)
