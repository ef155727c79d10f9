"""The formats of an item: what it can be made into, and what a device gets of it.

The root of a cell decides that, by its adaptation graph. Everybody else finds in the plan what
it has decided. What follows from the same texts is worked out once in a process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from distributary.arrays import BoolArray
from distributary.broker.blob import Blob
from distributary.broker.caches import cached_by_text
from distributary.broker.dissemination.messages import Item
from distributary.broker.plan_part import PlanPart
from distributary.broker.settings import Settings, graph_of
from distributary.content import AdaptationGraph, DeviceProfile, Publication, parse_event
from distributary.content.documents import parse_document
from distributary.content.format_choice import (
    NoFormat,
    choices,
    choose_format,
    format_index,
    with_format,
)
from distributary.content.publication import delivered
from distributary.errors import BadInput
from distributary.placement import PlacementProblem
from distributary.placement.useful import useful_formats
from distributary.topology import DisseminationTree, TreeNode

__all__ = [
    "PUBLICATION_BYTES_MAX",
    "Formats",
    "choice",
    "delivered_event",
    "formats_in",
    "formats_of",
    "inline_blob",
    "profile_of",
    "publication_of",
    "useful",
]

PUBLICATION_BYTES_MAX = 256 * 2**10
"""How large a published event may be, so that it fits into every message about it."""

_BYTES_PER_MEGABYTE = 1e6
_ALONE = DisseminationTree.from_nodes([TreeNode("", None)])


@dataclass(frozen=True, eq=False)
class Formats:
    """What an item can be made into.

    Attributes
    ----------
    graph
        The formats; a single one where the adaptation graph has none of the item's type.
    whole
        The same with formats that turned out not to be makeable: what a device gets next
        depends on what it would have got.
    held
        The index of the item's own.
    universal
        Whether everybody takes the item as it is: an event without any content.
    """

    graph: AdaptationGraph
    whole: AdaptationGraph
    held: int
    universal: bool

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of every format by name."""
        return {name: k for k, name in enumerate(self.graph.names)}

    @property
    def own(self) -> str:
        """The name of the item's own format."""
        return self.graph.names[self.held]


def formats_of(
    settings: Settings, item: Item, lost: tuple[str, ...] = (), *, size_bytes: int | None = None
) -> Formats:
    """Return the formats of an item.

    Parameters
    ----------
    settings
        With the adaptation graph.
    lost
        Formats that turned out not to be makeable, in ascending order.
    size_bytes
        As if its content were of this size; of the size that it is, unless given.
    """
    size_bytes = item.size_bytes if size_bytes is None else size_bytes
    return _formats(settings.graph, item.media_type, size_bytes, item.inline, lost)


def formats_in(part: PlanPart) -> Formats:
    """Return the formats that a plan may use; any of them may be the item's own."""
    return _planned(part.formats, part.sizes, part.conversions)


def choice(formats: Formats, profile: str | None) -> int | NoFormat:
    """Return the index of the format that a device gets, or why there is none.

    Parameters
    ----------
    formats
        What there is.
    profile
        JSON of the device's profile; without one it gets the original.
    """
    if profile is None or formats.universal:
        return formats.held
    return _choice(formats, profile)


@lru_cache(maxsize=4096)
def useful(
    formats: Formats, held: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[AdaptationGraph, tuple[int, ...]]:
    """Return the graph of those formats that can help, and their indices.

    Parameters
    ----------
    formats
        All there are.
    held, wanted
        What is in hand and what is to be made, in ascending order.
    """
    graph = formats.graph
    problem = PlacementProblem(
        graph,
        _ALONE,
        _flags(wanted, graph.format_count)[None, :],
        _flags(held, graph.format_count),
    )
    kept = useful_formats(problem)[0] | problem.held
    indices = tuple(np.flatnonzero(kept).tolist())
    return graph.restricted_to(indices), indices


@cached_by_text(8192)
def publication_of(event: str) -> Publication:
    """Return the event in a text.

    Raises
    ------
    BadInput
        When there is none in it.
    """
    # Characters are counted first: encoding what is far too long would be work for nothing.
    if len(event) > PUBLICATION_BYTES_MAX or (
        not event.isascii() and len(event.encode("utf-8", "surrogatepass")) > PUBLICATION_BYTES_MAX
    ):
        raise BadInput(
            "event",
            f"is larger than {PUBLICATION_BYTES_MAX:,} bytes",
            hint="publish larger data as content beside the event",
        )
    return parse_event(event)


@cached_by_text(4096)
def profile_of(text: str) -> DeviceProfile:
    """Return the device profile in a text.

    Raises
    ------
    BadInput
        When there is none in it.
    """
    return DeviceProfile.parse(parse_document(text))


@cached_by_text(8192)
def delivered_event(event: str, media_type: str) -> str:
    """Return an event as it is delivered beside content that was converted."""
    converted = delivered(publication_of(event), media_type, None)
    return json.dumps(converted.document(), ensure_ascii=False, separators=(",", ":"))


@cached_by_text(256)
def inline_blob(event: str, media_type: str) -> tuple[Blob, bytes]:
    """Return what refers to the content that is in an event, and that itself."""
    data = publication_of(event).content
    return Blob.of(media_type, data), data


@lru_cache(maxsize=4096)
def _formats(
    text: str, media_type: str, size_bytes: int, inline: bool, lost: tuple[str, ...]
) -> Formats:
    graph = graph_of(text, size_bytes)
    held, guessed = format_index(graph, media_type), False
    if held is None:
        size = size_bytes / _BYTES_PER_MEGABYTE
        found = with_format(graph, media_type, size)
        if found is None:
            alone = AdaptationGraph((media_type,), np.array([size]), np.full((1, 1), np.inf))
            return Formats(alone, alone, 0, universal=inline and size_bytes == 0)
        graph, held = found
        guessed = True
    if not lost:
        return Formats(graph, graph, held, universal=False)
    kept = [k for k, name in enumerate(graph.names) if name not in lost or k == held]
    left = graph.restricted_to(kept)
    # A picture of which nobody knew how large it is may be too small for one format of a type,
    # and not for the next one of the same type.
    return Formats(left, left if guessed else graph, kept.index(held), universal=False)


@lru_cache(maxsize=1024)
def _planned(
    names: tuple[str, ...],
    sizes: tuple[float, ...],
    conversions: tuple[tuple[int, int, float], ...],
) -> Formats:
    graph = PlanPart(names, sizes, conversions, ()).graph
    return Formats(graph, graph, 0, universal=False)


@lru_cache(maxsize=16_384)
def _choice(formats: Formats, profile: str) -> int | NoFormat:
    device = profile_of(profile)
    for wish in choices(device, formats.whole, formats.own):
        place = formats.held if wish.index is None else formats.places.get(wish.name)
        if place is not None and formats.graph.makeable[formats.held, place]:
            return place
    nothing = choose_format(device, formats.graph, formats.own)
    return nothing if isinstance(nothing, NoFormat) else NoFormat("no entry is left to try")


def _flags(indices: tuple[int, ...], count: int) -> BoolArray:
    flags = np.zeros(count, dtype=np.bool_)
    flags[list(indices)] = True
    return flags
