"""Overlays in which a client is to be moved, and what can be done to them at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.broker_overlays import SECOND
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.core import Core, Part
from distributary.broker.encoding import decode
from distributary.broker.links.messages import Hop, Routed
from distributary.broker.migration.messages import AcceptMove, RegisterClient, RequestToMove
from distributary.broker.settings import MigrationSettings, Settings
from distributary.broker.telemetry import Migrated
from distributary.simulator.workload.device import Device
from distributary.simulator.workload.subscriber import Subscriber

FAR, NEAR = 100.0, 1.0

MOVING = replace(
    SETTINGS,
    migration=MigrationSettings(
        enabled=True, period_s=2.0, clients=3, threshold=0.1, redirect_s=1.0
    ),
)


class MoveWorld(ContentWorld):
    """A client at one broker, `old`, that would be cheaper at another, `new`.

    Everything published has one `root`, and publishers are at `far`; these are four brokers.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        settings: Settings = MOVING,
        parts: Mapping[str, type[Part]] | None = None,
    ) -> None:
        super().__init__(5, seed=seed, settings=settings, parts=parts)
        self.root = self.root_of()
        self.old, self.new, self.far, self.other = (m for m in self.members if m != self.root)
        self._published = 0

    def customer(
        self, name: str, home: str, *, near: str, filters: Sequence[object] = ()
    ) -> Subscriber:
        """Have a client subscribe that is near a broker."""
        device = self.subscribe(name, home, filters)
        self.register(device, near)
        return device

    def register(self, device: Device, near: str, *, others: float = FAR) -> None:
        """Have a client tell its home what traffic costs at each broker."""
        prices = tuple((m, NEAR if m == near else others) for m in self.members)
        device.send(RegisterClient(prices))

    def publish_for(self, seconds: float, *, every_s: float = 0.25, home: str = "") -> None:
        """Have something published from now on, and let that time pass."""
        for k in range(round(seconds / every_s)):
            at_ns = self.world.now_ns + round(k * every_s * SECOND)
            self.world.at(at_ns, self._publish_next, home or self.far)
        self.run_s(seconds)

    def _publish_next(self, home: str) -> None:
        self._published += 1
        self.publish(f"{self._published:04d}", home, media_type=None)

    def listen(self, kind: type, call: Callable[[str, str, Any], None]) -> None:
        """Have `call(sender, receiver, message)` called for every message of a kind."""

        def hear(sender: str, to: str, message: object, now_ns: int) -> None:
            while isinstance(message, Hop | Routed):
                message = decode(message.message)
            if isinstance(message, kind):
                call(sender, to, message)

        self.world.listeners.append(hear)

    def sent(self, kind: type) -> list[Any]:
        """Return a list that fills with all messages of a kind from now on."""
        found: list[Any] = []
        self.listen(kind, lambda _sender, _to, message: found.append(message))
        return found

    def on_first(self, kind: type, call: Callable[[], None]) -> None:
        """Do something right after a kind of message was sent for the first time."""
        done: list[object] = []

        def hear(sender: str, to: str, message: object) -> None:
            if not done:
                done.append(message)
                self.world.at(self.world.now_ns, call)

        self.listen(kind, hear)

    def crash_for(self, broker: str, seconds: float) -> None:
        """Take a broker down for a while."""
        self.world.crash(broker)
        self._restart_later(broker, seconds)

    def tear(self, broker: str) -> None:
        """Take a broker down in the middle of a turn, if it is up, and bring it back."""
        node = self.world.nodes[broker]
        if node.broker is not None:
            self.world.tear(broker, lambda: self._restart_later(broker, 2))

    def _restart_later(self, broker: str, seconds: float) -> None:
        at_ns = self.world.now_ns + round(seconds * SECOND)
        self.world.at(at_ns, self.overlay.restart, broker)

    def lose(self, broker: str) -> None:
        """Take a broker down for ever; its clients go to another one when they notice."""
        self.world.crash(broker)
        self.world.at(self.world.now_ns + 3 * SECOND, self._reattach, broker)

    def _reattach(self, broker: str) -> None:
        devices = [*self.subscribers.values(), *self.publishers.values()]
        left = [device for device in devices if device.home == broker]
        self.ledger.broker_lost(
            broker, {device.address for device in left}, is_kept_elsewhere=lambda _: True
        )
        for device in left:
            device.reattach(self.other)

    def core(self, broker: str) -> Core:
        """The parts of a broker."""
        running = self.world.nodes[broker].broker
        assert running is not None
        return running.core

    def arrivals(self) -> list[tuple[str, str]]:
        """Who has come where, in order."""
        return [
            (record.client, broker)
            for broker, record in self.reports
            if isinstance(record, Migrated)
        ]

    def leftovers(self) -> list[str]:
        """What disks still hold of moves that are not over."""
        return [
            f"{identity}: {key}"
            for identity, node in sorted(self.world.nodes.items())
            if node.broker is not None
            for key in sorted(node.journal)
            if key.startswith(("migration/arriving", "migration/early", "migration/held"))
        ]


def decline(device: Device) -> None:
    """Have a client not want to move."""
    device.handle(
        RequestToMove, lambda asked: device.send(AcceptMove(asked.target, accepted=False))
    )
