"""The converters that come with distributary, one file each."""

from __future__ import annotations

from distributary.media.converter import Converter
from distributary.media.converters.audio import Audio
from distributary.media.converters.html_text import HtmlToText
from distributary.media.converters.images import Images
from distributary.media.converters.pdf_image import PdfToImage
from distributary.media.converters.pdf_text import PdfToText
from distributary.media.converters.plain_text import PlainText
from distributary.media.converters.speech import TextToSpeech
from distributary.media.converters.text_encoding import TextEncodings
from distributary.media.converters.video import Video
from distributary.media.converters.video_still import VideoStill

__all__ = ["BUILT_IN"]

BUILT_IN: tuple[type[Converter], ...] = (
    PdfToImage,
    PdfToText,
    Images,
    HtmlToText,
    PlainText,
    TextEncodings,
    TextToSpeech,
    Audio,
    Video,
    VideoStill,
)
"""In the order in which they are asked whether they do a conversion."""
