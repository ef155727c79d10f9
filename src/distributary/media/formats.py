"""The formats that come with distributary, and what files of them are called."""

from __future__ import annotations

from pathlib import PurePath

from distributary.arguments import checked
from distributary.content.media_type import MediaType

__all__ = [
    "AUDIO_FORMATS",
    "IMAGE_FORMATS",
    "IMAGE_WIDTHS",
    "PDF",
    "SPEECH",
    "TEXT",
    "TEXT_FORMATS",
    "VIDEO_FORMATS",
    "VIDEO_STEPS",
    "VIDEO_TYPES",
    "canonical",
    "file_suffix",
    "format_of_name",
]

PDF = MediaType("application", "pdf")
TEXT = MediaType("text", "plain", {"charset": "utf-8"})
SPEECH = MediaType("audio", "wav")

IMAGE_WIDTHS = (2560, 1280, 640, 320)
IMAGE_FORMATS = tuple(
    MediaType("image", subtype, {"width": str(width)})
    for subtype in ("jpeg", "png", "webp")
    for width in IMAGE_WIDTHS
)
AUDIO_FORMATS = (SPEECH, MediaType("audio", "mpeg"), MediaType("audio", "aac"))
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
    "application/x-pdf": "application/pdf",
}
_SUFFIXES = {
    ".pdf": "application/pdf",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".aac": "audio/aac",
    ".mp4": "video/mp4",
    ".avi": "video/x-msvideo",
    ".flv": "video/x-flv",
    ".3gp": "video/3gpp",
}


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
    essence = _SUFFIXES.get(PurePath(name).suffix.lower())
    return None if essence is None else MediaType.parse(essence)


@checked
def file_suffix(media_type: MediaType) -> str:
    """Return the usual end of a file's name in this format; `.bin` if there is none."""
    essence = canonical(media_type).essence
    return next((suffix for suffix, known in _SUFFIXES.items() if known == essence), ".bin")
