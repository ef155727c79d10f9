"""What a root does for one item, and the states that it passes through."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from distributary.broker.blob import Blob
from distributary.broker.encoding import wire
from distributary.broker.messages.content import Item
from distributary.broker.plan_part import Route
from distributary.broker.timers import Timer
from distributary.broker.transitions import Transitions

__all__ = [
    "TASK",
    "ContentRecord",
    "Event",
    "Pending",
    "PendingRecord",
    "ProgressRecord",
    "State",
    "Task",
]


class State(Enum):
    """How far a root is with an item."""

    TAKEN = "taken"
    PROBING = "probing"
    UNDER_WAY = "under way"
    WAITING = "waiting"
    SETTLED = "settled"


class Event(Enum):
    """What can happen to an item at its root."""

    PROBED = "probed"
    SENT = "sent"
    ALL_AWAY = "all away"
    ALL_SERVED = "all served"
    WANTED = "wanted"


# An item that is taken is matched, and then sent along a tree that is known or has to be
# found first. It is sent again, on another tree, to homes that do not confirm; while all that
# have not are away it waits for one of them. When all have confirmed, or are lost for ever,
# the item is settled. It is kept for a while: a registration that comes late, or that another
# root had not served, makes it wanted once more.
TASK: Transitions[State, Event] = Transitions(
    "item at its root",
    State.TAKEN,
    {
        (State.TAKEN, Event.PROBED): State.PROBING,
        (State.TAKEN, Event.SENT): State.UNDER_WAY,
        (State.TAKEN, Event.ALL_AWAY): State.WAITING,
        (State.TAKEN, Event.ALL_SERVED): State.SETTLED,
        (State.PROBING, Event.PROBED): State.PROBING,
        (State.PROBING, Event.SENT): State.UNDER_WAY,
        (State.PROBING, Event.ALL_AWAY): State.WAITING,
        (State.PROBING, Event.ALL_SERVED): State.SETTLED,
        (State.UNDER_WAY, Event.PROBED): State.PROBING,
        (State.UNDER_WAY, Event.SENT): State.UNDER_WAY,
        (State.UNDER_WAY, Event.ALL_AWAY): State.WAITING,
        (State.UNDER_WAY, Event.ALL_SERVED): State.SETTLED,
        (State.WAITING, Event.PROBED): State.PROBING,
        (State.WAITING, Event.SENT): State.UNDER_WAY,
        (State.WAITING, Event.ALL_AWAY): State.WAITING,
        (State.WAITING, Event.ALL_SERVED): State.SETTLED,
        (State.SETTLED, Event.WANTED): State.TAKEN,
    },
)


@wire(590)
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


@wire(591)
@dataclass(frozen=True, slots=True)
class ProgressRecord:
    """How far a root is with an item, as it is kept."""

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
    """

    __slots__ = ("above", "attempt", "lost_count", "registrations", "since_ns")

    def __init__(self, now_ns: int) -> None:
        self.registrations: dict[str, tuple[str | None, Route]] = {}
        self.attempt = 0
        self.since_ns = now_ns
        self.above: frozenset[str] = frozenset()
        self.lost_count = 0


class Task:
    """What a root does for one item.

    Attributes
    ----------
    item, blob
        The item and its content.
    attempt
        How often it was planned.
    pending
        The homes that have not confirmed.
    served
        The registrations, (home, id), whose homes have.
    unknown
        Those that their homes do not have any more.
    lost
        Formats that could not be made, and why.
    repeats
        How often it was sent again because homes did not answer.
    timer
        When it is next looked after.
    work_s
        How long conversions and links should take on the way to any home, as last planned.
    """

    __slots__ = (
        "attempt",
        "blob",
        "item",
        "lost",
        "pending",
        "repeats",
        "served",
        "state",
        "timer",
        "unknown",
        "work_s",
    )

    def __init__(self, item: Item, blob: Blob | None) -> None:
        self.item = item
        self.blob = blob
        self.state = TASK.initial
        self.attempt = 0
        self.pending: dict[str, Pending] = {}
        self.served: set[tuple[str, str]] = set()
        self.unknown: set[tuple[str, str]] = set()
        self.lost: dict[str, str] = {}
        self.repeats = 0
        self.timer: Timer | None = None
        self.work_s = 0.0

    @property
    def settled(self) -> bool:
        """Whether nothing is to be done."""
        return self.state is State.SETTLED

    @property
    def lost_formats(self) -> tuple[str, ...]:
        """The formats that could not be made, in order."""
        return tuple(sorted(self.lost))

    def step(self, event: Event) -> None:
        """Change its state."""
        following = TASK.step(self.state, event)
        assert following is not None, f"{event.value} while {self.state.value}"
        self.state = following

    def confirmed(self, home: str, unknown: tuple[str, ...] = ()) -> None:
        """Note that a home has been served, but for registrations that it does not have."""
        registrations = self.pending.pop(home).registrations
        self.unknown.update((home, name) for name in unknown if name in registrations)
        self.served.update((home, name) for name in registrations if name not in unknown)

    def progress(self) -> ProgressRecord:
        """Return how far it is, as it is kept."""
        return ProgressRecord(
            self.item.home,
            self.attempt,
            tuple(
                PendingRecord(
                    home,
                    tuple(
                        (name, profile)
                        for name, (profile, _) in sorted(pending.registrations.items())
                    ),
                    pending.attempt,
                )
                for home, pending in sorted(self.pending.items())
            ),
            tuple(sorted(self.served)),
            tuple(sorted(self.lost.items())),
            self.settled,
        )
