"""Why nothing makes a format: which of its parameters is to blame, if one is."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

from distributary.content.media_type import MediaType
from distributary.errors import quoted

if TYPE_CHECKING:
    from distributary.media.registry import Registry

__all__ = ["Refusal", "refused_parameter"]

Refusal = tuple[str, str]
"""What is wrong, and what to do about it."""


def refused_parameter(registry: Registry, source: MediaType, target: MediaType) -> Refusal | None:
    """Return which parameter no converter takes; None if the types themselves are to blame.

    Each parameter is tried alone, on what can be made without any.
    """
    plain = _with(target, {})
    kind = _with(source, {})
    if not registry.steps(source, plain) and source.parameters and registry.steps(kind, plain):
        names = ", ".join(source.parameters)
        return f"{quoted(source)} says what is not known here: {names}", "leave it out"
    known = _parameters(registry, source, target)
    if not known or not (registry.steps(source, plain) or kind == plain):
        return None
    for name in target.parameters:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            return f"{target.essence} has no parameter {quoted(name)} here", hint
    said = target.parameters
    # The one without which it works, or else the first that does not work alone.
    others = [(name, {key: said[key] for key in said if key != name}) for name in said]
    blamed = [name for name, rest in others if registry.steps(source, _with(target, rest))] or [
        name for name in said if not registry.steps(source, _with(target, {name: said[name]}))
    ]
    if not blamed:
        return None
    name, value, own = blamed[0], said[blamed[0]], source.parameters.get(blamed[0], "")
    if name == "width" and own.isdecimal() and value.isdecimal() and int(value) > int(own):
        return f"it is {own} pixels wide, and nothing is enlarged", f"ask for {own} or less"
    return f"{quoted(f'{name}={value}')} is out of range", f"{name} is {known[name]}"


def _parameters(registry: Registry, source: MediaType, target: MediaType) -> dict[str, str]:
    """Return the parameters that somebody takes who makes such a target on the way."""
    found: dict[str, str] = {}
    plain = _with(target, {})
    route = (source, *registry.steps(source, plain))
    for here, step in pairwise(route):
        converter = registry.converter(here, step)
        if converter is not None and step.type == target.type:
            found |= converter.parameters
    passed = {step.essence for step in (*route, plain)}
    for converter in registry.converters.values():
        for before, after in converter.conversions():
            if after.essence == target.essence and (
                before.essence == target.essence
                or (
                    before.essence in passed
                    and target.parameters.keys() <= converter.parameters.keys()
                )
            ):
                found |= converter.parameters
    return found


def _with(media_type: MediaType, parameters: Mapping[str, str]) -> MediaType:
    return MediaType(media_type.type, media_type.subtype, dict(parameters))
