"""Content stores: what hosts have of content, and how it gets from one to another.

Simulated content has no bytes, only a size that counts on the link over which it is fetched: once
for each broker that fetches it, whatever refers to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distributary.broker.addresses import HOST, Address, Blob
from distributary.broker.host import ContentPut, Fetched, FetchFailed
from distributary.broker.settings import ns

if TYPE_CHECKING:
    from distributary.simulator.world import World

__all__ = ["FETCH", "ContentTransfers", "FetchFault", "Obstacle"]

FETCH = "Fetch"
"""What a fault may come after, though it is no message: a host begins to fetch."""

# After how long a host gives up one that does not answer.
_SILENCE_NS = ns(2.0)
_KIND = "Content"


@dataclass(frozen=True, slots=True)
class FetchFault:
    """Why content cannot be fetched."""

    reason: str
    lasting: bool


Obstacle: TypeAlias = Callable[[str, Blob, str], FetchFault | None]
"""Given a broker, content and its holder: what is in the way of a fetch, if anything is."""


class ContentTransfers:
    """All content that is under way between hosts, and from clients to hosts.

    Attributes
    ----------
    obstacles
        Asked at every fetch what becomes of it.
    fetched_bytes
        How many bytes of what went from which broker to which: by (holder, broker, digest).
    listeners
        Called with (broker, time) when its host begins to fetch something.
    missing
        (time, what): what a broker counted on its host to have, which had not got it.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.obstacles: list[Obstacle] = []
        self.fetched_bytes: Counter[tuple[str, str, str]] = Counter()
        self.listeners: list[Callable[[str, int], None]] = []
        self.missing: list[tuple[int, str]] = []

    def put(self, client: Address, home: str, blob: Blob) -> None:
        """Have a client put content to a home; it may get lost."""
        for at_ns in self._send(client, home, blob):
            self._world.at(at_ns, self._put, client, home, blob)

    def _put(self, client: Address, home: str, blob: Blob) -> None:
        node = self._world.nodes.get(home)
        if node is not None and node.broker is not None:
            node.store[blob.digest] = blob.size_bytes
            self._world.tell(home, ContentPut(client, blob), sender=HOST)

    def fetch(self, broker: str, ticket: int, blob: Blob, holder: str) -> None:
        """Have the host of a broker get content from another one."""
        world = self._world
        world.log(f"{world.now_ns} {broker} fetches {blob.digest} of {holder}")
        for listen in self.listeners:
            listen(broker, world.now_ns)
        life = world.nodes[broker].life
        asked = world.network.arrivals(broker, holder, 0, world.now_ns)
        if asked:
            world.at(asked[0], self._serve, broker, life, ticket, blob, holder)
        else:
            self._silent(broker, life, ticket, holder)

    def _serve(self, broker: str, life: int, ticket: int, blob: Blob, holder: str) -> None:
        """Have the holder send what it is asked for, or say why not."""
        world, node = self._world, self._world.nodes.get(holder)
        if node is None or node.broker is None:
            self._silent(broker, life, ticket, holder)
            return
        found = (obstacle(broker, blob, holder) for obstacle in self.obstacles)
        fault = next((one for one in found if one is not None), None)
        if fault is None and blob.digest not in node.store:
            comes = node.broker.awaits(blob.digest)
            fault = FetchFault(f"{holder} does not have it", lasting=not comes)
        if fault is not None:
            answer = FetchFailed(ticket, fault.reason, fault.lasting)
            sent = world.network.arrivals(holder, broker, 0, world.now_ns)
            at_ns = sent[0] if sent else world.now_ns + _SILENCE_NS
            world.at(at_ns, self._failed, broker, life, answer)
            return
        node.broker.content_used(blob.digest, now_ns=node.now_ns())
        sent = self._send(holder, broker, blob)
        if sent:
            world.at(sent[0], self._arrived, broker, life, ticket, blob, holder)
        else:
            self._silent(broker, life, ticket, holder)

    def _arrived(self, broker: str, life: int, ticket: int, blob: Blob, holder: str) -> None:
        node = self._world.nodes[broker]
        if node.life != life or node.driver is None:
            # Its process has gone down meanwhile.
            return
        node.store[blob.digest] = blob.size_bytes
        self.fetched_bytes[holder, broker, blob.digest] += blob.size_bytes
        node.fetching.discard(ticket)
        self._world.tell(broker, Fetched(ticket, blob), sender=HOST)

    def _silent(self, broker: str, life: int, ticket: int, holder: str) -> None:
        answer = FetchFailed(ticket, f"{holder} does not answer", lasting=False)
        self._world.at(self._world.now_ns + _SILENCE_NS, self._failed, broker, life, answer)

    def _failed(self, broker: str, life: int, answer: FetchFailed) -> None:
        node = self._world.nodes[broker]
        if node.life == life:
            node.fetching.discard(answer.ticket)
            self._world.tell(broker, answer, sender=HOST)

    def _send(self, sender: Address, to: Address, blob: Blob) -> tuple[int, ...]:
        """Return when bytes arrive, and count them."""
        world = self._world
        world.message_counts[_KIND] += 1
        world.message_bytes[_KIND] += blob.size_bytes
        return world.network.arrivals(sender, to, blob.size_bytes, world.now_ns)
