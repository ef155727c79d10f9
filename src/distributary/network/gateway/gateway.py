"""The gateway: what all its routes share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from distributary.errors import DistributaryError
from distributary.network.buckets import Buckets, WasChanged
from distributary.network.client import Client, ClientGate
from distributary.network.connection import Server
from distributary.network.gateway.audit import Audit
from distributary.network.gateway.contents import Contents
from distributary.network.gateway.directory import Directory, Owner
from distributary.network.gateway.feeds import Feeds
from distributary.network.gateway.limits import TenantLimiter
from distributary.network.gateway.members import OverlayMembers
from distributary.network.gateway.metrics import Metrics
from distributary.network.gateway.objects import GatewayObjects
from distributary.network.gateway.publishers import Publishers
from distributary.network.gateway.pulse import OverlayPulse
from distributary.network.gateway.sessions import SessionBucket
from distributary.network.gateway.tokens import Tokens
from distributary.network.subjects import Subjects

__all__ = ["Gateway"]

_log = logging.getLogger(__name__)

_LOOK_S = 1.0


class Gateway:
    """One gateway process.

    Parameters
    ----------
    name
        Of the gateway, and of all others that share its permissions.
    brokers
        Those whom it may ask.
    folder
        Where bodies of requests are while they come.
    content_bytes_max
        How large content may be.
    acknowledged_s
        After how long what was written to somebody who says nothing counts as arrived.
    publisher_idle_s
        How long a client is kept that nobody publishes by.
    limits
        Counts what each tenant takes, and refuses what is too much.
    audit
        Where it is written down who did what.
    """

    def __init__(
        self,
        subjects: Subjects,
        server: Server,
        name: str,
        *,
        brokers: Sequence[str],
        folder: Path,
        content_bytes_max: int,
        acknowledged_s: float,
        publisher_idle_s: float,
        limits: TenantLimiter,
        audit: Audit,
    ) -> None:
        self.folder = folder
        self.content_bytes_max = content_bytes_max
        self.acknowledged_s = acknowledged_s
        self.gate = ClientGate(subjects, server, name, brokers)
        self.buckets = Buckets(subjects, server, name)
        self.tokens = Tokens(self.buckets)
        self.sessions = SessionBucket(self.buckets, self.tokens)
        self.limits = limits
        self.audit = audit
        self.directory = Directory(self.buckets)
        self.members = OverlayMembers(self.gate, brokers)
        self.contents = Contents(self)
        self.publishers = Publishers(self, publisher_idle_s)
        self.objects = GatewayObjects(self)
        self.feeds = Feeds(self)
        self.pulse = OverlayPulse(self)
        self.metrics = Metrics(self)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.spawn(self._look())
        self.spawn(self.sessions.watch())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside what is going on; what goes wrong is written down."""
        task = asyncio.ensure_future(self._do(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (OSError, DistributaryError) as error:
            _log.warning("%s", error)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self.feeds.look()
            self.publishers.look()

    def client_changed(self, owner: Owner, name: str, client: Client) -> None:
        """Note that the client of a subscription has moved, or that it has ended."""
        self.spawn(self._note(owner, name, client))

    async def _note(self, owner: Owner, name: str, client: Client) -> None:
        # The feed stays until it is noted, and its home forgets no end before: else nobody would
        # know of it.
        async with self.feeds.using(owner, name, client.home) as feed:
            ended = client.ended.get(name)
            noted = False
            while not noted:
                # Whatever somebody else writes meanwhile.
                with suppress(WasChanged):
                    held = await self.directory.subscription(owner, name)
                    if held is not None:
                        reason = held.ended if ended is None else ended.reason
                        now = msgspec.structs.replace(held, home=client.home, ended=reason)
                        if now != held:
                            await self.directory.keep_subscription(owner, name, now)
                    noted = True
            # Of another end, heard meanwhile, another note is made.
            if ended is not None and feed.client is client:
                client.know_ends()

    async def close(self) -> None:
        """End everything."""
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.pulse.close()
        await self.members.close()
        await self.publishers.close()
        await self.tokens.close()
        await self.gate.close()
        await self.buckets.close()
        self.audit.close()
