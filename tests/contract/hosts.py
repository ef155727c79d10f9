"""Hosts to run the contract on: what each has to be able to do for a test.

Another host joins by a class like `SimulatedHost` and a line in `HOSTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tests.contract.bench import CLIENT, Bench, Said

from distributary.broker.addresses import Address
from distributary.broker.broker import Broker
from distributary.broker.encoding import decode
from distributary.broker.host import Neighbour, Surroundings
from distributary.broker.settings import Settings, ns
from distributary.simulator.node import CommitFailed, Node, Torn
from distributary.simulator.world import World

GRAPH = (
    '{"formats": [{"name": "a/a", "size": {"fixed": 0, "per_mb": 1}},'
    '{"name": "b/b", "size": {"fixed": 0.1, "per_mb": 0}}],'
    '"conversions": [{"from": "a/a", "to": "b/b", "cost": {"fixed": 1, "per_mb": 1}}]}'
)
OWN, PEER = "0000000a", "f000000b"


def first() -> Sequence[object]:
    """What the broker is told before it starts."""
    return (Surroundings((Neighbour(PEER, 1_000_000),), members=(OWN, PEER)),)


class HostUnderTest(Protocol):
    """One broker, `OWN`, with the part `Bench`, on a host whose disk and time a test controls.

    Attributes
    ----------
    sent
        Every message that has left, with its receiver.
    reports
        Everything that was reported.
    left
        How often the host was told that the broker has left.
    """

    sent: list[tuple[Address, object]]
    reports: list[object]
    left: int

    @property
    def commits(self) -> int:
        """How many commits have been made or tried."""

    @property
    def failures(self) -> list[str]:
        """The errors that the host was told of."""

    @property
    def stopped(self) -> list[str]:
        """Why the broker was stopped, if it was."""

    @property
    def broker(self) -> Broker:
        """The broker, which is up."""

    def tell(self, message: object, sender: Address = CLIENT) -> None:
        """Hand over a message."""

    def run(self, seconds: float) -> None:
        """Let time pass."""

    def disk(self) -> Mapping[str, bytes]:
        """Return what is durable."""

    def hold(self) -> None:
        """Have commits take until `release`."""

    def release(self) -> None:
        """Let commits take no time again."""

    def fail(self, wanted: Callable[[Mapping[str, bytes | None]], bool]) -> None:
        """Have commits fail, in the time that they take, while they contain something."""

    def crash_at_commit(self, *, durable: bool) -> None:
        """Crash at the next commit, before or after it, before anything leaves."""

    def crash(self) -> None:
        """Crash now."""

    def restart(self) -> None:
        """Start again from the disk."""

    def damage(self, key: str, data: bytes) -> None:
        """Have the disk give back something else."""

    def turn_clock_back(self, seconds: float) -> None:
        """Have the machine's clock go back."""

    def close(self) -> None:
        """Give back what it takes of the machine."""


class _TestNode(Node):
    """A node whose disk can be held."""

    def __init__(self, identity: str, world: World) -> None:
        super().__init__(identity, world)
        self.commits = 0
        self.held = False
        self.errors: list[str] = []
        self.held_writes: Mapping[str, bytes | None] | None = None

    def commit(self, writes: Mapping[str, bytes | None]) -> bool:
        self.commits += 1
        if self.held:
            self.held_writes = writes
            return False
        return super().commit(writes)

    def release(self) -> None:
        self.held = False
        writes, self.held_writes = self.held_writes, None
        if writes is not None:
            self._committed(self.life, writes)

    def failed(self, error: Exception, message: object | None) -> None:
        self.errors.append(f"{type(error).__name__} over {type(message).__name__}: {error}")


class _Elsewhere:
    """A network on which everything leaves, and nothing arrives."""

    def arrivals(self, sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        return ()


class SimulatedHost:
    """The simulator's."""

    def __init__(self) -> None:
        self.sent: list[tuple[Address, object]] = []
        self.reports: list[object] = []
        self.left = 0
        self.world = World(
            Settings(graph=GRAPH), _Elsewhere(), seed=1, parts={"bench": Bench}, node=_TestNode
        )
        self.world.listeners.append(lambda _, to, message, __: self.sent.append((to, message)))
        self.world.watchers.append(lambda _, record, __: self.reports.append(record))
        self.world.when_left[OWN] = self._left
        node = self.world.add(OWN, *self._first())
        assert isinstance(node, _TestNode)
        self.node = node
        self.sent.clear()
        self.node.commits = 0

    @property
    def broker(self) -> Broker:
        assert self.node.broker is not None
        return self.node.broker

    @property
    def commits(self) -> int:
        return self.node.commits

    @property
    def failures(self) -> list[str]:
        return self.node.errors

    @property
    def stopped(self) -> list[str]:
        return list(self.world.stopped.values())

    def tell(self, message: object, sender: Address = CLIENT) -> None:
        self.world.tell(OWN, message, sender=sender)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ns + ns(seconds))

    def disk(self) -> Mapping[str, bytes]:
        return dict(self.node.journal)

    def hold(self) -> None:
        self.node.held = True

    def release(self) -> None:
        self.node.release()

    def fail(self, wanted: Callable[[Mapping[str, bytes | None]], bool]) -> None:
        self.node.at_commit = lambda writes: CommitFailed("disk") if wanted(writes) else None

    def crash_at_commit(self, *, durable: bool) -> None:
        self.node.at_commit = lambda _: Torn(durable)

    def crash(self) -> None:
        self.world.crash(OWN)

    def restart(self) -> None:
        self.world.restart(OWN, *self._first())

    def damage(self, key: str, data: bytes) -> None:
        self.node.journal[key] = data

    def turn_clock_back(self, seconds: float) -> None:
        self.node.skew_ns -= ns(seconds)

    def close(self) -> None:
        self.world.nodes.clear()

    def _first(self) -> Sequence[object]:
        return first()

    def _left(self) -> None:
        self.left += 1


def _on_nats() -> HostUnderTest:
    from tests.contract.network_host import HostOnNats

    return HostOnNats()


HOSTS: Mapping[str, Callable[[], HostUnderTest]] = {"simulator": SimulatedHost, "nats": _on_nats}


def bench_of(host: HostUnderTest) -> Bench:
    part = host.broker.core.parts["bench"]
    assert isinstance(part, Bench)
    return part


def said(host: HostUnderTest) -> list[str]:
    """What the bench has said to its client."""
    return [message.text for _, message in host.sent if isinstance(message, Said)]


def kept(host: HostUnderTest) -> dict[str, str]:
    """What the bench has on the disk."""
    found = host.disk().items()
    records = {key.removeprefix("bench/"): decode(data) for key, data in found if "bench/" in key}
    return {key: record.text for key, record in records.items()}
