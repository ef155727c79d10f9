"""Conversions as the adaptation graph says: how long they take and how large the result is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from distributary.broker.addresses import Blob
from distributary.broker.settings import Settings, ns
from distributary.content.format_choice import format_index

__all__ = ["ConversionOutcome", "ConversionQueue", "ConversionStep", "Convert", "GraphConversions"]

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
    lasting
        Whether one that fails would fail again.
    """

    seconds: float
    blob: Blob | None
    reason: str = ""
    lasting: bool = True


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """A conversion that was carried out.

    Attributes
    ----------
    broker
        Where.
    origin, made
        What was made from what.
    seconds
        How long that broker took over it.
    """

    broker: str
    origin: Blob
    made: Blob
    seconds: float


Convert: TypeAlias = Callable[[str, Blob, str], ConversionOutcome]
"""Given a broker, content and a format: what becomes of the conversion."""


class ConversionQueue:
    """The converter of one host: one conversion at a time, first come, first served.

    It works beside the broker. When that goes down it finishes what it is at, and answers
    whoever is there then.
    """

    def __init__(self) -> None:
        self._ends_ns: dict[int, int] = {}
        self._free_ns = 0

    def ask(self, ticket: int, seconds: float, *, now_ns: int) -> int | None:
        """Return when a conversion is to be done; None when it is under way already."""
        if ticket in self._ends_ns:
            return None
        self._free_ns = max(self._free_ns, now_ns) + ns(seconds)
        self._ends_ns[ticket] = self._free_ns
        return self._free_ns

    def is_done(self, ticket: int, at_ns: int) -> bool:
        """Whether a conversion that was to end at a time has not been forgotten since."""
        if self._ends_ns.get(ticket) != at_ns:
            return False
        del self._ends_ns[ticket]
        return True

    def restart(self) -> tuple[int, ...]:
        """Forget everything that is under way, and return what that was."""
        forgotten = tuple(self._ends_ns)
        self._ends_ns.clear()
        self._free_ns = 0
        return forgotten

    def abandon(self, *, now_ns: int) -> None:
        """Forget what has not begun."""
        begun = min(self._ends_ns.items(), key=lambda entry: entry[1], default=None)
        self._ends_ns = {} if begun is None else dict((begun,))
        self._free_ns = now_ns if begun is None else begun[1]


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
