"""One broker: its parts, and the contract with its host."""

from __future__ import annotations

import random
from collections.abc import Mapping

from distributary.broker.adaptation.adaptation import Adaptation
from distributary.broker.addresses import HOST, Address, is_client
from distributary.broker.core import Core, Part
from distributary.broker.deliveries.deliveries import Deliveries
from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.effects import ConversionRefused, Converted, Effect, Left, Turn
from distributary.broker.encoding import decode
from distributary.broker.host import Leave
from distributary.broker.links.links import Links
from distributary.broker.membership.membership import Membership
from distributary.broker.migration.migration import Migration
from distributary.broker.publishing.publishing import Publishing
from distributary.broker.relays.relays import Relays
from distributary.broker.rendezvous.rendezvous import Rendezvous
from distributary.broker.settings import Settings
from distributary.broker.storage.storage import Storage
from distributary.broker.streams.streams import Streams
from distributary.broker.subscriptions.subscriptions import Subscriptions
from distributary.errors import JournalDamaged, LocalMisuse, PeerMisbehaved

__all__ = ["PARTS", "Broker"]

PARTS: Mapping[str, type[Part]] = {
    "membership": Membership,
    "links": Links,
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
    """

    def __init__(
        self,
        identity: str,
        settings: Settings,
        *,
        rng: random.Random,
        parts: Mapping[str, type[Part]] | None = None,
    ) -> None:
        self.core = Core(identity, settings, rng)
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
    ) -> Broker:
        """Return a broker with all that it had kept; `start` sets it going.

        Parameters
        ----------
        journal
            Encoded records by key, as `Persist` and `Erase` have left them.
        identity, settings, rng, parts
            As for a new broker.

        Raises
        ------
        JournalDamaged
            When a record is not what any broker has written there.
        """
        broker = cls(identity, settings, rng=rng, parts=parts)
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

    @property
    def identity(self) -> str:
        """The broker's identifier in the overlay."""
        return self.core.identity

    def start(self, *, now_ns: int) -> list[Effect]:
        """Begin; to be called once, before anything else."""
        if self._started:
            raise LocalMisuse("a broker is started once")
        self._started = True
        turn = Turn(now_ns)
        for part in self.core.parts.values():
            part.start(turn)
        return turn.effects

    def receive(self, message: object, *, sender: Address, now_ns: int) -> list[Effect]:
        """Take a message from a broker or a client, or an event from the host."""
        turn = Turn(now_ns)
        kind = type(message)
        if kind is Converted or kind is ConversionRefused:
            if sender != HOST:
                raise PeerMisbehaved("only a host says what became of a conversion")
            assert isinstance(message, Converted | ConversionRefused)
            self.core.converted(message, turn)
            return self._effects(turn)
        if not (is_client(sender) and self.core.migration.turns_away(message, sender, turn)):
            self.core.handle(message, sender, turn)
        if kind is Leave:
            self._leaving = True
        return self._effects(turn)

    def serve(self, ticket: int, *, now_ns: int) -> list[Effect]:
        """Go on with what waited for the processor."""
        turn = Turn(now_ns)
        self.core.served(ticket, turn)
        return self._effects(turn)

    def wake(self, *, now_ns: int) -> list[Effect]:
        """Do what is due; a wake-up that comes too early or too late does no harm."""
        turn = Turn(now_ns)
        self.core.timers.run(turn)
        return self._effects(turn)

    def wake_at_ns(self) -> int | None:
        """Return when the broker wants to be woken next."""
        return self.core.timers.next_ns()

    def _effects(self, turn: Turn) -> list[Effect]:
        """Return what a turn asks for, and at the end of a broker that it has left."""
        if self._leaving and self.core.links.idle:
            self._leaving = False
            turn.effects.append(Left())
        return turn.effects
