"""What operators and gateways see of running brokers: bounded, plain data, by tenant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.live.overlays import RunningOverlay, running_overlay
from tests.live.prices import Prices
from tests.live.traffic import event

from distributary.network.client import ClientGate
from distributary.network.connection import NatsConnection
from distributary.network.host_metrics import METRICS
from distributary.network.requests import GetRows, NotGiven, RowsTold
from distributary.network.transfers import TransferFailed, ask
from distributary.network.views import look, look_at_plan

pytestmark = pytest.mark.slow

WISH = {"id": "all", "filters": [{"exact": {"type": "t"}}]}
TENANTS = ("", "north", "south")


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("live") / "state", brokers=3) as overlay:
        asyncio.run(_published(overlay))
        yield overlay


async def _published(overlay: RunningOverlay) -> None:
    """Everybody subscribes and publishes the same, each for its own tenant."""
    async with overlay.gate() as gate:
        for tenant in TENANTS:
            for home in overlay.brokers:
                await gate.client(f"at {home}", home, tenant=tenant).subscribe(WISH)
        for tenant in TENANTS:
            publisher = gate.client("p", overlay.brokers[0], tenant=tenant)
            for number in range(3):
                await publisher.publish(event("/p", number))


async def everywhere(
    overlay: RunningOverlay, gate: ClientGate, view: str, **options: Any
) -> list[dict[str, Any]]:
    rows = []
    for broker in overlay.brokers:
        subject = overlay.subjects.to_host(broker, "gateway")
        rows += await look(gate.connection, subject, view, **options)
    # JSON can hold it.
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    return rows


def test_brokers_say_how_they_are_and_whom_they_know(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with overlay.gate() as gate:
            brokers = await everywhere(overlay, gate, "broker")
            assert {one["broker"]: one["pid"] for one in brokers} == overlay.line["brokers"]
            for one in brokers:
                assert one["room_bytes"] > 0
                assert one["journal_bytes"] > 0
                assert one["subscriptions"] == len(TENANTS)
            status: set[str] = set()
            # On a busy machine somebody may be suspected for a moment.
            async with asyncio.timeout(60):
                while status != {"alive"}:
                    members = await everywhere(overlay, gate, "members")
                    status = {one["status"] for one in members}
            assert sorted(one["broker"] for one in members) == sorted(2 * overlay.brokers)

    asyncio.run(run())


def test_a_tenant_sees_its_own_and_an_operator_everything(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with overlay.gate() as gate:
            for tenant in TENANTS:
                plans = await everywhere(overlay, gate, "plans", tenant=tenant)
                assert sorted(one["id"] for one in plans) == ["0", "1", "2"]
                assert {one["tenant"] for one in plans} == {tenant}
                wishes = await everywhere(overlay, gate, "subscriptions", tenant=tenant)
                sign = f"@{tenant}@" if tenant else "@"
                names = {f"{sign}gateway/at {home}" for home in overlay.brokers}
                assert {one["client"] for one in wishes} == names
                assert {one["last"] for one in wishes} == {3}
                plan = await look_at_plan(
                    gate.connection,
                    overlay.subjects,
                    "gateway",
                    overlay.brokers,
                    tenant=tenant,
                    source="/p",
                    id="1",
                )
                assert plan is not None
                nodes = plan["plan"]
                assert (nodes[0]["broker"], nodes[0]["parent"]) == (plan["root"], None)
                served = [one for node in nodes for one in node["subscriptions"]]
                assert {one["format"] for one in served} == {"application/json"}
                for one in served:
                    assert any(name in one["registration"] for name in names)
                assert len(served) == len(overlay.brokers)
                assert plan["media_type"] == "application/json"
                assert plan["formats"] == ["application/json"]
                assert json.loads(plan["event"])["id"] == "1"
                assert {*plan["baselines"]} > {"all-in-root", "all-in-leaves"}
            assert len(await everywhere(overlay, gate, "plans")) == 9
            assert len(await everywhere(overlay, gate, "subscriptions")) == 9
            assert await everywhere(overlay, gate, "plans", tenant="west") == []
            for view in ("broker", "figures", "members", "measured"):
                with pytest.raises(TransferFailed, match="all tenants"):
                    await everywhere(overlay, gate, view, tenant="north")

    asyncio.run(run())


def test_the_way_of_a_publication_is_told_with_its_times(overlay: RunningOverlay) -> None:
    async def run() -> None:
        async with overlay.gate() as gate:
            plan: dict[str, Any] | None = None
            delivered: set[str] = set()
            # What is delivered is told when it is durable.
            while delivered != {*overlay.brokers}:
                plan = await look_at_plan(
                    gate.connection,
                    overlay.subjects,
                    "gateway",
                    overlay.brokers,
                    tenant="north",
                    source="/p",
                    id="1",
                )
                assert plan is not None
                way = plan["way"]
                delivered = {one["broker"] for one in way if one["what"] == "delivered"}
            assert plan is not None
            assert json.loads(json.dumps(way, allow_nan=False)) == way
            (published,) = (one for one in way if one["what"] == "published")
            assert published["broker"] == overlay.brokers[0]
            assert {one["broker"] for one in way if one["what"] == "planned"} == {plan["root"]}
            hops = [one for one in way if one.get("carries") == "portion"]
            taken = {(one["broker"], one["to"]) for one in hops}
            assert taken == {(node["parent"], node["broker"]) for node in plan["plan"][1:]}
            # All clocks are the same one here.
            for one in way:
                assert published["began_ns"] <= one["began_ns"] <= one["ended_ns"]
            counts = [one["count"] for one in way if one["what"] == "delivered"]
            assert counts == [1] * len(overlay.brokers)

    asyncio.run(run())


def test_an_operator_asks_as_well_and_what_makes_no_sense_is_refused(
    overlay: RunningOverlay,
) -> None:
    async def run() -> None:
        name = "operator"
        connection = NatsConnection(
            overlay.server(name), name=name, inbox=overlay.subjects.inbox(name), handlers={}
        )
        await connection.wait()
        subject = overlay.subjects.to_host(overlay.brokers[0], name)
        assert len(await look(connection, subject, "subscriptions")) == len(TENANTS)
        for view in ("", "Plan", "x" * 200_000):
            answer = await ask(connection, subject, GetRows(view))
            assert isinstance(answer, NotGiven)
            assert answer.lasting
            assert len(answer.reason) < 200
        none = await ask(connection, subject, GetRows("plan", "", "/p", "none"))
        assert none == RowsTold([], None)
        await connection.close()

    asyncio.run(run())


def test_brokers_say_what_they_have_counted(overlay: RunningOverlay) -> None:
    def total(rows: list[dict[str, Any]], figure: str, *labels: str) -> float:
        found = [one for one in rows if one["figure"] == figure]
        chosen = [one for one in found if one["labels"][: len(labels)] == [*labels]]
        return sum(float(one["value"]) for one in chosen)

    async def run() -> None:
        async with overlay.gate() as gate:
            rows: list[dict[str, Any]] = []
            while total(rows, "deliveries", "application/json") < 27:
                rows = await everywhere(overlay, gate, "figures")
            for row in rows:
                assert len(row["labels"]) == len(METRICS[row["figure"]].labels)
                assert row["value"] >= 0
            assert total(rows, "reports", "Planned") == 9
            assert total(rows, "plans_compared") == 9
            # Nothing was converted: all plans cost the same.
            assert total(rows, "plan_cost", "chosen") > 0
            assert total(rows, "plan_cost", "chosen") == total(rows, "plan_cost", "all-in-root")
            assert total(rows, "message_bytes") > total(rows, "messages") > 0
            assert total(rows, "commit_seconds") > 0

    asyncio.run(run())


def test_many_rows_come_in_pages_none_twice(overlay: RunningOverlay) -> None:
    count = 250

    async def run() -> None:
        async with overlay.gate() as gate:
            home = overlay.brokers[1]
            client = gate.client("many", home, tenant="many")
            wishes = [{**WISH, "id": f"{number:05d}"} for number in range(count)]
            await asyncio.gather(*(client.subscribe(wish) for wish in wishes))
            subject = overlay.subjects.to_host(home, "gateway")
            first = await ask(gate.connection, subject, GetRows("subscriptions", "many"))
            assert isinstance(first, RowsTold)
            assert first.more is not None
            assert 0 < len(first.rows) < count
            rows = await look(gate.connection, subject, "subscriptions", tenant="many")
            assert [one["id"] for one in rows] == [wish["id"] for wish in wishes]
            few = await look(gate.connection, subject, "subscriptions", tenant="many", count_max=1)
            assert few == first.rows

    asyncio.run(run())


def test_streams_and_their_trees_are_seen(overlay: RunningOverlay) -> None:
    count = 40

    async def run() -> None:
        async with overlay.gate() as gate:
            prices = Prices(gate, overlay.brokers[0], tenant="north")
            for home in overlay.brokers[1:]:
                await prices.follow(home)
            prices.announce("/prices", "one")
            for _ in range(count):
                prices.change("/prices", "one")
            rows: list[dict[str, Any]] = []
            wanted = {"value": "/value", "divergence": "absolute", "amount": 0.5}
            all_there = [(count, [wanted])] * len(overlay.brokers)
            # A link may bring all values at once, and what is wanted by it is told after that.
            while [(one["sequence"], one["tolerances"]) for one in rows] != all_there:
                rows = await everywhere(overlay, gate, "streams", tenant="north")
            assert {(one["source"], one["subject"]) for one in rows} == {("/prices", "one")}
            assert {one["root"] for one in rows} == {overlay.brokers[0]}
            trees = await everywhere(overlay, gate, "trees", tenant="north")
            below = {child["broker"] for tree in trees for child in tree["children"]}
            assert below == {*overlay.brokers[1:]}
            assert {one["objects"] for one in trees} == {1}
            assert await everywhere(overlay, gate, "streams", tenant="south") == []
            assert await everywhere(overlay, gate, "trees", tenant="south") == []
            # How the tree came about.
            moves = await everywhere(overlay, gate, "moves", tenant="north")
            assert [one["parent"] for one in moves] == [overlay.brokers[0]] * len(below)
            assert {(one["what"], one["tenant"]) for one in moves} == {("linked", "north")}
            assert await everywhere(overlay, gate, "moves", tenant="south") == []

    asyncio.run(run())
