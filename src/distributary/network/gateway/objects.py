"""Stream objects at a gateway: announced once, and then only their versions come."""

from __future__ import annotations

import asyncio
import json
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from distributary.broker.client import Changed, Updated
from distributary.content import Publication
from distributary.content.attributes import attribute_text
from distributary.content.timestamps import timestamp_text
from distributary.errors import BadInput
from distributary.network.gateway.directory import DirectoryEntry, Owner
from distributary.network.gateway.problems import Problem

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["GatewayObjects", "data_of", "object_of"]

# For how long something that was not announced is taken for an ordinary event without a look.
_UNKNOWN_S = 2.0
_KNOWN_MAX = 65_536
_VALUES_MAX = 1_000


def object_of(document: object, place: str) -> Publication:
    """Return the object that a document announces, or raise `BadInput`."""
    if not isinstance(document, dict):
        raise BadInput(place, "must be an object")
    if not isinstance(document.get("subject"), str) or not document["subject"]:
        raise BadInput(place, "subject: is missing", hint="an object is a source and a subject")
    given = {"specversion": "1.0", "id": document["subject"], **document}
    for name in ("data", "data_base64", "sequence"):
        given.pop(name, None)
    try:
        return Publication.parse(given)
    except BadInput as error:
        raise error.within(place) from None


class GatewayObjects:
    """What one gateway knows of stream objects."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        # Who has announced it, what its versions have in common, and until when that is believed.
        self._known: dict[tuple[str, str, str], tuple[DirectoryEntry | None, float]] = {}
        # Where it was announced last.
        self._homes: dict[tuple[str, str, str], str] = {}

    async def announce(self, owner: Owner, publication: Publication) -> None:
        """Open an object; return when those who follow it know of it."""
        source, subject = publication.source, attribute_text(publication.attributes["subject"])
        document = publication.document()
        known = await self._gateway.directory.stream_object(owner.tenant, source, subject)
        if known is not None and known.home != owner.name:
            raise Problem(
                HTTPStatus.CONFLICT, f"subject: {subject} of {source} is announced by another token"
            )
        held = DirectoryEntry(
            owner.name, document=document, entry=0 if known is None else known.entry
        )
        if known is None or known.document != document:
            held = await self._gateway.directory.keep_object(owner.tenant, source, subject, held)
        await self._tell(owner, source, subject, held)
        self._note((owner.tenant, source, subject), held)

    async def tell(self, owner: Owner, version: Changed) -> None:
        """Have the home of a publisher know of an object of which it publishes a version."""
        held = await self.find(owner.tenant, version.source, version.subject)
        if held is None:
            # Its tenant was erased meanwhile; whoever asks again publishes an ordinary event.
            raise Problem(
                HTTPStatus.CONFLICT,
                f"subject: {version.subject} of {version.source} is not announced any more",
            )
        await self._tell(owner, version.source, version.subject, held)

    async def _tell(self, owner: Owner, source: str, subject: str, held: DirectoryEntry) -> None:
        text = json.dumps(held.document, ensure_ascii=False, separators=(",", ":"))
        home = await self._gateway.publishers.announce(owner, source, subject, text)
        self._homes[owner.tenant, source, subject] = home

    def is_known_at(self, home: str, tenant: str, version: Changed) -> bool:
        """Whether a home has been told of an object, as it must be before its versions come."""
        return self._homes.get((tenant, version.source, version.subject)) == home

    async def version(self, owner: Owner, publication: Publication) -> Changed | None:
        """Return an event as a version of an object that somebody has announced, if it is one."""
        attributes = publication.attributes
        if "subject" not in attributes or "sequence" not in attributes:
            return None
        source, subject = publication.source, attribute_text(attributes["subject"])
        held = await self.find(owner.tenant, source, subject)
        if held is None or held.home != owner.name:
            return None
        text = attribute_text(attributes["sequence"])
        if not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
            raise BadInput("sequence", "must be a whole number from 0 on")
        values: dict[str, float | str | None] = {**publication.numbers, **publication.texts}
        if len(values) > _VALUES_MAX:
            raise BadInput("data", f"has more than {_VALUES_MAX:,} values")
        time_ns = publication.time_ns
        return Changed(
            source,
            subject,
            int(text),
            time.time_ns() if time_ns is None else time_ns,
            tuple(sorted(values.items())),
        )

    async def find(self, tenant: str, source: str, subject: str) -> DirectoryEntry | None:
        """Return what is known of an object."""
        key = (tenant, source, subject)
        held, until = self._known.get(key, (None, 0.0))
        if held is None and asyncio.get_running_loop().time() >= until:
            held = await self._gateway.directory.stream_object(*key)
            self._note(key, held)
        return held

    def _note(self, key: tuple[str, str, str], held: DirectoryEntry | None) -> None:
        while len(self._known) >= _KNOWN_MAX:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._homes.pop(oldest, None)
        self._known[key] = (held, asyncio.get_running_loop().time() + _UNKNOWN_S)

    async def event(self, tenant: str, message: Updated) -> dict[str, Any]:
        """Return a version as an event."""
        held = await self.find(tenant, message.source, message.subject)
        common = {} if held is None else held.document
        return {
            "specversion": "1.0",
            "type": "distributary.version",
            **common,
            "id": str(message.sequence),
            "source": message.source,
            "subject": message.subject,
            "sequence": str(message.sequence),
            "time": timestamp_text(message.time_ns),
            "datacontenttype": "application/json",
            "data": data_of(dict(message.values)),
        }


def data_of(values: dict[str, float | str | None]) -> Any:
    """Return JSON that has some values at some pointers."""
    if "" in values:
        return values[""]
    tree: dict[str, Any] = {}
    for pointer, value in values.items():
        *path, last = [
            part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")
        ]
        inside = tree
        for part in path:
            inside = inside.setdefault(part, {})
        inside[last] = value
    return _with_lists(tree)


def _with_lists(tree: Any) -> Any:
    """Return objects as lists whose keys are numbers from 0 on: which of both it was, is lost."""
    if not isinstance(tree, dict):
        return tree
    inside = {key: _with_lists(value) for key, value in tree.items()}
    if inside and set(inside) == {str(place) for place in range(len(inside))}:
        return [inside[str(place)] for place in range(len(inside))]
    return inside
