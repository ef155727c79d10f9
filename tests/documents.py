"""Documents that nobody should write, and what reading them says."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from distributary.errors import BadInput

__all__ = ["NAMES", "complaint", "damage", "json_values"]

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def json_values(*, words: Sequence[str], keys: Sequence[str]) -> st.SearchStrategy[Any]:
    """Return any JSON; some of its strings are `words`, some of its keys are `keys`."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(10**320), 10**320),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(words),
    )
    any_key = st.one_of(st.text(max_size=5), st.sampled_from(keys))
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(any_key, inner, max_size=6)
        ),
        max_leaves=25,
    )


def complaint(read: Callable[[], object]) -> str:
    """Return what reading complains about, if anything; any other error escapes."""
    try:
        read()
    except BadInput as error:
        return str(error)
    return ""


def damage(document: Any, data: st.DataObject, values: st.SearchStrategy[Any]) -> None:
    """Replace, remove, repeat or swap up to three fields or entries; new ones are `values`."""
    for _ in range(data.draw(st.integers(1, 3))):
        if not document:
            return
        path = data.draw(st.sampled_from(_steps(document)))
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        fate = data.draw(st.sampled_from(["replace", "remove", "repeat", "copy"]))
        if fate == "replace":
            holder[path[-1]] = data.draw(values)
        elif fate == "remove":
            del holder[path[-1]]
        elif fate == "repeat" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[path[-1]]))
        else:
            other = document
            for step in data.draw(st.sampled_from(_steps(document))):
                other = other[step]
            holder[path[-1]] = copy.deepcopy(other)


def _steps(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every field and entry in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        found
        for step, entry in inside
        for found in [(*path, step)]
        + (_steps(entry, (*path, step)) if isinstance(entry, dict | list) else [])
    ]
