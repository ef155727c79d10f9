"""Nodes: the host of one broker, with its disk, its clock, its processor and its converter."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from distributary.broker.addresses import HOST, Address, Blob
from distributary.broker.broker import Broker
from distributary.broker.driver import PRIORITY_KINDS, Driver
from distributary.broker.encoding import VERSION, decode
from distributary.broker.host import (
    ClientBack,
    ClientGone,
    ContentHeld,
    ConversionRefused,
    Converted,
    Detached,
    Effect,
    PlanMade,
    StorageLow,
)
from distributary.broker.planning import PlanningProblem
from distributary.simulator.conversions import ConversionQueue, ConversionStep
from distributary.simulator.disk import Disk
from distributary.simulator.processor import Job, Processor

if TYPE_CHECKING:
    from distributary.simulator.world import World

__all__ = ["CommitFailed", "Node", "Torn", "TurnFailed"]


class CommitFailed(OSError):
    """A commit fails because a scenario or a test has it fail."""


class TurnFailed(Exception):
    """A turn fails because a scenario or a test has it fail."""


@dataclass(frozen=True)
class Torn:
    """How a broker goes down at a commit.

    Attributes
    ----------
    durable
        Whether the commit is done before.
    sends
        How many messages still leave after that.
    then
        Called when it is down.
    """

    durable: bool
    sends: int = 0
    then: Callable[[], None] | None = None


AtCommit: TypeAlias = Callable[[Mapping[str, bytes | None]], Torn | CommitFailed | None]
"""Says what becomes of a commit with these writes."""

AfterTurn: TypeAlias = Callable[[object, list[Effect]], None]
"""Told of a message and what came of it; raises `TurnFailed` to have that be nothing."""


class _Watched(Broker):
    """A broker that can be made to fail at the end of a turn, when it has changed already."""

    after_turn: AfterTurn

    def receive(self, message: object, *, sender: Address, now_ns: int) -> list[Effect]:
        effects = super().receive(message, sender=sender, now_ns=now_ns)
        self.after_turn(message, effects)
        return effects


class Node(Processor):
    """One broker and all that it stands on; the broker is None while it is down.

    Attributes
    ----------
    version
        Of the broker, which may be the one before.
    journal
        The disk: encoded records by key.
    skew_ns
        By how much its clock is ahead.
    life
        How often it has gone down, or was restored.
    commit_ns
        The mean time of a commit; with 0 each turn is durable at once.
    node_cost
        A factor on the time of conversions.
    converter
        What converts beside the broker.
    store
        The content on the disk: bytes by digest.
    fetching
        The tickets of what is being fetched.
    detached
        Whether the host has noticed that it has no connection.
    absent
        The clients that the host knows to be without a connection, since when.
    at_commit
        Asked at every commit what becomes of it; None when nothing does.
    disk
        How much room there is on the disk, if that matters.
    """

    driver_class: type[Driver] = Driver

    def __init__(self, identity: str, world: World) -> None:
        super().__init__(world)
        self.identity = identity
        self.version = VERSION
        self.broker: Broker | None = None
        self.driver: Driver | None = None
        self.journal: dict[str, bytes] = {}
        self.skew_ns = 0
        self.commit_ns = 0.0
        self.node_cost = 1.0
        self.converter = ConversionQueue()
        self.store: dict[str, int] = {}
        self.fetching: set[int] = set()
        self.detached = False
        self.absent: dict[Address, int] = {}
        self.at_commit: AtCommit | None = None
        self.disk: Disk | None = None
        self._first: tuple[object, ...] = ()
        self._wake_ns: int | None = None
        self._wakes: set[int] = set()
        self._sends_left: int | None = None

    def clock_ns(self, now_ns: int) -> int:
        """Return what the clock of its host shows."""
        return now_ns + self.skew_ns

    def upgrade(self) -> None:
        """Have the present version read what the one before has written."""
        self.version = VERSION

    def records(self) -> dict[str, object]:
        """Return what is on the disk, by key."""
        return {key: decode(data) for key, data in self.journal.items()}

    def start(self, first: tuple[object, ...]) -> None:
        """Bring the broker up from the disk, with what it is told first."""
        assert self.broker is None
        self._first = first
        self.driver = self.driver_class(self)
        self.driver.start()

    def go_down(self) -> None:
        """Lose everything but the disk."""
        if self.driver is not None:
            self.driver.halt()
        self.driver = None
        self.at_commit = None
        self.forget()

    def after_turns(self, call: AfterTurn | None) -> None:
        """Have something called after each message that the broker as it is now gets."""
        broker: Any = self.broker
        if broker is not None:
            # Those that nobody watches, nearly all, do without the question.
            broker.after_turn = call
            broker.__class__ = Broker if call is None else _Watched

    def client_gone(self, client: Address) -> None:
        """Notice that a client has no connection, and tell the broker."""
        self.absent[client] = self.world.now_ns
        self.world.tell(self.identity, ClientGone(client), sender=HOST)

    def client_back(self, client: Address) -> None:
        """Notice that a client has a connection again, and tell the broker."""
        if self.absent.pop(client, None) is not None:
            self.world.tell(self.identity, ClientBack(client), sender=HOST)

    def take(self, message: object, sender: Address) -> None:
        """Take a message that has arrived, when the processor has time for it.

        Those of membership have priority: otherwise load would change routes.
        """
        if self.absent:
            self.absent.pop(sender, None)
        if self.message_ns > 0.0 and type(message) not in PRIORITY_KINDS:
            self.queue((sender, message))
        else:
            assert self.driver is not None
            self.driver.receive(message, sender=sender)

    def do(self, job: Job) -> None:
        """Hand a message or a ticket to the broker."""
        assert self.driver is not None
        if isinstance(job, int):
            self.driver.serve(job)
        else:
            sender, message = job
            self.driver.receive(message, sender=sender)

    # What the driver asks of its host.

    def now_ns(self) -> int:
        """Return the time by the host's clock."""
        return self.world.now_ns + self.skew_ns

    def restore(self) -> Broker:
        """Return a broker as the disk has it."""
        if self.broker is not None:
            self.forget()
        rng = random.Random(f"{self.world.seed}/{self.identity}/{self.life}")
        self.broker = Broker.restore(
            self.identity,
            self.world.settings_of.get(self.identity, self.world.settings),
            self.journal,
            rng=rng,
            parts=self.world.parts,
            version=self.version,
        )
        return self.broker

    def first(self) -> Sequence[object]:
        """Return what the broker is told before it starts."""
        absent = [ClientGone(client) for client in sorted(self.absent)]
        held = ContentHeld(tuple(sorted(self.store.items())))
        low = [StorageLow()] if self.disk is not None and self.disk.low else []
        return (*self._first, held, *absent, *([Detached()] if self.detached else []), *low)

    def commit(self, writes: Mapping[str, bytes | None]) -> bool:
        """Write to the disk, which takes no time unless the scenario says so."""
        if self.commit_ns > 0.0:
            spent_ns = self.drawn_ns(self.commit_ns)
            self.world.at(self.world.now_ns + spent_ns, self._committed, self.life, writes)
            return False
        return self._write(writes)

    def send(self, to: Address, message: object) -> None:
        """Put a message on its way."""
        if self.busy and type(message) not in PRIORITY_KINDS:
            self.behind(self.world.send, self.identity, to, message)
        elif self._sends_left is None:
            self.world.send(self.identity, to, message)
        elif self._sends_left:
            self._sends_left -= 1
            self.world.send(self.identity, to, message)

    def convert(self, ticket: int, blob: Blob, target: str, data: bytes | None) -> None:
        """Have the converter work, one conversion after the other."""
        if data is None:
            self.needs(blob, "to convert it")
        self.behind(self._convert, ticket, blob, target)

    def fetch(self, ticket: int, blob: Blob, holder: str) -> None:
        """Get content from another host."""
        self.behind(self._fetch, ticket, blob, holder)

    def free(self, digest: str) -> None:
        """Delete content."""
        self.store.pop(digest, None)

    def needs(self, blob: Blob, purpose: str) -> None:
        """Note it if content is not there that the broker counts on."""
        if blob.digest not in self.store:
            what = f"{self.identity} needed {blob.digest} {purpose}, and did not have it"
            self.world.transfers.missing.append((self.world.now_ns, what))

    def make_plan(self, ticket: int, problem: PlanningProblem) -> None:
        """Have a plan made beside the broker."""
        self.behind(self._make_plan, ticket, problem)

    def serve(self, ticket: int) -> None:
        """Have a ticket wait for the processor."""
        self.behind(self.queue, ticket)

    def report(self, record: object) -> None:
        """Tell whoever watches.

        That does not wait for the processor: what a broker reports has happened. Its copy is
        new although it has not been passed on.
        """
        self.world.watched(self.identity, record)

    def wake_at(self, at_ns: int) -> None:
        """Wake the broker at a time of the host's clock."""
        at_ns -= self.skew_ns
        if at_ns < self.world.now_ns:
            at_ns = self.world.now_ns
        self._wake_ns = at_ns
        # A later time that an earlier one has replaced is asked for again after that.
        if at_ns not in self._wakes:
            self._wakes.add(at_ns)
            self.world.at(at_ns, self._wake, self.life, at_ns)

    def failed(self, error: Exception, message: object | None) -> None:
        """Let a failure that nobody has asked for end the run: it is a fault of the broker."""
        if not isinstance(error, CommitFailed | TurnFailed):
            raise error
        self.at_commit = None

    def left(self) -> None:
        """Tell whoever waits for the broker to have left."""
        self.world.has_left(self.identity)

    def stopped(self, reason: str) -> None:
        """Go down for ever, or until there is room on the disk."""
        self.go_down()
        if self.disk is not None:
            self.disk.stopped = True
            return
        self.world.has_stopped(self.identity, reason)

    # The disk.

    def _committed(self, life: int, writes: Mapping[str, bytes | None]) -> None:
        if self.life != life or self.driver is None:
            return
        try:
            done = self._write(writes)
        except CommitFailed as error:
            self.driver.commit_failed(error)
            return
        if done:
            self.driver.committed()

    def _write(self, writes: Mapping[str, bytes | None]) -> bool:
        """Write, unless the broker goes down here, which is never answered."""
        fate = None if self.at_commit is None or self.busy else self.at_commit(writes)
        if fate is None and self.disk is not None and not self.disk.takes(writes):
            fate = CommitFailed("no room is left on the disk")
        if fate is None:
            self.put(writes)
            return True
        if isinstance(fate, CommitFailed):
            raise fate
        if not fate.durable:
            self.tear(writes)
            self._torn(self.life, fate.then)
            return False
        self.put(writes)
        self._sends_left = fate.sends
        # When all that this turn sends has been sent, or not.
        self.world.at(self.world.now_ns, self._torn, self.life, fate.then)
        return True

    def put(self, writes: Mapping[str, bytes | None]) -> None:
        """Have the disk contain all of a commit."""
        journal = self.journal
        for key, data in writes.items():
            if data is None:
                journal.pop(key, None)
            else:
                journal[key] = data

    def tear(self, writes: Mapping[str, bytes | None]) -> None:
        """Have the disk contain nothing of a commit during which the broker went down."""

    def _torn(self, life: int, then: Callable[[], None] | None) -> None:
        if self.life == life:
            self.go_down()
            if then is not None:
                then()

    # What was asked for comes.

    def _convert(self, ticket: int, blob: Blob, target: str) -> None:
        outcome = self.world.converted(self.identity, blob, target)
        seconds = outcome.seconds * self.node_cost * self.slowness
        at_ns = self.converter.ask(ticket, seconds, now_ns=self.world.now_ns)
        if at_ns is None:
            return
        answer = (
            ConversionRefused(ticket, outcome.reason, outcome.lasting)
            if outcome.blob is None
            else Converted(ticket, outcome.blob, seconds)
        )
        self.world.at(at_ns, self._converted, answer, blob)

    def _converted(self, answer: Converted | ConversionRefused, origin: Blob) -> None:
        """Answer whoever is there, be it in another life than whoever asked."""
        if self.converter.is_done(answer.ticket, self.world.now_ns):
            if isinstance(answer, Converted):
                self.store[answer.blob.digest] = answer.blob.size_bytes
                made = ConversionStep(self.identity, origin, answer.blob, answer.seconds)
                self.world.conversions.append(made)
            self.world.tell(self.identity, answer, sender=HOST)

    def _fetch(self, ticket: int, blob: Blob, holder: str) -> None:
        if ticket not in self.fetching:
            self.fetching.add(ticket)
            self.world.transfers.fetch(self.identity, ticket, blob, holder)

    def _make_plan(self, ticket: int, problem: PlanningProblem) -> None:
        made_ns = self.world.now_ns + round(self.world.plan_ns * self.slowness)
        self.world.at(made_ns, self._made_plan, ticket, problem)

    def _made_plan(self, ticket: int, problem: PlanningProblem) -> None:
        self.world.tell(self.identity, PlanMade(ticket, problem.solve()), sender=HOST)

    def _wake(self, life: int, at_ns: int) -> None:
        if self.life != life:
            return
        self._wakes.discard(at_ns)
        if self._wake_ns == at_ns and self.driver is not None:
            self._wake_ns = None
            self.driver.wake()

    def forget(self) -> None:
        """Forget what a broker that is no more has asked for."""
        super().forget()
        self.broker = None
        self._wake_ns = None
        self._wakes.clear()
        self._sends_left = None
        self.fetching.clear()
        self.converter.abandon(now_ns=self.world.now_ns)
