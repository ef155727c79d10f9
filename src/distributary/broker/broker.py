"""One broker: its parts, and the contract with its host."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from distributary.broker.adaptation.adaptation import Adaptation
from distributary.broker.addresses import HOST, Address, Speaker, is_client
from distributary.broker.content import Content
from distributary.broker.core import Core, Part
from distributary.broker.deliveries.deliveries import Deliveries
from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import VERSION, decode, kinds, speaker_of
from distributary.broker.host import (
    ConversionRefused,
    Converted,
    Effect,
    Leave,
    Left,
    PlanMade,
    Send,
    Turn,
)
from distributary.broker.links.links import Links
from distributary.broker.membership.membership import Membership
from distributary.broker.migration.migration import Migration
from distributary.broker.publishing.publishing import Publishing
from distributary.broker.relays import Relays
from distributary.broker.rendezvous.rendezvous import Rendezvous
from distributary.broker.settings import Settings, ns
from distributary.broker.storage import Storage
from distributary.broker.streams.streams import Streams
from distributary.broker.subscriptions.subscriptions import Subscriptions
from distributary.errors import JournalDamaged, LocalMisuse, PeerMisbehaved

__all__ = ["PARTS", "Broker"]

PARTS: Mapping[str, type[Part]] = {
    "membership": Membership,
    "links": Links,
    "content": Content,
    "subscriptions": Subscriptions,
    "rendezvous": Rendezvous,
    "publishing": Publishing,
    "dissemination": Dissemination,
    "relays": Relays,
    "deliveries": Deliveries,
    "streams": Streams,
    "adaptation": Adaptation,
    "migration": Migration,
    "storage": Storage,
}
"""The parts of a broker by name, in the order in which they start and hear of changes."""


_ANSWERS = frozenset((PlanMade, Converted, ConversionRefused))


class Broker:
    """The state machine of one broker.

    A host hands it messages and the time, and carries out the effects it is given, by way of a
    `driver.Driver`. The broker itself never waits, sends or reads a clock.

    Parameters
    ----------
    identity
        The broker's identifier in the overlay.
    settings
        The same for all brokers of an overlay.
    rng
        Every random choice comes from here.
    parts
        Classes that stand in for some of `PARTS`.
    version
        Of messages and records; the one before, to see how such a broker gets on with others.
    """

    def __init__(
        self,
        identity: str,
        settings: Settings,
        *,
        rng: random.Random,
        parts: Mapping[str, type[Part]] | None = None,
        version: int = VERSION,
    ) -> None:
        self.core = Core(identity, settings, rng, version)
        for name, cls in {**PARTS, **(parts or {})}.items():
            assert cls.name == name
            self.core.install(cls(self.core))
        self._started = False
        self._leaving = False

    @classmethod
    def restore(
        cls,
        identity: str,
        settings: Settings,
        journal: Mapping[str, bytes],
        *,
        rng: random.Random,
        parts: Mapping[str, type[Part]] | None = None,
        version: int = VERSION,
    ) -> Broker:
        """Return a broker with all that it had kept; `start` sets it going.

        Parameters
        ----------
        journal
            Encoded records by key, as `Persist` and `Erase` have left them.
        identity, settings, rng, parts, version
            As for a new broker.

        Raises
        ------
        JournalDamaged
            When a record is not what any broker has written there.
        """
        broker = cls(identity, settings, rng=rng, parts=parts, version=version)
        for key in sorted(journal):
            name, _, rest = key.partition("/")
            try:
                broker.core.parts[name].load(rest, decode(journal[key]))
            except PeerMisbehaved as error:
                raise JournalDamaged(identity, key, error.problem) from error
            except Exception as error:
                # A record that can be decoded but not taken back stands in the wrong place, or
                # another one that belongs to it is missing.
                raise JournalDamaged(identity, key, "it belongs to nothing here") from error
        return broker

    @staticmethod
    def message_names() -> list[str]:
        """Return what brokers say to each other and to clients, by the names of reports."""
        return [kind.__name__ for kind in kinds().values() if speaker_of(kind) is Speaker.BROKER]

    @property
    def identity(self) -> str:
        """The broker's identifier in the overlay."""
        return self.core.identity

    @property
    def version(self) -> int:
        """The version in which what it sends to other brokers is to be encoded."""
        return self.core.membership.version

    def has_content(self, digest: str) -> bool:
        """Whether the broker counts on its host to have content."""
        return self.core.content.has_digest(digest)

    def awaits(self, digest: str) -> bool:
        """Whether content is still to come: who asks its host for it should ask again."""
        return self.core.content.awaits(digest)

    def content_used(self, digest: str, *, now_ns: int) -> None:
        """Keep content for longer, as its host has given it to another host, or to a client.

        No turn is made of that: it happens once for every broker on the way of an item, and nothing
        follows from it. A broker that is restored keeps what is there from then on.
        """
        self.core.content.used(digest, self.core.clock.read(now_ns))

    def content_size(self, tenant: str, digest: str) -> int | None:
        """Return how large content is that is here, and that a tenant has a right to."""
        return self.core.content.size_for(tenant, digest)

    def start(self, *, now_ns: int) -> list[Effect]:
        """Begin; to be called once, before anything else."""
        if self._started:
            raise LocalMisuse("a broker is started once")
        self._started = True
        turn = self._turn(now_ns)
        for part in self.core.parts.values():
            part.loaded()
        for part in self.core.parts.values():
            part.start(turn)
        self.core.measured.start(turn.now_ns)
        self._measure_later(turn)
        return self._effects(turn)

    def _measure_later(self, turn: Turn) -> None:
        self.core.timers.at(turn.now_ns + ns(self.core.settings.telemetry_s), self._measured)

    def _measured(self, turn: Turn) -> None:
        streams = self.core.streams
        turn.report(
            self.core.measured.end_window(
                turn.now_ns, rates=streams.all_rates(), service=streams.service_times()
            )
        )
        self._measure_later(turn)

    def receive(self, message: object, *, sender: Address, now_ns: int) -> list[Effect]:
        """Take a message from a broker or a client, or an event from the host."""
        core = self.core
        turn = Turn(core.clock.read(now_ns))
        if type(message) in _ANSWERS:
            if sender != HOST:
                raise PeerMisbehaved("only a host answers what its broker has asked for")
            if isinstance(message, PlanMade):
                core.plan_made(message, turn)
            elif isinstance(message, Converted | ConversionRefused):
                core.converted(message, turn)
        elif is_client(sender):
            if not core.migration.turns_away(message, sender, turn):
                core.handle(message, sender, turn)
            # Whoever says something is there; not before it is known that it makes sense.
            core.client_back(sender, turn)
        else:
            core.handle(message, sender, turn)
            if type(message) is Leave:
                self._leaving = True
        return self._effects(turn)

    def serve(self, ticket: int, *, now_ns: int) -> list[Effect]:
        """Go on with what waited for the processor."""
        turn = self._turn(now_ns)
        self.core.served(ticket, turn)
        return self._effects(turn)

    def wake(self, *, now_ns: int) -> list[Effect]:
        """Do what is due; a wake-up that comes too early or too late does no harm."""
        turn = Turn(self.core.clock.read(now_ns))
        if not self.core.timers.run(turn):
            # As often as not: what the host was to wake it for has been cancelled since.
            return turn.effects
        return self._effects(turn)

    def snapshot(
        self, *, parts: Iterable[str] | None = None, plans: bool = True, baselines: bool = False
    ) -> dict[str, Any]:
        """Return what there is to see of the broker, by part, as plain data.

        For consoles and operators; nothing in the protocol depends on it. The time that it
        takes grows with what the broker has, so it is for once a second, not once a message.

        Parameters
        ----------
        parts
            The names of the parts that are looked at; all of them unless given.
        plans, baselines
            Whether there are to be recent plans, and whether these are to be compared with the
            simple ones, which takes longer.
        """
        found: dict[str, Any] = {}
        for name in self.core.parts if parts is None else parts:
            part = self.core.parts[name]
            if isinstance(part, Dissemination):
                found[name] = part.snapshot(plans=plans, baselines=baselines)
            else:
                found[name] = part.snapshot()
        return {"broker": self.identity, "measured": self.core.measured.snapshot(), **found}

    def plans(self) -> list[dict[str, Any]]:
        """Return the recent plans of this root, the newest first, without what each broker does."""
        return self.core.dissemination.recent.headings()

    def plan(self, tenant: str, source: str, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return the plan of a recent publication, beside the simple ones, if it was made here."""
        return self.core.dissemination.recent.find(ItemId(tenant, source, id))

    def wake_at_ns(self) -> int | None:
        """Return when the broker wants to be woken next, by its host's clock."""
        at_ns, clock = self.core.timers.next_ns(), self.core.clock
        if at_ns is None or clock.slewed_since_ns is None:
            return at_ns
        return clock.wall_ns_at(at_ns)

    def _turn(self, now_ns: int) -> Turn:
        return Turn(self.core.clock.read(now_ns))

    def _effects(self, turn: Turn) -> list[Effect]:
        """Return what a turn asks for, and at the end of a broker that it has left."""
        core = self.core
        if turn.effects:
            if turn.now_ns >= core.clock.due_ns:
                core.clock.keep(turn)
            if core.gone:
                # Whatever part has said it: answers come too late, and the rest is said again.
                turn.effects[:] = [
                    effect
                    for effect in turn.effects
                    if not (isinstance(effect, Send) and effect.to in core.gone)
                ]
        if self._leaving and core.links.idle and core.content.idle and core.publishing.idle:
            self._leaving = False
            turn.effects.append(Left())
        return turn.effects
