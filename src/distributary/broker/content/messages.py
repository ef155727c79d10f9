"""What is kept of content and said about it, and what must hold of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distributary.broker.addresses import Speaker, is_client
from distributary.broker.blob import Blob, is_digest
from distributary.broker.encoding import wire
from distributary.broker.host import ContentHeld, ContentPut, ContentUsed
from distributary.broker.validation import Check, Rules
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
    "ContentArrived",
    "FetchRecord",
    "LentRecord",
    "PutRecord",
    "check_blob",
]


@wire(377, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ContentArrived:
    """The content of something that a client took along to its new home is there.

    Once for every message that referred to it, so that the old home knows when nobody will
    ask for it any more.
    """

    digest: str


@wire(560)
@dataclass(frozen=True, slots=True)
class PutRecord:
    """Content that a client of a tenant has put, and nobody has published, as it is kept."""

    tenant: str
    blob: Blob
    put_ns: int


@wire(561)
@dataclass(frozen=True, slots=True)
class FetchRecord:
    """Content that is being fetched for a record that does not say from whom, as it is kept.

    Attributes
    ----------
    owed
        The brokers that have lent it, and are to be told once for each entry that it has come.
    """

    blob: Blob
    holders: tuple[str, ...]
    owed: tuple[str, ...]


@wire(562)
@dataclass(frozen=True, slots=True)
class LentRecord:
    """Content that another broker is to fetch, which alone has what refers to it, as it is kept.

    Attributes
    ----------
    count
        How many messages to it refer to the content, and are not answered.
    """

    tenant: str
    blob: Blob
    peer: str
    count: int


def check_blob(blob: Blob) -> None:
    """Refuse what refers to no content.

    A size above the own limit is none of the sender's faults: its settings may be others.
    """
    if not 0 <= blob.size_bytes <= CONTENT_BYTES_MAX:
        raise PeerMisbehaved(f"content of {blob.size_bytes} bytes")
    check_digest(blob.digest)


def check_digest(digest: str) -> None:
    """Refuse what is no digest."""
    if not is_digest(digest):
        raise PeerMisbehaved(f"{quoted(digest)} is not the digest of content")


def _check_put(message: ContentPut, rules: Rules) -> None:
    if not is_client(message.client):
        raise PeerMisbehaved(f"{quoted(message.client)} is not the address of a client")
    check_blob(message.blob)
    most = rules.settings.content.content_bytes_max
    if message.blob.size_bytes > most:
        raise PeerMisbehaved(f"content of {message.blob.size_bytes:,} bytes; at most {most:,}")


def _check_held(message: ContentHeld, rules: Rules) -> None:
    for digest, size_bytes in message.contents:
        check_digest(digest)
        rules.numbers((size_bytes,))


def _check_named(message: ContentUsed | ContentArrived, rules: Rules) -> None:
    check_digest(message.digest)


CHECKS: Mapping[type, Check] = {
    ContentArrived: _check_named,
    ContentHeld: _check_held,
    ContentPut: _check_put,
    ContentUsed: _check_named,
}
"""What must hold of messages beyond the types of their fields."""
