"""Draws the sample content of `distributary.media.samples`: one imaginary country in a flood.

Everything is drawn by numbers from a seed; nothing is downloaded, and no place is real.
Another seed is another country.
"""

from __future__ import annotations

from examples.sample_content.annotated_map import map_pdf
from examples.sample_content.clip import clip_mp4
from examples.sample_content.notice import notice_text
from examples.sample_content.photo import photo_jpeg

__all__ = ["clip_mp4", "map_pdf", "notice_text", "photo_jpeg"]
