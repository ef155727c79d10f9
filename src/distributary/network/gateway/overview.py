"""Routes by which one sees what brokers do: plans, trees, streams, and how they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import nullcontext
from http import HTTPStatus
from typing import Annotated, Any

from litestar import get, post
from litestar.params import Parameter, QueryParameter
from litestar.response import Stream

from distributary.network.gateway.authentication import Asked, Here, check_operator, needs
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import ANSWERS, Problem
from distributary.network.gateway.tokens import Access
from distributary.network.requests import Drain, NotGiven
from distributary.network.transfers import TransferFailed, ask
from distributary.network.views import look, look_at_plan

__all__ = ["OVERVIEW_ROUTES"]

_PLANS_MAX = 1_000
# The newest of each broker, which are looked for every second.
_PLANS_LIVE = 200
_MOVES_LIVE = 50
_ROWS_MAX = 10_000
_PERIOD_S = 1.0

Broker = Annotated[str, Parameter(max_length=64, description="The identifier of a broker.")]
_Text = Annotated[str | None, Parameter(max_length=65_536)]


def _tenant(access: Access) -> str | None:
    """Return whose things somebody sees; None for everybody's."""
    return None if access.is_operator else access.tenant


async def _rows(
    gateway: Gateway, view: str, tenant: str | None, count_max: int = _ROWS_MAX
) -> list[dict[str, Any]]:
    """Return rows of a view from each broker that answers, with the broker that says so."""

    async def of_one(broker: str) -> list[dict[str, Any]]:
        gate = gateway.gate
        subject = gate.subjects.to_host(broker, gate.name)
        try:
            rows = await look(gate.connection, subject, view, tenant=tenant, count_max=count_max)
        except TransferFailed:
            return []
        return [{"broker": broker, **row} for row in rows]

    found = await asyncio.gather(*(of_one(broker) for broker in gateway.members.alive))
    return [row for rows in found for row in rows]


@get(
    "/plans",
    responses=ANSWERS,
    summary="What was planned for publications",
    description="One plan with `source` and `id`; otherwise the latest of all, newest first.",
)
async def get_plans(
    request: Asked,
    gateway: Here,
    source: _Text = None,
    event: Annotated[str | None, QueryParameter(name="id", max_length=65_536)] = None,
    tenant: Annotated[str | None, Parameter(max_length=64)] = None,
) -> dict[str, Any]:
    """Return the plan of a publication, or the latest plans."""
    own = _tenant(request.user)
    if tenant is not None and own not in (None, tenant):
        raise Problem(HTTPStatus.FORBIDDEN, "tenant: needs the scope admin of the first tenant")
    if source is None and event is None:
        rows = await _rows(gateway, "plans", own if tenant is None else tenant, _PLANS_MAX)
        return {"plans": sorted(rows, key=lambda row: -row["at_ns"])[:_PLANS_MAX]}
    if source is None or event is None:
        missing = "source" if source is None else "id"
        raise Problem(HTTPStatus.BAD_REQUEST, f"{missing}: is missing")
    gate = gateway.gate
    plan = await look_at_plan(
        gate.connection,
        gate.subjects,
        gate.name,
        gateway.members.alive,
        tenant=request.user.tenant if tenant is None else tenant,
        source=source,
        id=event,
    )
    if plan is None:
        raise Problem(HTTPStatus.NOT_FOUND, "id: no plan is known for this publication")
    return plan


@get("/trees", responses=ANSWERS, summary="The trees of streams")
async def get_trees(request: Asked, gateway: Here) -> dict[str, Any]:
    """Return the place of every broker in every tree."""
    return {"trees": await _rows(gateway, "trees", _tenant(request.user))}


@get("/streams", responses=ANSWERS, summary="Stream objects")
async def get_streams(request: Asked, gateway: Here) -> dict[str, Any]:
    """Return the stream objects that each broker carries."""
    return {"streams": await _rows(gateway, "streams", _tenant(request.user))}


@get("/brokers", guards=[needs("admin")], responses=ANSWERS, summary="How brokers are")
async def get_brokers(request: Asked, gateway: Here) -> dict[str, Any]:
    """Return how each broker is; null of those who do not answer."""
    check_operator(request.user)
    await gateway.members.ask_all()
    rows = {row["broker"]: row for row in await _rows(gateway, "broker", None)}
    return {"brokers": {name: rows.get(name) for name in gateway.members.status}}


@get(
    "/brokers/{broker:str}",
    guards=[needs("admin")],
    responses=ANSWERS,
    summary="How one broker is, and whom it knows",
)
async def get_broker(request: Asked, gateway: Here, broker: Broker) -> dict[str, Any]:
    """Return how a broker is, with its members and what it has measured."""
    check_operator(request.user)
    subject = _subject(gateway, broker)
    connection = gateway.gate.connection
    (row,) = await look(connection, subject, "broker")
    members = await look(connection, subject, "members")
    return {**row, "members": members, "measured": await look(connection, subject, "measured")}


def _subject(gateway: Gateway, broker: str) -> str:
    if broker not in gateway.members.status:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no broker {broker}")
    return gateway.gate.subjects.to_host(broker, gateway.gate.name)


@post(
    "/brokers/{broker:str}/drain",
    status_code=HTTPStatus.ACCEPTED,
    guards=[needs("admin")],
    responses=ANSWERS,
    summary="Have a broker leave",
    description="Its clients move to others, who miss nothing; then it leaves.",
)
async def drain_broker(request: Asked, gateway: Here, broker: Broker) -> dict[str, Any]:
    """Have a broker leave in good order."""
    check_operator(request.user)
    answer = await ask(gateway.gate.connection, _subject(gateway, broker), Drain())
    if isinstance(answer, NotGiven):
        raise TransferFailed(answer.reason, lasting=answer.lasting)
    gateway.spawn(gateway.feeds.wake_those_at(broker))
    return {"broker": broker, "draining": True}


@get(
    "/live",
    responses=ANSWERS,
    summary="What happens now",
    description="Server-sent events: `brokers` with their figures, `state` of all, `plan`, and "
    "`adapted` and `linked` when trees of streams change, with what has changed lately at first.",
    media_type="text/event-stream",
)
async def get_live(request: Asked, gateway: Here) -> Stream:
    """Say what happens for as long as somebody listens."""
    return Stream(_live(gateway, request.user), media_type="text/event-stream")


async def _live(gateway: Gateway, access: Access) -> AsyncIterator[str]:
    plans, moves = _News("tenant", "source", "id", "at_ns"), _News("broker", "tree", "at_ns")
    state: dict[str, Any] | None = None
    # What was planned before is at `/plans`.
    plans.new(await _rows(gateway, "plans", _tenant(access), _PLANS_LIVE))
    # Only operators see what is nobody's.
    with gateway.pulse.watching() if access.is_operator else nullcontext():
        while True:
            if access.is_operator:
                yield _sent("brokers", gateway.members.status)
                if gateway.pulse.state not in (None, state):
                    state = gateway.pulse.state
                    yield _sent("state", state)
            for one in plans.new(await _rows(gateway, "plans", _tenant(access), _PLANS_LIVE)):
                yield _sent("plan", one)
            for one in moves.new(await _rows(gateway, "moves", _tenant(access), _MOVES_LIVE)):
                yield _sent(one["what"], one)
            yield ":\n\n"
            await asyncio.sleep(_PERIOD_S)


class _News:
    """Tells rows that are new from those of the last look.

    Parameters
    ----------
    names
        What tells rows apart; the last is the time.
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._seen: set[tuple[Any, ...]] = set()

    def new(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return those that were not there before, the oldest first."""
        keys = {tuple(row[name] for name in self._names): row for row in rows}
        fresh = sorted(keys.keys() - self._seen, key=lambda key: (key[-1], key))
        self._seen = set(keys)
        return [keys[key] for key in fresh]


def _sent(kind: str, data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


OVERVIEW_ROUTES = [
    get_plans,
    get_trees,
    get_streams,
    get_brokers,
    get_broker,
    drain_broker,
    get_live,
]
"""All of these routes."""
