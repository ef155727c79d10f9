"""Brokers at a cluster of NATS servers, and at a site of its own behind a leaf node."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.live.brokers import Brokers, ending
from tests.live.traffic import Traffic
from tests.nats_server import NatsServer

from distributary.network.server import free_port

pytestmark = pytest.mark.slow

HUBS, SITE = ("0a00", "5b00"), "fc00"
NAMES = (*HUBS, SITE)


def hub(routes: list[int], leaves: int, own: int, known: dict[str, str]) -> dict[str, object]:
    """What a server of a cluster has that takes leaf nodes."""
    return {
        "cluster": {
            "name": "hub",
            "listen": f"127.0.0.1:{own}",
            "routes": [f"nats://127.0.0.1:{port}" for port in routes],
        },
        "leafnodes": {"listen": f"127.0.0.1:{leaves}", "authorization": known},
    }


def test_brokers_at_a_cluster_and_behind_a_leaf_node_are_one_overlay(tmp_path: Path) -> None:
    """A server of the cluster is killed on the way: whoever was there goes to the other one."""
    routes, leaves = [free_port() for _ in range(2)], [free_port() for _ in range(2)]
    known = {"user": "site", "password": secrets.token_hex(16)}
    first, second = (
        hub(routes, leaf, own, known) for own, leaf in zip(routes, leaves, strict=True)
    )
    urls = [f"nats-leaf://site:{known['password']}@127.0.0.1:{port}" for port in leaves]
    site: dict[str, object] = {"leafnodes": {"reconnect": "1s", "remotes": [{"urls": urls}]}}
    brokers = Brokers(tmp_path, NAMES, more=first)
    with ExitStack() as stack:
        stack.callback(brokers.nats.kill)
        stack.enter_context(ending(brokers))

        def start(name: str, more: dict[str, object]) -> NatsServer:
            (tmp_path / name).mkdir()
            server = NatsServer(tmp_path / name, brokers.users.values(), more=more)
            stack.callback(server.kill)
            return server

        other, leaf = start("other", second), start("site", site)
        for name in HUBS:
            brokers.start(name, DISTRIBUTARY_NATS_URLS=f"{brokers.nats.url},{other.url}")
        brokers.start(SITE, DISTRIBUTARY_NATS_URLS=leaf.url)

        async def run() -> None:
            await asyncio.wait_for(brokers.wait(), 120)
            gone, brokers.nats = brokers.nats, other
            async with brokers.gate() as gate:
                traffic = Traffic(gate, NAMES)
                await traffic.subscribe(6)
                await asyncio.gather(*(traffic.publish(f"p{k}", 50) for k in range(3)))
                await traffic.settled()
                more = asyncio.gather(*(traffic.publish(f"p{k}", 200) for k in range(3)))
                await asyncio.to_thread(gone.kill)
                await more
                await traffic.settled()

        asyncio.run(run())
