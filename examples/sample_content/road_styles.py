"""How roads look on the map."""

from __future__ import annotations

from examples.sample_content.sheet import Colour

__all__ = ["ROADS"]

ROADS: dict[str, tuple[float, Colour, Colour]] = {
    "minor": (2.1, (0.45, 0.45, 0.45), (1.0, 1.0, 1.0)),
    "main": (3.1, (0.55, 0.40, 0.10), (0.99, 0.83, 0.42)),
    "trunk": (4.0, (0.50, 0.14, 0.12), (0.93, 0.47, 0.36)),
}
"""Width on the whole map in points, and colours of edge and middle, of each kind of road."""
