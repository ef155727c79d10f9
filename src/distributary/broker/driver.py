"""The driver: carries out what a broker asks for, the same way for every host.

A turn is a transaction. What it persists and erases becomes durable together or not at all, and
what it sends leaves after that. Turns are committed in order, and many may be in one commit:
while a host writes, the broker goes on with the next messages, and what came of these waits for
the next commit. So a slow disk costs time, but not a write for every message.

Nothing overtakes a commit, not even what comes of a turn that wrote nothing: that turn may have
seen what an earlier one changed. A message that comes twice is acknowledged the second time
without a write, and must not be before the first time is durable. The exception is membership: a
broker that waits for its disk is alive, and answers so. Its messages promise nothing but its
incarnation, and wait while one that begins a new life is not durable yet. Else a broker that
comes back could be taken for itself before the crash. (Within a life it denies rumours by higher
incarnations, which need not be kept: the next life is above all of them.)

A commit that fails, and a handler that fails, leave the broker's memory ahead of its disk, or in
no known state. Then the turns before are committed, the broker is restored from the journal, and
it is told to set the message aside: a message that breaks a broker would break it every time it
is sent again. What came later is handed over again. A broker that fails three times within ten
minutes is stopped. Somebody has to look at it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from distributary.broker.addresses import HOST, Address, Blob, Speaker, is_client
from distributary.broker.broker import Broker
from distributary.broker.encoding import VERSION, encode, is_spoken, kinds, speaker_of
from distributary.broker.host import (
    ConversionRefused,
    Convert,
    Converted,
    Effect,
    Erase,
    Fetch,
    Fetched,
    FetchFailed,
    Free,
    Left,
    MakePlan,
    Persist,
    PlanMade,
    Report,
    Send,
    Serve,
    SetAside,
    Spend,
)
from distributary.broker.membership import roster
from distributary.broker.membership.roster import LIFE, Known
from distributary.broker.migration.migration import Summary, best_home
from distributary.broker.plan_part import NOTHING_BEFORE, Grant, Home
from distributary.broker.planning import Formats, PlanningProblem, plan_tree, tree_along
from distributary.broker.settings import ContentSettings, Settings
from distributary.broker.telemetry import Misbehaved
from distributary.content import AdaptationGraph, Publication
from distributary.errors import JournalDamaged, LocalMisuse, PeerMisbehaved
from distributary.fidelity.local import LocalView, best_move
from distributary.filters import Filter, Index

__all__ = [
    "FAILURES_MAX",
    "FAILURES_WITHIN_NS",
    "PRIORITY_KINDS",
    "Driver",
    "Host",
    "load_compiled",
]


class Host(Protocol):
    """What a driver needs of whoever runs a broker.

    A host calls `Driver.start` once, then `receive` for every message, `wake` when it is time,
    `serve` for every ticket, one after the other. Nothing here calls the driver back before it
    returns; what is to be answered is answered later.
    """

    def now_ns(self) -> int:
        """Return the time by the host's clock.

        It may be set back: a broker goes by a time of its own that never does.
        """

    def restore(self) -> Broker:
        """Return a broker as its journal has it, by `Broker.restore`, that is not started.

        It is called again after a failure. What an earlier broker asked for may
        be forgotten with it; who answers all the same does no harm.
        """

    def first(self) -> Sequence[object]:
        """Return what a broker is told before it starts: where it stands, and what it must know.

        Nothing that the host has said stays with a broker that is restored. It is told
        here what its content store has (`ContentHeld`), as no journal says it.
        """

    def commit(self, writes: Mapping[str, bytes | None]) -> bool:
        """Make records durable, all or none: bytes by key; None erases what is there.

        Return whether it is done. If not, the host calls `Driver.committed` once it is, or
        `Driver.commit_failed`. There is never more than one commit under way. One that fails
        at once raises. A host that still has hope tries again before it says so, because
        a broker whose commit has failed loses a message.
        """

    def send(self, to: Address, message: object) -> None:
        """Send a message, which may get lost, behind those that were sent before.

        To another broker it is encoded in `Broker.version`.
        """

    def convert(self, ticket: int, blob: Blob, target: str, data: bytes | None) -> None:
        """Convert content; `receive` the answer, `Converted` or `ConversionRefused`.

        The same ticket comes again while there is no answer, and is not begun a second time.
        The bytes are in the host's content store, or in `data`; those of the result are durable
        in the store before the answer is given.
        """

    def fetch(self, ticket: int, blob: Blob, holder: str) -> None:
        """Get bytes from the host of another broker; `receive` `Fetched` or `FetchFailed`.

        Likewise. They are durable in the store before `Fetched` is given. A host that is asked
        for bytes which it does not have says so for good, unless its own broker is still to get
        them (`Broker.awaits`). It tells its broker of those that it has given away
        (`Broker.content_used`).
        """

    def free(self, digest: str) -> None:
        """Delete bytes from the content store, if they are there."""

    def make_plan(self, ticket: int, problem: PlanningProblem) -> None:
        """Solve a problem beside the broker; `receive` the answer, `PlanMade`, likewise."""

    def serve(self, ticket: int) -> None:
        """Call `Driver.serve` with the ticket when the processor gets round to it."""

    def spend(self, works: Sequence[str]) -> None:
        """Take the time that kinds of work need before carrying out what follows.

        Where work takes its time by itself there is nothing to do.
        """

    def report(self, record: object) -> None:
        """Tell whoever watches."""

    def wake_at(self, at_ns: int) -> None:
        """Call `Driver.wake` when the host's clock shows this; it replaces a later one.

        A time that has passed asks for another turn at once, behind what has arrived meanwhile.
        """

    def failed(self, error: Exception, message: object | None) -> None:
        """Write down that a turn failed, with the message that it was about, if it was about one.

        The broker is restored afterwards. A host that is there to find faults raises.
        """

    def left(self) -> None:
        """Hear that the broker has left the overlay in good order, and may be stopped."""

    def stopped(self, reason: str) -> None:
        """Hear that the broker is stopped for good because it fails again and again."""


_EVENT = Publication.parse({"specversion": "1.0", "id": "-", "source": "-", "type": "-"})


def load_compiled(settings: Settings) -> None:
    """Load all that brokers with these settings need, once in a process.

    What plans, matches, finds cells and weighs moves is compiled, and kept on disk from one
    process to the next. To load it takes a tenth of a second, in which a broker that has begun
    would be deaf to everybody.
    """
    settings.space.cell_of(_EVENT)
    _load_planner(settings.content.method)
    _load_index()
    _load_moves()


@cache
def _load_planner(method: str) -> None:
    """Plan for a home that wants something converted, while the root is busy."""
    graph = AdaptationGraph(
        ("a", "b"), np.array([1.0, 0.5]), np.array([[np.inf, 1.0], [np.inf, np.inf]])
    )
    plan_tree(
        Formats(graph, graph, 0, universal=False),
        tree_along("root", 1.0, {"home": (("home", 1.0, 1.0),)}),
        held=(0,),
        homes={"home": Home(NOTHING_BEFORE, (Grant("", "b"),))},
        waits_s={"root": 1.0},
        settings=ContentSettings(method=method),
    )


@cache
def _load_index() -> None:
    """Match one event with an index of one filter."""
    index = Index()
    index.add_all([("-", Filter.parse([{"exact": {"type": "-"}}]))])
    assert index.match(_EVENT) == ["-"]


@cache
def _load_moves() -> None:
    """Weigh the moves in a tree of three brokers, and those of a client between two."""
    ones, zeros = np.ones(3), np.zeros(3)
    none = np.zeros(3, dtype=np.int64)
    best_move(
        LocalView(
            names=("a", "b", "c"),
            parents=np.array([-1, 0, 1]),
            rates=ones[:, None],
            weights=ones,
            filter_times=1e-3 * ones,
            send_times=1e-3 * ones,
            delays=np.ones((3, 3)),
            elsewhere=np.zeros((3, 3)),
            below_count=none,
            below_receivers=none[:, None],
            below_passed=zeros[:, None],
            below_weight=zeros,
        )
    )
    client = Summary({0: 1.0}, frozenset({0}), {"a": 1.0, "b": 1.0})
    best_home(client, "a", {"a": client, "b": client}, ("a", "b"))


FAILURES_MAX = 3
"""A broker that fails so often is stopped,"""
FAILURES_WITHIN_NS = 600 * 10**9
"""if it does so within this time."""

_PROBLEM_CHARACTERS_MAX = 400
_ANSWERS = (Converted, ConversionRefused, Fetched, FetchFailed, PlanMade)

PRIORITY_KINDS = frozenset(
    kind
    for kind in kinds().values()
    if kind.__module__ == roster.__name__ and speaker_of(kind) is Speaker.BROKER
)
"""Kinds of messages with priority, which wait neither for a commit nor for others before them:
who has much to do is alive, and how far away it is does not depend on that."""


class _Turn:
    """A turn that is not durable yet.

    Attributes
    ----------
    writes
        Records by key; None erases.
    effects
        What is to be done when they are durable.
    message
        What it was about, to be handed over again or set aside; None for a turn that comes by
        itself after a restart.
    life
        The broker's own incarnation in whole lives, if the turn raised that.
    """

    __slots__ = ("effects", "life", "message", "sender", "writes")

    def __init__(
        self,
        writes: dict[str, bytes | None],
        effects: list[Effect],
        message: object | None,
        sender: Address,
        life: int | None,
    ) -> None:
        self.writes = writes
        self.effects = effects
        self.message = message
        self.sender = sender
        self.life = life


class Driver:
    """Runs one broker on a host.

    Attributes
    ----------
    broker
        The broker; None before it starts, while it waits to be restored, and when it is
        stopped.
    """

    def __init__(self, host: Host) -> None:
        self.broker: Broker | None = None
        self._host = host
        self._turns: deque[_Turn] = deque()
        self._committing = 0
        """How many turns are in the commit that is under way."""
        self._alone = 0
        """How many turns are to be committed one by one, to see which of them fails."""
        self._life = -1
        self._raised = 0
        """How many turns that began a life are not durable."""
        self._wake_ns: int | None = None
        self._failed: tuple[Exception, object | None, Address] | None = None
        self._held: deque[tuple[object, Address]] = deque()
        self._failures: deque[int] = deque()
        self._ended = False

    def start(self) -> None:
        """Restore the broker, and set it going.

        Raises
        ------
        JournalDamaged
            When the journal cannot be read.
        """
        if self.broker is not None or self._ended:
            raise LocalMisuse("a driver is started once")
        broker = self._host.restore()
        load_compiled(broker.core.settings)
        self._begin(broker)

    def halt(self) -> None:
        """Ask nothing more of the host: its process ends here, or is said to."""
        self.broker = None
        self._ended = True
        self._held.clear()

    def receive(self, message: object, *, sender: Address) -> None:
        """Hand over a message from a broker or a client, or from the host itself."""
        broker = self.broker
        if broker is None:
            self._hold(message, sender)
            return
        try:
            effects = broker.receive(message, sender=sender, now_ns=self._host.now_ns())
        except PeerMisbehaved as error:
            if sender == HOST:
                raise
            # The broker is as it was before, and goes on.
            self._host.report(Misbehaved(sender, error.problem))
            return
        except Exception as error:
            self._fail(error, message, sender)
            return
        self._finish(effects, message, sender)

    def serve(self, ticket: int) -> None:
        """Go on with what waited for the processor."""
        broker = self.broker
        if broker is None:
            return
        try:
            effects = broker.serve(ticket, now_ns=self._host.now_ns())
        except Exception as error:
            self._fail(error, None, HOST)
            return
        self._finish(effects, None, HOST)

    def wake(self) -> None:
        """Do what is due; nothing is done before its time, whenever this is called."""
        self._wake_ns = None
        broker = self.broker
        if broker is None:
            return
        try:
            effects = broker.wake(now_ns=self._host.now_ns())
        except Exception as error:
            self._fail(error, None, HOST)
            return
        self._finish(effects, None, HOST)

    @property
    def is_durable(self) -> bool:
        """Whether all that was handled is durable, so that the disk has what the broker knows."""
        return not self._turns

    def committed(self) -> None:
        """Hear that the commit under way is durable."""
        if not self._ended:
            self._durable()
            self._commit()

    def commit_failed(self, error: Exception) -> None:
        """Hear that nothing of the commit under way is durable."""
        if self._ended:
            return
        count, self._committing = self._committing, 0
        if count > 1:
            # One of them may be to blame, and those before it are not to suffer.
            self._alone = count
            self._commit()
            return
        guilty = self._turns.popleft()
        later, self._held = self._held, deque()
        for turn in self._turns:
            self._hold(turn.message, turn.sender)
        if self._failed is not None:
            self._hold(*self._failed[1:])
        self._held.extend(later)
        self._turns.clear()
        self._recover(error, guilty.message, guilty.sender)

    def _hold(self, message: object | None, sender: Address) -> None:
        """Keep a message for the broker that is to be restored."""
        if self._ended or message is None:
            return
        # Answers to an earlier broker mean nothing to the next one, which asks again.
        if not isinstance(message, _ANSWERS):
            self._held.append((message, sender))

    def _begin(self, broker: Broker) -> None:
        self.broker = broker
        self._alone = self._raised = 0
        self._life = -1
        self._wake_ns = None
        now_ns = self._host.now_ns
        try:
            for message in self._host.first():
                self._finish(broker.receive(message, sender=HOST, now_ns=now_ns()), None, HOST)
                if self.broker is not broker:
                    return
            effects = broker.start(now_ns=now_ns())
        except PeerMisbehaved:
            raise
        except Exception as error:
            self._fail(error, None, HOST)
            return
        self._finish(effects, None, HOST)

    def _finish(self, effects: list[Effect], message: object | None, sender: Address) -> None:
        """Have what came of a turn made durable and carried out."""
        if effects or self._turns:
            self._settle(effects, message, sender)
        broker = self.broker
        if broker is not None:
            at_ns = broker.wake_at_ns()
            if at_ns is not None and (self._wake_ns is None or at_ns < self._wake_ns):
                self._wake_ns = at_ns
                self._host.wake_at(at_ns)

    def _settle(self, effects: list[Effect], message: object | None, sender: Address) -> None:
        assert self.broker is not None
        version = self.broker.core.version
        writes: dict[str, bytes | None] = {}
        others: list[Effect] = []
        life: int | None = None
        for effect in effects:
            if type(effect) is Persist:
                record = effect.record
                writes[effect.key] = encode(record, version)
                if type(record) is Known and record.incarnation // LIFE > self._life:
                    life = record.incarnation // LIFE
            elif type(effect) is Erase:
                writes[effect.key] = None
            else:
                others.append(effect)
        if not writes and not self._turns:
            self._carry_out(others)
            return
        if life is not None:
            self._raised += 1
        turn = _Turn(writes, others, message, sender, life)
        self._turns.append(turn)
        if not self._committing:
            self._commit()
        if self._turns and self._turns[-1] is turn and not self._raised:
            turn.effects = self._send_priority(others)

    def _send_priority(self, effects: list[Effect]) -> list[Effect]:
        """Send what has priority now, as it need not wait for a commit; return the rest."""
        others: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send) and type(effect.message) in PRIORITY_KINDS:
                self._host.send(effect.to, effect.message)
            else:
                others.append(effect)
        return others

    def _commit(self) -> None:
        """Begin the next commit, or make one after the other where they take no time."""
        turns = self._turns
        while turns and not self._committing and not self._ended:
            if self._alone or len(turns) == 1:
                self._committing = 1
                writes = turns[0].writes
            else:
                self._committing = len(turns)
                writes = {}
                for turn in turns:
                    writes.update(turn.writes)
            try:
                done = not writes or self._host.commit(writes)
            except Exception as error:
                self.commit_failed(error)
                return
            if done:
                self._durable()

    def _durable(self) -> None:
        """Carry out what has waited for a commit."""
        count, self._committing = self._committing, 0
        if self._alone:
            self._alone -= 1
        for _ in range(count):
            turn = self._turns.popleft()
            if turn.life is not None:
                self._life = turn.life
                self._raised -= 1
            if turn.effects:
                self._carry_out(turn.effects)
        if self._failed is not None and not self._turns:
            self._recover(*self._failed)

    def _carry_out(self, effects: list[Effect]) -> None:
        host, broker = self._host, self.broker
        # Somebody who does not know some messages may have come while this turn was committed.
        # Then these are lost: whoever waits for them asks again.
        version = VERSION if broker is None else broker.core.membership.version
        works: list[str] = []
        for effect in effects:
            if self._ended:
                return
            if type(effect) is Spend:
                # Works with nothing to be seen between them end together.
                works.append(effect.work)
                continue
            if works:
                host.spend(works)
                works = []
            if type(effect) is Send:
                to, message = effect.to, effect.message
                if version == VERSION or is_client(to) or is_spoken(message, version):
                    host.send(to, message)
            elif type(effect) is Report:
                host.report(effect.record)
            elif type(effect) is Serve:
                host.serve(effect.ticket)
            elif type(effect) is Convert:
                host.convert(effect.ticket, effect.blob, effect.target, effect.data)
            elif type(effect) is Fetch:
                host.fetch(effect.ticket, effect.blob, effect.holder)
            elif type(effect) is Free:
                self._free(effect.digest)
            elif type(effect) is MakePlan:
                host.make_plan(effect.ticket, effect.problem)
            elif type(effect) is Left:
                host.left()
        if works and not self._ended:
            host.spend(works)

    def _free(self, digest: str) -> None:
        """Have content deleted, unless it has come again since the broker gave it up.

        A later turn may have run before this one was durable. While the broker is being
        restored nobody knows: the next one finds out what nothing refers to.
        """
        if self.broker is not None and not self.broker.has_content(digest):
            self._host.free(digest)

    def _fail(self, error: Exception, message: object | None, sender: Address) -> None:
        """Give up a turn that failed, and the broker, once the turns before it are durable."""
        self.broker = None
        self._failed = (error, message, sender)
        if not self._turns:
            self._recover(error, message, sender)

    def _recover(self, error: Exception, message: object | None, sender: Address) -> None:
        """Restore the broker from its journal, without a message that it failed over."""
        self.broker = None
        self._failed = None
        self._host.failed(error, message)
        now_ns = self._host.now_ns()
        failures = self._failures
        failures.append(now_ns)
        while failures[0] < now_ns - FAILURES_WITHIN_NS:
            failures.popleft()
        problem = f"{type(error).__name__}: {error}"[:_PROBLEM_CHARACTERS_MAX]
        if len(failures) >= FAILURES_MAX:
            self._stop(f"it failed {len(failures)} times within ten minutes, last by {problem}")
            return
        try:
            broker = self._host.restore()
        except JournalDamaged as damaged:
            self._stop(str(damaged))
            return
        held, self._held = self._held, deque()
        self._begin(broker)
        # Plans are never encoded; the broker asks for them again.
        if message is not None and not isinstance(message, SetAside | PlanMade):
            self.receive(SetAside(sender, encode(message), problem), sender=HOST)
        for held_message, held_sender in held:
            self.receive(held_message, sender=held_sender)

    def _stop(self, reason: str) -> None:
        self.halt()
        self._turns.clear()
        self._host.stopped(reason)
