"""Which conversions exist: those of our own converters and of installed plug-ins.

A conversion that is not here is impossible, not free.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import PurePath

from distributary.arguments import check_entries, checked
from distributary.content.media_type import MediaType
from distributary.errors import BadInput, quoted
from distributary.media.converter import Converter
from distributary.media.formats import SPEECH_PARAMETERS, canonical, format_of_name
from distributary.media.refusal import refused_parameter

__all__ = ["ENTRY_POINTS", "Conversion", "Registry", "installed"]

ENTRY_POINTS = "distributary.converters"
"""The group of entry points under which packages offer converters."""


@dataclass(frozen=True)
class Conversion:
    """A conversion that a converter lists, by the names of both formats and of the converter."""

    source: str
    target: str
    converter: str


class Registry:
    """The converters at hand, by name, and what they can do.

    The first of the converters that does a conversion does it. Converters that lack a package
    are `missing`, as (name, extra of distributary that brings it).
    """

    @checked
    def __init__(
        self, converters: Iterable[Converter], *, missing: Iterable[tuple[str, str]] = ()
    ) -> None:
        converters = tuple(converters)
        check_entries("converters", converters, Converter)
        self.converters: Mapping[str, Converter] = {item.name: item for item in converters}
        self.missing = tuple(missing)
        self._suffixes = {
            suffix: media_type
            for converter in reversed(converters)
            for suffix, media_type in converter.suffixes.items()
        }
        listed: dict[tuple[str, str], Conversion] = {}
        for converter in self.converters.values():
            for source, target in converter.conversions():
                pair = (str(source), str(target))
                listed.setdefault(pair, Conversion(*pair, converter.name))
        self.conversions: tuple[Conversion, ...] = tuple(listed[pair] for pair in sorted(listed))

    @property
    def formats(self) -> tuple[str, ...]:
        """Every format that a listed conversion reads or writes, sorted."""
        return tuple(
            sorted({name for item in self.conversions for name in (item.source, item.target)})
        )

    def format_of_name(self, name: str) -> MediaType | None:
        """Return the format that a file's name suggests, to us or to a plug-in; None if none."""
        claimed = self._suffixes.get(PurePath(name).suffix.lower())
        return format_of_name(name) or claimed

    def converter(self, source: MediaType, target: MediaType) -> Converter | None:
        """Return who converts directly from one format to another, if anybody does."""
        source, target = canonical(source), canonical(target)
        return next(
            (item for item in self.converters.values() if item.converts(source, target)), None
        )

    def route(self, source: MediaType, target: MediaType) -> tuple[MediaType, ...]:
        """Return the formats to go through, without the source, or raise `BadInput`.

        The last is the target; see `steps`.
        """
        found = self.steps(source, target)
        if found:
            return found
        problem = f"nothing converts {quoted(source)} to {quoted(target)}"
        hint = "distributary formats lists what can be converted"
        refused = refused_parameter(self, canonical(source), canonical(target))
        if refused is not None:
            problem, hint = f"{problem}: {refused[0]}", refused[1]
        elif self.missing:
            extras = sorted({extra for _, extra in self.missing})
            hint = f'pip install "distributary[{",".join(extras)}]" adds converters'
        raise BadInput("conversion", problem, hint=hint)

    def steps(self, source: MediaType, target: MediaType) -> tuple[MediaType, ...]:
        """Return the formats to go through, without the source: as few as possible, or none.

        Formats between the two are listed ones; those of sound also say which part of a text
        was read in which language, as the target does. Among routes of one length the first in
        the order of the listing is taken, so that it does not change between runs.
        """
        source, target = canonical(source), canonical(target)
        if self.converter(source, target) is not None:
            return (target,)
        between = [MediaType.parse(name) for name in self.formats]
        spoken = {
            name: value for name, value in target.parameters.items() if name in SPEECH_PARAMETERS
        }
        if spoken:
            between += [
                MediaType(step.type, step.subtype, {**step.parameters, **spoken})
                for step in between
                if step.type == target.type
            ]
        came_from: dict[str, MediaType] = {}
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            if here is not source and self.converter(here, target) is not None:
                steps = [target, here]
                while steps[-1] is not source and str(steps[-1]) in came_from:
                    steps.append(came_from[str(steps[-1])])
                return tuple(step for step in reversed(steps) if step is not source)
            for step in between:
                if str(step) not in came_from and self.converter(here, step) is not None:
                    came_from[str(step)] = here
                    waiting.append(step)
        return ()


@lru_cache(maxsize=1)
def installed() -> Registry:
    """Return the registry of our own converters and of every installed plug-in.

    A plug-in that cannot be loaded is left out with a warning: somebody else's mistake
    must not take away what works.
    """
    from distributary.media.converters import BUILT_IN

    converters: list[Converter] = [kind() for kind in BUILT_IN]
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda item: item.name):
        try:
            kind = point.load()
            converter = kind()
            if not isinstance(converter, Converter):
                raise TypeError(f"{quoted(kind)} is not a Converter")
        except Exception as error:
            warnings.warn(f"converter {quoted(point.name)} is left out: {error}", stacklevel=2)
            continue
        converters.append(converter)
    lacking = {
        converter.name: extra
        for converter in converters
        for module, extra in converter.packages
        if find_spec(module) is None
    }
    return Registry(
        [converter for converter in converters if converter.name not in lacking],
        missing=sorted(lacking.items()),
    )
