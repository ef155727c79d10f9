"""The route by which a subscription is checked while somebody writes it."""

from __future__ import annotations

from http import HTTPStatus

from litestar import post

from distributary.filters import Filter
from distributary.network.gateway.authentication import Asked, Here, needs
from distributary.network.gateway.problems import ANSWERS
from distributary.network.gateway.subscribing import checked, document_of

__all__ = ["check_subscription"]

_NAME = "check"


@post(
    "/subscriptions/check",
    status_code=HTTPStatus.NO_CONTENT,
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Check a subscription",
    description="Answers as if it were made; nothing is made.",
)
async def check_subscription(request: Asked, gateway: Here) -> None:
    """Say what is wrong with a subscription, if anything is."""
    _, told = checked(await document_of(request, gateway), _NAME)
    Filter.parse(told["filters"])
