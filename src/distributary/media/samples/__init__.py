"""Sample content to try conversions on: one imaginary country on paper, in sound and pictures.

Everything is drawn by numbers from a seed; nothing is downloaded, and no place is real.
"""

from __future__ import annotations

from distributary.media.samples.annotated_map import map_pdf
from distributary.media.samples.clip import clip_mp4
from distributary.media.samples.notice import notice_text
from distributary.media.samples.photo import photo_jpeg
from distributary.media.samples.sound import tone_wav

__all__ = ["clip_mp4", "map_pdf", "notice_text", "photo_jpeg", "tone_wav"]
