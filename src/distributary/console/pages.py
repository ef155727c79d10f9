"""The routes of the console: its files, with a policy that lets nothing else in."""

from __future__ import annotations

import hashlib
import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

from litestar import Request, Response, get
from litestar.types import ControllerRouterHandler

from distributary.console import ADDRESS
from distributary.content.file_types import TYPE_OF_SUFFIX, type_of_name
from distributary.network.gateway.authentication import PUBLIC
from distributary.network.gateway.pages import PageRoutes
from distributary.network.gateway.problems import Problem

__all__ = ["PAGES", "POLICY"]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # What was published is shown from memory, as it is downloads that the gateway serves.
        "img-src 'self' blob:",
        "media-src blob:",
        "connect-src 'self'",
        # Documents that somebody published, in frames that may do nothing (`sandbox`). They have
        # this policy as well: no script of theirs is of our origin, nor anything they point to.
        "frame-src blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""What the page may load and do: its own files, and what the gateway says."""

_FOLDER = Path(__file__).parent / "static"
_INDEX = "index.html"
_FILE_TYPES = "file_types.js"


def _routes() -> list[ControllerRouterHandler]:
    """Return the routes that serve the files, which are read once."""
    files = {
        path.relative_to(_FOLDER).as_posix(): _File(path.name, path.read_bytes())
        for path in sorted(_FOLDER.rglob("*"))
        if path.is_file()
    }
    # The page knows files by the same names as everybody else.
    table = f"export const TYPE_OF_SUFFIX = {json.dumps(TYPE_OF_SUFFIX)};\n"
    files[_FILE_TYPES] = _File(_FILE_TYPES, table.encode())

    @get(
        [ADDRESS, f"{ADDRESS}/{{name:path}}"],
        opt={PUBLIC: True},
        include_in_schema=False,
        sync_to_thread=False,
    )
    def serve(request: Request[Any, Any, Any], name: str = "/") -> Response[bytes]:
        file = files.get(name.strip("/") or _INDEX)
        if file is None:
            raise Problem(HTTPStatus.NOT_FOUND, "there is no such file of the console")
        return file.answer(request.headers.get("if-none-match"))

    return [serve]


class _File:
    """One file, as it is sent."""

    def __init__(self, name: str, data: bytes) -> None:
        self._data = data
        self._tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        self._type = type_of_name(name) or "application/octet-stream"

    def answer(self, known: str | None) -> Response[bytes]:
        headers = {
            "Content-Security-Policy": POLICY,
            "ETag": self._tag,
            # Another version may run at the same address tomorrow.
            "Cache-Control": "no-cache",
        }
        if known == self._tag:
            return Response(b"", status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(self._data, media_type=self._type, headers=headers)


PAGES = PageRoutes(_routes, ADDRESS)
"""What a gateway is given that has the console."""
