"""Requests to hosts, and their answers: what is said beside the protocol of brokers."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from distributary.errors import PeerMisbehaved

__all__ = [
    "CHUNK_BYTES",
    "Answer",
    "ContentFound",
    "ContentReceived",
    "Drain",
    "FindContent",
    "GetChunk",
    "GetRows",
    "GetStatus",
    "Given",
    "NotGiven",
    "PutChunk",
    "Request",
    "RowsTold",
    "StatusTold",
    "decode_answer",
    "decode_request",
    "encode_request",
]

CHUNK_BYTES = 512 * 2**10
"""How many bytes of content go in one message; well below what a server takes."""


class GetStatus(msgspec.Struct, frozen=True, tag="status"):
    """Ask how a broker is."""


class GetRows(msgspec.Struct, frozen=True, tag="rows"):
    """Ask for a page of what there is to see of a broker; `views` says of what.

    Attributes
    ----------
    tenant
        Whose; None for everybody's.
    source, id
        Which publication, where one is asked for.
    after
        Where the page before has ended.
    """

    view: str
    tenant: str | None = None
    source: str = ""
    id: str = ""
    after: str | None = None


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Order a broker to give its clients to others, and to leave; answered by how it is."""


class GetChunk(msgspec.Struct, frozen=True, tag="get"):
    """Ask for some bytes of content."""

    digest: str
    offset: int
    count: int


class PutChunk(msgspec.Struct, frozen=True, tag="put"):
    """Give some bytes of content that a client puts; none, to ask how far it is.

    Attributes
    ----------
    offset
        Where they stand. Others than those that come next are not taken.
    """

    client: str
    media_type: str
    digest: str
    size_bytes: int
    offset: int
    data: bytes


class FindContent(msgspec.Struct, frozen=True, tag="find"):
    """Ask whether there is content that the tenant of a client has put or was sent."""

    client: str
    digest: str


class ContentFound(msgspec.Struct, frozen=True, tag="found"):
    """There is some, and the tenant may have it."""

    size_bytes: int


class StatusTold(msgspec.Struct, frozen=True, tag="status"):
    """How a broker is, by name."""

    status: dict[str, Any]


class RowsTold(msgspec.Struct, frozen=True, tag="rows"):
    """Some rows, as plain data that JSON can hold; `more` is what to ask after for the next."""

    rows: list[dict[str, Any]]
    more: str | None


class Given(msgspec.Struct, frozen=True, tag="given"):
    """Bytes of content."""

    data: bytes


class ContentReceived(msgspec.Struct, frozen=True, tag="received"):
    """How many bytes of content are there, from the first on; all of them are durable."""

    there: int


class NotGiven(msgspec.Struct, frozen=True, tag="no"):
    """Something that was asked for cannot be done, and whether it would be no use to ask again."""

    reason: str
    lasting: bool


Request: TypeAlias = GetStatus | Drain | GetRows | GetChunk | PutChunk | FindContent
Answer: TypeAlias = StatusTold | RowsTold | Given | ContentReceived | NotGiven | ContentFound

_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(Request)
_ANSWERS = msgspec.msgpack.Decoder(Answer)


def encode_request(message: Request | Answer) -> bytes:
    """Return a request or an answer as bytes."""
    return _ENCODER.encode(message)


def decode_request(data: bytes) -> Request:
    """Return the request in some bytes, or raise `PeerMisbehaved`."""
    try:
        request: Request = _REQUESTS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerMisbehaved(f"a broken request: {error}") from None
    return request


def decode_answer(data: bytes) -> Answer:
    """Return the answer in some bytes, or raise `PeerMisbehaved`."""
    try:
        answer: Answer = _ANSWERS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerMisbehaved(f"a broken answer: {error}") from None
    return answer
