"""The route by which a subscription is checked while somebody writes it."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from litestar import post

from distributary.errors import BadInput
from distributary.filters import Filter
from distributary.network.gateway.authentication import Asked, Here, needs
from distributary.network.gateway.problems import ANSWERS
from distributary.network.gateway.subscribing import checked, document_of

__all__ = ["check_subscription"]

_NAME = "check"


class Checked(msgspec.Struct, frozen=True):
    """What is wrong, in one sentence; None if nothing is."""

    problem: str | None


@post(
    "/subscriptions/check",
    status_code=HTTPStatus.OK,
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Check a subscription",
    description="Says what would be wrong if it were made; nothing is made.",
)
async def check_subscription(request: Asked, gateway: Here) -> Checked:
    """Say what is wrong with a subscription, if anything is."""
    try:
        _, told = checked(await document_of(request, gateway), _NAME)
        Filter.parse(told["filters"])
    except BadInput as error:
        return Checked(str(error))
    return Checked(None)
