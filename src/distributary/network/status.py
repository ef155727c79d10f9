"""How brokers are: what hosts answer who asks, and how it is asked."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributary.network.connection import NatsConnection, Server
from distributary.network.requests import GetStatus, StatusTold
from distributary.network.subjects import Subjects
from distributary.network.transfers import TransferFailed
from distributary.network.transfers import ask as ask_host

if TYPE_CHECKING:
    from distributary.network.host import NetworkHost

__all__ = ["ask", "summary"]

_ASK_S = 2.0
_MEMORY_S = 10.0


def summary(host: NetworkHost) -> dict[str, Any]:
    """Return how a broker is, in figures whose number does not grow with what it holds."""
    broker = host.driver.broker
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found: dict[str, Any] = {
        "broker": host.identity,
        "pid": os.getpid(),
        "up_s": round(time.monotonic() - host.began, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "memory_bytes": _memory_bytes(int(time.monotonic() / _MEMORY_S)),
        "commits": host.commits,
        "waiting": len(host.inbox),
        "lost": host.inbox.lost,
        "connected": host.connection.connected,
        "draining": host.draining,
    }
    if broker is None:
        return found
    snapshot = broker.snapshot(plans=False)
    members = snapshot["membership"]["members"]
    queues = snapshot["deliveries"]["queues"]
    outboxes = snapshot["links"]["outboxes"]
    owed = snapshot["dissemination"]["owed"]
    trees = snapshot["streams"]["trees"]
    losses = [one["loss"] for tree in trees for one in tree["objects"] if one["followers"]]
    oldest_ns = min((one["oldest_ns"] for one in queues if one["oldest_ns"]), default=None)
    return {
        **found,
        "life": snapshot["membership"]["life"],
        "members_up": 1 + sum(one["status"] == "alive" for one in members),
        "members_down": sum(one["status"] == "down" for one in members),
        "subscriptions": len(snapshot["subscriptions"]["subscriptions"]),
        "registrations": snapshot["rendezvous"]["registrations"],
        "cells": snapshot["rendezvous"]["cells"],
        "streams": len(trees),
        "fidelity_loss": sum(losses) / len(losses) if losses else 0.0,
        "queued": sum(one["waiting"] for one in queues),
        "queued_bytes": sum(one["bytes"] for one in queues),
        "queue_age_s": 0.0 if oldest_ns is None else max(0.0, (host.now_ns() - oldest_ns) / 1e9),
        "outbox": sum(one["messages"] for one in outboxes),
        "outbox_bytes": sum(one["bytes"] for one in outboxes),
        "publications": sum(snapshot["publishing"]["kept"].values()),
        "open": snapshot["dissemination"]["open"],
        "owed": sum(owed.values()),
        "converting": len(snapshot["relays"]["converting"]),
    }


async def ask(
    subjects: Subjects, server: Server, name: str, brokers: Sequence[str]
) -> dict[str, dict[str, Any] | None]:
    """Return how each broker is, as it says itself; None of those who do not answer."""
    connection = NatsConnection(server, name=name, inbox=subjects.inbox(name), handlers={})
    try:
        await asyncio.wait_for(connection.wait(), _ASK_S)
        answers = await asyncio.gather(
            *(_ask_one(connection, subjects.to_host(broker, name)) for broker in brokers)
        )
    finally:
        await connection.close()
    return dict(zip(brokers, answers, strict=True))


async def _ask_one(connection: NatsConnection, subject: str) -> dict[str, Any] | None:
    try:
        answer = await ask_host(connection, subject, GetStatus())
    except TransferFailed:
        return None
    return answer.status if isinstance(answer, StatusTold) else None


@lru_cache(maxsize=1)
def _memory_bytes(period: int) -> int:
    """Return what the process has to itself, where the system tells; once in a period.

    A broker that was forked shares most of what it has with the others. The system looks at every
    page for this, which takes milliseconds.
    """
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
