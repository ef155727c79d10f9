"""Samples to calibrate with when nobody gives any: two families, several sizes each."""

from __future__ import annotations

from typing import Literal

__all__ = ["FamilyName", "generated_samples"]

FamilyName = Literal["map", "video"]

# Sizes far enough apart for a line, and small enough that every conversion of both
# families runs three times on each within three minutes.
_MAP_PAGES = (2, 8)
_CLIP_SECONDS = (1, 3)


def generated_samples(family: FamilyName, *, seed: int = 0) -> list[tuple[str, bytes]]:
    """Return the generated samples of a family, as names and contents.

    Parameters
    ----------
    family
        `map` for annotated maps as PDF, `video` for clips as MP4.
    seed
        The same seed draws the same maps and clips.
    """
    from distributary.media.samples import clip_mp4, map_pdf

    if family == "map":
        return [(f"map of {pages} pages", map_pdf(pages, seed=seed)) for pages in _MAP_PAGES]
    return [(f"clip of {seconds} s", clip_mp4(seconds, seed=seed)) for seconds in _CLIP_SECONDS]
