"""Families: everything that can be made from content of one format."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from distributary.errors import BadInput, quoted
from distributary.media.registry import Conversion, Registry

__all__ = ["Family", "families_of"]


@dataclass(frozen=True)
class Family:
    """The formats within reach of a source format, by listed conversions.

    Attributes
    ----------
    source
        The format that everything is made from.
    formats
        The source and whatever can be made from it, sorted.
    conversions
        Every listed conversion between them, sorted.
    making
        One conversion for every format but the source, in an order in which each finds
        its own source made: together they make every format in the fewest steps.
    """

    source: str
    formats: tuple[str, ...]
    conversions: tuple[Conversion, ...]
    making: tuple[Conversion, ...]

    @classmethod
    def of(cls, registry: Registry, source: str) -> Family:
        """Return the family of a source format."""
        leaving: dict[str, list[Conversion]] = {}
        for conversion in registry.conversions:
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
            tuple(item for item in registry.conversions if item.source in reached),
            tuple(making),
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
