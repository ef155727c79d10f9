"""The formats that come with distributary, and what files of them are called."""

from __future__ import annotations

from distributary.arguments import checked
from distributary.content.file_types import suffix_of_type, type_of_name
from distributary.content.media_type import MediaType

__all__ = [
    "AUDIO_FORMATS",
    "FURTHER_FORMATS",
    "GIF_FORMATS",
    "HTML",
    "IMAGE_FORMATS",
    "IMAGE_WIDTHS",
    "JSON",
    "MAP_FAMILY",
    "OGG",
    "PDF",
    "SPEECH",
    "SPEECH_PARAMETERS",
    "SVG",
    "TEXT",
    "TEXT_FORMATS",
    "VIDEO_FAMILY",
    "VIDEO_FORMATS",
    "VIDEO_STEPS",
    "VIDEO_TYPES",
    "XML",
    "canonical",
    "file_suffix",
    "format_of_name",
    "is_textual",
]

PDF = MediaType("application", "pdf")
TEXT = MediaType("text", "plain", {"charset": "utf-8"})
SPEECH = MediaType("audio", "wav")
OGG = MediaType("audio", "ogg")
HTML = MediaType("text", "html")
JSON = MediaType("application", "json")
XML = MediaType("application", "xml")
SVG = MediaType("image", "svg+xml")

SPEECH_PARAMETERS = ("item", "language")
"""What formats of sound say of a text that was read aloud, and what they hand on."""

IMAGE_WIDTHS = (2560, 1280, 640, 320)
IMAGE_FORMATS = tuple(
    MediaType("image", subtype, {"width": str(width)})
    for subtype in ("jpeg", "png", "webp")
    for width in IMAGE_WIDTHS
)
GIF_FORMATS = tuple(MediaType("image", "gif", {"width": str(width)}) for width in IMAGE_WIDTHS)
AUDIO_FORMATS = (SPEECH, MediaType("audio", "mpeg"), MediaType("audio", "aac"), OGG)
TEXT_FORMATS = (
    TEXT,
    MediaType("text", "plain", {"charset": "utf-16"}),
    MediaType("text", "plain", {"charset": "iso-8859-1"}),
    MediaType("text", "plain", {"charset": "us-ascii"}),
)

# The four containers of the papers' video scenario: mp4, avi, flv and 3gp.
VIDEO_TYPES = ("video/mp4", "video/x-msvideo", "video/x-flv", "video/3gpp")
# Width of a frame and bits a second, the largest first.
VIDEO_STEPS = ((640, 1_000_000), (480, 500_000), (320, 200_000), (176, 80_000))
VIDEO_FORMATS = tuple(
    MediaType.parse(f"{essence};width={width};bitrate={bits // 1000}k")
    for essence in VIDEO_TYPES
    for width, bits in VIDEO_STEPS
)

# What can be made from a PDF, and from a video: the families of the papers, with sound and
# charsets beside them. All else came later, and is measured apart.
MAP_FAMILY = frozenset(map(str, (PDF, *IMAGE_FORMATS, *TEXT_FORMATS, *AUDIO_FORMATS[:-1])))
VIDEO_FAMILY = frozenset(map(str, VIDEO_FORMATS))
FURTHER_FORMATS = frozenset(map(str, (*GIF_FORMATS, OGG, HTML, JSON, XML)))

# Other names that the same formats go by.
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-aac": "audio/aac",
    "audio/aacp": "audio/aac",
    "video/avi": "video/x-msvideo",
    "video/msvideo": "video/x-msvideo",
    "video/flv": "video/x-flv",
    "video/3gp": "video/3gpp",
    "audio/opus": "audio/ogg",
    "audio/x-opus": "audio/ogg",
    "audio/vorbis": "audio/ogg",
    "application/ogg": "audio/ogg",
    "application/x-pdf": "application/pdf",
    "application/xhtml+xml": "text/html",
    "text/xml": "application/xml",
    "text/json": "application/json",
}
# Text, though neither the name nor CloudEvents says so.
_TEXTUAL = {"application/jsonl", "application/yaml"}


@checked
def canonical(media_type: MediaType) -> MediaType:
    """Return the same format under the name that the registry uses."""
    essence = _ALIASES.get(media_type.essence, media_type.essence)
    kind, _, subtype = essence.partition("/")
    parameters = media_type.parameters
    if kind == "text" and "charset" in parameters:
        parameters = {**parameters, "charset": parameters["charset"].lower()}
    return MediaType(kind, subtype, parameters)


@checked
def format_of_name(name: str) -> MediaType | None:
    """Return the format that a file's name suggests, or None if it suggests none."""
    essence = type_of_name(name)
    return None if essence is None else MediaType.parse(essence)


@checked
def file_suffix(media_type: MediaType) -> str:
    """Return the usual end of a file's name in this format; `.bin` if there is none."""
    return suffix_of_type(canonical(media_type).essence)


@checked
def is_textual(media_type: MediaType) -> bool:
    """Whether content of this type can be read as text, as tables and source code can."""
    return media_type.is_text or media_type.is_json or media_type.essence in _TEXTUAL
