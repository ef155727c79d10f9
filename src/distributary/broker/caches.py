"""Caches of what follows from a text, bounded in bytes and not only in entries.

Most texts are short and come again; a few are as large as they may be. With one cache for both,
as many large ones as there is room for short ones would take gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["LARGE_ENTRIES", "SHORT_CHARACTERS", "Cached", "cached_by_text"]

SHORT_CHARACTERS = 4_096
LARGE_ENTRIES = 64

_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)


class Cached(Protocol[_P, _R_co]):
    """A function of a text that is cached."""

    def __call__(self, text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _R_co:
        """Return what follows from a text."""

    def misses(self) -> int:
        """Return how often that was not known."""

    def clear(self) -> None:
        """Forget everything."""


def cached_by_text(
    entries: int,
) -> Callable[[Callable[Concatenate[str, _P], _R]], Cached[_P, _R]]:
    """Cache a function of a text: so many short ones, and a few of the others."""

    def decorate(function: Callable[Concatenate[str, _P], _R]) -> Cached[_P, _R]:
        short = lru_cache(maxsize=entries)(function)
        large = lru_cache(maxsize=LARGE_ENTRIES)(function)

        @wraps(function)
        def cached(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            cache = short if len(text) <= SHORT_CHARACTERS else large
            return cache(text, *args, **kwargs)  # type: ignore[arg-type]

        def clear() -> None:
            short.cache_clear()
            large.cache_clear()

        # A function and not an object with `__call__`: some are called for every event.
        found: Any = cached
        found.misses = lambda: short.cache_info().misses + large.cache_info().misses
        found.clear = clear
        whole: Cached[_P, _R] = found
        return whole

    return decorate
