"""Parts, a broker's concerns with their own messages, records and timers, and what they share.

Handlers change a broker as they go: what they cannot handle has to be found out before. So
every message is checked first, whether it came by itself, over a link or to a root. What is
refused has changed nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from distributary.broker.addresses import (
    Address,
    Blob,
    Speaker,
    has_digits,
    is_client,
    is_tenant,
    speaker_at,
)
from distributary.broker.encoding import VERSION, encode, speaker_of
from distributary.broker.host import (
    ConversionRefused,
    Convert,
    Converted,
    Effect,
    MakePlan,
    PlanMade,
    Serve,
    Turn,
)
from distributary.broker.settings import ContentSettings, Settings, ns
from distributary.broker.telemetry import Measurements
from distributary.broker.timers import Backoff, Clock, Retention, Timers
from distributary.errors import BadInput, PeerMisbehaved, quoted

if TYPE_CHECKING:
    from distributary.broker.adaptation.adaptation import Adaptation
    from distributary.broker.content import Content
    from distributary.broker.deliveries.deliveries import Deliveries
    from distributary.broker.dissemination.dissemination import Dissemination
    from distributary.broker.links.links import Links
    from distributary.broker.membership.membership import Membership
    from distributary.broker.membership.roster import MembersChanged
    from distributary.broker.migration.migration import Migration
    from distributary.broker.planning import PlanningProblem
    from distributary.broker.publishing.publishing import Publishing
    from distributary.broker.relays import Relays
    from distributary.broker.rendezvous.rendezvous import Rendezvous
    from distributary.broker.storage import Storage
    from distributary.broker.streams.streams import Streams
    from distributary.broker.subscriptions.subscriptions import Subscriptions

__all__ = [
    "AMOUNT_MAX",
    "COUNT_MAX",
    "NUMBER_MAX",
    "TICKETS_PER_LIFE",
    "Check",
    "Core",
    "Handler",
    "Part",
    "Rules",
    "Tickets",
    "Transitions",
    "check_client",
]


AMOUNT_MAX = 1e9
"""Far above every factor, price, time in seconds and rate of updates that brokers tell, and
so low that products of several of them are finite."""
COUNT_MAX = 2**31 - 1
"""Of what a broker has many of at the same time."""
NUMBER_MAX = 2**62 - 1
"""Of what is counted for ever, and of times in nanoseconds: there is room to add to it before
it cannot be encoded."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What brokers of one overlay agree on.

    Attributes
    ----------
    identity
        The broker that checks; all identifiers are as long as its own.
    settings
        The same for all brokers.
    """

    identity: str
    settings: Settings

    def brokers(self, names: Iterable[str]) -> None:
        """Refuse what cannot be the name of a broker."""
        digits = len(self.identity)
        for name in names:
            # As `is_broker` has it, which would be called for every name in every message.
            if len(name) != digits or not has_digits(name):
                raise PeerMisbehaved(f"{quoted(name)} is not the name of a broker")

    def tenants(self, names: Iterable[str]) -> None:
        """Refuse what cannot be the name of a tenant."""
        for name in names:
            if not is_tenant(name):
                raise PeerMisbehaved(f"{quoted(name)} is not the name of a tenant")

    def cells(self, cells: Iterable[int]) -> None:
        """Refuse what is not a cell of the space."""
        count = self.settings.space.cell_count
        for cell in cells:
            if not 0 <= cell < count:
                raise PeerMisbehaved(f"a cell that is not among the {count} of the space")

    def amounts(self, amounts: Iterable[float], most: float = AMOUNT_MAX) -> None:
        """Refuse costs, rates and the like that are below 0, too large or not finite."""
        for amount in amounts:
            if not 0.0 <= amount <= most:
                raise PeerMisbehaved(f"an amount of {amount}")

    def numbers(self, numbers: Iterable[int], most: int = NUMBER_MAX) -> None:
        """Refuse numbers and counts that are below 0 or too large."""
        for number in numbers:
            if not 0 <= number <= most:
                raise PeerMisbehaved(f"a number {number}")

    def times(self, times_ns: Iterable[int]) -> None:
        """Refuse times that no clock shows; one that is slow may begin below 0."""
        for time_ns in times_ns:
            if abs(time_ns) > NUMBER_MAX:
                raise PeerMisbehaved(f"a time of {time_ns} ns")


def check_client(message: Any, rules: Rules) -> None:
    """Refuse to hear of a client that is none."""
    if not is_client(message.client):
        raise PeerMisbehaved(f"{quoted(message.client)} is not the address of a client")


Check = Callable[[Any, Rules], None]
"""Refuses a message that nobody who keeps to the protocol sends, by `PeerMisbehaved`."""


# Transitions: how the state of something changes, as a table that code looks up.
#
# The table is data, so that the diagram in the documents is drawn from what really runs.


_State = TypeVar("_State", bound=Enum)
_Event = TypeVar("_Event", bound=Enum)


class Transitions(Generic[_State, _Event]):
    """The states of one kind of thing, and which event leads from which to which.

    Attributes
    ----------
    name
        What it is that has these states.
    initial
        The state in which it begins.
    """

    __slots__ = ("_table", "initial", "name")

    def __init__(
        self, name: str, initial: _State, table: Mapping[tuple[_State, _Event], _State]
    ) -> None:
        self.name = name
        self.initial = initial
        self._table = dict(table)

    def step(self, state: _State, event: _Event) -> _State | None:
        """Return the state that follows; None when the event means nothing in this state."""
        return self._table.get((state, event))

    def __iter__(self) -> Iterator[tuple[_State, _Event, _State]]:
        """Go through (state, event, next state), in the order in which they were written."""
        for (state, event), following in self._table.items():
            yield state, event, following


TICKETS_PER_LIFE = 1 << 32

# How long it waits at first before it tries what has failed for now, and at most.
_RETRY_NS = 1_000_000_000
_RETRY_NS_MAX = 16 * _RETRY_NS


class _Question:
    """Something that was asked: who is told the answer, and how it is asked again."""

    __slots__ = ("arguments", "asked", "call", "due_ns", "effect", "failures")

    def __init__(
        self, call: Callable[..., None], arguments: tuple[Any, ...], effect: Effect | None = None
    ) -> None:
        self.call = call
        self.arguments = arguments
        self.effect = effect
        self.asked = 0
        self.failures = 0
        self.due_ns = 0


class Tickets:
    """All that one broker has asked of its host and waits for.

    A host answers at least once, if it goes on for long enough. An answer can get lost all the
    same: with a worker that was killed, or with the host's memory of the question. So a broker
    asks again, by the same ticket. A host that is still at work on that ticket need not do
    anything about it, and must not begin it a second time; one that has forgotten it begins
    anew, and one that has answered answers again. Whoever waits is told once.

    Whoever works for a host may live longer than the broker that asked, and answer one that has
    been restored since. So no ticket of one life of a broker is one of another.

    Attributes
    ----------
    life
        How often the broker has been restored; to be set before anything is asked.
    """

    def __init__(self, timers: Timers, settings: ContentSettings) -> None:
        self.life = 0
        self._questions: dict[int, _Question] = {}
        # Nearly everything is answered in time, and left out when that has come.
        self._due = Retention(timers, self._again, tick_ns=1, wanted=self._questions.__contains__)
        ask_ns = ns(settings.ask_s)
        self._asking = Backoff(ask_ns, 8 * ask_ns)
        self._retrying = Backoff(_RETRY_NS, _RETRY_NS_MAX)
        self._tries = settings.conversion_tries
        self._count = 0

    def expect(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> int:
        """Return a ticket for what a host is asked once, and does not forget."""
        return self._enter(_Question(call, arguments))

    def ask(
        self,
        turn: Turn,
        effect: Callable[[int], Effect],
        call: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> int:
        """Ask for something until it is answered; `effect` makes the question for a ticket."""
        question = _Question(call, arguments)
        ticket = self._enter(question)
        question.effect = effect(ticket)
        self._say(ticket, question, turn)
        return ticket

    def withdraw(self, ticket: int) -> None:
        """Wait no longer for an answer."""
        self._questions.pop(ticket, None)

    def failed_for_now(self, ticket: int, turn: Turn) -> bool:
        """Try again later what has failed for now; return whether it is worth another try."""
        question = self._questions.get(ticket)
        if question is None:
            return True
        question.failures += 1
        if question.failures >= self._tries:
            return False
        question.asked = 0
        self._say_at(ticket, question, self._retrying.after(question.failures - 1), turn)
        return True

    def answer(self, ticket: int, *answers: object, turn: Turn) -> None:
        """Tell whoever waits; nobody waits for what was answered, or was asked in another life."""
        question = self._questions.pop(ticket, None)
        if question is not None:
            question.call(turn, *answers, *question.arguments)

    def _enter(self, question: _Question) -> int:
        self._count += 1
        ticket = self.life * TICKETS_PER_LIFE + self._count
        self._questions[ticket] = question
        return ticket

    def _again(self, ticket: int, turn: Turn) -> None:
        question = self._questions.get(ticket)
        if question is not None and question.due_ns <= turn.now_ns:
            self._say(ticket, question, turn)

    def _say(self, ticket: int, question: _Question, turn: Turn) -> None:
        assert question.effect is not None
        turn.effects.append(question.effect)
        self._say_at(ticket, question, self._asking.after(question.asked), turn)
        question.asked += 1

    def _say_at(self, ticket: int, question: _Question, wait_ns: int, turn: Turn) -> None:
        question.due_ns = turn.now_ns + wait_ns
        self._due.keep(ticket, question.due_ns)


Handler = Callable[[Any, Address, Turn], None]

# The time is not kept more often than this, however little clocks may differ.
_CLOCK_NS_MIN = 250_000_000


class Part:
    """One concern of a broker.

    Parts of one broker call each other's methods through `core`. Whatever is told to another
    broker is a message.

    Attributes
    ----------
    name
        What its keys in the journal begin with.
    uses
        The other parts that it calls. Calls go along the way of a publication; those that go
        against it are listed all the same, so that a reader knows whom a change may concern.
    checks
        What must hold of messages before they are handled.
    """

    name: ClassVar[str]
    uses: ClassVar[tuple[str, ...]] = ()
    checks: ClassVar[Mapping[type, Check]] = {}

    def __init__(self, core: Core) -> None:
        self.core = core

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message: `handler(message, sender, turn)`."""
        return {}

    def load(self, key: str, record: Any) -> None:
        """Take back one record that was kept under `name/key`."""
        raise AssertionError(f"{self.name} keeps nothing, and was given {key}")

    def loaded(self) -> None:
        """Put in order what was loaded, before any part begins: the first may call the last."""

    def start(self, turn: Turn) -> None:
        """Begin, for the first time or after everything kept has been loaded."""

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Learn that brokers have come, gone quiet, come back or are lost for ever."""

    def snapshot(self) -> dict[str, Any]:
        """Return what is to be seen of it from outside, as plain data that JSON can hold."""
        return {}

    def client_gone(self, client: Address, turn: Turn) -> None:
        """Learn that a client has no connection; what is sent to it does not leave."""

    def client_back(self, client: Address, turn: Turn) -> None:
        """Learn that a client that was gone is there again."""

    def undeliverable(self, message: Any, peer: Address, turn: Turn) -> None:
        """Take back a message that `Links` could not bring to a peer that is lost for ever."""


class Core:
    """The identity, settings, chance, timers and parts of one broker, as `Broker` is given them."""

    membership: Membership
    links: Links
    content: Content
    subscriptions: Subscriptions
    rendezvous: Rendezvous
    publishing: Publishing
    dissemination: Dissemination
    relays: Relays
    deliveries: Deliveries
    streams: Streams
    adaptation: Adaptation
    migration: Migration
    storage: Storage

    def __init__(
        self, identity: str, settings: Settings, rng: random.Random, version: int = VERSION
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.rng = rng
        self.version = version
        self.timers = Timers()
        self.measured = Measurements()
        self.clock = Clock(max(ns(settings.subscriptions.clock_skew_s) // 2, _CLOCK_NS_MIN))
        self.parts: dict[str, Part] = {}
        """Every part by name, in the order in which they hear of changes."""
        self._handlers: dict[type, Handler] = {}
        self._part_of: dict[type, Part] = {}
        self._checks: dict[type, Check] = {}
        # Who handles a kind of message, who may say it, and what must hold of it.
        self._receptions: dict[type, tuple[Handler, Speaker | None, Check | None]] = {}
        self._rules = Rules(identity, settings)
        self.tickets = Tickets(self.timers, settings.content)
        self.gone: set[Address] = set()
        """The clients without a connection, of those for whom there is something here."""

    def install(self, part: Part) -> None:
        """Make a part known to the others, and give it the messages that it handles."""
        self.parts[part.name] = part
        setattr(self, part.name, part)
        for kind, handler in part.handlers().items():
            assert kind not in self._handlers, f"{kind.__name__} has two handlers"
            self._handlers[kind] = handler
            self._part_of[kind] = part
        self._checks.update(part.checks)
        # A part may check what another one handles, whichever of them is installed first.
        for kind in (*part.handlers(), *part.checks):
            if kind in self._handlers:
                reception = (self._handlers[kind], speaker_of(kind), self._checks.get(kind))
                self._receptions[kind] = reception

    def handle(self, message: object, sender: Address, turn: Turn) -> None:
        """Hand a message to the part that it is for.

        Raises
        ------
        PeerMisbehaved
            When nobody sends such a message; then nothing has changed.
        """
        kind = type(message)
        reception = self._receptions.get(kind)
        if reception is None:
            raise PeerMisbehaved(f"nobody sends a {kind.__name__}")
        handler, said_by, check = reception
        if said_by is not None and said_by is not speaker_at(sender):
            raise PeerMisbehaved(f"a {kind.__name__} from {sender}; only {said_by.value} say that")
        if check is not None:
            try:
                check(message, self._rules)
            except BadInput as error:
                raise PeerMisbehaved(f"a {kind.__name__} with a bad text: {error}") from None
        handler(message, sender, turn)

    def handle_own(self, message: object, turn: Turn) -> None:
        """Hand a message of this broker to itself to the part that it is for.

        It is not checked: what it says was when it came here.
        """
        self._handlers[type(message)](message, self.identity, turn)

    def tell(self, to: Address, message: object, turn: Turn) -> None:
        """Send a message that is asked for again if it gets lost; to ourselves, handle it."""
        if to == self.identity:
            self.handle_own(message, turn)
        else:
            turn.send(to, message)

    def encoded(self, message: object) -> bytes:
        """Return what goes inside of another message, as every broker understands it."""
        return encode(message, self.membership.version)

    def part_of(self, message: object) -> Part:
        """Return the part that handles messages of this kind, which also sends them."""
        return self._part_of[type(message)]

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Tell every part who has come, gone quiet, come back or is lost for ever."""
        self.measured.members(came=len(change.came), down=len(change.down), gone=len(change.gone))
        for part in self.parts.values():
            part.members_changed(change, turn)

    def client_gone(self, client: Address, turn: Turn) -> None:
        """Tell every part that a client has no connection."""
        self.gone.add(client)
        for part in self.parts.values():
            part.client_gone(client, turn)

    def client_back(self, client: Address, turn: Turn) -> None:
        """Tell every part that a client is there, if it was gone."""
        if client in self.gone:
            self.gone.discard(client)
            for part in self.parts.values():
                part.client_back(client, turn)

    def serve(self, turn: Turn, call: Callable[..., None], *arguments: Any) -> None:
        """Have `call(turn, *arguments)` called when the processor gets round to it."""
        turn.effects.append(Serve(self.tickets.expect(call, arguments)))

    def convert(
        self,
        turn: Turn,
        blob: Blob,
        target: str,
        call: Callable[..., None],
        *arguments: Any,
        data: bytes | None = None,
    ) -> None:
        """Have content converted, and `call(turn, answer, *arguments)` called with the answer.

        The answer is `Converted` or `ConversionRefused`, for good or after as many tries as
        there are. A crash forgets the request; whoever made it makes it again from what was
        kept. `data` is the content itself if that is in an event, and not in the store.
        """
        self.tickets.ask(turn, lambda ticket: Convert(ticket, blob, target, data), call, arguments)

    def make_plan(
        self, turn: Turn, problem: PlanningProblem, call: Callable[..., None], *arguments: Any
    ) -> None:
        """Have a plan made, and `call(turn, planning, *arguments)` called with it."""
        self.tickets.ask(turn, lambda ticket: MakePlan(ticket, problem), call, arguments)

    def plan_made(self, answer: PlanMade, turn: Turn) -> None:
        """Do what waited for a plan."""
        self.tickets.answer(answer.ticket, answer.planning, turn=turn)

    def served(self, ticket: int, turn: Turn) -> None:
        """Do what waited for the processor."""
        self.tickets.answer(ticket, turn=turn)

    def converted(self, answer: Converted | ConversionRefused, turn: Turn) -> None:
        """Do what waited for a conversion, unless that is to be tried again."""
        if isinstance(answer, Converted):
            # Whether anybody still waits for it or not: the bytes are there.
            self.content.converted(answer.blob, turn)
            most = self.settings.content.content_bytes_max
            if answer.blob.size_bytes > most:
                made = f"it came to {answer.blob.size_bytes:,} bytes; at most {most:,} are kept"
                answer = ConversionRefused(answer.ticket, made)
        for_now = isinstance(answer, ConversionRefused) and not answer.lasting
        if not (for_now and self.tickets.failed_for_now(answer.ticket, turn)):
            self.tickets.answer(answer.ticket, answer, turn=turn)
