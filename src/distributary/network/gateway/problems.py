"""Problems: what a gateway answers when something cannot be done, in one sentence (RFC 9457)."""

from __future__ import annotations

import errno
import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.openapi.datastructures import ResponseSpec

from distributary.errors import BadInput, DistributaryError
from distributary.network.buckets import WasChanged
from distributary.network.client import WasRefused
from distributary.network.outgoing import ContentGone
from distributary.network.transfers import TransferFailed

__all__ = [
    "ANSWERS",
    "DOCUMENT_BYTES_MAX",
    "MEDIA_TYPE",
    "Problem",
    "ProblemDetail",
    "answer",
    "document",
    "documented",
    "retry_after",
]

_log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

# What routes call it.
_BODY = "data"

DOCUMENT_BYTES_MAX = 64 * 2**10
"""How large a document may be that is read at once."""


class ProblemDetail(msgspec.Struct, frozen=True):
    """What is wrong, as it is answered."""

    status: int
    title: str
    detail: str
    type: str = "about:blank"


class Problem(DistributaryError):
    """Something that a client asked for cannot be done.

    Attributes
    ----------
    detail
        One sentence that names what is wrong.
    retry_s
        When it is worth another try, if that is known.
    headers
        What else the answer is to say.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        retry_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.detail = detail
        self.retry_s = retry_s
        self.headers = headers
        super().__init__(detail)


def of(error: BaseException) -> Problem:
    """Return an error as the problem that a client is told."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return Problem(error.status_code, _sentence(error))
    if isinstance(error, BadInput):
        return Problem(HTTPStatus.BAD_REQUEST, str(error))
    if isinstance(error, WasRefused):
        # Whose source is whose is not a matter of form.
        reason = error.refusal.reason
        status = HTTPStatus.FORBIDDEN if "another tenant's" in reason else HTTPStatus.BAD_REQUEST
        return Problem(status, reason)
    if isinstance(error, WasChanged | ContentGone):
        return Problem(HTTPStatus.CONFLICT, str(error))
    if isinstance(error, TransferFailed):
        status = HTTPStatus.BAD_REQUEST if error.lasting else HTTPStatus.SERVICE_UNAVAILABLE
        return Problem(status, str(error), retry_s=None if error.lasting else 1.0)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "the disk of the gateway is full", retry_s=1.0
        )
    if isinstance(error, OSError):
        # No broker, or no NATS server: a `TimeoutError` is one of these.
        return Problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "no broker has answered in time", retry_s=1.0
        )
    if isinstance(error, RecursionError):
        return Problem(HTTPStatus.BAD_REQUEST, "the body: is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return Problem(HTTPStatus.BAD_REQUEST, "the body: is not UTF-8")
    if isinstance(error, DistributaryError):
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), retry_s=1.0)
    _log.error("something is wrong with the gateway itself", exc_info=error)
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "something is wrong with the gateway itself")


def _sentence(error: HTTPException) -> str:
    """Return what a framework has to say, with the names of what it means."""
    extra: Any = error.extra
    if isinstance(extra, list) and extra and isinstance(extra[0], dict):
        found = extra[0]
        name, message = found.get("key", "the request"), found.get("message", error.detail)
        if name == _BODY:
            # Of a body that is not there it has its own name for it to say.
            name, message = "the body", "is missing" if message == repr(_BODY) else message
        return f"{name}: {message}"
    return error.detail or HTTPStatus(error.status_code).phrase


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[ProblemDetail]:
    """Return what is answered when something goes wrong."""
    problem = of(error)
    if isinstance(error, NotFoundException):
        problem.detail = f"{request.url.path}: is nowhere; hint: /docs has what there is"
    elif isinstance(error, MethodNotAllowedException):
        problem.detail = f"{request.url.path}: does not take {request.method}; hint: see /docs"
    headers = dict(getattr(error, "headers", None) or {})
    if problem.retry_s is not None:
        headers["Retry-After"] = retry_after(problem.retry_s)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers.setdefault("WWW-Authenticate", "Bearer")
    title = HTTPStatus(problem.status).phrase
    return Response(
        ProblemDetail(problem.status, title, problem.detail),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def document(status: int, detail: str) -> bytes:
    """Return a problem as bytes, where there is no application that answers."""
    title = HTTPStatus(status).phrase
    problem = {"status": status, "title": title, "detail": detail, "type": "about:blank"}
    return json.dumps(problem).encode()


def retry_after(wait_s: float) -> str:
    """Return what the header says: whole seconds, and not at once."""
    return str(max(1, math.ceil(wait_s)))


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """Return what the document of an operation says of problems."""
    return {
        status: ResponseSpec(
            ProblemDetail,
            description=HTTPStatus(status).phrase,
            media_type=MEDIA_TYPE,
            generate_examples=False,
        )
        for status in statuses
    }


ANSWERS: dict[int, ResponseSpec] = documented(
    400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 431, 503
)
"""What any operation may answer instead of what was asked for."""
