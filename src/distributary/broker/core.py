"""What all parts of one broker share."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from distributary.broker.addresses import Address
from distributary.broker.blob import Blob
from distributary.broker.effects import Convert, Serve
from distributary.broker.events import ConversionRefused, Converted
from distributary.broker.form import Rules, check_form
from distributary.broker.settings import Settings
from distributary.broker.timers import Timers
from distributary.broker.turn import Turn
from distributary.errors import PeerMisbehaved

if TYPE_CHECKING:
    from distributary.broker.adaptation import Adaptation
    from distributary.broker.deliveries import Deliveries
    from distributary.broker.dissemination import Dissemination
    from distributary.broker.links import Links
    from distributary.broker.membership import MembersChanged, Membership
    from distributary.broker.migration import Migration
    from distributary.broker.part import Handler, Part
    from distributary.broker.publishing import Publishing
    from distributary.broker.relays import Relays
    from distributary.broker.rendezvous import Rendezvous
    from distributary.broker.streams import Streams
    from distributary.broker.subscriptions import Subscriptions

__all__ = ["Core"]


class Core:
    """The identity, settings, chance, timers and parts of one broker.

    Parameters
    ----------
    identity
        The broker's identifier in the overlay.
    settings
        The same for all brokers of an overlay.
    rng
        Every random choice comes from here.
    """

    membership: Membership
    links: Links
    subscriptions: Subscriptions
    rendezvous: Rendezvous
    publishing: Publishing
    dissemination: Dissemination
    relays: Relays
    deliveries: Deliveries
    streams: Streams
    adaptation: Adaptation
    migration: Migration

    def __init__(self, identity: str, settings: Settings, rng: random.Random) -> None:
        self.identity = identity
        self.settings = settings
        self.rng = rng
        self.timers = Timers()
        self.parts: dict[str, Part] = {}
        """Every part by name, in the order in which they hear of changes."""
        self._handlers: dict[type, Handler] = {}
        self._rules = Rules(identity, settings)
        self._tickets = 0
        self._waiting: dict[int, tuple[Callable[..., None], tuple[Any, ...]]] = {}

    def install(self, part: Part) -> None:
        """Make a part known to the others, and give it the messages that it handles."""
        self.parts[part.name] = part
        setattr(self, part.name, part)
        for kind, handler in part.handlers().items():
            assert kind not in self._handlers, f"{kind.__name__} has two handlers"
            self._handlers[kind] = handler

    def handle(self, message: object, sender: Address, turn: Turn) -> None:
        """Hand a message to the part that it is for.

        Raises
        ------
        PeerMisbehaved
            When nobody sends such a message; then nothing has changed.
        """
        handler = self._handlers.get(type(message))
        if handler is None:
            raise PeerMisbehaved(f"nobody sends a {type(message).__name__}")
        check_form(message, sender, self._rules)
        handler(message, sender, turn)

    def tell(self, to: Address, message: object, turn: Turn) -> None:
        """Send a message that is asked for again if it gets lost; to ourselves, handle it."""
        if to == self.identity:
            self.handle(message, to, turn)
        else:
            turn.send(to, message)

    def part_of(self, message: object) -> Part:
        """Return the part that handles messages of this kind, which also sends them."""
        return cast("Part", self._handlers[type(message)].__self__)  # type: ignore[attr-defined]

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Tell every part who has come, gone quiet, come back or is lost for ever."""
        for part in self.parts.values():
            part.members_changed(change, turn)

    def serve(self, turn: Turn, call: Callable[..., None], *arguments: Any) -> None:
        """Have `call(turn, *arguments)` called when the processor gets round to it."""
        turn.effects.append(Serve(self._ticket(call, arguments)))

    def convert(
        self, turn: Turn, blob: Blob, target: str, call: Callable[..., None], *arguments: Any
    ) -> None:
        """Have content converted, and `call(turn, answer, *arguments)` called with the answer.

        The answer is `Converted` or `ConversionRefused`. A crash forgets the request; whoever
        made it makes it again from what was kept.
        """
        turn.effects.append(Convert(self._ticket(call, arguments), blob, target))

    def served(self, ticket: int, turn: Turn) -> None:
        """Do what waited for the processor."""
        call, arguments = self._waiting.pop(ticket)
        call(turn, *arguments)

    def converted(self, answer: Converted | ConversionRefused, turn: Turn) -> None:
        """Do what waited for a conversion; answers to what a crash forgot are ignored."""
        waiting = self._waiting.pop(answer.ticket, None)
        if waiting is not None:
            call, arguments = waiting
            call(turn, answer, *arguments)

    def _ticket(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> int:
        self._tickets += 1
        self._waiting[self._tickets] = (call, arguments)
        return self._tickets
