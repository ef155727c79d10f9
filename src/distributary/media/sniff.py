"""What content is, told from its first bytes, and from its name where these say nothing.

Runs in the caller on content that may be hostile: it compares a few bytes and parses
nothing. Whether content really is what it begins like, a worker finds out.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from distributary.arguments import checked
from distributary.content.media_type import MediaType
from distributary.errors import BadInput, quoted
from distributary.media.formats import HTML, JSON, PDF, SVG, TEXT, XML, format_of_name, is_textual

__all__ = ["sniff"]

# Readers accept a document that begins this late, and so do ours.
_PDF_BYTES = 1024
_PDF_HEADER = re.compile(rb"%PDF-\d")

_RIFF_FORMS = {b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo", b"WEBP": "image/webp"}
# Brands of MP4 files in use; those of other formats in the same box structure (audio books,
# HEIF pictures) are not here.
_MP4_BRANDS = re.compile(
    rb"iso[m2-9a-c]|mp4[12]|mp71|avc1|dash|cmf[2cs]|M4V[ HP]|MSNV|f4v |NDS[CHMPSX]"
)
_THREEGP_BRANDS = re.compile(rb"3g[egprs].")

_MP3_LAYER = 0b01
_MP3_BITS = {
    # Thousands of bits a second by index, for MPEG-1 and for the halved rates of MPEG-2.
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MP3_RATES = (44_100, 48_000, 32_000)
_ADTS_RATES = 13
_ADTS_HEADER_BYTES = 7

# Markup says what it is with its first element. Declarations and comments come before it.
_MARKUP_BYTES = 4096
_PROLOGUE = re.compile(r"\s*(?:<\?(?!xml\b).*?\?>|<!--.*?-->)", re.DOTALL)
_XML_DECLARATION = re.compile(r"\s*<\?xml\s")
_ROOT = re.compile(r"\s*<(?:!doctype\s+)?(?:[\w.-]+:)?([\w.-]+)[\s/>\[]", re.IGNORECASE)
_ROOTS = {"html": HTML, "svg": SVG}
_ROOTS_OF_HTML = ("head", "body")
# How JSON begins whose outermost value is an object or a list, and how it ends.
_JSON_START = re.compile(rb'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\]0-9-]|true\b|false\b|null\b))')
_JSON_END = re.compile(rb"[}\]]\s*\Z")
_JSON_ENDS = {b"{": b"}", b"[": b"]"}

_PORTION_BYTES = 1 << 16


@checked
def sniff(
    content: bytes,
    name: str | None = None,
    *,
    format_of: Callable[[str], MediaType | None] = format_of_name,
) -> MediaType:
    """Return the format of content; where content and name disagree, the content is right.

    Raises `BadInput` when neither says what it is.

    The content has to be all of it: whether something is text shows only at the end. The name
    serves content that has no signature, and tells what kind of text a text is; `format_of`
    says what names stand for.
    """
    found = _by_signature(content) or _by_markup(content)
    if found is not None:
        return found
    suggested = None if name is None else format_of(name)
    if content:
        charset = _charset(content)
        if charset is not None:
            kind = None if suggested is None else suggested.essence
            if suggested is not None and is_textual(suggested) and kind != TEXT.essence:
                return suggested
            if _is_json(content):
                return JSON
            return MediaType("text", "plain", {"charset": charset}) if charset != "utf-8" else TEXT
    if suggested is not None:
        return suggested
    place = "content" if name is None else quoted(name)
    problem = "does not look like any known format" if content else "is empty"
    raise BadInput(place, problem, hint="a name that ends in .jpg, say, tells what it is")


def _by_signature(content: bytes) -> MediaType | None:
    """Return what the content begins like, if that is enough to know it."""
    start = content[:_PDF_BYTES]
    essence = None
    if start.startswith(b"\xff\xd8\xff"):
        essence = "image/jpeg"
    elif start.startswith(b"\x89PNG\r\n\x1a\n"):
        essence = "image/png"
    elif start.startswith((b"RIFF", b"RF64")):
        essence = _RIFF_FORMS.get(start[8:12])
    elif start.startswith((b"GIF87a", b"GIF89a")):
        essence = "image/gif"
    elif start.startswith(b"OggS\0"):
        essence = "audio/ogg"
    elif start.startswith(b"FLV\x01"):
        essence = "video/x-flv"
    elif start[4:8] == b"ftyp":
        essence = _by_brand(start[8:12])
    elif start.startswith(b"ID3"):
        essence = _behind_tag(content)
    elif _is_mp3(content, 0):
        essence = "audio/mpeg"
    elif _is_adts(content, 0):
        essence = "audio/aac"
    if essence is not None:
        return MediaType.parse(essence)
    return PDF if _PDF_HEADER.search(start) else None


def _by_markup(content: bytes) -> MediaType | None:
    """Return what the first element says, whatever the characters behind it are."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    start = content[:_MARKUP_BYTES].decode("utf-16" if wide else "utf-8", "replace")
    start = start.removeprefix("\ufeff")
    declared = _XML_DECLARATION.match(start)
    if declared is not None:
        start = start[start.find("?>") + 2 :]
    while (before := _PROLOGUE.match(start)) is not None:
        start = start[before.end() :]
    root = _ROOT.match(start)
    if root is not None:
        element = root[1].lower()
        found = _ROOTS.get(element, HTML if element in _ROOTS_OF_HTML else None)
        if found is not None:
            return found
    return None if declared is None else XML


def _is_json(content: bytes) -> bool:
    """Whether text begins and ends as JSON does that is more than a number or a word."""
    begins, ends = _JSON_START.match(content), _JSON_END.search(content[-_MARKUP_BYTES:])
    if begins is None or ends is None:
        return False
    return _JSON_ENDS[begins[0].lstrip()[:1]] == ends[0][:1]


def _by_brand(brand: bytes) -> str | None:
    if _THREEGP_BRANDS.fullmatch(brand):
        return "video/3gpp"
    return "video/mp4" if _MP4_BRANDS.fullmatch(brand) else None


def _behind_tag(content: bytes) -> str | None:
    """Return what follows a tag of title and artist; such tags belong to MP3 unless AAC follows."""
    sizes = content[6:10]
    if len(sizes) < 4 or content[3] == 0xFF or any(size > 0x7F for size in sizes):
        return None
    first, second, third, fourth = sizes
    end = 10 + (first << 21 | second << 14 | third << 7 | fourth)
    return "audio/aac" if _is_adts(content, end) else "audio/mpeg"


def _is_mp3(content: bytes, at: int) -> bool:
    """Whether a frame of MP3 begins here, and another one behind it, unless the content ends."""
    length = _mp3_frame_bytes(content[at : at + 4])
    if length is None:
        return False
    following = content[at + length : at + length + 4]
    return len(following) < 4 or _mp3_frame_bytes(following) is not None


def _mp3_frame_bytes(header: bytes) -> int | None:
    """Return how long the frame with this header is, or None if it is no header of MP3."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    bits, rate, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or layer != _MP3_LAYER or bits in (0, 15) or rate == 3:
        return None
    first = version == 3
    samples_per_second = _MP3_RATES[rate] >> (0 if first else 1 if version == 2 else 2)
    per_frame = 144_000 if first else 72_000
    return per_frame * _MP3_BITS[first][bits] // samples_per_second + padding


def _is_adts(content: bytes, at: int) -> bool:
    """Whether a frame of AAC begins here, and another one behind it, unless the content ends."""
    length = _adts_frame_bytes(content[at : at + _ADTS_HEADER_BYTES])
    if length is None:
        return False
    following = content[at + length : at + length + _ADTS_HEADER_BYTES]
    return len(following) < _ADTS_HEADER_BYTES or _adts_frame_bytes(following) is not None


def _adts_frame_bytes(header: bytes) -> int | None:
    if len(header) < _ADTS_HEADER_BYTES or header[0] != 0xFF or header[1] & 0xF6 != 0xF0:
        return None
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    if header[2] >> 2 & 15 >= _ADTS_RATES or length < _ADTS_HEADER_BYTES:
        return None
    return length


def _charset(content: bytes) -> str | None:
    """Return the character set that the content is text in, or None if it is no text.

    Read in portions: decoding all of it at once would take up to four times its size.
    """
    charset = "utf-8"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    decoder = codecs.getincrementaldecoder(charset)()
    try:
        for begin in range(0, len(content), _PORTION_BYTES):
            last = begin + _PORTION_BYTES >= len(content)
            if "\0" in decoder.decode(content[begin : begin + _PORTION_BYTES], last):
                return None
    except UnicodeDecodeError:
        return None
    return charset
