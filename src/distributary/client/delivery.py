"""Deliveries: events as they come out of a subscription, with their content wherever it is."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from distributary.client.content import content_path, fetch
from distributary.client.file_names import draft_in, file_name, put_in_place
from distributary.client.gateway import Gateway
from distributary.client.resumption import Resumption
from distributary.content.attributes import AttributeValue
from distributary.content.publication import Publication
from distributary.errors import BadInput
from distributary.files import replacing, writing

__all__ = ["READ_BYTES_MAX", "Delivered", "Delivery"]

READ_BYTES_MAX = 256 * 2**20
_UNDELIVERABLE = "distributary.undeliverable"


class Delivered:
    """An event that was delivered, as far as it came with its delivery.

    Attributes
    ----------
    publication
        The event, in the format that it has come in.
    number
        Its number in its subscription; None for a version of a stream.
    acknowledged
        Whether somebody has said that it is done.
    """

    def __init__(self, publication: Publication, number: int | None, progress: Resumption) -> None:
        self.publication = publication
        self.number = number
        self.acknowledged = False
        self._progress = progress

    @property
    def id(self) -> str:
        """The `id` that its source gave it."""
        return self.publication.id

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self.publication.source

    @property
    def type(self) -> str:
        """What kind of event it is."""
        return self.publication.type

    @property
    def media_type(self) -> str | None:
        """The format it has come in."""
        return self.publication.media_type

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """All that it says of itself, by name."""
        return self.publication.attributes

    @property
    def data(self) -> object:
        """Its data, if that came with it: a JSON value, or bytes. `read` gives large data too."""
        return self.publication.data

    @property
    def size_bytes(self) -> int:
        """How large its content is."""
        return self.publication.content_bytes

    @property
    def undeliverable(self) -> str | None:
        """Why an event comes in no format that was asked for; None if it is there."""
        if self.type != _UNDELIVERABLE or not isinstance(self.data, dict):
            return None
        return str(self.data.get("reason"))

    @property
    def file_name(self) -> str:
        """A plain name for a file of its content; see `save`."""
        return file_name(self.publication)

    def acknowledge(self) -> None:
        """Say that this is done, and all before it, without waiting for the body to end.

        A loop that is left by `break` has not ended its body, and would get it again.
        """
        self.acknowledged = True
        self._progress.finish(self.number)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number}: {self.type} {self.id} from {self.source}>"


class Delivery(Delivered):
    """An event that was delivered, with its content wherever that is."""

    def __init__(
        self, publication: Publication, number: int | None, progress: Resumption, gateway: Gateway
    ) -> None:
        super().__init__(publication, number, progress)
        self._gateway = gateway

    async def read(self, *, bytes_max: int = READ_BYTES_MAX) -> bytes:
        """Return its content as bytes, wherever it is.

        Raises
        ------
        BadInput
            When it is larger than `bytes_max`: `save` is for that.
        """
        if self.size_bytes > bytes_max:
            raise BadInput(
                "content",
                f"has {self.size_bytes:,} bytes; at most {bytes_max:,} are read into memory",
                hint="save() writes any size to a file",
            )
        path = content_path(self._gateway, self.publication)
        if path is None:
            return self.publication.content
        sink = BytesIO()
        await fetch(self._gateway, path, sink)
        return sink.getvalue()

    async def save(self, path: Path | str) -> Path:
        """Write its content to a file, whole or not at all; return where it is.

        Parameters
        ----------
        path
            The file, which is replaced; or a folder, where the file gets a plain name made of
            the event's subject or `id`, with a number if there is one of this name already.
        """
        target = Path(path)
        if not target.is_dir():
            with replacing(target, "path") as draft:
                await self._write(draft)
            return target
        with writing(target, "path"):
            draft = draft_in(target)
            try:
                await self._write(draft)
                return put_in_place(draft, self.file_name)
            finally:
                draft.unlink(missing_ok=True)

    async def _write(self, draft: Path) -> None:
        path = content_path(self._gateway, self.publication)
        with draft.open("xb") as file:
            if path is None:
                file.write(self.publication.content)
            else:
                await fetch(self._gateway, path, file)
