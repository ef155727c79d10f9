"""Colours that stay apart for colour-blind eyes, on white paper and on a dark screen."""

from __future__ import annotations

import colorsys

__all__ = ["SAFE_COLOUR_COUNT", "colours"]

# Six of Okabe and Ito's colours; their yellow and black vanish on white and on dark,
# so a violet and a brown stand in. Under simulated protanopia, deuteranopia and
# tritanopia every two of them differ by at least 16 in CIELAB, and each has a contrast
# of at least 2 with both backgrounds.
_SAFE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8f2ee6",
    "#8a3a26",
)
SAFE_COLOUR_COUNT = len(_SAFE)

_GOLDEN_RATIO = 0.6180339887498949


def colours(count: int) -> tuple[str, ...]:
    """Return `count` colours as `#rrggbb`, the first eight safe for colour-blind eyes.

    Later ones step around the colour wheel by the golden ratio, so that neighbours
    differ most, at three lightnesses in turn. No eye tells fifty colours apart:
    whoever draws gives the first ones to what matters most.
    """
    extra = []
    for step in range(count - SAFE_COLOUR_COUNT):
        hue = (0.08 + step * _GOLDEN_RATIO) % 1.0
        lightness = (0.36, 0.55, 0.45)[step % 3]
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.55)
        extra.append(f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}")
    return (_SAFE + tuple(extra))[:count]
