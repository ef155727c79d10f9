"""What files are called: endings of names, and the media types that they stand for.

The one table of it. `mimetypes` has another on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

__all__ = ["OTHER_SUFFIX", "TYPE_OF_SUFFIX", "suffix_of_type", "type_of_name"]

OTHER_SUFFIX = ".bin"
"""Of what has no known type; never what a publisher says, which could be `.exe`."""

TYPE_OF_SUFFIX: Mapping[str, str] = {
    ".pdf": "application/pdf",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".xml": "application/xml",
    ".geojson": "application/geo+json",
    ".yaml": "application/yaml",
    ".zip": "application/zip",
    ".parquet": "application/vnd.apache.parquet",
    ".epub": "application/epub+zip",
    ".rtf": "application/rtf",
    ".doc": "application/msword",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".tiff": "image/tiff",
    ".tif": "image/tiff",
    ".bmp": "image/bmp",
    ".avif": "image/avif",
    ".heic": "image/heic",
    ".txt": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".ics": "text/calendar",
    ".vtt": "text/vtt",
    ".css": "text/css",
    ".js": "text/javascript",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".aac": "audio/aac",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp4": "video/mp4",
    ".avi": "video/x-msvideo",
    ".flv": "video/x-flv",
    ".3gp": "video/3gpp",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
}
"""Of several endings of one type, the usual one comes first."""

_SUFFIX_OF_TYPE: dict[str, str] = {
    essence: suffix for suffix, essence in reversed([*TYPE_OF_SUFFIX.items()])
}
# Other names of the same, which only files of strangers go by.
_SUFFIX_OF_TYPE |= {"audio/opus": ".opus", "text/xml": ".xml"}


def type_of_name(name: str) -> str | None:
    """Return the type that a file's name suggests, or None if it suggests none."""
    return TYPE_OF_SUFFIX.get(PurePath(name).suffix.lower())


def suffix_of_type(essence: str) -> str:
    """Return the usual end of the name of a file of this type; `.bin` if there is none."""
    return _SUFFIX_OF_TYPE.get(essence, OTHER_SUFFIX)
