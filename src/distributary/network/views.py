"""Views: what operators and gateways see of a broker, row by row and page by page.

No answer is larger than a message may be, however much a broker has. Rows stand in the order of
their keys, and a page begins after the key with which the one before has ended, so that what
comes or goes meanwhile does not shift the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from distributary import __version__
from distributary.broker.addresses import tenant_of
from distributary.broker.broker import Broker
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.network.connection import NatsConnection
from distributary.network.requests import GetRows, NotGiven, RowsTold
from distributary.network.snapshot import JOURNAL_FILES
from distributary.network.status import summary
from distributary.network.subjects import Subjects
from distributary.network.trail import way_of
from distributary.network.transfers import TransferFailed, ask

if TYPE_CHECKING:
    from distributary.network.host import NetworkHost

__all__ = ["look", "look_at_plan", "rows_of"]

_PAGE_BYTES = 256 * 2**10
_PAGE_ROWS = 200
_LATEST_NS = 2**63

_Row: TypeAlias = dict[str, Any]
_Rows: TypeAlias = Iterator[tuple[str, _Row]]

_ENCODER = msgspec.msgpack.Encoder()


# What a host answers.


def rows_of(host: NetworkHost, request: GetRows) -> RowsTold | NotGiven:
    """Return a page of what somebody wants to see."""
    broker = host.driver.broker
    if broker is None:
        return NotGiven(f"{host.identity} is starting", lasting=False)
    if request.view in _OF_HOSTS:
        rows = _OF_HOSTS[request.view](host, request)
    elif request.view in _VIEWS:
        rows = _VIEWS[request.view](broker, request)
    else:
        return NotGiven(f"there is no view {request.view[:60]!r}", lasting=True)
    if request.tenant is not None and request.view in _OPERATORS:
        return NotGiven(f"{request.view} is for those who see all tenants", lasting=True)
    return _page(sorted(rows, key=lambda row: row[0]), request.after)


def _page(rows: Sequence[tuple[str, _Row]], after: str | None) -> RowsTold:
    page: list[_Row] = []
    size_bytes = 0
    last: str | None = None
    for key, row in rows:
        if after is not None and key <= after:
            continue
        row_bytes = len(_ENCODER.encode(row))
        if page and (size_bytes + row_bytes > _PAGE_BYTES or len(page) == _PAGE_ROWS):
            return RowsTold(page, last)
        page.append(row)
        size_bytes += row_bytes
        last = key
    return RowsTold(page, None)


def _broker(host: NetworkHost, request: GetRows) -> _Rows:
    """Yield how a broker and its process are."""
    yield (
        "",
        {
            **summary(host),
            "version": __version__,
            "room_bytes": host.disk_space.free_bytes(),
            "room_low": host.disk_space.is_low,
            "journal_bytes": _journal_bytes(host.disk_space.folder),
            "reports": dict(sorted(host.reports.items())),
            "refused": host.connection.refused,
        },
    )


def _journal_bytes(folder: Path) -> int:
    sizes = 0
    for name in JOURNAL_FILES:
        try:
            sizes += (folder / name).stat().st_size
        except FileNotFoundError:
            continue
    return sizes


def _figures(host: NetworkHost, request: GetRows) -> _Rows:
    """Yield what the host counts; see `host_metrics.METRICS`."""
    metrics, broker = host.witness.metrics, host.driver.broker
    if broker is not None and request.after is None:
        metrics.compare(broker)
    for row in metrics.rows(host.reports):
        yield " ".join((row["figure"], *row["labels"])), row


def _moves(host: NetworkHost, request: GetRows) -> _Rows:
    for number, row in enumerate(host.witness.moves):
        if request.tenant in (None, row["tenant"]):
            yield f"{_LATEST_NS - row['at_ns']:020d} {number:09d}", row


def _members(broker: Broker, request: GetRows) -> _Rows:
    seen = broker.snapshot(parts=("membership", "links"))
    outboxes = {one.pop("peer"): one for one in seen["links"]["outboxes"]}
    hops = {one.pop("peer"): one for one in seen["measured"].get("hops", ())}
    for member in seen["membership"]["members"]:
        name = member["broker"]
        yield name, {**member, "outbox": outboxes.get(name), "hop": hops.get(name)}


def _measured(broker: Broker, request: GetRows) -> _Rows:
    """Yield the last window of telemetry, a row for each figure."""
    for what, figures in broker.snapshot(parts=())["measured"].items():
        if isinstance(figures, Mapping):
            figures = [{"name": name, "value": value} for name, value in figures.items()]
        if isinstance(figures, list):
            for number, figure in enumerate(figures):
                yield f"{what} {number:09d}", {"what": what, **figure}
        else:
            yield what, {"what": what, "value": figures}


def _plans(broker: Broker, request: GetRows) -> _Rows:
    for number, plan in enumerate(broker.plans()):
        if request.tenant in (None, plan["tenant"]):
            # The newest first.
            yield f"{_LATEST_NS - plan['at_ns']:020d} {number:09d}", plan


def _plan(broker: Broker, request: GetRows) -> _Rows:
    """Yield one plan: its heading, what each broker does, and what each subscription gets."""
    found = broker.plan(request.tenant or "", request.source, request.id)
    if found is None:
        return
    nodes = found.pop("plan")
    yield "0", found
    for number, node in enumerate(nodes):
        grants = node.pop("subscriptions")
        yield f"1 {number:09d}", node
        for place, grant in enumerate(grants):
            yield f"2 {number:09d} {place:09d}", {"node": number, **grant}


def _way(host: NetworkHost, request: GetRows) -> _Rows:
    """Yield what the host knows of the way of a publication."""
    item = ItemId(request.tenant or "", request.source, request.id)
    for number, row in enumerate(host.witness.trail.rows(item)):
        yield f"{number:09d}", row


def _trees(broker: Broker, request: GetRows) -> _Rows:
    for tree in broker.snapshot(parts=("streams",))["streams"]["trees"]:
        if request.tenant in (None, tree["tenant"]):
            yield tree["tree"], {**tree, "objects": len(tree["objects"])}


def _streams(broker: Broker, request: GetRows) -> _Rows:
    for tree in broker.snapshot(parts=("streams",))["streams"]["trees"]:
        if request.tenant in (None, tree["tenant"]):
            place = {name: tree[name] for name in ("tree", "tenant", "root", "parent")}
            for one in tree["objects"]:
                key = f"{tree['tenant']} {one['source']} {one['subject']} {tree['tree']}"
                yield key, {**place, **one}


def _subscriptions(broker: Broker, request: GetRows) -> _Rows:
    seen = broker.snapshot(parts=("subscriptions", "deliveries"))
    queues = {one.pop("subscription"): one for one in seen["deliveries"]["queues"]}
    for one in seen["subscriptions"]["subscriptions"]:
        if request.tenant in (None, tenant_of(one["client"])):
            key = f"{one['client']} {one['id']} {one['generation']:09d}"
            yield key, {**queues.get(scoped_id(one["client"], one["id"]), {}), **one}


_VIEWS: Mapping[str, Callable[[Broker, GetRows], _Rows]] = {
    "measured": _measured,
    "members": _members,
    "plan": _plan,
    "plans": _plans,
    "streams": _streams,
    "subscriptions": _subscriptions,
    "trees": _trees,
}
_OF_HOSTS: Mapping[str, Callable[[NetworkHost, GetRows], _Rows]] = {
    "broker": _broker,
    "figures": _figures,
    "moves": _moves,
    "way": _way,
}
_OPERATORS = frozenset({"broker", "figures", "measured", "members"})


# How it is asked.


async def look(
    connection: NatsConnection,
    subject: str,
    view: str,
    *,
    tenant: str | None = None,
    source: str = "",
    id: str = "",  # noqa: A002
    count_max: int = 100_000,
) -> list[_Row]:
    """Return all rows of a view, as the host that has this subject says.

    Parameters
    ----------
    view
        `broker`: one row with how it is; `members`: whom it knows; `measured`: its last window
        of telemetry; `figures`: what it counts; `plans`: what it has planned as a root;
        `plan`: one of these; `way`: what it did with a publication, and when; `trees` and
        `streams`: what it carries; `moves`: what changed last in these trees;
        `subscriptions`: those of its clients, with their queues.
    tenant
        Whose rows; None for everybody's, which is the operator's to see. The first four
        views are nobody's.
    source, id
        Of the publication, for `plan` and `way`; without a tenant it is one of the tenant
        without a name.
    count_max
        After so many rows it asks for no more.

    Raises
    ------
    TransferFailed
        When the host does not answer, or has no such view.
    """
    rows: list[_Row] = []
    after: str | None = None
    while len(rows) < count_max:
        answer = await ask(connection, subject, GetRows(view, tenant, source, id, after))
        if isinstance(answer, NotGiven):
            raise TransferFailed(answer.reason, lasting=answer.lasting)
        if not isinstance(answer, RowsTold):
            raise TransferFailed("an answer to something else", lasting=True)
        rows += answer.rows
        after = answer.more
        if after is None:
            break
    return rows


async def look_at_plan(
    connection: NatsConnection,
    subjects: Subjects,
    name: str,
    brokers: Sequence[str],
    *,
    tenant: str,
    source: str,
    id: str,  # noqa: A002
) -> _Row | None:
    """Return the plan of a publication from whoever of some brokers was its root.

    Parameters
    ----------
    name
        Who asks.

    Returns
    -------
    row
        As in `Broker.snapshot`, with the broker that has planned it as `root`; the latest where
        several have, as when the root was lost. None where nobody knows it, or any more. Its
        `way` is what brokers remember of what was done when; see `trail.way_of`.
    """

    async def of_one(broker: str, view: str) -> list[_Row]:
        try:
            subject = subjects.to_host(broker, name)
            return await look(connection, subject, view, tenant=tenant, source=source, id=id)
        except TransferFailed:
            return []

    async def of_all(view: str) -> dict[str, list[_Row]]:
        found = await asyncio.gather(*(of_one(broker, view) for broker in brokers))
        return dict(zip(brokers, found, strict=True))

    plans = [_joined(broker, rows) for broker, rows in (await of_all("plan")).items() if rows]
    plan = max(plans, key=lambda plan: plan["at_ns"], default=None)
    if plan is None:
        return None
    way = way_of(await of_all("way"), root=plan["root"], planned_ns=plan["at_ns"])
    return {**plan, "way": way}


def _joined(root: str, rows: Sequence[_Row]) -> _Row:
    heading, *rest = rows
    nodes: list[_Row] = []
    for row in rest:
        if "registration" not in row:
            nodes.append({**row, "subscriptions": []})
        elif row["node"] < len(nodes):
            # Unless it was planned anew between two pages.
            nodes[row.pop("node")]["subscriptions"].append(row)
    return {"root": root, **heading, "plan": nodes}
