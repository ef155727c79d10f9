"""The data of events: JSON within limits, text, or bytes, as the media type decides."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from distributary.content.documents import parse_document
from distributary.content.json_pointer import POINTER_CHARACTERS_MAX, pointer_to
from distributary.content.media_type import MediaType
from distributary.errors import BadInput, quoted

__all__ = [
    "CONTENT_BYTES_MAX",
    "DEPTH_MAX",
    "checked_json",
    "content_text",
    "payload_of",
    "text_content",
]

CONTENT_BYTES_MAX = 10**15
"""The most that content may take, wherever it is kept."""

DEPTH_MAX = 64
# Larger integers are legal JSON, but the next reader makes an infinity of them.
_NUMBER_MAX = sys.float_info.max

# Python knows a hundred encodings; some take quadratic time, and some are not encodings
# of text at all. Text in any other one travels as bytes.
_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "iso-8859-1": "latin-1",
    "latin1": "latin-1",
}


def payload_of(content: bytes, declared: MediaType | None) -> object:
    """Return bytes as event data: a JSON value when the media type says so.

    No bytes at all are no data.
    """
    if not content:
        return None
    if declared is None or not declared.is_json:
        return content
    try:
        data = parse_document(content)
    except BadInput as error:
        raise error.within("data") from None
    checked_json(data)
    return data


def text_content(text: str, declared: MediaType) -> bytes:
    """Return the `data` of an event that is text and not JSON, as the bytes it stands for."""
    encoding = _encoding(declared)
    if encoding is None:
        raise BadInput(
            "data",
            f"cannot be read as text in {quoted(declared.parameters['charset'])}",
            hint="send the bytes as data_base64",
        )
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise BadInput("data", f"character {error.start + 1} is not {encoding} text") from None


def content_text(content: bytes, declared: MediaType | None) -> str | None:
    """Return bytes as the text that a JSON event shows, or None where it needs Base64."""
    if declared is None or not declared.is_text:
        return None
    encoding = _encoding(declared)
    if encoding is None:
        return None
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def checked_json(data: object, place: str = "data") -> None:
    """Refuse what JSON cannot carry, and nesting beyond `DEPTH_MAX`."""
    # Iterators, and a path instead of a pointer for every value: a million values take a
    # sender two megabytes, and must not take us a gigabyte, nor minutes.
    path: list[str | int] = [""]
    waiting: list[Iterator[tuple[str | int, object]]] = [iter((("", data),))]
    while waiting:
        for key, value in waiting[-1]:
            kind = type(value)
            if kind is int or kind is float:
                if -_NUMBER_MAX <= value <= _NUMBER_MAX:  # type: ignore[operator]
                    continue
                problem = "is not a number that a double can hold"
            elif kind is str:
                if _is_text(value):  # type: ignore[arg-type]
                    continue
                problem = "has half of a surrogate pair, which is not text"
            elif value is None or kind is bool:
                continue
            else:
                path[-1] = key
                if len(waiting) <= DEPTH_MAX:
                    inside, problem = _inside(value)
                else:
                    inside, problem = None, f"is nested more than {DEPTH_MAX} deep"
                if inside is not None:
                    waiting.append(inside)
                    path.append("")
                    break
            path[-1] = key
            raise BadInput(f"{place}{_shown(path[1:])}", problem)
        else:
            waiting.pop()
            path.pop()


def _inside(value: object) -> tuple[Iterator[tuple[str | int, object]] | None, str]:
    """Return the values inside of a list or an object, or why there are none."""
    if isinstance(value, list):
        return iter(enumerate(value)), ""
    if not isinstance(value, Mapping):
        return None, "is not a JSON value"
    for key in value:
        if not isinstance(key, str):
            return None, "has a key that is not a string"
        if not _is_text(key):
            return None, "has a key with half of a surrogate pair, which is not text"
    return iter(value.items()), ""


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: list[str | int]) -> str:
    pointer = ""
    for key in path:
        pointer = pointer_to(pointer, str(key)[:POINTER_CHARACTERS_MAX])
    return f" at {quoted(pointer)}" if path else ""


def _encoding(declared: MediaType) -> str | None:
    return _ENCODINGS.get(declared.parameters.get("charset", "utf-8").lower())
