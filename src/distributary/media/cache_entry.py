"""How a kept result is written: three parts in one file.

::

    distributary-conversion-1 <SHA-256 of all that follows the first line>
    {"key": ..., "media_type": ..., "seconds": ...}
    <the content>

A failure has `kind`, `reason` and `limits` in the second line instead, and no content. The
first line covers the second too: a file that was cut, flipped, renamed or written by
somebody else is known for what it is.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import get_args

from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media.cache_key import CacheKey
from distributary.media.failure import ConversionFailed, FailureKind
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult

__all__ = ["DamagedEntry", "decode_entry", "encode_entry"]

_MARK = b"distributary-conversion-1 "
_DIGEST_CHARACTERS = 64
_FIRST_LINE_BYTES = len(_MARK) + _DIGEST_CHARACTERS + 1
_HEADER_BYTES_MAX = 65_536
# A plug-in may say any amount; at most six bytes a character stay within a header.
_REASON_CHARACTERS_MAX = 4096


class DamagedEntry(Exception):
    """These bytes are not the entry of that key; what they are does not matter."""


def encode_entry(key: CacheKey, result: ConversionResult | ConversionFailed) -> tuple[bytes, bytes]:
    """Return the file's first two lines, and its content.

    The content is handed back as it is: joining the two would copy it once more.
    """
    header: dict[str, object] = {"key": key.digest}
    content = b""
    if isinstance(result, ConversionResult):
        header |= {"media_type": str(result.media_type), "seconds": result.seconds}
        content = result.content
    else:
        header |= {
            "kind": result.kind,
            "reason": result.reason[:_REASON_CHARACTERS_MAX],
            "limits": result.limits.document(),
        }
    line = json.dumps(header).encode() + b"\n"
    digest = hashlib.sha256(line)
    digest.update(content)
    return _MARK + digest.hexdigest().encode() + b"\n" + line, content


def decode_entry(data: bytes, key: CacheKey) -> ConversionResult | ConversionFailed:
    """Return the result that was kept under that key.

    Raises `DamagedEntry` when the file is not a whole entry of that key.
    """
    first, rest = data[:_FIRST_LINE_BYTES], memoryview(data)[_FIRST_LINE_BYTES:]
    if first != _MARK + hashlib.sha256(rest).hexdigest().encode() + b"\n":
        raise DamagedEntry
    header = _header(data)
    if header.get("key") != key.digest:
        raise DamagedEntry
    try:
        if "kind" in header:
            return _failure(header, key)
        begin = data.index(b"\n", _FIRST_LINE_BYTES) + 1
        seconds = header["seconds"]
        if not isinstance(seconds, float | int) or not 0 <= seconds < math.inf:
            raise DamagedEntry
        media_type = MediaType.parse(header["media_type"])
        return ConversionResult(
            data[begin:], media_type=media_type, seconds=float(seconds), cached=True
        )
    except (KeyError, TypeError, BadInput):
        raise DamagedEntry from None


def _header(data: bytes) -> dict[str, object]:
    end = data.find(b"\n", _FIRST_LINE_BYTES, _FIRST_LINE_BYTES + _HEADER_BYTES_MAX)
    try:
        header = json.loads(data[_FIRST_LINE_BYTES:end]) if end >= 0 else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise DamagedEntry
    return header


def _failure(header: dict[str, object], key: CacheKey) -> ConversionFailed:
    kind, limits = header["kind"], header["limits"]
    if kind not in get_args(FailureKind) or not isinstance(limits, dict):
        raise DamagedEntry
    return ConversionFailed(
        key.source,
        key.target,
        kind=kind,  # type: ignore[arg-type]
        reason=str(header["reason"]),
        limits=Limits(**limits),
    )
