"""Options that several commands share, as one parameter of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import is_dataclass
from typing import Any, get_type_hints

__all__ = ["with_groups"]


def with_groups(
    function: Callable[..., Any], *, last: Collection[str] = (), without: Collection[str] = ()
) -> Callable[..., Any]:
    """Return a command that has the options of the groups among a function's parameters.

    Typer reads options from a signature. In that of the function, a parameter that is a dataclass
    stands for the options in it: for those in `last` after all others, for the rest in its place,
    and for those `without` not at all.
    """
    own = inspect.signature(function, eval_str=True).parameters
    groups = {
        name: [field for field in _options(item.annotation) if field.name not in without]
        for name, item in own.items()
        if isinstance(item.annotation, type) and is_dataclass(item.annotation)
    }
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, item in own.items()
        for each in groups.get(name, [item])
    ]
    # Those before keep their order, and so do those at the end.
    parameters.sort(key=lambda item: item.name in last)

    def run(**given: Any) -> Any:
        for name, options in groups.items():
            chosen = {item.name: given.pop(item.name) for item in options}
            given[name] = own[name].annotation(**chosen)
        return function(**given)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _options(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    fields = inspect.signature(group).parameters.values()
    return [field.replace(annotation=hints[field.name]) for field in fields]
