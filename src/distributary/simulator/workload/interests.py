"""Interests: what is published and what is asked for, so that filters match as often as asked.

An event has a type, some types being far more frequent than others, and a level, most of them
low. A subscription asks for some of the types and for levels between two quantiles. Types and
quantiles are chosen evenly, so that any event has the same chance to match any subscription:
the share of types times the width of the quantiles, which is the matching ratio. The match
itself is left to real filters on real events.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from distributary.content import ContentSpace, Publication

__all__ = ["EPOCH_NS", "Interests", "profile", "written_time"]

_LEVELS = 1_000_000
_LEVEL_MEAN = 100_000.0
EPOCH_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z


class Interests:
    """Events and filters that go with them.

    Parameters
    ----------
    matching
        The share of subscriptions that an event matches.
    skew
        How unevenly types are published: the k-th in proportion to `k ** -skew`.
    """

    def __init__(self, *, matching: float, types: int, skew: float, rng: random.Random) -> None:
        self._rng = rng
        self.types = tuple(f"report.{k}" for k in range(1, types + 1))
        self._weights = [k**-skew for k in range(1, types + 1)]
        # The square root splits the ratio evenly between types and levels.
        self._chosen = min(types, max(1, math.ceil(types * math.sqrt(matching))))
        self._width = min(1.0, matching * types / self._chosen)

    def filters(self) -> list[object]:
        """Return the filters of a subscription."""
        chosen = sorted(self._rng.sample(self.types, self._chosen))
        low = self._rng.uniform(0.0, 1.0 - self._width)
        bounds = {"min": _level(low), "max_exclusive": _level(low + self._width)}
        if self._width == 0.0:
            bounds = {"min": _LEVELS + 1, "max_exclusive": _LEVELS + 1}
        either: list[object] = [{"exact": {"type": name}} for name in chosen]
        return [either[0] if len(either) == 1 else {"any": either}, {"range": {"level": bounds}}]

    def event(
        self, *, source: str, identifier: str, now_ns: int, media_type: str | None
    ) -> Publication:
        """Return an event that happens now; with content beside it, or a little JSON in it."""
        (kind,) = self._rng.choices(self.types, self._weights)
        document: dict[str, object] = {
            "specversion": "1.0",
            "id": identifier,
            "source": source,
            "type": kind,
            "time": written_time(now_ns),
            "level": _level(self._rng.random()),
        }
        if media_type is None:
            document["datacontenttype"] = "application/json"
            document["data"] = {"note": identifier}
        else:
            document["datacontenttype"] = media_type
        return Publication.parse(document)

    def rates(self, space: ContentSpace, per_s: float) -> tuple[tuple[int, float], ...]:
        """Return the cells in which events lie, with events per second."""
        total = sum(self._weights)
        rates: dict[int, float] = {}
        for kind, weight in zip(self.types, self._weights, strict=True):
            event = Publication.parse(
                {"specversion": "1.0", "id": "-", "source": "-", "type": kind}
            )
            cell = space.cell_of(event)
            rates[cell] = rates.get(cell, 0.0) + per_s * weight / total
        return tuple(sorted(rates.items()))


def _level(quantile: float) -> int:
    """Return the level at a quantile of an exponential distribution, cut off at the top."""
    if quantile >= 1.0:
        return _LEVELS
    return min(_LEVELS - 1, int(-math.log1p(-quantile) * _LEVEL_MEAN))


def written_time(now_ns: int) -> str:
    """Return a time of the run as a timestamp."""
    seconds, below = divmod(EPOCH_NS + now_ns, 10**9)
    days, rest = divmod(seconds - EPOCH_NS // 10**9, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    assert days < 31, "a run of a month"
    return f"2026-01-{days + 1:02d}T{hours:02d}:{minutes:02d}:{left:02d}.{below:09d}Z"


def profile(formats: Sequence[str], rng: random.Random) -> dict[str, object]:
    """Return the profile of a device that takes some formats, one more gladly than the next."""
    wanted = rng.sample(list(formats), min(len(formats), rng.randint(1, 3)))
    return {
        "accept": [
            name if k == 0 else f"{name};q={1.0 - 0.2 * k:.1f}" for k, name in enumerate(wanted)
        ]
    }
