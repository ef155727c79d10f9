"""Simulations: one run of a scenario with a seed, from the first broker to the last check."""

from __future__ import annotations

import json
import random
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.broker.addresses import HOST, Blob
from distributary.broker.core import Part
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import ItemId, Offer
from distributary.broker.dissemination.task import ContentRecord
from distributary.broker.encoding import OLDEST, VERSION, decode, kind_of
from distributary.broker.host import ServiceTimes, SourceOwners
from distributary.broker.links.link import Kept
from distributary.broker.links.messages import Routed
from distributary.broker.migration.messages import Redirect
from distributary.broker.publishing.publications import KeptRecord
from distributary.broker.settings import Settings, ns
from distributary.broker.telemetry import (
    Adapted,
    Migrated,
    Misbehaved,
    MoveRefused,
    Planned,
    Refined,
    SetAsideMessage,
)
from distributary.simulator.checkers.deliveries import (
    DelaysCheck,
    EndsCheck,
    ExactlyOnceCheck,
    OrderCheck,
    SelectionCheck,
    SourcesCheck,
)
from distributary.simulator.checkers.fidelity import TolerancesCheck
from distributary.simulator.checkers.ledger import Ledger, PublishedEvent
from distributary.simulator.checkers.overlay import HoldsCheck, RootsCheck, TreesCheck
from distributary.simulator.checkers.pressure import PressureCheck
from distributary.simulator.checkers.stores import ContentCheck, StoresCheck
from distributary.simulator.checkers.violation import Checker, Violation
from distributary.simulator.conversions import ConversionOutcome, Convert
from distributary.simulator.faults import FaultInjector, outdated, planned_faults
from distributary.simulator.garbage import resting_collector
from distributary.simulator.network import SimulatedNetwork
from distributary.simulator.node import Node
from distributary.simulator.places import find_places
from distributary.simulator.scenario import Scenario
from distributary.simulator.workload.content_clients import ContentClients
from distributary.simulator.workload.device import Device
from distributary.simulator.workload.publisher import Publisher
from distributary.simulator.workload.stream_clients import StreamClients
from distributary.simulator.world import World

__all__ = ["Observe", "Simulation"]

Observe = Callable[[str, int, int], None]
"""Told the stage a run is in, how far it is, and how far it goes."""

_CHUNK_S = 1.0
_WINDOWS = 60
_KEYS_MAX = 64
# After this long without a fault everybody knows who is there, if nothing is wrong.
_QUIET_S = 25.0
# Clients of brokers that take longer over messages hear things late.
_HEARS_MS = 100.0
# When clients whose home is lost try again where nobody else is up.
_NOBODY_S = 1.0
# How often disks are looked at.
_STORES_S = 5.0
# How many times as long as it should take to settle a run goes on while there is progress.
_PATIENCE = 20
_NS_PER_MS = 1e6


class Simulation:
    """One run of a scenario.

    Parameters
    ----------
    seed
        Decides everything that the scenario does not say.
    parts
        Classes that stand in for parts of brokers.
    convert
        What becomes of conversions, in place of what the graph says.
    node
        A class that stands in for the hosts of brokers.
    publisher
        A class that stands in for clients that publish.

    Attributes
    ----------
    violations
        What went wrong; known after `run`.
    """

    @checked
    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int,
        parts: Mapping[str, type[Part]] | None = None,
        convert: Convert | None = None,
        node: type[Node] = Node,
        publisher: type[Publisher] = Publisher,
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        overlay, workload = scenario.overlay, scenario.workload
        rng = np.random.default_rng(np.random.SeedSequence([seed, 0]))
        self.places = find_places(overlay, scenario.path.parent, rng)
        self.network = SimulatedNetwork(self.places, overlay, random.Random(f"{seed}/network"))
        self.world = World(
            scenario.settings, self.network, seed=seed, parts=parts, convert=convert, node=node
        )
        self.world.plan_ns = overlay.plan_ms * _NS_PER_MS
        self._refused: set[tuple[str, str]] = set()
        self._planners: dict[ItemId, set[str]] = {}
        self._upgrade_some()
        self.ledger = Ledger(scenario.settings.space.cell_of)
        chance = random.Random(f"{seed}/workload")
        brokers = self.places.identifiers
        self.content = ContentClients(
            self.world, scenario, self.ledger, self.places, self.network, chance, publisher
        )
        self.ledger.may_miss = self._may_miss
        window_ns = max(1, ns(workload.duration_s / _WINDOWS))
        self.streams = StreamClients(self.world, scenario, self.ledger, brokers, window_ns, chance)
        self._chance = random.Random(f"{seed}/faults")
        planned = planned_faults(scenario.faults, brokers, sorted(self.streams.homes), self._chance)
        self._outdated = outdated(planned, brokers)
        self.faults = FaultInjector(
            self.world,
            self.network,
            planned,
            self._chance,
            first=self._first,
            on_lost=self._lost,
            on_down=self._down,
        )
        self.exactly_once = ExactlyOnceCheck(self.ledger)
        self.selection = SelectionCheck(
            self.ledger, scenario.settings, self._refused_formats, self._deciders
        )
        self.order = OrderCheck(self.ledger)
        self.ends = EndsCheck(self.ledger)
        self.sources = SourcesCheck(self.ledger)
        self.pressure = PressureCheck(
            scenario.settings.subscriptions,
            lambda broker, client: self.world.nodes[broker].absent.get(client),
            hears=not (planned or overlay.access_loss or overlay.message_ms > _HEARS_MS),
        )
        self.world.listeners.append(self.pressure.listen)
        self.stores = StoresCheck(scenario.settings, self._disks)
        faulty = {broker for one in planned for broker in one.brokers}
        self.delays = DelaysCheck(
            self.ledger,
            workload.delay_s_max,
            lambda name: name in faulty or self._is_concerned(name, faulty),
        )
        self.trees = TreesCheck(lambda: self.streams.homes, self.faults.lost)
        takes_time = (
            bool(self.places.delays_ns.any())
            or max(overlay.access_delay_ms, overlay.filter_ms, overlay.send_ms) > 0.0
            or max(overlay.message_ms, overlay.commit_ms) > 0.0
            or max(overlay.loss, overlay.access_loss) > 0.0
        )
        self.tolerances = TolerancesCheck(
            self.streams.at_clients, without_delay=not (takes_time or planned)
        )
        self.holds = HoldsCheck(ns(scenario.settings.adaptation.hold_s), faultless=not planned)
        if self.streams.objects:
            self.world.listeners.append(self.holds.listen)
        self._checkers: tuple[Checker, ...] = (
            RootsCheck(self.world, self._keys()),
            self.exactly_once,
            self.selection,
            self.order,
            self.ends,
            self.sources,
            self.pressure,
            ContentCheck(self.world),
            self.stores,
            self.delays,
            self.trees,
            self.tolerances,
            self.holds,
            self.faults.outages,
        )
        self.violations: list[Violation] = []
        self.planned: list[Planned] = []
        self.refined = 0
        self.adapted: list[Adapted] = []
        self.migrated: list[Migrated] = []
        self.moves_refused: list[MoveRefused] = []
        self.set_aside: list[SetAsideMessage] = []
        self.world.watchers += [self.streams.watch, self.trees.watch, self._watch]
        self._service_s = self._service_times(rng)
        self._window_ns = ns(scenario.settings.adaptation.window_s)
        self._start_brokers()

    @property
    def end_ns(self) -> int:
        """When everything owed must have arrived.

        Later while it still arrives: brokers that have more to do than they can keep nobody
        waiting for ever.
        """
        workload = self.scenario.workload
        active_ns = ns(max(workload.duration_s, self.faults.last_s))
        settle_ns = ns(workload.settle_s)
        latest_ns = active_ns + _PATIENCE * settle_ns
        return min(max(active_ns, self.ledger.progress_ns) + settle_ns, latest_ns)

    @resting_collector()
    def run(self, observe: Observe | None = None) -> None:
        """Let everything happen, and check it.

        It ends when everything owed has arrived and all has been quiet for a while, or else
        at `end_ns`.
        """
        self.content.schedule()
        self.streams.schedule()
        self.faults.schedule()
        self._schedule_shift()
        self.world.at(self._window_ns, self._measure)
        self.world.at(ns(_STORES_S), self._look_at_stores)
        workload = self.scenario.workload
        active_ns = ns(max(workload.duration_s, self.faults.last_s))
        quiet_ns = min(active_ns + ns(_QUIET_S), self.end_ns)
        try:
            while self.world.now_ns < self.end_ns:
                self.world.run_until(min(self.world.now_ns + ns(_CHUNK_S), self.end_ns))
                if observe is not None:
                    observe("simulating", self.world.now_ns // 10**9, self.end_ns // 10**9)
                if self.world.now_ns >= quiet_ns and self._is_settled():
                    break
        except Exception as error:
            # Whatever a broker raises is a fault of the protocol, and has a seed.
            at = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(at.filename).name}:{at.lineno}"
            self._complain("broker", f"{type(error).__name__} at {place}: {error}")
        else:
            self._check()
        for checker in self._checkers:
            self.violations += checker.violations
        self.violations.sort(key=lambda violation: violation.at_ns)

    def _check(self) -> None:
        now_ns = self.world.now_ns
        for broker, reason in sorted(self.world.stopped.items()):
            self._complain("broker", f"{broker} was stopped: {reason}")
        for checker in self._checkers:
            checker.finish(now_ns)
        self.streams.at_brokers.finish(now_ns)
        self.streams.at_clients.finish(now_ns)

    def _is_settled(self) -> bool:
        """Whether everything owed has arrived, so that waiting on shows nothing new."""
        at_clients = self.streams.at_clients
        return self.ledger.is_complete() and not (
            at_clients.without_copy() or at_clients.outside_now()
        )

    def _keys(self) -> list[str]:
        space = self.scenario.settings.space
        digits = len(self.places.identifiers[0])
        count = min(space.cell_count, _KEYS_MAX, max(4, 4096 // len(self.places.identifiers)))
        return [space.key(cell).hex()[:digits] for cell in range(count)]

    def _start_brokers(self) -> None:
        overlay = self.scenario.overlay
        for index, identity in enumerate(self.places.identifiers):
            if overlay.join == "together":
                self._add(identity)
            else:
                gap_ns = ns(self.scenario.workload.begin_s * 0.25) // overlay.brokers
                self.world.at(index * gap_ns, self._add, identity)

    def _add(self, identity: str) -> None:
        version = OLDEST if identity in self._outdated else VERSION
        node = self.world.add(identity, *self._first(identity), version=version)
        index = self.places.identifiers.index(identity)
        node.message_ns = self.scenario.overlay.message_ms * _NS_PER_MS
        node.commit_ns = self.scenario.overlay.commit_ms * _NS_PER_MS
        node.node_cost = float(self.places.node_costs[index])
        self._set_service(identity, 1.0)

    def _first(self, identity: str) -> tuple[object, ...]:
        """Return what a broker is told before it starts, or starts again."""
        index = self.places.identifiers.index(identity)
        owners = SourceOwners(self.content.owners)
        if self.scenario.overlay.join == "together":
            told = self.places.surroundings(index, members=self.places.identifiers)
            return (replace(told, version=OLDEST) if self._outdated else told, owners)
        contact = self.places.identifiers[0] if index else None
        return (self.places.surroundings(index, members=(), contact=contact), owners)

    def _service_times(self, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
        """Return the mean filter and send times of brokers in seconds; roots are the fastest."""
        overlay = self.scenario.overlay
        factors = rng.uniform(0.2, 1.8, size=(overlay.brokers, 2))
        homes = self.streams.homes
        return {
            identity: (
                overlay.filter_ms / 1e3 * (0.2 if identity in homes else row[0]),
                overlay.send_ms / 1e3 * (0.2 if identity in homes else row[1]),
            )
            for identity, row in zip(self.places.identifiers, factors.tolist(), strict=True)
        }

    def _set_service(self, identity: str, factor: float) -> None:
        filter_s, send_s = (factor * seconds for seconds in self._service_s[identity])
        if filter_s > 0.0 or send_s > 0.0:
            node = self.world.nodes[identity]
            node.service_ns = {"filter": filter_s * 1e9, "send": send_s * 1e9}

    def _measure(self) -> None:
        """Tell brokers how long their processors take, as measured since the last time."""
        for identity, node in sorted(self.world.nodes.items()):
            if node.service_ns:
                times = ServiceTimes(node.measured_s("filter"), node.measured_s("send"))
                self.world.tell(identity, times, sender=HOST)
        self.world.at(self.world.now_ns + self._window_ns, self._measure)

    def _schedule_shift(self) -> None:
        shift = self.scenario.workload.shift
        if shift is not None:
            self.world.at(ns(shift.at_s), self._shift)

    def _shift(self) -> None:
        shift = self.scenario.workload.shift
        assert shift is not None
        if shift.load != 1.0:
            # A shift moves load: half of the brokers get busier by as much as others get idle.
            for index, identity in enumerate(self.places.identifiers):
                self._set_service(identity, shift.load if index % 2 else 1.0 / shift.load)
        self.network.delay_factor *= shift.delays
        if shift.tolerances != 1.0:
            self.streams.change_tolerances(shift.tolerances)
        if shift.rates != 1.0:
            self.streams.change_rates(shift.rates)

    def _lost(self, broker: str) -> None:
        """Have the clients of a lost broker go elsewhere."""
        self._excuse(broker)
        at_ns = self.world.now_ns + ns(self.scenario.workload.reattach_s)
        self.world.at(at_ns, self._reattach, broker)

    def _excuse(self, broker: str) -> None:
        self.ledger.broker_lost(
            broker,
            {client.address for client in self._clients_of(broker)},
            is_kept_elsewhere=self._kept_elsewhere(broker),
            had=self._had(broker),
            redirected=self._redirected(broker),
        )
        self._put_out_of_reach(broker)

    def _redirected(self, broker: str) -> set[tuple[str, ItemId]]:
        """Return what is on its way from a broker to the next homes of clients, by client."""
        found: set[tuple[str, ItemId]] = set()
        for key, data in self.world.nodes[broker].journal.items():
            if key.startswith("links/out/"):
                message = decode(data).message
                if kind_of(message) is Redirect:
                    queued: Queued = decode(decode(message).parcel)
                    found.add((queued.client, queued.identity))
        return found

    def _had(self, broker: str) -> Callable[[ItemId], bool]:
        """Return what was published at a broker."""
        return self._found_in(
            record
            for key, record in self.world.nodes[broker].journal.items()
            if key.startswith("publishing/kept/")
        )

    def _put_out_of_reach(self, lost: str) -> None:
        is_at_hand = self._kept_elsewhere(lost, up=True)
        self.ledger.out_of_reach(lost, is_at_hand=is_at_hand, had=self._had(lost))

    def _down(self, broker: str) -> None:
        """Note what nobody has who is up, of that whose publisher's home is lost."""
        for lost in sorted(self.faults.lost.keys() - {broker}):
            self._put_out_of_reach(lost)

    def _look_at_stores(self) -> None:
        self.stores.look(self.world.now_ns)
        self.world.at(self.world.now_ns + ns(_STORES_S), self._look_at_stores)

    def _disks(self) -> dict[str, dict[str, bytes]]:
        return {identity: node.journal for identity, node in sorted(self.world.nodes.items())}

    def _device(self, address: str) -> Device | None:
        device = self.world.clients.get(address)
        return device if isinstance(device, Device) else None

    def _may_miss(self, client: str) -> bool:
        """Whether the home of a client has been away, or one from which it has come.

        One that was cut off from some others was away for these.
        """
        device = self._device(client)
        homes = () if device is None else (device.home, *device.left)
        return bool(homes) and (
            self.faults.has_cut or any(self.world.nodes[home].life > 0 for home in homes)
        )

    def _is_concerned(self, client: str, faulty: set[str]) -> bool:
        """Whether something goes wrong with a client, or with its home."""
        device = self._device(client)
        return device is not None and (device.concerned or device.home in faulty)

    def _clients_of(self, broker: str) -> list[Device]:
        clients = (*self.content.subscribers, *self.content.publishers, *self.streams.followers)
        return [client for client in clients if client.home == broker]

    def _reattach(self, broker: str) -> None:
        # Some may have been about to move, to it or away from it, when it was lost.
        self._excuse(broker)
        up = [
            identity
            for identity, node in sorted(self.world.nodes.items())
            if node.broker is not None and identity not in self.faults.leaving
        ]
        if not up:
            self.world.at(self.world.now_ns + ns(_NOBODY_S), self._reattach, broker)
            return
        for client in self._clients_of(broker):
            client.reattach(self._chance.choice(up))

    def _kept_elsewhere(self, broker: str, *, up: bool = False) -> Callable[[ItemId], bool]:
        """Return whether another broker, or one that is up, can serve all with a publication.

        Homes that have got it know that they have, and relays may have some formats for some
        homes on their way: neither can serve the rest.
        """
        others = {
            name: node
            for name, node in self.world.nodes.items()
            if name != broker and (node.broker is not None or not up)
        }
        stored = {digest for node in others.values() for digest in node.store}
        return self._found_in(
            record
            for _, node in sorted(others.items())
            for key, record in node.journal.items()
            if _can_serve(key, record, node.store.keys(), stored)
        )

    def _found_in(self, records: Iterable[bytes]) -> Callable[[ItemId], bool]:
        """Return whether a publication is in some records."""
        disks = b"\n".join(records)

        def is_there(identity: ItemId) -> bool:
            if not identity.tenant:
                return identity.id.encode() in disks
            # Other tenants have the same ids, but not the same events.
            event = self.ledger.published[identity].publication
            return json.dumps(event.document(), separators=(",", ":")).encode() in disks

        return is_there

    def _refused_formats(self, published: PublishedEvent) -> frozenset[str]:
        """Return the formats that something could not be converted into."""
        refused = self.faults.refused | self._refused
        if not refused:
            return frozenset()
        original_of = self.world.original_of
        return frozenset(
            target for digest, target in refused if original_of(digest) == published.digest
        )

    def _upgrade_some(self) -> None:
        """Give some brokers the newer graph, and converters that go with it."""
        newer = self.scenario.newer
        if newer is None:
            return
        brokers = self.places.identifiers
        count = round(self.scenario.content.newer_share * len(brokers))
        chosen = random.Random(f"{self.seed}/newer").sample(brokers, count)
        self.world.settings_of.update(dict.fromkeys(chosen, newer))
        convert = self.world.convert

        def noting(broker: str, blob: Blob, target: str) -> ConversionOutcome:
            outcome = convert(broker, blob, target)
            if outcome.blob is None:
                self._refused.add((blob.digest, target))
            return outcome

        self.world.convert = noting

    def _deciders(self, published: PublishedEvent) -> list[Settings]:
        """Return the settings of the roots that have decided who gets what of something."""
        roots = sorted(self._planners.get(published.identity, ()))
        return [self.world.settings_of.get(root, self.world.settings) for root in roots]

    def _watch(self, broker: str, record: object, now_ns: int) -> None:
        if isinstance(record, Planned):
            self.planned.append(record)
            identity = ItemId(record.tenant, record.source, record.id)
            self._planners.setdefault(identity, set()).add(broker)
        elif isinstance(record, Refined):
            self.refined += 1
        elif isinstance(record, Adapted):
            self.adapted.append(record)
        elif isinstance(record, Migrated):
            self.migrated.append(record)
        elif isinstance(record, MoveRefused):
            self.moves_refused.append(record)
        elif isinstance(record, SetAsideMessage):
            self.set_aside.append(record)
        elif isinstance(record, Misbehaved) and record.peer in self.world.nodes:
            # Whoever gets such a message is not to blame. Who sends it is, if it is ours.
            self._complain("broker", f"{broker} says of {record.peer}: {record.problem}")

    def _complain(self, checker: str, what: str) -> None:
        self.violations.append(Violation(checker, self.world.now_ns, what))


def _can_serve(key: str, data: bytes, own: Collection[str], stored: Collection[str]) -> bool:
    """Whether everybody can be served from a record of a broker.

    Parameters
    ----------
    own, stored
        The content that this broker has, and that all together have. A publisher's home that
        has taken something over from another one gets the content from there; a root that
        has none yet can only get it from the publisher's home.
    """
    if not key.startswith(("publishing/kept/", "dissemination/content/", "links/out/")):
        return False
    record = decode(data)
    if isinstance(record, KeptRecord | ContentRecord):
        there = stored if isinstance(record, KeptRecord) else own
        return record.blob is None or record.blob.digest in there
    carried = decode(record.message) if isinstance(record, Kept) else None
    offer = decode(carried.message) if isinstance(carried, Routed) else None
    return isinstance(offer, Offer) and offer.blob is None
