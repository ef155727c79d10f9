"""The attributes of CloudEvents 1.0: their names, their types, and what each may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from distributary.content.media_type import MediaType
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.content.timestamps import parse_timestamp
from distributary.errors import BadInput, quoted

__all__ = [
    "ATTRIBUTES_MAX",
    "ATTRIBUTE_CHARACTERS_MAX",
    "DATA_REFERENCE",
    "DATA_SIZE",
    "JSON_NUMBER",
    "AttributeValue",
    "attribute_number",
    "attribute_text",
    "attribute_type",
    "checked_attributes",
    "declared_bytes",
    "declared_type",
]

AttributeValue: TypeAlias = str | int | bool
"""String, Integer or Boolean. Timestamps, URIs and Binary are their canonical text."""

DATA_REFERENCE, DATA_SIZE = "dataref", "datasize"
"""The extensions that say where content is kept, if not in the event, and how large it is."""

ATTRIBUTES_MAX = 256
ATTRIBUTE_CHARACTERS_MAX = 65_536
_NAME_CHARACTERS_MAX = 256
_REQUIRED = ("specversion", "id", "source", "type")
_NOT_EMPTY = frozenset((*_REQUIRED, "subject", "datacontenttype", "dataschema"))
_INTEGER_MIN, _INTEGER_MAX = -(2**31), 2**31 - 1

JSON_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""The grammar of numbers in JSON (RFC 8259)."""

_NUMBER = re.compile(JSON_NUMBER)
_NAME = re.compile(r"[a-z0-9]+")
_DIGITS = re.compile(r"[0-9]{1,16}")
# Control characters, halves of surrogate pairs, and the code points that Unicode says are
# not characters: CloudEvents allows none of them in a String.
_NOT_ALLOWED = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane * 0x10000 + 0xFFFE) + chr(plane * 0x10000 + 0xFFFF) for plane in range(17))
    + "]"
)
_URI_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def attribute_text(value: AttributeValue) -> str:
    """Return the canonical text of an attribute: `true`, `false`, a decimal integer, or itself."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def attribute_type(value: AttributeValue) -> str:
    """Return the type that CESQL sees: `Boolean`, `Integer` or `String`."""
    if isinstance(value, bool):
        return "Boolean"
    return "Integer" if isinstance(value, int) else "String"


def attribute_number(value: AttributeValue) -> float | None:
    """Return an attribute as a number: its text is one in JSON, and a double can hold it."""
    if isinstance(value, bool) or (isinstance(value, str) and _NUMBER.fullmatch(value) is None):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def declared_bytes(attributes: Mapping[str, AttributeValue]) -> int | None:
    """Return how large content is that is kept elsewhere; None when the event does not say.

    `datasize` means this beside a `dataref` alone. It is an Integer or, as those end at 32
    bits, a String of digits.
    """
    size = attributes.get(DATA_SIZE)
    if size is None or DATA_REFERENCE not in attributes:
        return None
    text = "" if isinstance(size, bool) else str(size)
    if _DIGITS.fullmatch(text) is None or int(text) > CONTENT_BYTES_MAX:
        raise BadInput(
            DATA_SIZE,
            f"must be a number of bytes from 0 to {CONTENT_BYTES_MAX:,}, not "
            f"{quoted(attribute_text(size))}",
        )
    return int(text)


@lru_cache(maxsize=256)
def declared_type(text: str) -> MediaType:
    """Return the media type that a `datacontenttype` says; those of most events are few."""
    return MediaType.parse(text, place="datacontenttype")


def checked_attributes(items: Iterable[tuple[object, object]]) -> dict[str, AttributeValue]:
    """Return the attributes of an event, checked against CloudEvents 1.0.

    `null` stands for an attribute that is not set. `time` comes back in UTC.
    """
    attributes: dict[str, AttributeValue] = {}
    for name, value in items:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise BadInput(
                quoted(name),
                "is not the name of an attribute",
                hint="names have lower-case letters 'a' to 'z' and digits only",
            )
        if len(name) > _NAME_CHARACTERS_MAX:
            raise BadInput(
                quoted(name),
                f"has {len(name):,} characters; the name of an attribute has at most "
                f"{_NAME_CHARACTERS_MAX}",
            )
        if value is None:
            continue
        attributes[name] = _checked_value(name, value)
        if len(attributes) > ATTRIBUTES_MAX:
            raise BadInput("event", f"has more than {ATTRIBUTES_MAX} attributes")
    for name in _REQUIRED:
        if name not in attributes:
            raise BadInput(name, "is missing")
    if attributes["specversion"] != "1.0":
        raise BadInput(
            "specversion", f"must be '1.0', not {quoted(attribute_text(attributes['specversion']))}"
        )
    declared_bytes(attributes)
    return attributes


def _checked_value(name: str, value: object) -> AttributeValue:
    rule = _RULES.get(name)
    if isinstance(value, str):
        _check_text(name, value)
    elif isinstance(value, bool):
        pass
    elif isinstance(value, int):
        if not _INTEGER_MIN <= value <= _INTEGER_MAX:
            raise BadInput(name, "is an integer beyond 32 bits", hint="send it as a string")
    elif isinstance(value, float):
        raise BadInput(
            name,
            f"must be a string, an integer or a boolean, not {value:g}",
            hint="send it as a string, or inside the data",
        )
    else:
        raise BadInput(name, "must be a string, an integer or a boolean")
    if name in _NOT_EMPTY:
        if not isinstance(value, str):
            raise BadInput(name, f"must be a string, not {attribute_text(value)}")
        if not value:
            raise BadInput(name, "must not be empty")
    return value if rule is None else rule(name, value)


def _check_text(name: str, text: str) -> None:
    if len(text) > ATTRIBUTE_CHARACTERS_MAX:
        raise BadInput(
            name,
            f"has {len(text):,} characters; an attribute has at most {ATTRIBUTE_CHARACTERS_MAX:,}",
        )
    if not (text.isascii() and text.isprintable()):
        found = _NOT_ALLOWED.search(text)
        if found is not None:
            raise BadInput(
                name, f"has the code point U+{ord(found[0]):04X}, which CloudEvents does not allow"
            )


def _uri_reference(name: str, value: AttributeValue) -> str:
    text = attribute_text(value)
    end = _URI_REFERENCE.match(text)
    if end is None or end.end() < len(text):
        raise BadInput(
            name,
            f"{quoted(text)} is not a URI reference",
            hint="percent-encode spaces and characters outside ASCII",
        )
    return text


def _absolute_uri(name: str, value: AttributeValue) -> str:
    text = _uri_reference(name, value)
    if _SCHEME.match(text) is None:
        raise BadInput(
            name, f"{quoted(text)} is not an absolute URI", hint="it begins with a scheme"
        )
    return text


def _media_type(name: str, value: AttributeValue) -> str:
    text = attribute_text(value)
    if declared_type(text).has_wildcard:
        raise BadInput(name, f"{quoted(text)} names many types, not one")
    return text


_RULES = {
    "source": _uri_reference,
    "dataschema": _absolute_uri,
    "datacontenttype": _media_type,
    "time": parse_timestamp,
}
