"""Which format a subscriber gets: its profile against what the adaptation graph can make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from distributary.arguments import checked
from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.media_type import MediaType
from distributary.content.profile import AcceptEntry, DeviceProfile, stated
from distributary.errors import BadInput

__all__ = [
    "FormatChoice",
    "NoFormat",
    "choices",
    "choose_format",
    "format_index",
    "with_format",
]

# What a format may have less of than what it is made from, and never more.
_AMOUNTS = ("width", "height", "bitrate")
_LESS = 0.99
_CHARSET = "utf-8"


@dataclass(frozen=True)
class FormatChoice:
    """A format that a subscriber can be sent.

    Attributes
    ----------
    name
        The format, as the graph or the publication names it.
    index
        Its index in the graph; None for a publication's own format that the graph lacks.
    entry
        The entry of the profile that asks for it; None without a profile.
    """

    name: str
    index: int | None
    entry: AcceptEntry | None


@dataclass(frozen=True)
class NoFormat:
    """Why a subscriber cannot be sent anything: one sentence, for the `undeliverable` event."""

    reason: str


def format_index(graph: AdaptationGraph, held_format: str) -> int | None:
    """Return the graph's format that a publication's media type is, if there is one.

    Names that are the same text come first; then the format with the most parameters of
    which `held_format` is one, so that `text/plain; charset=utf-8` is a `text/plain`.
    """
    if held_format in graph.names:
        return graph.names.index(held_format)
    held = _media_type(held_format)
    if held is None:
        return None
    found = [
        (-len(kind.parameters), k)
        for k, kind in enumerate(_media_types(graph.names))
        if kind is not None and kind.admits(held)
    ]
    return min(found)[1] if found else None


def with_format(
    graph: AdaptationGraph, held_format: str, size: float
) -> tuple[AdaptationGraph, int] | None:
    """Return a graph that has a publication's format as well, and its index.

    Pictures and clips come in any size, with or without a word about it, and a graph has a few
    sizes. Whatever the largest format of the same type that is no larger than stated can be
    made into, can be made of this one too, and so can that format itself. None if there is no
    such format, and nothing is known of what this one can become.
    """
    held = _media_type(held_format)
    if held is None:
        return None
    alike = [
        (float(graph.sizes[k]), -k)
        for k, kind in enumerate(_media_types(graph.names))
        if kind is not None and kind.essence == held.essence and not _exceeds(kind, held)
    ]
    if not alike:
        return None
    like, count = -max(alike)[1], graph.format_count
    costs = np.full((count + 1, count + 1), np.inf)
    costs[:count, :count] = graph.costs
    costs[count, :count] = graph.costs[like]
    others = graph.costs[like][np.isfinite(graph.costs[like])]
    # About what it takes to make a smaller one of it.
    costs[count, like] = others.min() if others.size else 0.0
    sizes = np.append(graph.sizes, size)
    # Estimates are for other content, and the original is the largest of its type.
    same = [-k for _, k in alike]
    sizes[same] = np.minimum(sizes[same], _LESS * size)
    return AdaptationGraph((*graph.names, held_format), sizes, costs), count


def _exceeds(kind: MediaType, held: MediaType) -> bool:
    """Whether a format states something that cannot be made of what another states."""
    for name, value in kind.parameters.items():
        own = held.parameters.get(name)
        if own is None:
            continue
        amount, most = stated(kind, name), stated(held, name)
        if name in _AMOUNTS and amount is not None and most is not None:
            if amount > most:
                return True
        elif value.lower() != own.lower():
            return True
    return False


@checked
def choices(
    profile: DeviceProfile | None, graph: AdaptationGraph, held_format: str
) -> tuple[FormatChoice, ...]:
    """Return the formats to try, best first: at most one for each entry of the profile.

    An entry asks for the largest format that it matches, that can be made from
    `held_format`, that fits the device, and that no better entry asked for already. A
    picture that does not state its width, for a device that states its screen, comes after
    those that do; the same holds for bit rate and bandwidth. Text comes in UTF-8 unless
    another charset is asked for.

    Without a profile it is the original and nothing else. Names of the graph that are not media
    types match no entry.
    """
    held = format_index(graph, held_format)
    if profile is None:
        return (FormatChoice(held_format, held, None),)
    # What can be made: (name, index, type, size), the publication's own format among it.
    makeable = [
        (graph.names[k], k, kind, float(graph.sizes[k]))
        for k in (np.flatnonzero(graph.makeable[held]).tolist() if held is not None else ())
        if (kind := _media_types(graph.names)[k]) is not None
    ]
    if held is None and (kind := _media_type(held_format)) is not None:
        makeable = [(held_format, -1, kind, 0.0)]
    usable = [made for made in makeable if profile.fits(made[2]) and not profile.refuses(made[2])]
    # Largest first; equally large ones in the order of their names. A text is not better for
    # being in a charset that takes more bytes.
    usable.sort(
        key=lambda made: (
            profile.unknown_count(made[2]),
            made[2].parameters.get("charset", _CHARSET).lower() != _CHARSET,
            -made[3],
            made[0],
        )
    )
    found: dict[str, FormatChoice] = {}
    for entry in profile.entries():
        for name, index, kind, _ in usable:
            if name not in found and entry.media_type.admits(kind):
                found[name] = FormatChoice(name, None if index < 0 else index, entry)
                break
    return tuple(found.values())


@checked
def choose_format(
    profile: DeviceProfile | None, graph: AdaptationGraph, held_format: str
) -> FormatChoice | NoFormat:
    """Return the format that a subscriber should get, or why there is none; see `choices`."""
    found = choices(profile, graph, held_format)
    if found:
        return found[0]
    assert profile is not None
    asked = ", ".join(str(entry) for entry in profile.entries()[:4])
    more = len(profile.entries()) - 4
    return NoFormat(
        f"nothing the device accepts ({asked}{f' and {more} more' if more > 0 else ''}) "
        f"and can show can be made from {held_format}"
    )


@lru_cache(maxsize=64)
def _media_types(names: tuple[str, ...]) -> tuple[MediaType | None, ...]:
    return tuple(_media_type(name) for name in names)


def _media_type(text: str) -> MediaType | None:
    try:
        kind = MediaType.parse(text)
    except BadInput:
        return None
    return None if kind.has_wildcard else kind
