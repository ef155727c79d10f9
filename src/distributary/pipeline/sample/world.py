"""What events are about: places, kinds of events and their shares.

Publications and subscriptions are drawn from the same world, which is why they meet. It is
kept so simple that the share of events that a filter matches is a product of shares: the
place of an event, its type, its severity and where in the place it is are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.sample.counters import Draws, zipf_weights

__all__ = [
    "CATEGORIES",
    "CLIP",
    "JSON",
    "KIND_NAMES",
    "KIND_SHARES",
    "MEDIA",
    "NOTICE",
    "PLACES",
    "QUOTE",
    "REGIONS",
    "SENSOR",
    "SEVERITIES",
    "START_US",
    "TILES",
    "TYPES",
    "Media",
    "World",
    "world_of",
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
SEVERITIES = 5

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


JSON = "application/json"
MEDIA = (
    Media(NOTICE, "application/pdf", 0.5, 300_000, 0.8),
    Media(NOTICE, "image/jpeg;width=2560", 0.25, 900_000, 0.5),
    Media(NOTICE, "text/plain;charset=utf-8", 0.25, 2_000, 1.0),
    Media(SENSOR, JSON, 1.0),
    Media(CLIP, "video/mp4;width=640;bitrate=1000k", 0.6, 700_000, 0.7),
    Media(CLIP, "video/x-msvideo;width=640;bitrate=1000k", 0.2, 800_000, 0.7),
    Media(CLIP, "video/3gpp;width=320;bitrate=200k", 0.2, 230_000, 0.7),
    Media(QUOTE, JSON, 1.0),
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


@dataclass(frozen=True)
class World:
    """Where things happen, for one seed."""

    seed: int

    @cached_property
    def place_shares(self) -> FloatArray:
        """How many of the events that have a place are in each, shape (places,)."""
        return zipf_weights(PLACES)

    @cached_property
    def region_of_place(self) -> IntArray:
        """The region of each place: the popular ones are spread over all of them."""
        return np.arange(PLACES) % len(REGIONS)

    @cached_property
    def region_shares(self) -> FloatArray:
        """How many of the events that have a place are in each region."""
        shares = np.bincount(self.region_of_place, weights=self.place_shares)
        return shares.astype(np.float64)

    @cached_property
    def severity_shares(self) -> FloatArray:
        """How many events have severity 1, 2 and so on."""
        return zipf_weights(SEVERITIES)

    @cached_property
    def category_shares(self) -> FloatArray:
        """How many readings are in each category."""
        return zipf_weights(len(CATEGORIES), 1.5)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """What events of each place are published under."""
        return tuple(
            f"/{REGIONS[region]}/{place:03d}" for place, region in enumerate(self.region_of_place)
        )

    @cached_property
    def _squares(self) -> IntArray:
        draws = Draws(self.seed, "world")
        return np.argsort(draws.uniform("squares", np.arange(PLACES)), kind="stable")

    def latitudes(self, places: IntArray, quantiles: FloatArray) -> IntArray:
        """Return latitudes in steps of 0.00001 degrees.

        Parameters
        ----------
        places
            The place of each.
        quantiles
            In [0, 1]: the share of the place's events that are farther south.
        """
        return _steps(_LATITUDE + self._squares[places] // _GRID, quantiles)

    def longitudes(self, places: IntArray, quantiles: FloatArray) -> IntArray:
        """Return longitudes in the same way, from the west."""
        return _steps(_LONGITUDE + self._squares[places] % _GRID, quantiles)


@lru_cache(maxsize=8)
def world_of(seed: int) -> World:
    """Return the world of a seed, made once per process."""
    return World(seed)


def _steps(degrees: IntArray, quantiles: FloatArray) -> IntArray:
    # A cubic that rises from 0 to 1 and is flat in the middle: events crowd around the
    # middle of a place, eight times as densely as at its edge. Without functions of the
    # mathematical library, whose last digit is not the same on every machine.
    off = quantiles - 0.5
    inside = np.minimum(np.floor((0.5 + 0.3 * off + 2.8 * off**3) * 1e5), 1e5)
    return degrees * 100_000 + inside.astype(np.int64)
