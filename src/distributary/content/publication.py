"""Publications: CloudEvents 1.0, checked on the way in and written back as they came.

The official SDK is the peer we are tested against and the bridge in `cloudevents_sdk`.
It does not read events here: it makes up an `id` and a `time` where they are missing,
takes times without an offset and integers of any size, and parses without limits.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from distributary.arguments import checked
from distributary.content.attributes import (
    DATA_REFERENCE,
    DATA_SIZE,
    AttributeValue,
    attribute_text,
    checked_attributes,
    declared_bytes,
    declared_type,
)
from distributary.content.documents import parse_document
from distributary.content.json_pointer import leaves
from distributary.content.media_type import MediaType
from distributary.content.payload import checked_json, content_text, payload_of, text_content
from distributary.content.timestamps import timestamp_ns
from distributary.errors import BadInput

__all__ = [
    "EVENT_BYTES_MAX",
    "ORIGINAL_TYPE",
    "PUBLISHER",
    "Publication",
    "delivered",
    "parse_event",
]

EVENT_BYTES_MAX = 16 * 2**20

ORIGINAL_TYPE = "originaltype"
"""The extension that names the format in which a converted event was published."""


PUBLISHER = "publisher"
"""The extension that names the user who published an event."""

# What described the original alone, and not what it is converted to.
_OF_ORIGINAL = frozenset(("dataschema", DATA_REFERENCE, DATA_SIZE))
# Made once: `json.dumps` makes one for every event.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Publication:
    """One event: its attributes and its data.

    `parse` and the functions of this package check what they are given; the constructor
    trusts its caller.

    Attributes
    ----------
    attributes
        Every context attribute by name, `id` and `time` and extensions alike. Timestamps,
        URIs and Binary are text; `time` is in UTC.
    data
        A JSON value when the media type says JSON, else bytes; None when there is none.
    """

    attributes: Mapping[str, AttributeValue]
    data: object = None

    @classmethod
    def parse(cls, document: object) -> Publication:
        """Return the event in a document of the CloudEvents JSON format.

        Raises `BadInput` naming the attribute that breaks the rules.
        """
        if not isinstance(document, Mapping):
            raise BadInput("event", "must be an object")
        attributes = checked_attributes(
            item for item in document.items() if item[0] not in ("data", "data_base64")
        )
        text, encoded = document.get("data"), document.get("data_base64")
        if text is not None and encoded is not None:
            raise BadInput("data_base64", "cannot be given together with data")
        declared = _declared(attributes)
        if encoded is not None:
            return cls(attributes, payload_of(_decoded(encoded), declared))
        if declared is None or declared.is_json or text is None:
            checked_json(text)
            return cls(attributes, text)
        if not isinstance(text, str):
            raise BadInput("data", f"must be a string, as {declared.essence} is not JSON")
        return cls(attributes, text_content(text, declared))

    @property
    def id(self) -> str:
        """The `id` that its source gave it."""
        return attribute_text(self.attributes["id"])

    @property
    def source(self) -> str:
        """Where it comes from."""
        return attribute_text(self.attributes["source"])

    @property
    def publisher(self) -> str:
        """Who published it: as the extension `publisher` says, or else its source."""
        return attribute_text(self.attributes.get(PUBLISHER, self.attributes["source"]))

    @property
    def type(self) -> str:
        """What kind of event it is."""
        return attribute_text(self.attributes["type"])

    @property
    def identity(self) -> tuple[str, str]:
        """(`source`, `id`): nothing less tells two publications apart."""
        return self.source, self.id

    @property
    def time(self) -> str | None:
        """When it happened, in UTC, if it says so."""
        time = self.attributes.get("time")
        return None if time is None else attribute_text(time)

    @property
    def time_ns(self) -> int | None:
        """When it happened, in nanoseconds since 1970, if it says so."""
        return None if self.time is None else timestamp_ns(self.time)

    @property
    def media_type(self) -> str | None:
        """The format of its data: as declared, or what CloudEvents implies without that."""
        declared = self.attributes.get("datacontenttype")
        if declared is not None:
            return attribute_text(declared)
        if self.data is None:
            return None
        return "application/octet-stream" if isinstance(self.data, bytes) else "application/json"

    @cached_property
    def _leaves(self) -> tuple[dict[str, float], dict[str, str]]:
        return leaves(self.data)

    @property
    def numbers(self) -> Mapping[str, float]:
        """The numbers in JSON data by JSON Pointer; see `leaves`."""
        return self._leaves[0]

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts in JSON data by JSON Pointer; see `leaves`."""
        return self._leaves[1]

    @cached_property
    def content(self) -> bytes:
        """The data as bytes: what a converter reads and a binding carries."""
        if self.data is None:
            return b""
        if isinstance(self.data, bytes):
            return self.data
        return _JSON.encode(self.data).encode()

    @property
    def content_bytes(self) -> int:
        """How large its content is: as declared if it is kept elsewhere, or as it is here."""
        declared = declared_bytes(self.attributes)
        return len(self.content) if declared is None else declared

    def document(self) -> dict[str, object]:
        """Return the event in the CloudEvents JSON format; `parse` reads it back."""
        document: dict[str, object] = dict(self.attributes)
        if isinstance(self.data, bytes):
            text = content_text(self.data, _declared(self.attributes))
            if text is None:
                document["data_base64"] = base64.b64encode(self.data).decode("ascii")
            else:
                document["data"] = text
        elif self.data is not None:
            document["data"] = self.data
        return document


@checked
def parse_event(event: bytes | str, *, bytes_max: int = EVENT_BYTES_MAX) -> Publication:
    """Return the event in a text of the CloudEvents JSON format.

    Refused beyond the rules of CloudEvents: keys given twice, nesting beyond
    `payload.DEPTH_MAX`, and more than `bytes_max` bytes (characters, in a `str`).
    """
    if len(event) > bytes_max:
        raise BadInput("event", f"is larger than {bytes_max:,} bytes")
    return Publication.parse(parse_document(event))


@checked
def delivered(publication: Publication, media_type: str, data: object) -> Publication:
    """Return `publication` as it is delivered once its data is converted.

    It keeps `id`, `source`, `type`, `time` and its other attributes; `datacontenttype` is
    the delivered format, and `originaltype` the one it was published in, however many
    conversions lie between. `dataschema`, `dataref` and `datasize` are left out: they
    described the original.

    `data` are bytes, or a JSON value when `media_type` says JSON.
    """
    declared = MediaType.parse(media_type, place="datacontenttype")
    attributes = {
        name: value for name, value in publication.attributes.items() if name not in _OF_ORIGINAL
    }
    if publication.media_type is not None:
        attributes.setdefault(ORIGINAL_TYPE, publication.media_type)
    attributes["datacontenttype"] = media_type
    if isinstance(data, bytes):
        return Publication(attributes, payload_of(data, declared))
    if data is not None and not declared.is_json:
        raise BadInput("data", f"must be bytes, as {declared.essence} is not JSON")
    checked_json(data)
    return Publication(attributes, data)


def _declared(attributes: Mapping[str, AttributeValue]) -> MediaType | None:
    text = attributes.get("datacontenttype")
    return None if text is None else declared_type(attribute_text(text))


def _decoded(encoded: object) -> bytes:
    if not isinstance(encoded, str):
        raise BadInput("data_base64", "must be a string")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("data_base64", "is not Base64") from None
