"""Messages that nobody who keeps to the protocol sends: real ones with something changed."""

from __future__ import annotations

import dataclasses
import math
import random
import types
from collections.abc import Sequence
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

_WORDS = ("", "x", "@c", "!", "{}", "[]", "null", '{"id": 1}', "\n", "a/b")
_NUMBERS = (0, -1, 1, 7, 10**6, 2**40, 2**62, -(2**62), 2**64 - 1, -(2**63))
_AMOUNTS = (0.0, -1.0, 1e300, 1e308, 1e-300, math.inf, -math.inf, math.nan)


class Mutations:
    """Changes messages in one place each, within the types of their fields.

    Parameters
    ----------
    rng
        Every choice comes from here.
    names, datas
        Names of brokers and clients, and encoded messages, to put where others should be.
    """

    def __init__(self, rng: random.Random, names: Sequence[str], datas: Sequence[bytes]) -> None:
        self._rng = rng
        self._names = names
        self._datas = datas

    def changed(self, message: Any) -> Any:
        """Return a message that differs from another, as a rule."""
        return self._of(type(message), message)

    def _of(self, hint: Any, value: Any) -> Any:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self._of(self._rng.choice(arguments), value)
        if origin is tuple:
            if arguments[-1] is Ellipsis:
                return self._several(arguments[0], value if isinstance(value, tuple) else ())
            return tuple(self._one_of(list(arguments), value))
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._rng.choice(list(hint))
        if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
            hints = get_type_hints(hint)
            held = [getattr(value, name, None) for name in hints]
            fields = self._one_of(list(hints.values()), held if isinstance(value, hint) else None)
            return hint(*fields)
        return self._plain(hint, value)

    def _several(self, hint: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
        chosen = list(values)
        what = self._rng.randrange(4)
        if what == 0:
            return ()
        if what == 1:
            self._rng.shuffle(chosen)
            return (*chosen, self._of(hint, None))
        if not chosen:
            return (self._of(hint, None),)
        place = self._rng.randrange(len(chosen))
        if what == 2:
            del chosen[place]
        else:
            chosen[place] = self._of(hint, chosen[place])
        return tuple(chosen)

    def _one_of(self, hints: list[Any], values: Any) -> list[Any]:
        if values is None:
            return [self._of(hint, None) for hint in hints]
        changed = list(values)
        if changed:
            place = self._rng.randrange(len(changed))
            changed[place] = self._of(hints[place], changed[place])
        return changed

    def _plain(self, hint: Any, value: Any) -> Any:
        if hint is bool:
            return not value
        if hint is int:
            return self._rng.choice((*_NUMBERS, (value or 0) + 1, (value or 0) - 1))
        if hint is float:
            return self._rng.choice(_AMOUNTS)
        if hint is str:
            text = value if isinstance(value, str) else ""
            near = (text[:-1], text + "x", text.replace('"', "'")) if text else ()
            return self._rng.choice((*_WORDS, *self._names, *near))
        if hint is bytes:
            return self._rng.choice((b"", b"\x01\x00", b"\xff" * 9, *self._datas))
        assert hint is type(None), hint
        return None
