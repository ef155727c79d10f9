"""Conversions as the adaptation graph says: how long they take and how large the result is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from distributary.broker.blob import Blob
from distributary.broker.settings import Settings
from distributary.content.format_choice import format_index

__all__ = ["ConversionOutcome", "Convert", "GraphConversions"]

_BYTES_PER_SIZE = 1e6


@dataclass(frozen=True, slots=True)
class ConversionOutcome:
    """What becomes of a conversion.

    Attributes
    ----------
    seconds
        How long it takes at a broker of ordinary speed.
    blob
        The result; None when the conversion fails.
    """

    seconds: float
    blob: Blob | None
    reason: str = ""


Convert: TypeAlias = Callable[[str, Blob, str], ConversionOutcome]
"""Given a broker, content and a format: what becomes of the conversion."""


class GraphConversions:
    """Conversions that nobody carries out: the graph says what they would be like.

    Costs and sizes in the graph belong to the size of the original content, which a converted
    blob does not tell. So whoever converts remembers it by the digest of the result.

    Parameters
    ----------
    settings
        With the graph.
    settings_of
        By broker, the settings of those whose converters are others.
    """

    def __init__(
        self, settings: Settings, settings_of: Mapping[str, Settings] | None = None
    ) -> None:
        self._settings = settings
        self._settings_of = {} if settings_of is None else settings_of
        self._content_bytes: dict[str, int] = {}

    def __call__(self, broker: str, blob: Blob, target: str) -> ConversionOutcome:
        """Return what becomes of a conversion at a broker."""
        content_bytes = self._content_bytes.get(blob.digest, blob.size_bytes)
        graph = self._settings_of.get(broker, self._settings).graph_for(content_bytes)
        source = format_index(graph, blob.media_type)
        made = graph.names.index(target) if target in graph.names else None
        seconds = math.inf
        if source is not None and made is not None:
            seconds = float(graph.costs[source, made])
        if made is None or not math.isfinite(seconds):
            return ConversionOutcome(0.0, None, f"{blob.media_type} cannot be made into {target}")
        size_bytes = round(float(graph.sizes[made]) * _BYTES_PER_SIZE)
        result = Blob.imagined(target, size_bytes, blob.digest)
        self._content_bytes[result.digest] = content_bytes
        return ConversionOutcome(seconds, result)
