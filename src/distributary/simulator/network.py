"""The network: delay, bandwidth and loss of every link, and what disturbs it."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from distributary.broker.addresses import Address
from distributary.simulator.places import AccessLinks, Places
from distributary.simulator.scenario import OverlayTable

__all__ = ["Disturbance", "SimulatedNetwork"]

_NS_PER_MS = 1e6
# A megabit per second is a bit per microsecond.
_NS_PER_BYTE_AT_ONE_MBPS = 8_000.0


@dataclass(frozen=True, eq=False)
class Disturbance:
    """What happens to messages for a while.

    Attributes
    ----------
    brokers
        Only messages from or to these are concerned, or those between them and others when
        it is a `cut`; None for all.
    cut
        Whether nothing passes between these brokers and the others.
    drop, duplicate, late
        The shares of messages that are lost, that come twice, and that are held up, each by
        up to `late_ns`: later ones overtake them.
    delay_ns
        By how much everything is late.
    """

    brokers: Collection[Address] | None = None
    cut: bool = False
    drop: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    late_ns: float = 0.0
    delay_ns: float = 0.0


class _Link:
    """One direction between two who talk.

    Attributes
    ----------
    between
        Whether both are brokers.
    free_ns
        When what stands in line on it has been sent.
    sent_bytes
        How many bytes were sent, lost ones included.
    """

    __slots__ = ("between", "byte_ns", "delay_ns", "free_ns", "loss", "sent_bytes")

    def __init__(self, delay_ns: int, byte_ns: float, loss: float, between: bool) -> None:
        self.delay_ns = delay_ns
        self.byte_ns = byte_ns
        self.loss = loss
        self.between = between
        self.free_ns = 0
        self.sent_bytes = 0


class SimulatedNetwork:
    """Links between all brokers, and between clients and brokers.

    Messages on one link are sent one after the other, each taking the time that its size
    takes; then they travel. So they stay in order unless something disturbs them. A link that
    costs twice as much has half the bandwidth: that is why it is dear. Messages of membership
    have priority over all others: they are few, and a link is as long as it is when nothing
    stands in line on it.

    Attributes
    ----------
    delay_factor
        On all delays between brokers.
    """

    def __init__(self, places: Places, overlay: OverlayTable, rng: random.Random) -> None:
        self._index = {identity: k for k, identity in enumerate(places.identifiers)}
        self._delays: list[list[int]] = places.delays_ns.tolist()
        self._rng = rng
        self._reference_byte_ns = _byte_ns(overlay.link_mbps)
        self._byte_ns: list[list[float]] = (places.link_costs * self._reference_byte_ns).tolist()
        self._loss = overlay.loss
        self._access_ns = round(overlay.access_delay_ms * _NS_PER_MS)
        self._access_byte_ns = _byte_ns(overlay.access_mbps)
        self._access_loss = overlay.access_loss
        self._access: dict[Address, tuple[list[int], list[float]]] = {}
        self._links: dict[tuple[Address, Address], _Link] = {}
        self.disturbances: list[Disturbance] = []
        self.delay_factor = 1.0

    def place(self, client: Address, access: AccessLinks) -> None:
        """Put a client somewhere, before it says anything.

        One that is nowhere is as near to every broker.
        """
        byte_ns = self._access_byte_ns + access.prices * self._reference_byte_ns
        delays_ns = self._access_ns + access.delays_ns
        self._access[client] = (delays_ns.tolist(), byte_ns.tolist())

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int, *, priority: bool = False
    ) -> tuple[int, ...]:
        """Return when a message arrives: nothing when it is lost, twice when it is repeated.

        One with priority does not stand in line.
        """
        link = self._links.get((sender, to))
        if link is None:
            link = self._links[sender, to] = self._link(sender, to)
        link.sent_bytes += size_bytes
        delay_ns, byte_ns = link.delay_ns, link.byte_ns
        if link.between and self.delay_factor != 1.0:
            delay_ns = round(delay_ns * self.delay_factor)
        sent_ns = now_ns
        if byte_ns > 0.0:
            if not priority and link.free_ns > now_ns:
                sent_ns = link.free_ns
            sent_ns += round(size_bytes * byte_ns)
            if not priority:
                link.free_ns = sent_ns
        if link.loss > 0.0 and self._rng.random() < link.loss:
            return ()
        if not self.disturbances:
            return (sent_ns + delay_ns,)
        return self._disturbed(sender, to, sent_ns + delay_ns)

    def priority_arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        """Return when a message with priority arrives."""
        return self.arrivals(sender, to, size_bytes, now_ns, priority=True)

    def sent_bytes(self) -> Iterator[tuple[tuple[Address, Address], int]]:
        """Return how many bytes were sent from whom to whom, content included."""
        return ((ends, link.sent_bytes) for ends, link in self._links.items())

    def _link(self, sender: Address, to: Address) -> _Link:
        one, other = self._index.get(sender), self._index.get(to)
        if one is not None and other is not None:
            return _Link(self._delays[one][other], self._byte_ns[one][other], self._loss, True)
        client, broker = (sender, other) if one is None else (to, one)
        delay_ns, byte_ns = self._access_ns, self._access_byte_ns
        if client in self._access and broker is not None:
            delays_ns, bytes_ns = self._access[client]
            delay_ns, byte_ns = delays_ns[broker], bytes_ns[broker]
        return _Link(delay_ns, byte_ns, self._access_loss, False)

    def _disturbed(self, sender: Address, to: Address, at_ns: int) -> tuple[int, ...]:
        rng = self._rng
        copies = 1
        for disturbance in self.disturbances:
            brokers = disturbance.brokers
            if brokers is not None:
                if disturbance.cut:
                    if (
                        sender in self._index
                        and to in self._index
                        and (sender in brokers) != (to in brokers)
                    ):
                        return ()
                    continue
                if sender not in brokers and to not in brokers:
                    continue
            if disturbance.drop > 0.0 and rng.random() < disturbance.drop:
                return ()
            if disturbance.duplicate > 0.0 and rng.random() < disturbance.duplicate:
                copies = 2
            at_ns += round(disturbance.delay_ns)
            if disturbance.late > 0.0 and rng.random() < disturbance.late:
                at_ns += round(rng.random() * disturbance.late_ns)
        if copies == 1:
            return (at_ns,)
        return at_ns, at_ns + round(rng.random() * self._access_ns) + 1


def _byte_ns(mbps: float) -> float:
    return _NS_PER_BYTE_AT_ONE_MBPS / mbps if mbps > 0.0 else 0.0
