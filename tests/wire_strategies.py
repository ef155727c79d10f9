"""Strategies for everything that can be encoded, from the types of its fields."""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

import distributary.broker

_WITH_FIELDS = ("__dataclass_fields__", "_fields", "__struct_fields__")
_INTEGERS = st.integers(-(2**63), 2**63 - 1)


def import_all_kinds() -> None:
    """Import every module of the broker, so that every kind is registered."""
    package = distributary.broker
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of(*(values(argument) for argument in arguments))
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*(values(argument) for argument in arguments))
    if origin in (list, Sequence):
        return st.lists(values(arguments[0]), max_size=3)
    if origin in (frozenset, set):
        return st.sets(values(arguments[0]), max_size=3).map(origin)
    if origin in (dict, Mapping):
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if any(hasattr(hint, name) for name in _WITH_FIELDS):
        return instances(hint)
    return _PLAIN[hint]()


@cache
def instances(cls: type) -> st.SearchStrategy[Any]:
    """Return a strategy for the instances of a dataclass, a named tuple or a struct."""
    hints = get_type_hints(cls)
    return st.builds(cls, **{name: values(hint) for name, hint in hints.items()})


_PLAIN: dict[Any, Callable[[], st.SearchStrategy[Any]]] = {
    type(None): st.none,
    bool: st.booleans,
    int: lambda: _INTEGERS,
    float: lambda: st.floats(allow_nan=False),
    str: lambda: st.text(max_size=8),
    bytes: lambda: st.binary(max_size=8),
}
