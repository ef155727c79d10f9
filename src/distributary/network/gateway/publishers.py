"""Publishers: one client for every token that publishes, so that its events keep their order.

A client that nobody has needed for a while is closed: tokens come and go, and each client is looked
at ten times a second. The next one of the same token begins another session. There is no order
between sessions, but by then its home, too, has forgotten the one before (`dedupe_s`).

One whose home is away, as after it was drained, goes elsewhere when nothing is under way.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from distributary.broker.addresses import Blob
from distributary.broker.client import Accepted, Changed
from distributary.network.buckets import WasChanged
from distributary.network.client import Client, WasRefused
from distributary.network.gateway.directory import DirectoryEntry, Owner
from distributary.network.gateway.messages import Outbound
from distributary.network.gateway.problems import Problem
from distributary.network.gateway.spool import Spool
from distributary.network.outgoing import ContentGone
from distributary.network.transfers import TransferFailed

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["Publishers"]

# A broker that is killed is back after two seconds, and after ten somebody else takes over.
_ANSWER_S = 30.0
# What has no answer for so long, and a broker has objected to, is not waited for any longer.
_OBJECTION_S = 5.0
# So long a home, or the next one if that is away, has to say that it knows of a stream object.
_ANNOUNCED_S = 20.0
# A home that is away for longer is left by those who have nothing under way there.
_AWAY_S = 4.0
# With more than this waiting, whoever comes next is told to come later.
_WAITING_MAX = 8_192


class _Publisher:
    """Somebody who publishes.

    Attributes
    ----------
    opening
        Gives the client.
    users, used_at
        How many have to do with it, and when somebody last had.
    """

    __slots__ = ("opening", "used_at", "users")

    def __init__(self, opening: asyncio.Task[Client]) -> None:
        self.opening = opening
        self.users = 0
        self.used_at = 0.0

    @property
    def has_failed(self) -> bool:
        task = self.opening
        return task.done() and (task.cancelled() or task.exception() is not None)

    def is_idle(self, since: float) -> bool:
        """Whether nobody has needed it for a while, and nothing that it has published waits."""
        if self.users or self.used_at > since or not self.opening.done():
            return False
        return self.has_failed or self.opening.result().outgoing.is_idle


class Publishers:
    """All that publish through one gateway.

    Parameters
    ----------
    idle_s
        How long a client is kept that nobody publishes by.
    """

    def __init__(self, gateway: Gateway, idle_s: float) -> None:
        self._gateway = gateway
        self._idle_s = idle_s
        self._publishers: dict[Owner, _Publisher] = {}

    def __len__(self) -> int:
        return len(self._publishers)

    @asynccontextmanager
    async def using(self, owner: Owner) -> AsyncIterator[Client]:
        """Have the client that publishes for somebody, for as long as it is needed."""
        publisher = self._current(owner)
        publisher.users += 1
        try:
            yield await asyncio.shield(publisher.opening)
        finally:
            publisher.users -= 1
            publisher.used_at = asyncio.get_running_loop().time()

    @asynccontextmanager
    async def using_for(
        self, owner: Owner, versions: Sequence[Changed | None]
    ) -> AsyncIterator[Client]:
        """Have it when its home knows of all objects of which something is a version."""
        objects = self._gateway.objects
        while True:
            async with self.using(owner) as client:
                known = partial(objects.is_known_at, client.home, owner.tenant)
                unknown = [one for one in versions if one is not None and not known(one)]
                if not unknown:
                    yield client
                    return
            await objects.tell(owner, unknown[0])

    async def announce(self, owner: Owner, source: str, subject: str, text: str) -> str:
        """Open a stream object; return the home that knows of it, also if the first one is gone.

        Whoever waits here does not keep the client from going elsewhere.
        """
        async with asyncio.timeout(_ANNOUNCED_S):
            while True:
                client = await asyncio.shield(self._current(owner).opening)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AWAY_S):
                        await client.announce(source, subject, text)
                        return client.home

    def _current(self, owner: Owner) -> _Publisher:
        publisher = self._publishers.get(owner)
        if publisher is not None and publisher.is_idle(math.inf) and self._is_stranded(publisher):
            self._close(owner, publisher)
            publisher = None
        if publisher is None or publisher.has_failed:
            publisher = _Publisher(asyncio.ensure_future(self._open(owner)))
            self._publishers[owner] = publisher
        return publisher

    def look(self) -> None:
        """Close clients that nobody has needed for a while."""
        since = asyncio.get_running_loop().time() - self._idle_s
        for owner, publisher in list(self._publishers.items()):
            if publisher.is_idle(since):
                self._close(owner, publisher)

    def _close(self, owner: Owner, publisher: _Publisher) -> None:
        del self._publishers[owner]
        if not publisher.has_failed:
            # Without goodbye: nothing is ever sent to it of its own accord.
            self._gateway.spawn(publisher.opening.result().close(goodbye=False))

    def _is_stranded(self, publisher: _Publisher) -> bool:
        return not publisher.has_failed and self._is_gone(publisher.opening.result().home)

    def _is_gone(self, home: str) -> bool:
        """Whether a home is away for good, as far as one can tell, and others are not."""
        members = self._gateway.members
        return bool(members.alive) and members.is_away(home, _AWAY_S)

    async def publish(self, owner: Owner, events: Sequence[Outbound]) -> list[Accepted]:
        """Publish events in order; return when all of them are stored.

        Raises
        ------
        Problem
            When brokers are busy, or one of the events breaks the rules. Those before it are
            published then.
        """
        objects = self._gateway.objects
        versions = [await objects.version(owner, one.publication) for one in events]
        async with self.using_for(owner, versions) as client:
            return await self._publish(client, owner, events, versions)

    async def _publish(
        self,
        client: Client,
        owner: Owner,
        events: Sequence[Outbound],
        versions: Sequence[Changed | None],
    ) -> list[Accepted]:
        self._check_room(client)
        references = await self.references(owner, events)
        if any(versions) and not self._gateway.gate.connection.connected:
            raise ConnectionError("there is no connection to NATS")
        answers: list[asyncio.Future[Accepted] | Accepted] = []
        for one, version in zip(events, versions, strict=True):
            if version is None:
                answers += self.submit(client, [one], references)
            else:
                client.change(version)
                answers.append(Accepted(*one.publication.identity))
        waiting = [one for one in answers if not isinstance(one, Accepted)]
        # Whoever gives up does so for itself: what is under way is published all the same.
        if waiting and await self._are_late(client, waiting):
            if client.outgoing.busy_s:
                raise _busy(client.outgoing.busy_s, client.outgoing.objection)
            raise (
                TransferFailed(client.outgoing.objection, lasting=False)
                if client.outgoing.objection
                else TimeoutError
            )
        return [one if isinstance(one, Accepted) else one.result() for one in answers]

    async def _are_late(self, client: Client, waiting: Sequence[asyncio.Future[Accepted]]) -> bool:
        """Wait for answers; return whether some have not come, as they will not for a while."""
        ends = asyncio.get_running_loop().time() + _ANSWER_S
        late: Collection[asyncio.Future[Accepted]] = waiting
        while late and asyncio.get_running_loop().time() < ends:
            late = (await asyncio.wait(late, timeout=_OBJECTION_S))[1]
            if client.outgoing.objection:
                break
        return bool(late)

    def submit(
        self, client: Client, events: Sequence[Outbound], references: dict[str, Blob]
    ) -> list[asyncio.Future[Accepted]]:
        """Publish events in order; return what says of each that it is stored."""
        answers = []
        for one in events:
            text = one.text
            if one.reference is None:
                answer = client.publish(text, one.content, one.media_type)
                if isinstance(one.content, Spool):
                    # The request may end before it is there.
                    one.content.keep()
                    answer.add_done_callback(partial(_close, one.content))
            else:
                found = references[one.reference]
                answer = client.publish(text, Blob(one.media_type, found.size_bytes, found.digest))
            # Whoever waits for several is told of the first that fails.
            answer.add_done_callback(_looked_at)
            answers.append(answer)
        return answers

    def _check_room(self, client: Client) -> None:
        if client.outgoing.busy_s:
            raise _busy(client.outgoing.busy_s, client.outgoing.objection)
        if client.outgoing.waiting > _WAITING_MAX:
            raise _busy(1.0)

    async def references(self, owner: Owner, events: Sequence[Outbound]) -> dict[str, Blob]:
        """Return what was put before, by digest; what was not is named."""
        found: dict[str, Blob] = {}
        for one in events:
            if one.reference is not None and one.reference not in found:
                blob = await self._gateway.contents.find(owner.tenant, one.reference)
                if blob is None:
                    raise Problem(
                        HTTPStatus.BAD_REQUEST,
                        f"dataref: content {one.reference} was not put here; "
                        "hint: PUT /content/DIGEST first",
                    )
                found[one.reference] = blob
        return found

    async def close(self) -> None:
        """End all clients."""
        for publisher in self._publishers.values():
            publisher.opening.cancel()

    async def _open(self, owner: Owner) -> Client:
        gateway = self._gateway
        held = await gateway.directory.publisher(owner)
        if held is None:
            try:
                held = await gateway.directory.keep_publisher(
                    owner, DirectoryEntry(gateway.members.choose())
                )
            except WasChanged:
                held = await gateway.directory.publisher(owner)
                assert held is not None
        elif self._is_gone(held.home):
            moved = msgspec.structs.replace(held, home=gateway.members.choose())
            held = await gateway.directory.keep_publisher(owner, moved)
        known = held

        def changed(client: Client) -> None:
            nonlocal known
            if client.home != known.home:
                known = msgspec.structs.replace(known, home=client.home)
                gateway.spawn(self._moved(owner, client.home))

        return gateway.gate.client(
            f"p/{owner.name}", held.home, tenant=owner.tenant, changed=changed
        )

    async def _moved(self, owner: Owner, home: str) -> None:
        held = await self._gateway.directory.publisher(owner)
        if held is not None and held.home != home:
            moved = msgspec.structs.replace(held, home=home)
            await self._gateway.directory.keep_publisher(owner, moved)


def _busy(wait_s: float, reason: str = "") -> Problem:
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"{reason or 'brokers are busy'}; come again in {math.ceil(wait_s)} s",
        retry_s=wait_s,
    )


def _close(content: Spool, _: asyncio.Future[Accepted]) -> None:
    content.close()


def _looked_at(answer: asyncio.Future[Accepted]) -> None:
    if not answer.cancelled():
        error = answer.exception()
        assert error is None or isinstance(error, WasRefused | ContentGone), error
