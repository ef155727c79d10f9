"""Events in binary mode: attributes in `ce-` headers, data in the body.

HTTP, NATS and WebSocket gateways all receive this form. The rules for quoting and
percent-encoding are those of the HTTP binding of CloudEvents 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote_to_bytes

from distributary.content.attributes import attribute_text, checked_attributes
from distributary.content.media_type import MediaType
from distributary.content.payload import payload_of
from distributary.content.publication import EVENT_BYTES_MAX, Publication
from distributary.errors import BadInput, quoted

__all__ = ["binary_message", "parse_binary"]

_PREFIX = "ce-"
_QUOTED_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Printable ASCII but for the space, the double quote and the percent sign.
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


def parse_binary(
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    body: bytes,
    *,
    bytes_max: int = EVENT_BYTES_MAX,
) -> Publication:
    """Return the event in a message of binary mode.

    All attributes are strings here, as headers carry no types. Headers that are neither
    `ce-...` nor `content-type` are not looked at.

    Raises `BadInput` naming the attribute that breaks the rules.
    """
    if len(body) > bytes_max:
        raise BadInput("data", f"is larger than {bytes_max:,} bytes")
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found: dict[str, str] = {}
    for header, value in pairs:
        lowered = header.lower()
        if lowered.startswith(_PREFIX):
            name, text = lowered[len(_PREFIX) :], _decoded(lowered, value)
        elif lowered == "content-type":
            name, text = "datacontenttype", value.strip()
        else:
            continue
        if name in found:
            raise BadInput(quoted(lowered), f"gives the attribute {quoted(name)} twice")
        if name == "data":
            raise BadInput(quoted(lowered), "is not an attribute; data is the body")
        found[name] = text
    attributes = checked_attributes(found.items())
    declared = found.get("datacontenttype")
    kind = None if declared is None else MediaType.parse(declared, place="datacontenttype")
    return Publication(attributes, payload_of(body, kind))


def binary_message(publication: Publication) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body that carry `publication` in binary mode."""
    headers = {
        _PREFIX + name: quote(attribute_text(value), safe=_SAFE)
        for name, value in publication.attributes.items()
        if name != "datacontenttype"
    }
    if publication.media_type is not None:
        headers["content-type"] = publication.media_type
    return headers, publication.content


def _decoded(header: str, value: str) -> str:
    text = value.strip()
    string = _QUOTED_STRING.fullmatch(text)
    if string is not None:
        text = re.sub(r"\\(.)", r"\1", string[1])
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        raise BadInput(quoted(header), "has percent-encoded bytes that are not UTF-8") from None
