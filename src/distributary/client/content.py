"""Content by reference: bytes that do not fit into an event, from disk and to disk.

They are named by their digest, so that a transfer can go on after a break and be checked at its
end. Nothing is ever in memory as a whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from distributary.client.gateway import Gateway, Patience
from distributary.content.attributes import DATA_REFERENCE, attribute_text
from distributary.content.media_type import MediaType
from distributary.content.payload import payload_of
from distributary.content.publication import Publication
from distributary.errors import BadInput, PeerMisbehaved, quoted
from distributary.files import naming

__all__ = ["INLINE_BYTES_MAX", "by_reference", "content_path", "fetch"]

INLINE_BYTES_MAX = 65_536
"""Larger data goes by reference."""

_PARTIAL = 206
_BYTES = "application/octet-stream"
# What a break costs at most.
_PART_BYTES = 4 * 2**20
_CHUNK_BYTES = 256 * 1024
_PATH = re.compile(r"/content/([0-9a-f]{64})")


def content_path(gateway: Gateway, publication: Publication) -> str | None:
    """Return where the gateway has the content of an event; None if the event has its data.

    Raises
    ------
    BadInput
        When the event refers to somewhere else: a stranger does not decide where we go, and
        nobody but the gateway gets our token.
    """
    reference = publication.attributes.get(DATA_REFERENCE)
    if reference is None or publication.data is not None:
        return None
    # As it stands, or with the address of the gateway before it, and nothing that would have to
    # be resolved: what one library takes for a path another takes for a host.
    text = attribute_text(reference)
    path = text.removeprefix(gateway.address.url)
    if _PATH.fullmatch(path) is None:
        raise BadInput(DATA_REFERENCE, f"{quoted(text)} is not with this gateway")
    return path


def digest_of(file: BinaryIO) -> tuple[str, int]:
    """Return the digest of what is in a file, and how much that is."""
    digest, size = hashlib.sha256(), 0
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


async def fetch(gateway: Gateway, path: str, sink: BinaryIO) -> int:
    """Write content to a sink; return how large it is. A break costs what was under way."""
    wanted = path.rpartition("/")[2]
    digest, size = hashlib.sha256(), 0

    async def attempt(patience: Patience) -> None:
        nonlocal digest, size
        headers = {"accept-encoding": "identity"}
        if size:
            headers["range"] = f"bytes={size}-"
        async with gateway.stream("GET", path, headers=headers) as response:
            if size and response.status_code != _PARTIAL:
                # It begins anew, and so do we.
                digest, size = hashlib.sha256(), 0
                sink.seek(0)
                sink.truncate()
            async for chunk in response.aiter_raw():
                sink.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                patience.renew()

    await gateway.persist(attempt)
    if digest.hexdigest() != wanted:
        raise PeerMisbehaved(f"content {wanted}: what came is something else")
    return size


async def by_reference(
    gateway: Gateway, publication: Publication, file: Path | None
) -> Publication:
    """Return an event as it is sent: large content is put to the gateway first."""
    if file is None:
        content = publication.content
        if len(content) <= INLINE_BYTES_MAX:
            return publication
        return await _put(gateway, publication, BytesIO(content))
    with naming(file), file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_size > INLINE_BYTES_MAX:
            return await _put(gateway, publication, opened)
        content = opened.read(INLINE_BYTES_MAX + 1)
        if len(content) > INLINE_BYTES_MAX:
            # It grows while it is read, or does not tell how large it is.
            raise BadInput("content", "is not a file that stays as it is")
        declared = None
        if publication.media_type is not None:
            declared = MediaType.parse(publication.media_type)
        return Publication(publication.attributes, payload_of(content, declared))


async def _put(gateway: Gateway, publication: Publication, file: BinaryIO) -> Publication:
    """Put what is in a file to the gateway; return the event that refers to it."""
    digest, size = await asyncio.to_thread(digest_of, file)
    path = f"/content/{digest}"
    there = 0
    broken = False

    async def put(begin: int, end: int) -> int:
        """Put some of it; return how much the gateway has."""
        which = f"{begin}-{end - 1}" if begin < end else "*"
        headers = {
            "content-range": f"bytes {which}/{size}",
            "content-length": str(end - begin),
            "content-type": _BYTES,
        }
        part = _pieces(file, begin, end)
        async with gateway.stream("PUT", path, headers=headers, content=part) as response:
            return _how_much(await response.aread(), size)

    async def attempt(patience: Patience) -> None:
        nonlocal there, broken
        if broken:
            there = await put(0, 0)
        broken = True
        while there < size:
            there = await put(there, min(there + _PART_BYTES, size))
            patience.renew()
            gateway.observe("KiB", there // 1024, size // 1024)

    await gateway.persist(attempt)
    attributes = {**publication.attributes, DATA_REFERENCE: path}
    return Publication(attributes)


def _how_much(body: bytes, size: int) -> int:
    try:
        there = json.loads(body)["there"]
    except (ValueError, KeyError, TypeError):
        there = None
    if type(there) is not int or not 0 <= there <= size:
        raise PeerMisbehaved("the gateway does not say how much content it has")
    return there


async def _pieces(file: BinaryIO, begin: int, end: int) -> AsyncIterator[bytes]:
    """Yield what is in a file from one place to another."""
    file.seek(begin)
    while begin < end:
        chunk = file.read(min(_CHUNK_BYTES, end - begin))
        if not chunk:
            raise BadInput("content", "has become shorter while it was read")
        begin += len(chunk)
        yield chunk
