"""Intake: what is checked when a client publishes, and what becomes of it."""

from __future__ import annotations

from distributary.broker.blob import Blob
from distributary.broker.encoding import MESSAGE_BYTES_MAX
from distributary.broker.formats import publication_of
from distributary.broker.messages.client import Publish
from distributary.broker.messages.content import Item
from distributary.content import Publication
from distributary.content.attributes import DATA_SIZE, declared_bytes
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import BadInput

__all__ = ["checked", "item_of"]

# Content in several formats fits into one message, with room for the plan.
_CONTENT_BYTES_MAX = MESSAGE_BYTES_MAX // 4
_NO_CONTENT = "application/json"


def checked(message: Publish) -> Publication:
    """Return the event that a client publishes.

    Raises
    ------
    BadInput
        When it is none, or does not go with the content beside it, or that is too large.
    """
    publication = publication_of(message.event)
    blob = message.blob
    if blob is None:
        _check_size(len(publication.content))
        return publication
    if blob.data is not None:
        _check_size(len(blob.data))
        if blob.size_bytes != len(blob.data):
            raise BadInput("content", f"has {len(blob.data):,} bytes, not {blob.size_bytes:,}")
        if blob != Blob.of(blob.media_type, blob.data):
            # Conversions are shared by digest: it would stand in for somebody else's content.
            raise BadInput("content", "is not what its digest says")
    if not 0 <= blob.size_bytes <= CONTENT_BYTES_MAX:
        raise BadInput("content", f"has {blob.size_bytes:,} bytes; at most {CONTENT_BYTES_MAX:,}")
    declared = declared_bytes(publication.attributes)
    if declared not in (None, blob.size_bytes):
        raise BadInput(DATA_SIZE, f"is {declared:,}, and the content has {blob.size_bytes:,} bytes")
    if publication.data is not None:
        raise BadInput("data", "is in the event and beside it")
    if publication.media_type not in (None, blob.media_type):
        raise BadInput(
            "datacontenttype", f"is {publication.media_type}, and the content {blob.media_type}"
        )
    return publication


def item_of(
    message: Publish,
    publication: Publication,
    *,
    cell: int,
    series: int,
    number: int,
    home: str,
    now_ns: int,
) -> Item:
    """Return a publication with its number, as it goes on its way."""
    media_type, size_bytes = _content(publication, message.blob)
    return Item(
        publication.source,
        publication.id,
        cell,
        series,
        number,
        home,
        now_ns,
        message.event,
        media_type,
        size_bytes,
        message.blob is None,
    )


def _content(publication: Publication, blob: Blob | None) -> tuple[str, int]:
    if blob is None:
        return publication.media_type or _NO_CONTENT, len(publication.content)
    return blob.media_type, blob.size_bytes


def _check_size(size_bytes: int) -> None:
    if size_bytes > _CONTENT_BYTES_MAX:
        raise BadInput("content", f"has {size_bytes:,} bytes; at most {_CONTENT_BYTES_MAX:,}")
