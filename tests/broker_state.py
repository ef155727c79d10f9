"""All that a broker holds in memory, as plain data that can be compared."""

from __future__ import annotations

import random
import types
from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from distributary.broker.broker import Broker
from distributary.broker.settings import Settings
from distributary.broker.timers import Clock

_LEAVES = (type(None), bool, int, float, str, bytes, Enum)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType)


def state_of(broker: Broker) -> object:
    """Return everything that is reachable from a broker; equal as long as nothing changes.

    How late it is does not count.
    """
    return _Walk().plain(broker.core)


class _Walk:
    """One way through everything, on which each object is looked at once."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def plain(self, value: Any) -> object:
        if isinstance(value, _LEAVES):
            return value
        if isinstance(value, _CODE):
            return value.__qualname__
        if isinstance(value, types.MethodType):
            return value.__func__.__qualname__, self.plain(value.__self__)
        if id(value) in self._seen:
            return "seen", self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        # So that nothing else gets its address while this goes on.
        self._kept.append(value)
        return type(value).__name__, self._inside(value)

    def _inside(self, value: Any) -> object:
        if isinstance(value, Clock):
            return None
        if isinstance(value, random.Random):
            return value.getstate()
        if isinstance(value, np.ndarray):
            return value.tobytes()
        if isinstance(value, dict):
            return tuple((self.plain(key), self.plain(held)) for key, held in value.items())
        if isinstance(value, set | frozenset):
            return frozenset(map(repr, value))
        if isinstance(value, list | tuple | deque):
            return tuple(map(self.plain, value))
        return tuple((name, self.plain(held)) for name, held in _attributes(value))


def containers_of(broker: Broker) -> dict[str, list[int]]:
    """Return how much is in every container of a broker, by `Class.attribute`."""
    found: dict[str, list[int]] = {}
    for held in _everything(broker.core):
        if not isinstance(held, _CONTAINERS):
            for name, value in _attributes(held):
                if isinstance(value, _CONTAINERS):
                    found.setdefault(f"{type(held).__name__}.{name}", []).append(len(value))
    return found


def bytes_in(broker: Broker) -> int:
    """Return how many bytes of texts and messages a broker has in memory."""
    return sum(len(held) for held in _everything(broker.core) if isinstance(held, str | bytes))


_CONTAINERS = (dict, list, set, frozenset, deque, tuple)


def _everything(root: object) -> Iterator[Any]:
    """Go through all that can be reached, each object once; code and settings are left out."""
    seen: dict[int, object] = {}
    left = [root]
    while left:
        value = left.pop()
        if isinstance(value, types.MethodType):
            value = value.__self__
        leaf = isinstance(value, str | bytes)
        if id(value) in seen or (isinstance(value, (*_LEAVES, *_CODE, Settings)) and not leaf):
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, _CONTAINERS):
            left += value
        elif not leaf:
            left += [held for _, held in _attributes(value)]


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()
