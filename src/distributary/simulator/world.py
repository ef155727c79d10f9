"""The world: brokers and clients in virtual time.

Everything that happens is an entry of one queue, in the order of (time, sequence). Same seed,
same order, same log.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from distributary.broker.addresses import Address, Blob, is_client
from distributary.broker.client import Delivery
from distributary.broker.core import Part
from distributary.broker.driver import PRIORITY_KINDS
from distributary.broker.encoding import MESSAGE_BYTES_MAX, VERSION, encode, is_spoken, kind_name
from distributary.broker.host import Effect, Erase, Persist
from distributary.broker.settings import Settings
from distributary.broker.telemetry import Misbehaved
from distributary.errors import PeerMisbehaved
from distributary.simulator import conversions
from distributary.simulator.agenda import Agenda
from distributary.simulator.content_store import ContentTransfers
from distributary.simulator.message_sizes import weigh
from distributary.simulator.node import CommitFailed, Node, Torn, TurnFailed
from distributary.simulator.older_versions import read_by

__all__ = ["Client", "LinkModel", "Node", "PriorityLinkModel", "World"]

# How often a broker that is torn down at a commit has not made it, and how many messages leave
# it otherwise: none, some, or all that there are.
_TORN_BEFORE = 0.4
_TORN_SENDS = (0, 1, 2, 1_000_000)


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


@runtime_checkable
class PriorityLinkModel(LinkModel, Protocol):
    """Links on which messages stand in line, and some have priority."""

    def priority_arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        """Return when a message of membership arrives, however many others stand in line."""


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
    node
        A class that stands in for the hosts of brokers.
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
    conversions
        What was converted, in the order in which it was done.
    when_left
        What to do when a broker has left in good order, by broker.
    stopped
        The brokers that failed too often, with why.
    plan_ns
        How long a host takes over a plan.
    times
        How long processors and disks take is drawn from here.
    transfers
        Content on its way between hosts.
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
        node: type[Node] = Node,
        recorded: bool = True,
    ) -> None:
        self.settings = settings
        self.settings_of: dict[str, Settings] = {}
        self.network = network
        self._priority_arrivals = (
            network.priority_arrivals
            if isinstance(network, PriorityLinkModel)
            else network.arrivals
        )
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
        self.conversions: list[conversions.ConversionStep] = []
        self.refused = 0
        self.plan_ns = 0.0
        self.when_left: dict[str, Callable[[], None]] = {}
        self.stopped: dict[str, str] = {}
        self.times = random.Random(f"{seed}/times")
        self.transfers = ContentTransfers(self)
        self._node = node
        self._originals: dict[str, str] = {}
        self._recorded = recorded
        self._agenda = Agenda()
        self._log = hashlib.sha256()

    @property
    def log_hash(self) -> str:
        """A digest of every message that was sent so far: when, by whom, to whom, and what."""
        return self._log.hexdigest()

    def at(self, at_ns: int, call: Callable[..., None], *arguments: Any) -> None:
        """Have something happen at a time."""
        self._agenda.add(at_ns if at_ns > self.now_ns else self.now_ns, call, arguments)

    def run_until(self, end_ns: int) -> None:
        """Let happen what happens up to a time."""
        for at_ns, _, call, arguments in self._agenda.until(end_ns):
            self.now_ns = at_ns
            self.events += 1
            call(*arguments)
        self.now_ns = max(self.now_ns, end_ns)

    def add(self, identity: str, *first: object, version: int = VERSION) -> Node:
        """Start a broker, with what its host tells it first."""
        node = self.nodes[identity] = self._node(identity, self)
        node.version = version
        node.start(first)
        return node

    def crash(self, identity: str) -> None:
        """Stop a broker at once; its disk stays."""
        self.nodes[identity].go_down()

    def tear(self, identity: str, then: Callable[[], None]) -> None:
        """Stop a broker at its next commit: before it, or after it and some of what it sends.

        Nothing that it sends may promise what is not on its disk by then. `then` is called
        when it has gone down.
        """
        node = self.nodes[identity]

        def torn(_: Mapping[str, bytes | None]) -> Torn:
            node.at_commit = None
            durable = self.times.random() >= _TORN_BEFORE
            return Torn(durable, self.times.choice(_TORN_SENDS) if durable else 0, then)

        node.at_commit = torn

    def fail(self, identity: str, wanted: Callable[[object], bool], *, commit: bool) -> None:
        """Have a broker fail over a message that is wanted: its handler, or its commit."""
        node = self.nodes[identity]

        def after_turn(message: object, effects: list[Effect]) -> None:
            if not wanted(message):
                return
            if not commit:
                raise TurnFailed("it is to fail")
            keys = {effect.key for effect in effects if isinstance(effect, Persist | Erase)}
            if keys:
                node.after_turns(None)
                # However often it is tried, with other turns or without them.
                node.at_commit = lambda writes: (
                    CommitFailed("it is to fail") if keys <= writes.keys() else None
                )

        node.after_turns(after_turn)

    def restart(self, identity: str, *first: object) -> None:
        """Bring a broker back from its disk."""
        self.nodes[identity].start(first)

    def tell(self, identity: str, message: object, *, sender: Address) -> None:
        """Hand a message to a broker now, if it is up."""
        driver = self.nodes[identity].driver
        if driver is not None:
            driver.receive(message, sender=sender)

    def send(self, sender: Address, to: Address, message: object) -> None:
        """Put a message on its way."""
        node = self.nodes.get(sender)
        broker = None if node is None else node.broker
        version = VERSION if broker is None else broker.core.membership.version
        if version != VERSION and is_client(to):
            version = VERSION
        if version != VERSION and not is_spoken(message, version):
            # It has waited for the processor, and somebody has come who does not know it.
            return
        priority = type(message) in PRIORITY_KINDS
        size = self._record(sender, to, message, version) if self._recorded else 0
        if type(message) is Delivery and message.blob is not None and node is not None:
            node.needs(message.blob, "for a client")
        for listen in self.listeners:
            listen(sender, to, message, self.now_ns)
        if version != VERSION:
            # As bytes, so that those who know less read no more than there is.
            message = encode(message, version)
        arrivals = self._priority_arrivals if priority else self.network.arrivals
        for at_ns in arrivals(sender, to, size, self.now_ns):
            self._agenda.add(at_ns, self._arrive, (sender, to, message))

    def _record(self, sender: Address, to: Address, message: object, version: int) -> int:
        """Enter a message into the log; return its size."""
        encoded = encode(message, version)
        encoded_bytes = len(encoded)
        if encoded_bytes > MESSAGE_BYTES_MAX and version == VERSION:
            within = sender in self.nodes and to in self.nodes
            assert not within, f"{kind_name(message)} is too large"
        kind, content_bytes = weigh(message)
        size = encoded_bytes + content_bytes
        self._log.update(f"{self.now_ns} {sender} {to} ".encode() + encoded)
        self.message_counts[kind] += 1
        self.message_bytes[kind] += size
        return size

    def _arrive(self, sender: Address, to: Address, message: object) -> None:
        node = self.nodes.get(to)
        if node is None:
            client = self.clients.get(to)
            if client is not None:
                client.receive(message, sender=sender, now_ns=self.now_ns)
            return
        if node.broker is None:
            return
        if node.version != VERSION or type(message) is bytes:
            # Clients speak as their home does.
            spoken = node.version if is_client(sender) else VERSION
            data = message if isinstance(message, bytes) else encode(message, spoken)
            try:
                message = read_by(node.version, data)
            except PeerMisbehaved as error:
                self.watched(to, Misbehaved(sender, error.problem))
                return
        node.take(message, sender)

    # What nodes say.

    def log(self, what: str) -> None:
        """Enter something that is no message into the log."""
        if self._recorded:
            self._log.update(what.encode())

    def converted(self, broker: str, blob: Blob, target: str) -> conversions.ConversionOutcome:
        """Return what becomes of a conversion at a broker."""
        outcome = self.convert(broker, blob, target)
        if outcome.blob is not None:
            self._originals[outcome.blob.digest] = self.original_of(blob.digest)
        return outcome

    def original_of(self, digest: str) -> str:
        """Return the digest of the content that some content was converted from, or its own."""
        return self._originals.get(digest, digest)

    def watched(self, broker: str, record: object) -> None:
        """Tell whoever watches what a broker reports."""
        if isinstance(record, Misbehaved):
            self.refused += 1
        for watch in self.watchers:
            watch(broker, record, self.now_ns)

    def has_left(self, broker: str) -> None:
        """Do what is to be done when a broker has left in good order."""
        call = self.when_left.pop(broker, None)
        if call is not None:
            self.at(self.now_ns, call)

    def has_stopped(self, broker: str, reason: str) -> None:
        """Note that a broker is stopped for good."""
        self.stopped[broker] = reason
