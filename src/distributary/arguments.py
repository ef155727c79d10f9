"""Arguments: what a caller may hand over, checked where it comes in.

Whoever makes a mistake reads one sentence that names the argument, and not what some loop deep
inside makes of it. Nothing here loads NumPy; arrays are checked in `arrays`.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from distributary.errors import BadInput, WrongType, quoted

__all__ = [
    "AMOUNT_MAX",
    "amount_fault",
    "check_choice",
    "check_count",
    "check_entries",
    "check_names",
    "check_number",
    "check_time_limit",
    "check_type",
    "kind_of",
    "no_such_name",
]

# The largest size, cost, rate, delay or price that is planned with: products of four such
# numbers, summed over a million nodes, stay inside the range of a float. It is far beyond what
# files may hold, because a busy broker makes a plan dearer than anything in a file.
AMOUNT_MAX = 1e60

_WORDS = {str: "a string", int: "a whole number", float: "a number", type(None): "None"}


def check_type(argument: str, value: object, *kinds: type, hint: str | None = None) -> None:
    """Raise `WrongType` unless `value` is of one of these types."""
    if not isinstance(value, kinds):
        wanted = [_WORDS.get(kind) or _with_article(kind.__name__) for kind in kinds]
        raise WrongType(argument, f"must be {' or '.join(wanted)}, not {kind_of(value)}", hint=hint)


def check_choice(argument: str, value: object, choices: Collection[str]) -> None:
    """Raise `BadInput` unless `value` is one of these words."""
    check_type(argument, value, str)
    if value not in choices:
        raise BadInput(argument, f"{quoted(value)} is none of {', '.join(choices)}")


def check_count(argument: str, value: object, *, least: int = 0, most: int | None = None) -> None:
    """Raise `BadInput` unless `value` is a whole number in this range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise WrongType(argument, f"must be a whole number, not {kind_of(value)}")
    count = int(value)
    if most is not None and not least <= count <= most:
        raise BadInput(argument, f"is {count:,}, and must be from {least:,} to {most:,}")
    if count < least:
        raise BadInput(argument, f"must be at least {least:,}, not {count:,}")


def check_number(
    argument: str, value: object, *, positive: bool = False, most: float = AMOUNT_MAX
) -> None:
    """Raise `BadInput` unless `value` is a number from 0 (or more, if `positive`) to `most`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise WrongType(argument, f"must be a number, not {kind_of(value)}")
    fault = amount_fault(float(value), positive=positive, most=most)
    if fault is not None:
        raise BadInput(argument, fault)


def check_time_limit(value: object) -> None:
    """Raise `BadInput` unless the argument `time_limit` is None or some seconds."""
    if value is not None:
        check_number("time_limit", value, positive=True)


def check_entries(argument: str, entries: Sequence[object], kind: type) -> None:
    """Raise `WrongType` unless all entries are of this type; there may be a hundred thousand."""
    if not all(issubclass(found, kind) for found in set(map(type, entries))):
        for at, entry in enumerate(entries):
            check_type(f"{argument}[{at}]", entry, kind)


def check_names(argument: str, names: Any) -> None:
    """Raise `BadInput` unless `names` is a tuple of strings, none of which comes twice."""
    check_type(argument, names, tuple, hint="tuple(...) makes one")
    check_entries(argument, names, str)
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise BadInput(argument, f"{quoted(twice)} is given twice")


def amount_fault(
    value: float, *, positive: bool = False, least: float = 0.0, most: float = AMOUNT_MAX
) -> str | None:
    """Return what is wrong with an amount, or None if nothing is.

    It is 0 (unless `positive`), or from `least` to `most`; `value` may be an integer of any size.
    """
    if least <= value <= most and (value > 0 or not positive):
        return None
    if value == 0 and not positive:
        return None
    if value > most:
        rule = f"must be at most {most:g}"
    elif positive and value <= 0:
        rule = "must be greater than 0"
    elif value < 0:
        rule = "must be at least 0"
    elif value > 0:
        rule = f"must be at least {least:g}" + ("" if positive else ", or 0")
    else:
        rule = "must be a finite number"
    huge = isinstance(value, int) and value.bit_length() > 1000
    return f"{rule}, not " + ("an integer of hundreds of digits" if huge else f"{value:g}")


def no_such_name(place: str, name: str, known: Iterable[str], kind: str) -> BadInput:
    """Return the error for a name that means nothing, with the nearest that does."""
    near = difflib.get_close_matches(name, list(known)[:1000], n=1)
    hint = f"did you mean {quoted(near[0])}?" if near else None
    return BadInput(place, f"{quoted(name)} is not {kind}", hint=hint)


def kind_of(value: object) -> str:
    """Return what a value is, in few words: "a dict", "None", "nan"."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _with_article(type(value).__name__)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"
