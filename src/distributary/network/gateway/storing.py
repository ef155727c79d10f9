"""Routes of content: what is large goes and comes by its digest."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

import msgspec
from litestar import Response, get, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter
from litestar.response import Stream

from distributary.broker.addresses import Blob, is_digest
from distributary.content.media_type import MediaType as Format
from distributary.errors import BadInput
from distributary.network.gateway.authentication import Asked, Here, needs, owner_of
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import ANSWERS, Problem, documented
from distributary.network.gateway.spool import Spool, spooled

__all__ = ["CONTENT_ROUTES"]

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})")
_OCTETS = "application/octet-stream"

Digest = Annotated[str, Parameter(description="SHA-256 of the bytes, in 64 hexadecimal digits.")]


class Stored(msgspec.Struct, frozen=True):
    """Content that is there, or a part of it.

    Attributes
    ----------
    there
        How many bytes there are, from the first on.
    """

    digest: str
    there: int
    dataref: str


def _checked(digest: str) -> str:
    if not is_digest(digest):
        raise BadInput("digest", "must be 64 hexadecimal digits in lower case")
    return digest


@put(
    "/content/{digest:str}",
    status_code=HTTPStatus.CREATED,
    guards=[needs("publish")],
    responses={**ANSWERS, 202: ResponseSpec(Stored, description="A part of it is there")},
    summary="Put content",
    description=(
        "Published later by an event whose `dataref` is `/content/DIGEST`; forgotten after ten "
        "minutes otherwise. With `Content-Range: bytes A-B/SIZE` it comes in parts, in order; "
        "`bytes */SIZE` and no body asks how far it is. 202 says how much there is of it."
    ),
)
async def put_content(request: Asked, gateway: Here, digest: Digest) -> Response[Stored]:
    """Take content."""
    _checked(digest)
    kind = request.headers.get("content-type", _OCTETS)
    Format.parse(kind, place="content-type")
    body = await spooled(request.stream(), gateway.folder, bytes_max=gateway.content_bytes_max)
    try:
        begin, size = _part(request.headers.get("content-range"), body, gateway.content_bytes_max)
        blob = Blob(kind, size, digest)
        if size == body.size_bytes and body.digest != digest:
            raise BadInput("digest", "is not that of the bytes that were sent")
        gateway.limits.take_bytes(request.user.tenant, body.size_bytes)
        async with gateway.publishers.using(owner_of(request.user)) as client:
            there = await client.outgoing.put(blob, begin, body)
            gateway.contents.note(request.user.tenant, digest, client.publishes_at)
        if not there:
            # What is whole is not partial any more. Whoever missed the answer to the last part is
            # not to begin again; a tenant that has not put it is not told that somebody has.
            known = await gateway.contents.find(request.user.tenant, digest)
            there = size if known is not None and known.size_bytes == size else 0
    finally:
        body.close()
    return Response(
        Stored(digest, there, f"/content/{digest}"),
        status_code=HTTPStatus.CREATED if there >= size else HTTPStatus.ACCEPTED,
    )


def _part(header: str | None, body: Spool, bytes_max: int) -> tuple[int, int]:
    """Return where the bytes of a body begin, and how many there are in all."""
    if header is None:
        return 0, body.size_bytes
    found = _CONTENT_RANGE.fullmatch(header.strip())
    if found is None:
        raise BadInput("Content-Range", "must be bytes A-B/SIZE, or bytes */SIZE")
    size = int(found[3])
    if size > bytes_max:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"it has {size:,} bytes; at most {bytes_max:,} are taken",
        )
    begin = 0 if found[1] is None else int(found[1])
    count = 0 if found[1] is None else int(found[2]) + 1 - begin
    if count != body.size_bytes or begin + count > size:
        raise BadInput("Content-Range", "does not say which bytes these are")
    return begin, size


@get(
    "/content/{digest:str}",
    responses={
        **ANSWERS,
        206: ResponseSpec(bytes, description="The range that was asked for"),
        304: ResponseSpec(None, description="You have it"),
        **documented(416),
    },
    summary="Get content",
    description="For who has put it or was sent it, until some time after it is acknowledged.",
    media_type=_OCTETS,
)
async def get_content(request: Asked, gateway: Here, digest: Digest) -> Stream | Response[bytes]:
    """Return content, or a range of it."""
    _checked(digest)
    tenant = request.user.tenant
    blob = await gateway.contents.find(tenant, digest)
    if blob is None:
        raise Problem(HTTPStatus.NOT_FOUND, "digest: there is no such content for you")
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": f'"{digest}"',
        "Cache-Control": "private, immutable",
    }
    known = request.headers.get("if-none-match", "")
    if known == "*" or headers["ETag"] in known:
        return Response(b"", status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    begin, end = 0, blob.size_bytes
    status = HTTPStatus.OK
    wanted = request.headers.get("range")
    if wanted is not None and request.headers.get("if-range", headers["ETag"]) == headers["ETag"]:
        chosen = _range(wanted, blob.size_bytes)
        if chosen == (0, 0):
            raise Problem(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
                f"range: there are {blob.size_bytes:,} bytes, and none of these",
                headers={"Content-Range": f"bytes */{blob.size_bytes}"},
            )
        if chosen is not None:
            begin, end = chosen
            status = HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{blob.size_bytes}"
    headers["Content-Length"] = str(end - begin)
    return Stream(
        _bytes(gateway, tenant, blob, begin, end),
        status_code=status,
        media_type=_OCTETS,
        headers=headers,
    )


def _range(text: str, size: int) -> tuple[int, int] | None:
    """Return from where to where a range goes; None if it is none, (0, 0) if nothing is there."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        begin, end = max(0, size - int(found[2])), size
    else:
        begin = int(found[1])
        end = min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < begin:
            return None
    return (begin, end) if begin < end else (0, 0)


async def _bytes(
    gateway: Gateway, tenant: str, blob: Blob, begin: int, end: int
) -> AsyncIterator[bytes]:
    async for chunk in gateway.contents.read(tenant, blob, begin, end):
        yield chunk


CONTENT_ROUTES = [put_content, get_content]
"""All of these routes."""
