"""Arguments: what a caller may hand over, checked where it comes in.

Whoever makes a mistake reads one sentence that names the argument, and not what some loop deep
inside makes of it. Nothing here loads NumPy; arrays are checked in `arrays`.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

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
    "check_within",
    "checked",
    "checked_fields",
    "kind_of",
    "nearest_name",
    "no_such_name",
]

# The largest size, cost, rate, delay or price that is planned with: products of four such
# numbers, summed over a million nodes, stay inside the range of a float. It is far beyond what
# files may hold, because a busy broker makes a plan dearer than anything in a file.
AMOUNT_MAX = 1e60

_SEQUENCES = frozenset({Collection, Iterable, Sequence})
_WORDS: dict[Any, str] = {
    str: "a string",
    bytes: "bytes",
    Integral: "a whole number",
    Real: "a number",
    type(None): "None",
    Callable: "a function",
    Iterable: "an iterable",
    **{kind: f"a {kind.__name__.lower()}" for kind in (Collection, Mapping, Sequence)},
}

_C = TypeVar("_C", bound=Callable[..., Any])
_T = TypeVar("_T", bound=type)


def checked(function: _C) -> _C:
    """Hold whoever calls a public function to its type hints: `WrongType` names the argument.

    Only what a value is itself is looked at, not what is in it, and only where hints are classes,
    unions of them, or generic ones. It takes a microsecond: loops call what is inside.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    kinds_of: dict[str, tuple[Any, ...]] | None = None
    # By argument, the types that were right before: nothing else decides.
    right: dict[str, set[type]] = {}

    def check(name: str, value: object) -> None:
        nonlocal kinds_of
        if kinds_of is None:
            kinds_of = _hinted(function)
        if name in kinds_of:
            owner = function.__qualname__.removesuffix(".__init__")
            check_type(name, value, *kinds_of[name], hint=f"help({function.__module__}.{owner})")
        right.setdefault(name, set()).add(type(value))

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in zip(names, args, strict=False):
            if type(value) not in right.get(name, ()):
                check(name, value)
        for name, value in kwargs.items():
            if type(value) not in right.get(name, ()):
                check(name, value)
        return function(*args, **kwargs)

    return cast(_C, call)


def checked_fields(made: _T) -> _T:
    """Hold whoever makes an object of a dataclass to the type hints of its fields."""
    cast(Any, made).__init__ = checked(cast(Any, made).__init__)
    return made


def check_type(argument: str, value: object, *kinds: Any, hint: str | None = None) -> None:
    """Raise `WrongType` unless `value` is of one of these types."""
    if not _is_a(value, kinds):
        wanted = [_WORDS.get(kind) or _with_article(kind.__name__) for kind in kinds]
        raise WrongType(argument, f"must be {' or '.join(wanted)}, not {kind_of(value)}", hint=hint)


def _is_a(value: object, kinds: tuple[Any, ...]) -> bool:
    """Say whether a value is of one of these types.

    A truth value is not a number, and a text is not a sequence of anything else.
    """
    if not isinstance(value, kinds):
        return False
    if isinstance(value, bool):
        return not (Integral in kinds or Real in kinds) or bool in kinds
    if isinstance(value, str | bytes):
        return _SEQUENCES.isdisjoint(kinds) or type(value) in kinds
    return True


def _hinted(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Return the types that each argument may have; those that nothing is known of are left out."""
    hinted = {}
    for name, hint in function.__annotations__.items():
        if isinstance(hint, str):
            try:
                hint = eval(hint, function.__globals__)  # noqa: S307, our own source
            except (NameError, AttributeError):
                continue  # A name that only type checkers import.
        kinds = _kinds(hint)
        if kinds and name != "return":
            hinted[name] = kinds
    return hinted


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the classes that a type hint stands for, or none if it cannot be checked."""
    if hint is None:
        return (type(None),)
    origin = get_origin(hint)
    if origin is Union or origin is UnionType:
        parts = [_kinds(part) for part in get_args(hint)]
        return tuple(kind for part in parts for kind in part) if all(parts) else ()
    if origin is Literal:
        return (str,)
    kind = origin or hint
    anything = kind is object or kind is Any or getattr(kind, "_is_protocol", False)
    if anything or not isinstance(kind, type):
        return ()
    return ({int: Integral, float: Real}.get(kind, kind),)


def check_choice(argument: str, value: object, choices: Collection[str]) -> None:
    """Raise `BadInput` unless `value` is one of these words."""
    if type(value) is not str:
        check_type(argument, value, str)
    if value not in choices:
        raise BadInput(argument, f"{quoted(value)} is not one of {', '.join(choices)}")


def check_count(argument: str, value: object, *, least: int = 0) -> None:
    """Raise `BadInput` unless `value` is a whole number of at least that."""
    if type(value) is not int:
        check_type(argument, value, Integral)
    count = int(cast(int, value))
    if count < least:
        raise BadInput(argument, f"must be at least {least:,}, not {count:,}")


def check_number(
    argument: str, value: object, *, positive: bool = False, most: float = AMOUNT_MAX
) -> None:
    """Raise `BadInput` unless `value` is a number from 0 (or more, if `positive`) to `most`."""
    if type(value) is not float:
        check_type(argument, value, Real)
    fault = amount_fault(float(cast(float, value)), positive=positive, most=most)
    if fault is not None:
        raise BadInput(argument, fault)


def check_within(argument: str, value: float, least: float, most: float) -> None:
    """Raise `BadInput` unless a number is in this range, both ends included."""
    if not least <= value <= most:
        found, low, high = (
            f"{each:,}" if isinstance(each, int) else f"{each:g}" for each in (value, least, most)
        )
        raise BadInput(argument, f"is {found}, and must be from {low} to {high}")


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


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the name that somebody who wrote `name` may have meant, if there is one."""
    return next(iter(difflib.get_close_matches(name, list(known)[:1000], n=1)), None)


def no_such_name(place: str, name: str, known: Iterable[str], kind: str) -> BadInput:
    """Return the error for a name that means nothing, with the nearest that does."""
    near = nearest_name(name, known)
    hint = None if near is None else f"did you mean {quoted(near)}?"
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
