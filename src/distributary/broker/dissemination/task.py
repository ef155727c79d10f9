"""What a root does for one item, and the states that it passes through.

The items of one publisher in one cell, which a root takes in the order of their numbers.

Supervision: how long a root waits for homes to confirm, and what it does then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from distributary.broker.addresses import Blob
from distributary.broker.core import Core, Transitions
from distributary.broker.dissemination.messages import (
    REPEATS_MAX,
    AskServed,
    Item,
    ItemId,
    Offer,
)
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MemberStatus
from distributary.broker.plan_part import Route
from distributary.broker.settings import ns
from distributary.broker.timers import Backoff, RoundTrip, Timer

__all__ = [
    "TASK",
    "ContentRecord",
    "Pending",
    "PendingRecord",
    "Place",
    "ProgressRecord",
    "Sequence",
    "Stream",
    "Supervision",
    "Task",
    "TaskEvent",
    "TaskState",
]


class TaskState(Enum):
    """How far a root is with an item."""

    TAKEN = "taken"
    FETCHING = "fetching"
    PROBING = "probing"
    PLANNING = "planning"
    UNDER_WAY = "under way"
    WAITING = "waiting"
    SETTLED = "settled"


class TaskEvent(Enum):
    """What can happen to an item at its root."""

    FETCHING = "fetching"
    PROBED = "probed"
    PLANNING = "planning"
    SENT = "sent"
    ALL_AWAY = "all away"
    ALL_SERVED = "all served"
    WANTED = "wanted"


# An item that is taken is matched. If somebody wants it, its content is fetched from its home,
# unless it is here. What is lost there, and so is sent without it, is fetched once more if another
# home offers it. Then it is sent along a tree that is known or has to be found first. A plan
# that takes long is made by the host, and the item waits for it; an attempt that begins
# meanwhile, as homes come or go, takes the place of the one that is planned, for its homes too.
# It is sent again, on another tree, to homes that do not confirm; while all that
# have not are away it waits for one of them. When all have confirmed, or are lost for ever,
# the item is settled. It is kept for a while: a registration that comes late, or that another
# root had not served, makes it wanted once more.
TASK: Transitions[TaskState, TaskEvent] = Transitions(
    "item at its root",
    TaskState.TAKEN,
    {
        (TaskState.TAKEN, TaskEvent.PROBED): TaskState.PROBING,
        (TaskState.TAKEN, TaskEvent.SENT): TaskState.UNDER_WAY,
        (TaskState.TAKEN, TaskEvent.ALL_AWAY): TaskState.WAITING,
        (TaskState.TAKEN, TaskEvent.ALL_SERVED): TaskState.SETTLED,
        (TaskState.PROBING, TaskEvent.PROBED): TaskState.PROBING,
        (TaskState.PROBING, TaskEvent.SENT): TaskState.UNDER_WAY,
        (TaskState.PROBING, TaskEvent.ALL_AWAY): TaskState.WAITING,
        (TaskState.PROBING, TaskEvent.ALL_SERVED): TaskState.SETTLED,
        (TaskState.UNDER_WAY, TaskEvent.PROBED): TaskState.PROBING,
        (TaskState.UNDER_WAY, TaskEvent.SENT): TaskState.UNDER_WAY,
        (TaskState.UNDER_WAY, TaskEvent.ALL_AWAY): TaskState.WAITING,
        (TaskState.UNDER_WAY, TaskEvent.ALL_SERVED): TaskState.SETTLED,
        (TaskState.WAITING, TaskEvent.PROBED): TaskState.PROBING,
        (TaskState.WAITING, TaskEvent.SENT): TaskState.UNDER_WAY,
        (TaskState.WAITING, TaskEvent.ALL_AWAY): TaskState.WAITING,
        (TaskState.WAITING, TaskEvent.ALL_SERVED): TaskState.SETTLED,
        (TaskState.SETTLED, TaskEvent.WANTED): TaskState.TAKEN,
        (TaskState.TAKEN, TaskEvent.PLANNING): TaskState.PLANNING,
        (TaskState.PROBING, TaskEvent.PLANNING): TaskState.PLANNING,
        (TaskState.UNDER_WAY, TaskEvent.PLANNING): TaskState.PLANNING,
        (TaskState.WAITING, TaskEvent.PLANNING): TaskState.PLANNING,
        (TaskState.PLANNING, TaskEvent.PLANNING): TaskState.PLANNING,
        (TaskState.PLANNING, TaskEvent.PROBED): TaskState.PROBING,
        (TaskState.PLANNING, TaskEvent.SENT): TaskState.UNDER_WAY,
        (TaskState.PLANNING, TaskEvent.ALL_AWAY): TaskState.WAITING,
        (TaskState.PLANNING, TaskEvent.ALL_SERVED): TaskState.SETTLED,
        (TaskState.TAKEN, TaskEvent.FETCHING): TaskState.FETCHING,
        (TaskState.WAITING, TaskEvent.FETCHING): TaskState.FETCHING,
        (TaskState.PROBING, TaskEvent.FETCHING): TaskState.FETCHING,
        (TaskState.UNDER_WAY, TaskEvent.FETCHING): TaskState.FETCHING,
        (TaskState.PLANNING, TaskEvent.FETCHING): TaskState.FETCHING,
        (TaskState.FETCHING, TaskEvent.FETCHING): TaskState.FETCHING,
        (TaskState.FETCHING, TaskEvent.PLANNING): TaskState.PLANNING,
        (TaskState.FETCHING, TaskEvent.PROBED): TaskState.PROBING,
        (TaskState.FETCHING, TaskEvent.SENT): TaskState.UNDER_WAY,
        (TaskState.FETCHING, TaskEvent.ALL_AWAY): TaskState.WAITING,
        (TaskState.FETCHING, TaskEvent.ALL_SERVED): TaskState.SETTLED,
    },
)


@encodable(590)
@dataclass(frozen=True, slots=True)
class ContentRecord:
    """An item with its content, as a root keeps it."""

    item: Item
    blob: Blob | None


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A home that has not confirmed, as it is kept: with its registrations' profiles."""

    home: str
    registrations: tuple[tuple[str, str | None], ...]
    attempt: int


@encodable(591)
@dataclass(frozen=True, slots=True)
class ProgressRecord:
    """How far a root is with an item, as it is kept."""

    identity: ItemId
    home: str
    attempt: int
    pending: tuple[PendingRecord, ...]
    served: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]
    settled: bool


class Pending:
    """A home that has not confirmed.

    Attributes
    ----------
    registrations
        Those that the item is for, each with the profile of its device and the way on which
        it came.
    attempt
        The first attempt that was for all of them; an answer to an earlier one says too
        little.
    since_ns
        Since when it has been waited for.
    above
        The brokers between the root and the home on the tree that was last planned.
    lost_count
        How many formats were lost when it was last sent the item for that reason.
    unfetched, unfetched_at
        How often somebody on the way to it could not fetch the content, and by which attempt.
    without
        Why it gets no content at all, if that cannot be brought to it.
    """

    __slots__ = (
        "above",
        "attempt",
        "lost_count",
        "registrations",
        "since_ns",
        "unfetched",
        "unfetched_at",
        "without",
    )

    def __init__(self, now_ns: int) -> None:
        self.registrations: dict[str, tuple[str | None, Route]] = {}
        self.attempt = 0
        self.since_ns = now_ns
        self.above: frozenset[str] = frozenset()
        self.lost_count = 0
        self.unfetched = 0
        self.unfetched_at = 0
        self.without = ""

    def record(self, home: str) -> PendingRecord:
        """Return it as it is kept."""
        named = [(name, profile) for name, (profile, _) in sorted(self.registrations.items())]
        return PendingRecord(home, tuple(named), self.attempt)


Place = tuple[int, int, ItemId]
"""(series, number, identity) among what a client publishes in a cell."""

Stream = tuple[str, int, int]
"""(tenant, publisher, cell): what a client publishes in a cell."""


class Task:
    """What a root does for one item.

    Attributes
    ----------
    identity, key
        What tells it from others, also in the keys of records.
    stream, place
        What its publisher publishes in its cell, and where in that it stands.
    item, blob
        The item and its content.
    size_bytes
        What it takes to keep them.
    attempt
        How often it was planned.
    pending
        The homes that have not confirmed.
    served
        The registrations, (home, id), whose homes have.
    unknown
        Those that their homes do not have any more, or that the root has given up.
    lost
        Formats that could not be made, and why; with the item's own, whose content is lost
        altogether.
    repeats
        How often it was sent again because homes did not answer.
    sent_ns
        When it was sent last; 0 when it was not in this life of the broker, or its homes have
        been away since.
    timer
        When it is next looked after.
    work_s
        How long conversions and links should take on the way to any home, as last planned.
    planned_for
        The homes of the attempt that the host was last asked to plan.
    """

    __slots__ = (
        "attempt",
        "blob",
        "identity",
        "item",
        "key",
        "lost",
        "pending",
        "place",
        "planned_for",
        "repeats",
        "sent_ns",
        "served",
        "size_bytes",
        "state",
        "stream",
        "timer",
        "unknown",
        "work_s",
    )

    def __init__(self, item: Item, blob: Blob | None) -> None:
        self.identity = item.identity
        self.key = journal_key(*self.identity)
        self.stream: Stream = (item.tenant, item.publisher, item.cell)
        self.place: Place = (item.series, item.number, self.identity)
        self.item = item
        self.blob = blob
        self.size_bytes = len(item.event)
        self.state = TASK.initial
        self.attempt = 0
        self.pending: dict[str, Pending] = {}
        self.served: set[tuple[str, str]] = set()
        self.unknown: set[tuple[str, str]] = set()
        self.lost: dict[str, str] = {}
        self.repeats = 0
        self.sent_ns = 0
        self.timer: Timer | None = None
        self.work_s = 0.0
        self.planned_for: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether nothing is to be done."""
        return self.state is TaskState.SETTLED

    @property
    def lost_formats(self) -> tuple[str, ...]:
        """The formats that could not be made, in order."""
        return tuple(sorted(self.lost))

    def step(self, event: TaskEvent) -> None:
        """Change its state."""
        following = TASK.step(self.state, event)
        assert following is not None, f"{event.value} while {self.state.value}"
        self.state = following

    def confirmed(self, home: str, served: Iterable[str], unknown: Iterable[str] = ()) -> None:
        """Note which registrations a home has served, and which it does not have.

        It is waited for as long as it has not spoken of all.
        """
        registrations = self.pending[home].registrations
        for told, names in ((self.served, served), (self.unknown, unknown)):
            for name in names:
                if registrations.pop(name, None) is not None:
                    told.add((home, name))
        if not registrations:
            del self.pending[home]

    def progress(self) -> ProgressRecord:
        """Return how far it is, as it is kept."""
        return ProgressRecord(
            self.identity,
            self.item.home,
            self.attempt,
            tuple([pending.record(home) for home, pending in sorted(self.pending.items())]),
            tuple(sorted(self.served)),
            tuple(sorted(self.lost.items())),
            self.settled,
        )


class Sequence:
    """The items of one series, as far as a root knows them.

    Attributes
    ----------
    following
        The number of the item to be taken next; None before the first.
    tasks
        By number, what has been taken and is not forgotten.
    """

    __slots__ = ("_early", "_gaps", "following", "tasks")

    def __init__(self) -> None:
        self.following: int | None = None
        self.tasks: dict[int, Task] = {}
        self._early: dict[int, Offer] = {}
        # Of those that have nothing right before them any more, the first number that is missing.
        self._gaps: dict[int, int] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is kept, and nothing waits for its turn."""
        return not self.tasks and not self._early

    def is_new(self, offer: Offer) -> bool:
        """Whether an item has not been taken yet; if so it will be `ready` in its turn."""
        # What the publisher's home does not offer any more was settled by another root.
        if self.following is None or self.following < offer.first:
            self._skip_to(offer.first)
        number = offer.item.number
        if number < (self.following or 0):
            return False
        self._early[number] = offer
        if offer.settled:
            self._gaps[number] = number - offer.settled
        return True

    def _skip_to(self, number: int) -> None:
        self.following = number
        self._early = {n: early for n, early in self._early.items() if n >= number}
        self._gaps = {n: first for n, first in self._gaps.items() if n >= number}

    def drop(self, number: int) -> None:
        """Forget an item that waits for its turn; it is offered again."""
        self._early.pop(number, None)
        self._gaps.pop(number, None)

    def waits(self, number: int) -> bool:
        """Whether an item waits for its turn."""
        return number in self._early

    def ready(self) -> Offer | None:
        """Return the next item, if it is there, which counts as taken."""
        if self.following is None:
            return None
        if self.following not in self._early:
            for number, first in self._gaps.items():
                if first <= self.following < number:
                    self._skip_to(number)
                    break
        offer = self._early.get(self.following)
        if offer is not None:
            self.drop(self.following)
            self.following += 1
        return offer

    def add(self, task: Task) -> None:
        """Enter an item that was taken."""
        number = task.item.number
        self.tasks[number] = task
        self.following = max(self.following or 0, number + 1)

    def remove(self, task: Task) -> None:
        """Forget an item."""
        del self.tasks[task.item.number]


# Each time that nobody answers the root waits twice as long, up to so many times.
# Conversions may take this much longer than they are expected to.
_WORK_FACTOR = 2.0


class Supervision:
    """When a root looks after its items.

    Homes that have not confirmed by half of the time are asked: what got lost may have been
    their answer. By the end of it the item is sent anew.

    Parameters
    ----------
    try_anew
        Called with `(task, turn)` when the time is up.
    """

    def __init__(self, core: Core, try_anew: Callable[[Task, Turn], None]) -> None:
        self._core = core
        self._try_anew = try_anew
        repeat_ns = ns(core.settings.content.repeat_s)
        self._backoff = Backoff(repeat_ns, REPEATS_MAX * repeat_ns)
        self._work_s_max = core.settings.content.retention_s
        self._trip = RoundTrip()
        self._lost_ns = ns(core.settings.membership.lost_s)

    def look_after(self, task: Task, turn: Turn) -> None:
        """Wait for the homes of an item, which need some time for conversions."""
        # Some homes want nothing that takes long, and may wait for something that got lost.
        work_s = min(_WORK_FACTOR * task.work_s, self._work_s_max)
        wait_ns = max(self._backoff.after(task.repeats), self._trip.timeout_ns)
        self._wait(task, wait_ns + ns(work_s), turn)

    def served(self, task: Task, turn: Turn) -> None:
        """Note that a home has confirmed, and how long that took if the item was sent once."""
        if task.attempt == 1 and task.sent_ns:
            self._trip.measure(turn.now_ns - task.sent_ns)

    def wait_long(self, task: Task, turn: Turn) -> None:
        """Wait for homes that are away; they tell when they are back."""
        # What an attempt of before brings them then was not as long on its way.
        task.sent_ns = 0
        self._wait(task, self._backoff.longest_ns, turn)

    def end(self, task: Task) -> None:
        """Wait no longer."""
        task.repeats = 0
        self.pause(task)

    def pause(self, task: Task) -> None:
        """Wait for nobody while nothing has been sent."""
        if task.timer is not None:
            task.timer.cancel()
            task.timer = None

    def _wait(self, task: Task, wait_ns: int, turn: Turn) -> None:
        if task.timer is not None:
            task.timer.cancel()
        half_ns = wait_ns // 2
        task.timer = self._core.timers.at(turn.now_ns + half_ns, self._ask, task, wait_ns - half_ns)

    def _ask(self, turn: Turn, task: Task, rest_ns: int) -> None:
        for home in sorted(task.pending):
            there = home != self._core.identity and self._core.membership.is_alive(home)
            if there and not self._core.links.carries((task.identity, home)):
                attempt = task.pending[home].attempt
                turn.send(home, AskServed(task.identity, attempt))
        task.timer = self._core.timers.at(turn.now_ns + rest_ns, self._time_is_up, task)

    def _time_is_up(self, turn: Turn, task: Task) -> None:
        for home in sorted(task.pending):
            unknown = self._core.membership.status(home) is MemberStatus.UNKNOWN
            if unknown and turn.now_ns - task.pending[home].since_ns > self._lost_ns:
                del task.pending[home]
        task.repeats += 1
        self._try_anew(task, turn)
