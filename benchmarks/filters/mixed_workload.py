"""Subscriptions of one to five conditions of every kind, on skewed values, and their events."""

from __future__ import annotations

from typing import Any

import numpy as np

from distributary.arrays import FloatArray
from distributary.content.publication import Publication

__all__ = ["mixed_events", "mixed_subscriptions"]

_TEXT_KEYS = [f"attribute{i:02d}" for i in range(10)] + [f"/text{i:02d}" for i in range(5)]
_NUMBER_KEYS = [f"/number{i:02d}" for i in range(5)]
_WORDS = 10_000
_SKEW = 0.85
_CONDITIONS_MAX = 5
# With this and the skew, an event matches about one subscription in a thousand.
_RANGE_WIDTH = 0.003


def _shares() -> FloatArray:
    """Return how often each word occurs: the word of rank r with a share like r ** -0.85."""
    shares: FloatArray = np.arange(1.0, _WORDS + 1) ** -_SKEW
    normalised: FloatArray = shares / shares.sum()
    return normalised


def _word(rank: int) -> str:
    return f"{rank % 97:02d}/{rank % 13:02d}/{rank:05d}"


def mixed_subscriptions(*, seed: int, count: int) -> dict[str, list[dict[str, Any]]]:
    """Return filters by id: texts that are equal, one of three, begin or end, and ranges."""
    rng = np.random.default_rng(seed)
    words = rng.choice(_WORDS, size=(count, _CONDITIONS_MAX, 3), p=_shares())
    kinds = rng.choice(5, size=(count, _CONDITIONS_MAX), p=(0.6, 0.1, 0.1, 0.05, 0.15))
    keys = len(_TEXT_KEYS) + len(_NUMBER_KEYS)
    order = np.argsort(rng.random((count, keys)), axis=1)
    sizes = rng.integers(1, _CONDITIONS_MAX + 1, count)
    lows = rng.random((count, _CONDITIONS_MAX))
    subscriptions = {}
    for i in range(count):
        filters: list[dict[str, Any]] = []
        for j in range(int(sizes[i])):
            key = int(order[i, j])
            if key >= len(_TEXT_KEYS):
                low = round(float(lows[i, j]), 4)
                bounds = {"min": low, "max": round(low + _RANGE_WIDTH, 4)}
                filters.append({"range": {_NUMBER_KEYS[key - len(_TEXT_KEYS)]: bounds}})
            else:
                chosen = [_word(int(rank)) for rank in words[i, j]]
                filters.append(_text_filter(int(kinds[i, j]), _TEXT_KEYS[key], chosen))
        subscriptions[f"s{i}"] = filters
    return subscriptions


def _text_filter(kind: int, key: str, words: list[str]) -> dict[str, Any]:
    match kind:
        case 1:
            return {"any": [{"exact": {key: word}} for word in words]}
        case 2:
            return {"prefix": {key: words[0][:6]}}
        case 3:
            return {"suffix": {key: words[0][-4:]}}
        case 4 if not key.startswith("/"):
            return {"sql": f"{key} = '{words[0]}'"}
        case _:
            return {"exact": {key: words[0]}}


def mixed_events(*, seed: int, count: int) -> list[Publication]:
    """Return events that have all the keys."""
    rng = np.random.default_rng(seed)
    words = rng.choice(_WORDS, size=(count, len(_TEXT_KEYS)), p=_shares())
    numbers = rng.random((count, len(_NUMBER_KEYS)))
    events = []
    for i in range(count):
        values = dict(zip(_TEXT_KEYS, map(_word, words[i].tolist()), strict=True))
        data: dict[str, object] = {
            key[1:]: value for key, value in values.items() if key.startswith("/")
        }
        data.update((key[1:], float(n)) for key, n in zip(_NUMBER_KEYS, numbers[i], strict=True))
        attributes = {"id": str(i), "source": "s", "type": "t", "specversion": "1.0"}
        attributes.update((k, v) for k, v in values.items() if not k.startswith("/"))
        events.append(Publication(attributes, data))
    return events
