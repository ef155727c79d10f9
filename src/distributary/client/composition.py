"""Composing events: what a caller gives, as a publication with its content inside or in a file."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

from distributary.content.attributes import checked_attributes
from distributary.content.file_types import type_of_name
from distributary.content.media_type import MediaType
from distributary.content.payload import checked_json, payload_of, text_content
from distributary.content.publication import Publication
from distributary.errors import BadInput, WrongType

__all__ = ["SOURCE", "compose"]

SOURCE = "/client"
"""The source of events whose publisher does not name one."""

_BYTES = "application/octet-stream"
_JSON = "application/json"
_TEXT = "text/plain;charset=utf-8"


def compose(data: object, attributes: Mapping[str, object]) -> tuple[Publication, Path | None]:
    """Return the event that a caller describes, and the file of its content if that is in one.

    Parameters
    ----------
    data
        Bytes, a text, the path of a file, or any other JSON value; None for an event without
        data. With a media type that says JSON, a text is a JSON string like any other. A
        publication stands for itself, and has its attributes already.
    attributes
        What the event says of itself, by name; None stands for what is not said. There must be a
        `type`. Unless given, `id` is random, and `datacontenttype` follows from the data.
    """
    said = {name: value for name, value in attributes.items() if value is not None}
    if "data" in said:
        raise BadInput("data", "is not an attribute", hint="data is the first argument")
    if isinstance(data, Publication):
        if said:
            raise BadInput("data", "is a whole event, which has its attributes already")
        return Publication.parse(data.document()), None
    implied: dict[str, object] = {
        "specversion": "1.0",
        "id": uuid.uuid4().hex,
        "source": SOURCE,
        "datacontenttype": _media_type(data),
    }
    if isinstance(data, Path) and data.name.isprintable():
        implied["subject"] = data.name
    checked = checked_attributes((implied | said).items())
    if isinstance(data, Path):
        return Publication(checked), data
    return Publication(checked, _payload(data, checked.get("datacontenttype"))), None


def _media_type(data: object) -> str | None:
    if data is None:
        return None
    if isinstance(data, str):
        return _TEXT
    if isinstance(data, Path):
        kind = type_of_name(data.name) or _BYTES
        return _TEXT if kind == "text/plain" else kind
    return _BYTES if isinstance(data, bytes | bytearray | memoryview) else _JSON


def _payload(data: object, described: object) -> object:
    declared = None if described is None else MediaType.parse(described, place="datacontenttype")
    if isinstance(data, bytes | bytearray | memoryview):
        return payload_of(bytes(data), declared)
    if data is None or declared is None or declared.is_json:
        checked_json(data)
        return data
    if isinstance(data, str):
        return text_content(data, declared)
    raise WrongType("data", f"must be bytes, a text or a path, as {declared.essence} is not JSON")
