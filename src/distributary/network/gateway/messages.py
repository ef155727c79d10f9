"""Events in the bodies of requests: binary, structured and batch mode, as they are published."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from distributary.broker.addresses import is_digest
from distributary.broker.planning import PUBLICATION_BYTES_MAX
from distributary.content import Publication
from distributary.content.attributes import DATA_REFERENCE, attribute_text
from distributary.content.binary_mode import parse_binary
from distributary.content.documents import parse_document
from distributary.errors import BadInput, DistributaryError, quoted
from distributary.network.gateway.problems import Problem
from distributary.network.gateway.spool import INLINE_BYTES_MAX, Spool
from distributary.network.outgoing import Given

__all__ = ["BATCH", "STRUCTURED", "Outbound", "outbound", "read_events", "referenced"]

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_EVENTS_MAX = 10_000
_OURS = "/content/"
# Many a request is small, and a thread costs more than to read it.
_AT_ONCE_BYTES = 256 * 2**10
# A value takes a hundred times the memory that its JSON does, and there may be tens of millions.
_VALUES_MAX = 1_000_000
_BEFORE_VALUES = (b",", b"[", b"{")
_TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
# Large ones are read two at a time.
_READING = asyncio.Semaphore(2)


@dataclass(frozen=True, slots=True)
class Outbound:
    """An event as it goes to a broker.

    Attributes
    ----------
    publication
        Its attributes, and its data if that is inside of it.
    content
        What goes beside it, if it is large.
    reference
        The digest of content that was put before, if it is to go beside it.
    """

    publication: Publication
    content: Given | None = None
    reference: str | None = None

    @property
    def text(self) -> str:
        """The event as JSON."""
        document = self.publication.document()
        if self.reference is not None:
            # Whoever gets it is told where it is for them.
            document.pop(DATA_REFERENCE, None)
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        if len(text) > PUBLICATION_BYTES_MAX:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the attributes of an event are larger than {PUBLICATION_BYTES_MAX:,} bytes",
            )
        return text

    @property
    def media_type(self) -> str:
        """The format of what goes beside it."""
        return self.publication.media_type or "application/octet-stream"


def outbound(publication: Publication, host: str) -> Outbound:
    """Return an event as it goes to a broker: with its data in it, beside it, or put before.

    Parameters
    ----------
    host
        Under which name the gateway was asked: a reference to there is one of ours. Any other
        is the publisher's business, and never looked at.
    """
    reference = referenced(publication, host)
    if reference is not None:
        if publication.data is not None:
            raise BadInput("dataref", "cannot be given together with data")
        return Outbound(publication, reference=reference)
    content = publication.content
    if len(content) <= INLINE_BYTES_MAX:
        return Outbound(publication)
    attributes = dict(publication.attributes)
    attributes.setdefault("datacontenttype", publication.media_type or "")
    return Outbound(Publication(attributes), content)


def referenced(publication: Publication, host: str) -> str | None:
    """Return the digest that a reference of ours names, if an event has one.

    Raises
    ------
    BadInput
        When it is one of ours and names none: whoever gets the event would look in vain.
    """
    value = publication.attributes.get(DATA_REFERENCE)
    if value is None:
        return None
    try:
        parts = urlsplit(attribute_text(value))
    except ValueError:
        return None
    ours = not parts.netloc or (parts.scheme in ("http", "https") and parts.netloc == host)
    if not ours or not parts.path.startswith(_OURS):
        return None
    digest = parts.path.removeprefix(_OURS)
    if not is_digest(digest):
        raise BadInput(DATA_REFERENCE, "names content by 64 hexadecimal digits in lower case")
    return digest


async def read_events(headers: Sequence[tuple[str, str]], body: Spool, host: str) -> list[Outbound]:
    """Return the events in a request, or raise an error that names what is wrong."""
    coding = next((value for name, value in headers if name == "content-encoding"), "identity")
    if coding.lower() != "identity":
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Encoding: {quoted(coding)} is not read; hint: send the body as it is",
        )
    kind = next((value for name, value in headers if name == "content-type"), "")
    essence = kind.partition(";")[0].strip().lower()
    if essence not in (STRUCTURED, BATCH):
        if essence.startswith("application/cloudevents"):
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                f"events as {essence} are not read; hint: send {STRUCTURED} or {BATCH}",
            )
        return [_binary(headers, body, host)]
    _check_charset(kind)
    if body.size_bytes <= _AT_ONCE_BYTES:
        return _structured(body, essence, host)
    async with _READING:
        try:
            return await asyncio.to_thread(_structured, body, essence, host)
        except DistributaryError as error:
            # Where it was raised, and over what, the body would be kept for as long as the error.
            error.__context__ = None
            raise error.with_traceback(None) from None


def _check_charset(kind: str) -> None:
    found = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", kind, re.IGNORECASE)
    if found and found[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"JSON in {found[1]} is not read; hint: send UTF-8"
        )


def _binary(headers: Sequence[tuple[str, str]], body: Spool, host: str) -> Outbound:
    if body.is_small:
        return outbound(parse_binary(headers, body.read()), host)
    publication = parse_binary(headers, b"")
    if referenced(publication, host) is not None:
        raise BadInput("dataref", "cannot be given together with data")
    return Outbound(publication, body)


def _check_values(data: bytes) -> None:
    """Raise a problem if JSON has too many values to be read."""
    if _values(data) > _VALUES_MAX and _values(_TEXTS.sub(b"", data)) > _VALUES_MAX:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the JSON has more than {_VALUES_MAX:,} values; hint: send large data in binary mode",
        )


def _values(data: bytes) -> int:
    """Return how many values JSON has, at most; what its texts have counts as well."""
    return sum(map(data.count, _BEFORE_VALUES))


def _structured(body: Spool, essence: str, host: str) -> list[Outbound]:
    data = body.read()
    _check_values(data)
    document = parse_document(data)
    if essence == STRUCTURED:
        return [outbound(Publication.parse(document), host)]
    if not isinstance(document, list):
        raise BadInput("batch", "must be a list of events")
    if len(document) > _EVENTS_MAX:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a batch has at most {_EVENTS_MAX:,} events"
        )
    found: list[Outbound] = []
    for place, one in enumerate(document):
        try:
            found.append(outbound(Publication.parse(one), host))
        except BadInput as error:
            raise error.within(f"events[{place}]") from None
    return found
