"""Routes of subscriptions: made, looked at, changed, ended."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, patch, post, put
from litestar.params import HeaderParameter, Parameter

from distributary.broker.client import Ended
from distributary.content import Subscription
from distributary.content.documents import parse_document
from distributary.content.fields import Record
from distributary.errors import BadInput
from distributary.network.buckets import WasChanged
from distributary.network.client import WasRefused
from distributary.network.gateway.authentication import Asked, Here, needs, owner_of
from distributary.network.gateway.directory import DirectoryEntry, Owner
from distributary.network.gateway.feeds import STATUS_S
from distributary.network.gateway.gateway import Gateway
from distributary.network.gateway.problems import ANSWERS, Problem
from distributary.network.gateway.spool import spooled

__all__ = ["IGNORED_FIELDS", "SUBSCRIPTION_ROUTES", "Name", "checked", "document_of", "held_of"]

_ID_BYTES = 15
_KEY_CHARACTERS_MAX = 255
_DOCUMENT_BYTES_MAX = 32 * 2**10
_CONFIRMED_S = 20.0
# Says of a subscription that could not be made that it is being ended.
_GIVEN_UP = "it could not be made"
_FIELDS = ("filters", "types", "source", "config", "profile", "tolerance")
_SCREEN = ("width", "height")
_CONFIG = ("expires", "queue_bytes", "queue_s")

Name = Annotated[str, Parameter(max_length=64, description="Of a subscription.")]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description=(
            "1 to 255 characters. Whoever comes again with the same ones gets the subscription "
            "that was made before."
        ),
    ),
]


class SubscriptionTold(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription, and how it stands.

    Attributes
    ----------
    state
        `registering`, `registered` or `covered` as its home has it; `ended` by itself;
        `unknown` while its home does not answer.
    waiting, waiting_bytes
        How much its client has not acknowledged.
    acknowledged, last
        The number up to which it has, and the last that was given.
    oldest_s
        For how long the oldest of these has waited.
    """

    id: str
    state: str
    filters: list[Any]
    types: list[str] | None = None
    source: str | None = None
    config: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None
    tolerance: dict[str, Any] | None = None
    reason: str | None = None
    waiting: int | None = None
    waiting_bytes: int | None = None
    acknowledged: int | None = None
    last: int | None = None
    oldest_s: float | None = None


# What else may be there: what `GET` tells, so that it can be changed and put back, and what the
# Subscriptions API has for those who push. All else is a slip of the pen, and the subscription
# would be for more than was meant.
IGNORED_FIELDS = (
    *(field for field in SubscriptionTold.__struct_fields__ if field not in _FIELDS),
    *("protocol", "protocolsettings", "sink", "sinkcredential"),
)


async def document_of(request: Asked, gateway: Gateway) -> dict[str, Any]:
    """Return the object in the body of a request."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if not (kind == "application/json" or kind.endswith("+json")):
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"{kind} is not read; hint: send application/json"
        )
    body = await spooled(request.stream(), gateway.folder, bytes_max=_DOCUMENT_BYTES_MAX)
    try:
        document = parse_document(body.read())
    finally:
        body.close()
    if not isinstance(document, dict):
        raise BadInput("subscription", "must be an object")
    try:
        # It is kept as it came, also what nobody looks at.
        msgspec.json.encode(document)
    except UnicodeEncodeError:
        raise BadInput("subscription", "has half of a surrogate pair, which is not text") from None
    return document


def checked(document: dict[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is kept of a document, and what the home is told.

    Raises
    ------
    BadInput
        When a field breaks the rules.
    """
    record = Record(document)
    record.check_keys((*_FIELDS, *IGNORED_FIELDS), "a subscription")
    if record.given("config"):
        record.record("config").check_keys(_CONFIG, "config")
    profile = document.get("profile")
    if isinstance(profile, dict) and isinstance(profile.get("screen"), dict):
        # Not where profiles are read: a journal may have what was taken before, and must go on.
        record.record("profile").record("screen").check_keys(_SCREEN, "a screen")
    kept = {field: document[field] for field in _FIELDS if document.get(field) is not None}
    filters = kept.get("filters", [])
    if not isinstance(filters, list):
        raise BadInput("filters", "must be a list")
    if not {"filters", "types", "source"} & kept.keys():
        raise BadInput("filters", "is missing", hint="an empty list asks for everything there is")
    types, source = kept.get("types"), kept.get("source")
    more: list[object] = []
    if types is not None:
        if not isinstance(types, list) or not all(isinstance(one, str) and one for one in types):
            raise BadInput("types", "must be a list of types")
        if types:
            more.append({"any": [{"exact": {"type": one}} for one in types]})
    if source is not None:
        if not isinstance(source, str) or not source:
            raise BadInput("source", "must be a text")
        more.append({"exact": {"source": source}})
    told = {field: value for field, value in kept.items() if field not in ("types", "source")}
    told = {**told, "id": name, "filters": [*filters, *more]}
    Subscription.parse(told)
    return kept, told


async def _register(
    gateway: Gateway, owner: Owner, name: str, held: DirectoryEntry, told: dict[str, Any]
) -> None:
    """Have a home know of a subscription; return when it is in force everywhere."""
    async with gateway.feeds.using(owner, name, held.home) as feed, asyncio.timeout(_CONFIRMED_S):
        await feed.client.subscribe(told, revision=held.version)


async def held_of(gateway: Gateway, owner: Owner, name: str) -> DirectoryEntry:
    """Return a subscription of somebody, or raise a problem."""
    held = await gateway.directory.subscription(owner, name)
    if held is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no subscription {name} of yours")
    return held


async def _told(
    gateway: Gateway, owner: Owner, name: str, held: DirectoryEntry
) -> SubscriptionTold:
    document = {**held.document, "filters": held.document.get("filters", [])}
    if held.ended:
        return SubscriptionTold(name, "ended", reason=held.ended, **document)
    # One that is away is not asked for long: a list may have many of its subscriptions.
    wait_s = 1.0 if gateway.members.is_away(held.home) else STATUS_S
    try:
        async with gateway.feeds.using(owner, name, held.home) as feed, asyncio.timeout(wait_s):
            status = await feed.standing()
    except TimeoutError:
        return SubscriptionTold(name, "unknown", **document)
    if isinstance(status, Ended):
        return SubscriptionTold(name, "ended", reason=status.reason, **document)
    if status is None:
        # Its home forgets that it has ended once the directory has it, perhaps just now.
        latest = await gateway.directory.subscription(owner, name)
        if latest is not None and latest.ended:
            return SubscriptionTold(name, "ended", reason=latest.ended, **document)
        return SubscriptionTold(name, "registering", **document)
    return SubscriptionTold(
        name,
        status.state,
        waiting=status.waiting,
        waiting_bytes=status.waiting_bytes,
        acknowledged=status.acknowledged,
        last=status.last,
        oldest_s=round(status.oldest_s, 3),
        **document,
    )


@post(
    "/subscriptions",
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Subscribe",
    description=(
        "What is published after the answer is owed. With an `Idempotency-Key` it may be asked "
        "for again, as after a lost answer, and there is one subscription."
    ),
)
async def subscribe(request: Asked, gateway: Here, key: Key = None) -> Response[SubscriptionTold]:
    """Make a subscription, or find the one that was made by the same key."""
    owner = owner_of(request.user)
    name = secrets.token_urlsafe(_ID_BYTES) if key is None else _name_of(owner, key)
    kept, told = checked(await document_of(request, gateway), name)
    # First, so that no home keeps what nobody knows of.
    held, is_new = await _entered(gateway, owner, name, kept)
    try:
        await _register(gateway, owner, name, held, told)
    except BaseException as error:
        if is_new:
            refused = isinstance(error, WasRefused)
            gateway.spawn(_give_up(gateway, owner, name, held, refused=refused))
        raise
    made = SubscriptionTold(name, "registered", **{"filters": [], **kept})
    return Response(made, headers={"Location": f"/subscriptions/{name}"})


def _name_of(owner: Owner, key: str) -> str:
    """Return what a subscription is called that somebody asks for by a key."""
    if not 1 <= len(key) <= _KEY_CHARACTERS_MAX:
        raise BadInput("Idempotency-Key", f"must have 1 to {_KEY_CHARACTERS_MAX} characters")
    text = "\n".join((owner.tenant, owner.name, key))
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest[:_ID_BYTES]).decode()


async def _entered(
    gateway: Gateway, owner: Owner, name: str, kept: dict[str, Any]
) -> tuple[DirectoryEntry, bool]:
    """Return the entry of a subscription that is asked for, and whether it is new.

    One that was there is written again, so that whoever would give it up leaves it alone.
    """
    while True:
        held = await gateway.directory.subscription(owner, name)
        is_new = held is None
        if held is None:
            await gateway.limits.take_subscription(
                owner.tenant, lambda: gateway.directory.of_tenant(owner.tenant)
            )
            held = DirectoryEntry(gateway.members.choose(), document=kept)
        elif held.ended == _GIVEN_UP:
            detail = f"subscription {name} is being ended, as {_GIVEN_UP}"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_s=1.0)
        elif held.ended or held.document != kept:
            raise Problem(
                HTTPStatus.CONFLICT,
                "Idempotency-Key: was used for a subscription that says something else by now",
            )
        with suppress(WasChanged):
            return await gateway.directory.keep_subscription(owner, name, held), is_new


async def _give_up(
    gateway: Gateway, owner: Owner, name: str, held: DirectoryEntry, *, refused: bool
) -> None:
    """Forget a subscription that could not be made, unless somebody has come again for it."""
    given_up = msgspec.structs.replace(held, ended=_GIVEN_UP)
    try:
        await gateway.directory.keep_subscription(owner, name, given_up)
    except WasChanged:
        return
    if not refused:
        async with gateway.feeds.using(owner, name, held.home) as feed:
            await feed.client.unsubscribe(name)
    await gateway.directory.forget_subscription(owner, name)


@get("/subscriptions", guards=[needs("subscribe")], responses=ANSWERS, summary="List subscriptions")
async def list_subscriptions(request: Asked, gateway: Here) -> list[SubscriptionTold]:
    """Return all subscriptions of whoever asks."""
    owner = owner_of(request.user)
    found = await gateway.directory.subscriptions(owner)
    told = [_told(gateway, owner, name, held) for name, held in sorted(found.items())]
    return list(await asyncio.gather(*told))


@get(
    "/subscriptions/{name:str}",
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Look at a subscription",
)
async def get_subscription(request: Asked, gateway: Here, name: Name) -> SubscriptionTold:
    """Return one subscription."""
    owner = owner_of(request.user)
    return await _told(gateway, owner, name, await held_of(gateway, owner, name))


@put(
    "/subscriptions/{name:str}",
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Change a subscription",
)
async def put_subscription(request: Asked, gateway: Here, name: Name) -> SubscriptionTold:
    """Have a subscription say something else."""
    owner = owner_of(request.user)
    held = await held_of(gateway, owner, name)
    return await _change(gateway, owner, name, held, await document_of(request, gateway))


@patch(
    "/subscriptions/{name:str}",
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="Change some fields of a subscription",
)
async def patch_subscription(request: Asked, gateway: Here, name: Name) -> SubscriptionTold:
    """Have some fields of a subscription say something else, as a JSON merge patch has it."""
    owner = owner_of(request.user)
    held = await held_of(gateway, owner, name)
    document = _merged(held.document, await document_of(request, gateway))
    return await _change(gateway, owner, name, held, document)


def _merged(document: Any, change: Any) -> Any:
    """Return a document with a merge patch applied (RFC 7396)."""
    if not isinstance(change, dict):
        return change
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


async def _ended(gateway: Gateway, owner: Owner, name: str, held: DirectoryEntry) -> str:
    """Return why a subscription has ended by itself that the directory has not heard of."""
    async with gateway.feeds.using(owner, name, held.home) as feed, asyncio.timeout(STATUS_S):
        status = await feed.standing()
    return status.reason if isinstance(status, Ended) else ""


async def _change(
    gateway: Gateway, owner: Owner, name: str, held: DirectoryEntry, document: dict[str, Any]
) -> SubscriptionTold:
    kept, told = checked(document, name)
    if len(json.dumps(kept)) > _DOCUMENT_BYTES_MAX:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a subscription has at most {_DOCUMENT_BYTES_MAX:,} bytes",
        )
    reason = held.ended or await _ended(gateway, owner, name, held)
    if reason:
        raise Problem(HTTPStatus.CONFLICT, f"subscription {name} has ended: {reason}")
    config = Subscription.parse(told).config
    if config is not None and config.expires_s is not None and config.expires_s <= time.time():
        hint = "DELETE ends a subscription"
        raise BadInput("config.expires", "is a time that has passed", hint=hint)
    changed = msgspec.structs.replace(held, document=kept, version=held.version + 1)
    changed = await gateway.directory.keep_subscription(owner, name, changed)
    try:
        await _register(gateway, owner, name, changed, told)
    except WasRefused:
        before = msgspec.structs.replace(changed, document=held.document)
        await gateway.directory.keep_subscription(owner, name, before)
        raise
    return await _told(gateway, owner, name, changed)


@delete(
    "/subscriptions/{name:str}",
    guards=[needs("subscribe")],
    responses=ANSWERS,
    summary="End a subscription",
)
async def end_subscription(request: Asked, gateway: Here, name: Name) -> None:
    """End a subscription."""
    owner = owner_of(request.user)
    held = await held_of(gateway, owner, name)
    async with gateway.feeds.using(owner, name, held.home) as feed:
        async with asyncio.timeout(STATUS_S):
            await feed.client.unsubscribe(name)
        gateway.feeds.end(owner, name)
    await gateway.directory.forget_subscription(owner, name)


SUBSCRIPTION_ROUTES = [
    subscribe,
    list_subscriptions,
    get_subscription,
    put_subscription,
    patch_subscription,
    end_subscription,
]
"""All of these routes."""
