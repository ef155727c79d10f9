"""Faults: what goes wrong in a run, by the scenario's word and at the seed's choice."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from distributary.broker.addresses import HOST, Address, Blob, Speaker
from distributary.broker.encoding import VERSION, speaker_of
from distributary.broker.host import ConversionRefused, Detached, Leave, Reattached
from distributary.broker.membership.roster import MemberStatus
from distributary.broker.settings import ns
from distributary.simulator.checkers.overlay import OutagesCheck
from distributary.simulator.content_store import FETCH, FetchFault, Obstacle
from distributary.simulator.conversions import ConversionOutcome, Convert
from distributary.simulator.disk import Disk
from distributary.simulator.message_sizes import weigh
from distributary.simulator.network import Disturbance, SimulatedNetwork
from distributary.simulator.scenario import Fault
from distributary.simulator.world import World

__all__ = ["FaultInjector", "PlannedFault", "outdated", "planned_faults"]

_LASTING_S = 15.0
# Within which time a host notices that it has lost its connection, or has it back.
_NOTICED_S = 1.0
_MIXED_KINDS = ("drop", "duplicate", "reorder", "delay", "partition", "crash", "torn", "slow")
# The kinds that concern one broker unless the scenario says how many.
_ONE = frozenset(
    ("partition", "crash", "torn", "commit", "full", "handler", "lost", "leave", "slow")
)
# The kinds by which brokers that are up cannot hear each other.
_CUTTING = frozenset(("partition", "detached"))
_NS_PER_MS = 1e6
_BYTES_PER_KILOBYTE = 1e3


@dataclass(frozen=True)
class PlannedFault:
    """One fault with nothing left to chance but single messages.

    Attributes
    ----------
    brokers
        The brokers concerned; empty for all. Of a fault that waits for a message, those that
        it may strike.
    until_s
        When it is over; the fault's own time for those that last for ever.
    """

    fault: Fault
    brokers: tuple[str, ...]
    until_s: float


def planned_faults(
    faults: Sequence[Fault], brokers: Sequence[str], spared: Sequence[str], rng: random.Random
) -> list[PlannedFault]:
    """Return what goes wrong, in the order of the scenario.

    Parameters
    ----------
    faults
        What the scenario says; a mix becomes as many faults as it counts.
    spared
        Those that chance does not choose.
    """
    single: list[Fault] = []
    for fault in faults:
        single.extend(_mixed(fault, rng) if fault.kind == "mix" else (fault,))
    planned = []
    for fault in single:
        until_s = fault.at_s + _LASTING_S if fault.until_s is None else fault.until_s
        if fault.kind == "skew" or (fault.kind == "lost" and fault.after is None):
            until_s = fault.at_s
        planned.append(PlannedFault(fault, _concerned(fault, brokers, spared, rng), until_s))
    return planned


def outdated(planned: Sequence[PlannedFault], brokers: Sequence[str]) -> frozenset[str]:
    """Return the brokers that begin with the version before."""
    upgrades = [one for one in planned if one.fault.kind == "upgrade"]
    return frozenset(broker for one in upgrades for broker in one.brokers or brokers)


def _mixed(fault: Fault, rng: random.Random) -> list[Fault]:
    assert fault.until_s is not None
    found = []
    for _ in range(5 if fault.count is None else fault.count):
        begin, end = sorted(rng.uniform(fault.at_s, fault.until_s) for _ in range(2))
        kind = rng.choice(_MIXED_KINDS)
        count = 1 if kind in ("crash", "torn", "slow") else None
        found.append(
            replace(
                fault,
                kind=kind,
                at_s=begin,
                until_s=min(end, begin + _LASTING_S),
                count=count,
                share=rng.uniform(0.1, 0.5) if kind == "partition" else None,
            )
        )
    return found


def _concerned(
    fault: Fault, brokers: Sequence[str], spared: Sequence[str], rng: random.Random
) -> tuple[str, ...]:
    if fault.brokers:
        return tuple(brokers[k] for k in fault.brokers)
    able = [broker for broker in brokers if broker not in spared]
    if fault.after is not None:
        return tuple(able)
    if fault.share is not None:
        count = round(fault.share * len(brokers))
    elif fault.count is not None:
        count = fault.count
    elif fault.kind in _ONE:
        count = 1
    else:
        return ()
    return tuple(sorted(rng.sample(able, min(count, len(able)))))


class FaultInjector:
    """Makes a run's faults happen.

    Parameters
    ----------
    first
        What a broker that comes back is told first.
    on_lost
        Called with each broker that is lost for ever, when it has gone down.
    on_down
        Called with each broker that crashes, when it has gone down.

    Attributes
    ----------
    planned
        What goes wrong, in the order of the scenario.
    lost
        The brokers that are never coming back, with the time at which they went.
    leaving
        The brokers that have been told to leave.
    refused
        The digests of content and formats into which it could not be converted.
    failed_commits
        How many commits did not fit on a disk.
    outages
        Told which hosts lose their connection, and get it back.
    """

    def __init__(
        self,
        world: World,
        network: SimulatedNetwork,
        planned: Sequence[PlannedFault],
        rng: random.Random,
        *,
        first: Callable[[str], tuple[object, ...]],
        on_lost: Callable[[str], None],
        on_down: Callable[[str], None],
    ) -> None:
        self._first = first
        self._on_lost = on_lost
        self._on_down = on_down
        self._world = world
        self._network = network
        self.planned = planned
        self._rng = rng
        self._crashes: dict[str, int] = {}
        self.outages = OutagesCheck()
        self.failed_commits = 0
        self.lost: dict[str, int] = {}
        self.leaving: set[str] = set()
        self.refused: set[tuple[str, str]] = set()

    @property
    def last_s(self) -> float:
        """When the last fault is over."""
        return max((planned.until_s for planned in self.planned), default=0.0)

    @property
    def has_cut(self) -> bool:
        """Whether brokers have been out of each other's reach that were up."""
        return any(
            planned.fault.kind in _CUTTING and ns(planned.fault.at_s) <= self._world.now_ns
            for planned in self.planned
        )

    def schedule(self) -> None:
        """Have everything happen at its time."""
        for planned in self.planned:
            begin, end = ns(planned.fault.at_s), ns(planned.until_s)
            if planned.fault.after is not None:
                strike = self._striking(planned, begin, end)
                if planned.fault.after == FETCH:
                    self._world.transfers.listeners.append(strike)
                else:
                    self._world.listeners.append(_after(planned.fault.after, strike))
                continue
            match planned.fault.kind:
                case "drop" | "duplicate" | "reorder" | "delay" | "partition":
                    disturbance = _disturbance(planned)
                    self._world.at(begin, self._network.disturbances.append, disturbance)
                    self._world.at(end, self._network.disturbances.remove, disturbance)
                case "crash":
                    for broker in planned.brokers:
                        self._world.at(begin, self._crash, broker)
                        self._world.at(end, self._restart, broker)
                case "upgrade":
                    for broker in planned.brokers or tuple(self._world.nodes):
                        self._world.at(begin, self._crash, broker)
                        self._world.at(end, self._upgrade, broker)
                case "torn":
                    for broker in planned.brokers:
                        self._world.at(begin, self._tear, broker, end)
                case "commit" | "handler":
                    for broker in planned.brokers:
                        self._world.at(begin, self._fail, broker, planned.fault, end)
                case "full":
                    for broker in planned.brokers:
                        self._world.at(begin, self._fill, broker, planned.fault.kilobytes)
                        self._world.at(end, self._make_room, broker)
                case "lost":
                    for broker in planned.brokers:
                        self._world.at(begin, self._lose, broker)
                case "leave":
                    for broker in planned.brokers:
                        self._world.at(begin, self._leave, broker, end)
                case "slow":
                    for broker in planned.brokers or tuple(self._world.nodes):
                        self._world.at(begin, self._slow, broker, planned.fault.factor)
                        self._world.at(end, self._slow, broker, 1.0 / planned.fault.factor)
                case "skew":
                    for broker in planned.brokers or tuple(self._world.nodes):
                        off_ns = ns(self._rng.random() * planned.fault.seconds)
                        self._world.at(begin, self._skew, broker, off_ns)
                case "slew":
                    for broker in planned.brokers or tuple(self._world.nodes):
                        off_ns = ns(self._rng.random() * planned.fault.seconds)
                        self._world.at(begin, self._skew, broker, off_ns)
                        self._world.at(end, self._skew, broker, 0)
                case "detached":
                    disturbance = _disturbance(planned)
                    self._world.at(begin, self._network.disturbances.append, disturbance)
                    self._world.at(end, self._network.disturbances.remove, disturbance)
                    for broker in planned.brokers or tuple(self._world.nodes):
                        # Hosts do not notice at once.
                        self._world.at(begin + self._notice_ns(), self._detach, broker, end)
                        self._world.at(end + self._notice_ns(), self._reattach, broker)
                case "conversion":
                    self._world.at(begin, self._spoil, planned, end)
                case "oversize":
                    self._world.at(begin, self._swell, planned, end)
                case "fetch" | "content":
                    self._world.transfers.obstacles.append(self._obstacle(planned, begin, end))
                case "converters":
                    self._world.at(begin, self._restart_converters, planned)
                    self._world.at(begin, self._overload, planned, end)
                    self._world.at(end, self._restart_converters, planned)

    def _striking(
        self, planned: PlannedFault, begin_ns: int, end_ns: int
    ) -> Callable[[str, int], None]:
        """Return what strikes the brokers that do something first."""
        fault = planned.fault
        count = len(fault.brokers) or fault.count or 1
        struck: set[str] = set()

        def strike(broker: str, now_ns: int) -> None:
            if (
                begin_ns <= now_ns < end_ns
                and len(struck) < count
                and broker in planned.brokers
                and broker not in struck
            ):
                struck.add(broker)
                # When all that it does in this turn is done.
                self._world.at(now_ns, self._strike, fault.kind, broker, end_ns)

        return strike

    def _strike(self, kind: str, broker: str, end_ns: int) -> None:
        if kind == "lost":
            self._lose(broker)
        else:
            self._crash(broker)
            self._world.at(end_ns, self._restart, broker)

    def _crash(self, broker: str) -> None:
        # A broker may be down already by another fault: it comes back with the last.
        self._crashes[broker] = self._crashes.get(broker, 0) + 1
        if self._world.nodes[broker].broker is not None:
            self._world.crash(broker)
            self._on_down(broker)

    def _restart(self, broker: str) -> None:
        self._crashes[broker] -= 1
        if self._crashes[broker] == 0 and broker not in self.lost:
            self._world.restart(broker, *self._first(broker))

    def _upgrade(self, broker: str) -> None:
        node = self._world.nodes[broker]
        if node.version != VERSION:
            node.upgrade()
        self._restart(broker)

    def _tear(self, broker: str, end_ns: int) -> None:
        node = self._world.nodes[broker]
        if node.broker is None or node.at_commit is not None:
            return

        def torn() -> None:
            self._crashes[broker] = self._crashes.get(broker, 0) + 1
            self._world.at(end_ns, self._restart, broker)

        self._world.tear(broker, torn)
        self._world.at(end_ns - 1, self._spare, broker)

    def _spare(self, broker: str) -> None:
        self._world.nodes[broker].at_commit = None

    def _fail(self, broker: str, fault: Fault, end_ns: int) -> None:
        """Have a broker fail over one message; its driver brings it back at once."""

        def wanted(message: object) -> bool:
            # What a client asks for would be refused, which is right and looks wrong.
            between_brokers = speaker_of(type(message)) is Speaker.BROKER
            return (
                self._world.now_ns < end_ns
                and between_brokers
                and fault.message in (None, weigh(message)[0])
            )

        self._world.fail(broker, wanted, commit=fault.kind == "commit")

    def _fill(self, broker: str, kilobytes: float) -> None:
        """Have a disk take no more than so much."""
        node, world = self._world.nodes[broker], self._world

        def say(message: object) -> None:
            # When the commit is done that has shown it.
            world.at(world.now_ns, partial(world.tell, broker, message, sender=HOST))

        node.disk = Disk(node.journal, round(kilobytes * _BYTES_PER_KILOBYTE), say)

    def _make_room(self, broker: str) -> None:
        node = self._world.nodes[broker]
        disk, node.disk = node.disk, None
        if disk is None:
            return
        self.failed_commits += disk.failed
        disk.recover()
        if disk.stopped:
            self._world.restart(broker, *self._first(broker))

    def _leave(self, broker: str, end_ns: int) -> None:
        """Have a broker say goodbye, and stop it when it has nothing more to tell others."""
        self.leaving.add(broker)
        if self._world.nodes[broker].broker is None:
            self._lose(broker)
            return
        self._world.when_left[broker] = lambda: self._lose(broker)
        self._world.at(end_ns, self._lose, broker)
        self._world.tell(broker, Leave(), sender=HOST)

    def _lose(self, broker: str) -> None:
        if broker in self.lost:
            return
        self._world.crash(broker)
        self.lost[broker] = self._world.now_ns
        self._on_lost(broker)

    def _slow(self, broker: str, factor: float) -> None:
        self._world.nodes[broker].slowness *= factor

    def _skew(self, broker: str, off_ns: int) -> None:
        self._world.nodes[broker].skew_ns = off_ns

    def _notice_ns(self) -> int:
        return ns(self._rng.random() * _NOTICED_S)

    def _detach(self, broker: str, end_ns: int) -> None:
        node = self._world.nodes[broker]
        running = node.broker
        if running is not None and self._world.now_ns < end_ns:
            node.detached = True
            self._world.tell(broker, Detached(), sender=HOST)
            self.outages.detached(broker, running.core.membership.alive())

    def _reattach(self, broker: str) -> None:
        node = self._world.nodes[broker]
        running = node.broker
        node.detached = False
        if running is not None:
            membership = running.core.membership
            left = membership.gossip.roster.away(MemberStatus.LEFT)
            # One that leaves itself does not count itself any more.
            there = (broker, *membership.alive(), *left)
            self.outages.reattached(broker, there, self._world.now_ns)
            self._world.tell(broker, Reattached(), sender=HOST)

    def _spoil(self, planned: PlannedFault, end_ns: int) -> None:
        healthy = self._world.convert
        self._world.convert = self._spoilt(healthy, planned, end_ns)

    def _spoilt(self, healthy: Convert, planned: PlannedFault, end_ns: int) -> Convert:
        def convert(broker: str, blob: Blob, target: str) -> ConversionOutcome:
            if (
                self._world.now_ns < end_ns
                and (not planned.brokers or broker in planned.brokers)
                and self._fails(blob, target, planned.fault.rate)
            ):
                self.refused.add((blob.digest, target))
                return ConversionOutcome(0.01, None, "the scenario has it fail")
            return healthy(broker, blob, target)

        return convert

    def _swell(self, planned: PlannedFault, end_ns: int) -> None:
        """Have results of conversions come out larger than anybody takes."""
        healthy, most = self._world.convert, self._world.settings.content.content_bytes_max

        def convert(broker: str, blob: Blob, target: str) -> ConversionOutcome:
            outcome = healthy(broker, blob, target)
            if (
                outcome.blob is None
                or self._world.now_ns >= end_ns
                or (planned.brokers and broker not in planned.brokers)
                or not self._fails(blob, target, planned.fault.rate)
            ):
                return outcome
            self.refused.add((blob.digest, target))
            large = Blob.imagined(target, most + 1, f"large {blob.digest}")
            return replace(outcome, blob=large)

        self._world.convert = convert

    def _obstacle(self, planned: PlannedFault, begin_ns: int, end_ns: int) -> Obstacle:
        """Return what has fetches fail: by chance for now, or for good because of the content."""
        fault = planned.fault

        def obstacle(broker: str, blob: Blob, holder: str) -> FetchFault | None:
            concerned = not planned.brokers or broker in planned.brokers
            if not (concerned and begin_ns <= self._world.now_ns < end_ns):
                return None
            if fault.kind == "fetch":
                fails = self._rng.random() < fault.rate
                return FetchFault("the host is busy", lasting=False) if fails else None
            if not self._fails(blob, holder, fault.rate):
                return None
            self.refused.add((blob.digest, blob.media_type))
            return FetchFault("the scenario has it be damaged", lasting=True)

        return obstacle

    def _restart_converters(self, planned: PlannedFault) -> None:
        """Have hosts lose what their converters are at; of some of it they tell the broker."""
        for broker in planned.brokers or tuple(self._world.nodes):
            for ticket in self._world.nodes[broker].converter.restart():
                if self._rng.random() < planned.fault.rate:
                    answer = ConversionRefused(ticket, "it was killed", lasting=False)
                    self._world.tell(broker, answer, sender=HOST)

    def _overload(self, planned: PlannedFault, end_ns: int) -> None:
        healthy = self._world.convert

        def convert(broker: str, blob: Blob, target: str) -> ConversionOutcome:
            if (
                self._world.now_ns < end_ns
                and (not planned.brokers or broker in planned.brokers)
                and self._rng.random() < planned.fault.rate
            ):
                return ConversionOutcome(0.01, None, "the host is busy", lasting=False)
            return healthy(broker, blob, target)

        self._world.convert = convert

    def _fails(self, blob: Blob, target: str, rate: float) -> bool:
        # A conversion that failed once fails everywhere: the content is what is wrong.
        chance = random.Random(f"{self._world.seed}/{blob.digest}/{target}")
        return chance.random() < rate


def _after(
    kind: str, strike: Callable[[str, int], None]
) -> Callable[[Address, Address, object, int], None]:
    """Return what listens for messages of a kind, and strikes who sends them."""

    def listen(sender: Address, to: Address, message: object, now_ns: int) -> None:
        if weigh(message)[0] == kind:
            strike(sender, now_ns)

    return listen


def _disturbance(planned: PlannedFault) -> Disturbance:
    fault = planned.fault
    brokers = frozenset(planned.brokers) or None
    late_ns = fault.extra_ms * _NS_PER_MS
    match fault.kind:
        case "detached":
            return Disturbance(brokers, drop=1.0)
        case "drop":
            return Disturbance(brokers, drop=fault.rate)
        case "duplicate":
            return Disturbance(brokers, duplicate=fault.rate)
        case "reorder":
            return Disturbance(brokers, late=fault.rate, late_ns=late_ns)
        case "delay":
            return Disturbance(brokers, delay_ns=late_ns)
        case _:
            return Disturbance(brokers or frozenset(), cut=True)
