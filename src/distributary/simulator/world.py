"""The world: brokers and clients in virtual time.

Everything that happens is an entry of one queue, in the order of (time, sequence). Same seed,
same order, same log.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from distributary.broker.addresses import HOST, Address, is_client
from distributary.broker.broker import Broker
from distributary.broker.core import Part
from distributary.broker.effects import (
    ConversionRefused,
    Convert,
    Converted,
    Effect,
    Erase,
    MakePlan,
    Persist,
    PlanMade,
    Report,
    Send,
    Serve,
    Spend,
)
from distributary.broker.encoding import MESSAGE_BYTES_MAX, VERSION, decode, encode, kind_name
from distributary.broker.settings import Settings
from distributary.broker.telemetry import Misbehaved
from distributary.errors import PeerMisbehaved
from distributary.simulator import conversions
from distributary.simulator.message_sizes import weigh
from distributary.simulator.node import Node
from distributary.simulator.older_versions import read_by

__all__ = ["Client", "LinkModel", "Node", "World"]


class Client(Protocol):
    """Somebody outside the overlay who talks to a home broker."""

    def receive(self, message: object, *, sender: Address, now_ns: int) -> None:
        """Take a message from a broker."""


class LinkModel(Protocol):
    """What becomes of a message on its way."""

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        """Return when it arrives: nothing when it is lost, twice when it is repeated."""


class World:
    """Brokers and clients in virtual time.

    Parameters
    ----------
    network
        Decides when messages arrive.
    parts
        Classes that stand in for parts of brokers.
    convert
        What becomes of conversions; unless given, what the settings' graph says.
    recorded
        Whether messages are weighed, counted and entered into the log. Without that a run
        of many small messages is faster, and messages take no room on links.

    Attributes
    ----------
    settings_of
        The settings of brokers that do not have the same as the others.
    watchers
        Called with (broker, record, time) for everything that a broker reports.
    listeners
        Called with (sender, receiver, message, time) for every message that is sent.
    message_counts, message_bytes
        How many messages were sent, and how many bytes they took, by kind.
    plan_ns
        How long a host takes over a plan.
    refused
        How many messages broke the protocol, and were dropped by those who got them.
    """

    def __init__(
        self,
        settings: Settings,
        network: LinkModel,
        *,
        seed: int,
        parts: Mapping[str, type[Part]] | None = None,
        convert: conversions.Convert | None = None,
        recorded: bool = True,
    ) -> None:
        self.settings = settings
        self.settings_of: dict[str, Settings] = {}
        self.network = network
        self.seed = seed
        self.parts = parts
        if convert is None:
            convert = conversions.GraphConversions(settings, self.settings_of)
        self.convert = convert
        self.now_ns = 0
        self.events = 0
        self.nodes: dict[str, Node] = {}
        self.clients: dict[Address, Client] = {}
        self.watchers: list[Callable[[str, object, int], None]] = []
        self.listeners: list[Callable[[Address, Address, object, int], None]] = []
        self.message_counts: Counter[str] = Counter()
        self.message_bytes: Counter[str] = Counter()
        self.refused = 0
        self.plan_ns = 0.0
        self._originals: dict[str, str] = {}
        self._recorded = recorded
        self._times = random.Random(f"{seed}/times")
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._log = hashlib.sha256()

    @property
    def log_hash(self) -> str:
        """A digest of every message that was sent so far: when, by whom, to whom, and what."""
        return self._log.hexdigest()

    def at(self, at_ns: int, call: Callable[..., None], *arguments: Any) -> None:
        """Have something happen at a time."""
        self._count += 1
        heapq.heappush(self._queue, (max(at_ns, self.now_ns), self._count, call, arguments))

    def run_until(self, end_ns: int) -> None:
        """Let happen what happens up to a time."""
        queue, pop = self._queue, heapq.heappop
        while queue and queue[0][0] <= end_ns:
            self.now_ns, _, call, arguments = pop(queue)
            self.events += 1
            call(*arguments)
        self.now_ns = max(self.now_ns, end_ns)

    def add(self, identity: str, *first: object, version: int = VERSION) -> Node:
        """Start a broker, with what its host tells it first."""
        node = self.nodes[identity] = Node(identity, version)
        self._start(node, first)
        return node

    def crash(self, identity: str) -> None:
        """Stop a broker at once; its disk stays."""
        self.nodes[identity].go_down(self.now_ns)

    def tear(self, identity: str, then: Callable[[], None]) -> None:
        """Stop a broker in the middle of its next turn, after it has sent something.

        What it promised in what it sent must be on its disk by then. `then` is called when
        it has gone down.
        """
        self.nodes[identity].tear = then

    def restart(self, identity: str, *first: object) -> None:
        """Bring a broker back from its disk."""
        self._start(self.nodes[identity], first)

    def tell(self, identity: str, message: object, *, sender: Address) -> None:
        """Hand a message to a broker now, if it is up.

        What breaks the protocol is dropped and reported, as brokers themselves report what
        comes to them over a link.
        """
        node = self.nodes[identity]
        if node.broker is None:
            return
        now_ns = node.clock_ns(self.now_ns)
        try:
            effects = node.broker.receive(message, sender=sender, now_ns=now_ns)
        except PeerMisbehaved as error:
            if sender == HOST:
                raise
            # The broker is as it was before, and goes on.
            self._watched(node, Misbehaved(sender, error.problem))
            return
        self._do(node, effects)

    def send(self, sender: Address, to: Address, message: object) -> None:
        """Put a message on its way."""
        version = self._version_of(sender, to)
        size = self._record(sender, to, message, version) if self._recorded else 0
        for listen in self.listeners:
            listen(sender, to, message, self.now_ns)
        if version != VERSION:
            # As bytes, so that those who know less read no more than there is.
            message = encode(message, version)
        for at_ns in self.network.arrivals(sender, to, size, self.now_ns):
            self.at(at_ns, self._arrive, sender, to, message)

    def _version_of(self, sender: Address, to: Address) -> int:
        """Return the version in which a message is to be encoded."""
        node = self.nodes.get(sender)
        if node is None or node.broker is None or is_client(to):
            return VERSION
        return node.broker.version

    def _record(self, sender: Address, to: Address, message: object, version: int) -> int:
        """Enter a message into the log; return its size."""
        encoded = encode(message, version)
        if version == VERSION and sender in self.nodes and to in self.nodes:
            assert len(encoded) <= MESSAGE_BYTES_MAX, f"{kind_name(message)} is too large"
        kind, content_bytes = weigh(message)
        size = len(encoded) + content_bytes
        self._log.update(f"{self.now_ns} {sender} {to} ".encode())
        self._log.update(encoded)
        self.message_counts[kind] += 1
        self.message_bytes[kind] += size
        return size

    def _arrive(self, sender: Address, to: Address, message: object) -> None:
        if is_client(to):
            client = self.clients.get(to)
            if client is not None:
                client.receive(message, sender=sender, now_ns=self.now_ns)
            return
        node = self.nodes.get(to)
        if node is None or node.broker is None:
            return
        if isinstance(message, bytes) or node.version != VERSION:
            # Clients speak as their home does.
            spoken = node.version if is_client(sender) else VERSION
            data = message if isinstance(message, bytes) else encode(message, spoken)
            try:
                message = read_by(node.version, data)
            except PeerMisbehaved as error:
                self._watched(node, Misbehaved(sender, error.problem))
                return
        if node.message_ns > 0.0:
            self._queue_job(node, (sender, message))
        else:
            self.tell(to, message, sender=sender)

    def _start(self, node: Node, first: tuple[object, ...]) -> None:
        assert node.broker is None
        # What a disk gives back is what was written, not the objects that were alive.
        version = node.version
        journal = {key: decode(encode(record, version)) for key, record in node.journal.items()}
        rng = random.Random(f"{self.seed}/{node.identity}/{node.life}")
        settings = self.settings_of.get(node.identity, self.settings)
        broker = Broker.restore(
            node.identity, settings, journal, rng=rng, parts=self.parts, version=version
        )
        node.broker = broker
        for message in first:
            self.tell(node.identity, message, sender=HOST)
        self._do(node, broker.start(now_ns=node.clock_ns(self.now_ns)))

    def _do(self, node: Node, effects: list[Effect]) -> None:
        """Carry out what a broker asks for, behind what its processor is busy with."""
        if node.tear is not None and self._torn(node, effects):
            return
        if node.busy:
            self._put_off(node, effects)
        else:
            spent_ns = 0
            for position, effect in enumerate(effects):
                if type(effect) is Spend:
                    spent_ns += self._spent_ns(node, effect)
                elif spent_ns > 0:
                    self._put_off(node, effects[position:])
                    break
                else:
                    self._carry_out(node, effect)
            if spent_ns > 0:
                node.busy = True
                self.at(self.now_ns + spent_ns, self._go_on, node, node.life)
        self._rearm(node)

    def _put_off(self, node: Node, effects: Sequence[Effect]) -> None:
        """Have effects wait for the processor, but not what is only seen from outside.

        What a broker reports has happened: its copy is new although it has not been passed on.
        """
        for effect in effects:
            if type(effect) is Report:
                self._carry_out(node, effect)
            else:
                node.waiting_effects.append(effect)

    def _torn(self, node: Node, effects: Sequence[Effect]) -> bool:
        """Take a broker down within this turn, if it sends something and then does more."""
        sent = [k for k, effect in enumerate(effects[:-1], start=1) if type(effect) is Send]
        if not sent or node.busy:
            return False
        then, node.tear = node.tear, None
        assert then is not None
        # Rather before something is written than anywhere.
        early = [k for k in sent if any(type(later) is Persist for later in effects[k:])]
        for effect in effects[: self._times.choice(early or sent)]:
            self._carry_out(node, effect)
        node.go_down(self.now_ns)
        then()
        return True

    def _carry_out(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.send(node.identity, effect.to, effect.message)
        elif isinstance(effect, Persist):
            node.journal[effect.key] = effect.record
        elif isinstance(effect, Erase):
            node.journal.pop(effect.key, None)
        elif isinstance(effect, Report):
            self._watched(node, effect.record)
        elif isinstance(effect, Serve):
            self._queue_job(node, effect.ticket)
        elif isinstance(effect, MakePlan):
            made_ns = self.now_ns + round(self.plan_ns * node.slowness)
            self.at(made_ns, self._made_plan, node, effect)
        elif isinstance(effect, Convert):
            blob = effect.blob
            outcome = self.convert(node.identity, blob, effect.target)
            if outcome.blob is not None:
                self._originals[outcome.blob.digest] = self.original_of(blob.digest)
            self._convert(node, effect.ticket, outcome)

    def original_of(self, digest: str) -> str:
        """Return the digest of the content that some content was converted from, or its own."""
        return self._originals.get(digest, digest)

    def _watched(self, node: Node, record: object) -> None:
        if isinstance(record, Misbehaved):
            self.refused += 1
        for watch in self.watchers:
            watch(node.identity, record, self.now_ns)

    def _spent_ns(self, node: Node, effect: Spend) -> int:
        spent_ns = self._drawn_ns(node, node.service_ns.get(effect.work, 0.0))
        count, sum_ns = node.measured_ns.get(effect.work, (0, 0))
        node.measured_ns[effect.work] = (count + 1, sum_ns + spent_ns)
        return spent_ns

    def _drawn_ns(self, node: Node, mean_ns: float) -> int:
        """Return an exponential time, as in the papers' queueing model."""
        if mean_ns <= 0.0:
            return 0
        return round(self._times.expovariate(1.0) * mean_ns * node.slowness)

    def _go_on(self, node: Node, life: int) -> None:
        """Go on with what waits behind the work that is done now."""
        if node.life != life:
            return
        waiting = node.waiting_effects
        spent_ns = 0
        while waiting:
            effect = waiting[0]
            if type(effect) is Spend:
                spent_ns += self._spent_ns(node, effect)
            elif spent_ns > 0:
                break
            waiting.popleft()
            if type(effect) is not Spend:
                self._carry_out(node, effect)
        if spent_ns > 0:
            # What is done one after the other, with nothing to be seen in between, ends once.
            self.at(self.now_ns + spent_ns, self._go_on, node, life)
            return
        node.busy = False
        if node.jobs:
            self.at(self.now_ns, self._next_job, node, life)

    def _queue_job(self, node: Node, job: int | tuple[Address, object]) -> None:
        node.jobs.append(job)
        if not node.busy and len(node.jobs) == 1:
            self.at(self.now_ns, self._next_job, node, node.life)

    def _next_job(self, node: Node, life: int) -> None:
        if node.life != life or node.busy or not node.jobs:
            return
        job = node.jobs.popleft()
        assert node.broker is not None
        if isinstance(job, int):
            self._do(node, node.broker.serve(job, now_ns=node.clock_ns(self.now_ns)))
            if node.life == life and not node.busy and node.jobs:
                self.at(self.now_ns, self._next_job, node, life)
        else:
            node.busy = True
            spent_ns = self._drawn_ns(node, node.message_ns)
            self.at(self.now_ns + spent_ns, self._taken, node, life, *job)

    def _taken(self, node: Node, life: int, sender: Address, message: object) -> None:
        """Hand over a message over which the processor has taken its time."""
        if node.life != life:
            return
        # What waited behind it was asked for before.
        self._go_on(node, life)
        self.tell(node.identity, message, sender=sender)

    def _convert(self, node: Node, ticket: int, outcome: conversions.ConversionOutcome) -> None:
        seconds = outcome.seconds * node.node_cost * node.slowness
        at_ns = node.converter.ask(ticket, seconds, now_ns=self.now_ns)
        if at_ns is None:
            return
        answer = (
            ConversionRefused(ticket, outcome.reason, outcome.lasting)
            if outcome.blob is None
            else Converted(ticket, outcome.blob)
        )
        self.at(at_ns, self._converted, node, answer)

    def _converted(self, node: Node, answer: Converted | ConversionRefused) -> None:
        """Answer whoever is there, be it in another life than whoever asked."""
        if node.converter.is_done(answer.ticket, self.now_ns):
            self.tell(node.identity, answer, sender=HOST)

    def _made_plan(self, node: Node, effect: MakePlan) -> None:
        self.tell(node.identity, PlanMade(effect.ticket, effect.problem.solve()), sender=HOST)

    def _rearm(self, node: Node) -> None:
        if node.broker is None:
            return
        own_ns = node.broker.wake_at_ns()
        if own_ns is None:
            return
        at_ns = max(own_ns - node.skew_ns, self.now_ns)
        if node.wake_ns is None or at_ns < node.wake_ns:
            node.wake_ns = at_ns
            self.at(at_ns, self._wake, node, node.life, at_ns)

    def _wake(self, node: Node, life: int, at_ns: int) -> None:
        if node.broker is None or node.life != life or node.wake_ns != at_ns:
            return
        node.wake_ns = None
        self._do(node, node.broker.wake(now_ns=node.clock_ns(self.now_ns)))
