"""Families: what can be made from content of one format."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from distributary.errors import BadInput, quoted
from distributary.media.formats import (
    FURTHER_FORMATS,
    MAP_FAMILY,
    PDF,
    VIDEO_FAMILY,
    VIDEO_FORMATS,
)
from distributary.media.registry import Conversion, Registry

__all__ = ["Family", "families_of", "further_families"]


@dataclass(frozen=True)
class Family:
    """Formats within reach of a source format, by listed conversions.

    Attributes
    ----------
    source
        The format that everything is made from.
    formats
        Those whose sizes are told for this source, sorted.
    conversions
        The listed conversions whose costs are told for it, sorted.
    making
        One conversion for every format that these need, in an order in which each finds
        its own source made: together they make every format in the fewest steps.
    """

    source: str
    formats: tuple[str, ...]
    conversions: tuple[Conversion, ...]
    making: tuple[Conversion, ...]

    @classmethod
    def of(cls, registry: Registry, source: str) -> Family:
        """Return the source and whatever can be made from it, with every conversion between them.

        A map becomes pictures, text and sound, and a video becomes video. Formats of ours beyond
        that are in `further_families`.
        """
        return cls._within_reach(registry, source, beside=_others(source))

    @classmethod
    def _within_reach(cls, registry: Registry, source: str, *, beside: frozenset[str]) -> Family:
        leaving: dict[str, list[Conversion]] = {}
        for conversion in registry.conversions:
            if conversion.target not in beside:
                leaving.setdefault(conversion.source, []).append(conversion)
        if source not in leaving:
            raise BadInput(
                "samples",
                f"nothing converts {quoted(source)}",
                hint="distributary formats lists what can be converted",
            )
        reached = {source}
        making = []
        waiting = deque([source])
        while waiting:
            for conversion in leaving.get(waiting.popleft(), []):
                if conversion.target not in reached:
                    reached.add(conversion.target)
                    making.append(conversion)
                    waiting.append(conversion.target)
        return cls(
            source,
            tuple(sorted(reached)),
            tuple(item for found in leaving.values() for item in found if item.source in reached),
            tuple(making),
        )

    def _without(self, formats: set[str], conversions: set[Conversion]) -> Family:
        """Return what is left of it when some has been told for another source."""
        left = tuple(item for item in self.conversions if item not in conversions)
        needed = {name for item in left for name in (item.source, item.target)}
        making = []
        for item in reversed(self.making):
            if item.target in needed:
                making.append(item)
                needed.add(item.source)
        return Family(
            self.source,
            tuple(name for name in self.formats if name in needed and name not in formats),
            left,
            tuple(reversed(making)),
        )


def families_of(registry: Registry, sources: Iterable[str]) -> tuple[Family, ...]:
    """Return the family of each source format, the formats sorted.

    Families that share a format cannot stand in one graph: a size there is so much for
    every megabyte of *the* source, and a shared format would have two.
    """
    families = [Family.of(registry, source) for source in sorted(set(sources))]
    owner: dict[str, str] = {}
    for family in families:
        for name in family.formats:
            if name in owner:
                raise BadInput(
                    "samples",
                    f"{quoted(owner[name])} and {quoted(family.source)} both lead to "
                    f"{quoted(name)}, whose size can be told for one of them only",
                    hint="calibrate samples of these two formats separately",
                )
            owner[name] = family.source
    return tuple(families)


def further_families(registry: Registry, sources: Iterable[str]) -> tuple[Family, ...]:
    """Return what can be made from source formats and is in no family of a map or of a video.

    A conversion is told for the first of the sources that leads to it, and so is a size. Sizes of
    what a map or a video become are told there.
    """
    told = [Family.of(registry, str(source)) for source in (PDF, VIDEO_FORMATS[0])]
    formats = {name for family in told for name in family.formats}
    conversions = {item for family in told for item in family.conversions}
    families = []
    for source in sources:
        whole = Family._within_reach(registry, source, beside=frozenset())
        family = whole._without(formats, conversions)
        formats.update(family.formats)
        conversions.update(family.conversions)
        families.append(family)
    return tuple(families)


def _others(source: str) -> frozenset[str]:
    """Return the formats of ours that are not made from a source for planning."""
    if source in MAP_FAMILY:
        return VIDEO_FAMILY | FURTHER_FORMATS
    return MAP_FAMILY | FURTHER_FORMATS if source in VIDEO_FAMILY else frozenset()
