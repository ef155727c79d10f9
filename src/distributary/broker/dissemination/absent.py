"""Absent homes: what a root keeps for them, up to a limit, and what they are told when back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from distributary.broker.dissemination.debts import Debts, Forgone, MissedRecord
from distributary.broker.dissemination.messages import PRESSURE_SINCE
from distributary.broker.dissemination.task import Task
from distributary.broker.dissemination.unsettled import Unsettled
from distributary.broker.effects import Turn
from distributary.broker.settings import ns
from distributary.broker.timers import Retention, Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["AbsentHomes"]

# So many items are given up in one turn, and this long after that the next ones.
_GIVEN_UP_AT_ONCE = 64
_GIVE_UP_NS = 1_000_000


class AbsentHomes:
    """The homes that are away, as one root sees them.

    Parameters
    ----------
    core
        The broker's.
    unsettled
        The items for which something is to be done.
    keep, settle
        Called with `(task, turn)` when an item is owed to one home less, or to none any more.

    Attributes
    ----------
    debts, forgone
        What is kept for whom, and what was given up.
    """

    def __init__(
        self,
        core: Core,
        unsettled: Unsettled,
        keep: Callable[[Task, Turn], None],
        settle: Callable[[Task, Turn], None],
    ) -> None:
        self.debts = Debts(core.settings.content)
        self.forgone = Forgone()
        self._core = core
        self._unsettled = unsettled
        self._keep = keep
        self._settle = settle
        self._excused_ns = ns(core.settings.content.retention_s)
        self._excusing = Retention(core.timers, self.forgone.forget)
        # The home that is being given up, which takes some turns.
        self._given_up: str | None = None
        self._relief: Timer | None = None

    def load(self, record: MissedRecord) -> None:
        """Take back what a home is to be told that it has missed."""
        self.forgone.load(record)

    def start(self, turn: Turn) -> None:
        """Tell those who are there."""
        for home in self.forgone:
            self._tell(home, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return how much is kept, and who is given up."""
        return {
            "absent": {"items": self.debts.items, "bytes": self.debts.bytes},
            "given_up": list(self.forgone),
        }

    def owe(self, task: Task, turn: Turn) -> None:
        """Note for whom an item is kept because they are away; it may be too much."""
        for home in task.pending:
            if not self._core.membership.is_alive(home):
                self.debts.owe(home, task)
        too_much = self._relief is None and self.debts.owed_most() is not None
        # Not everybody may know what it means to have missed something.
        if too_much and self._core.membership.version >= PRESSURE_SINCE:
            self._relief = self._core.timers.at(turn.now_ns + _GIVE_UP_NS, self._relieve)

    def _relieve(self, turn: Turn) -> None:
        """Give up some of what the home is owed that is owed most; never all of it in a turn."""
        self._relief = None
        home = self._given_up or self.debts.owed_most()
        if home is None:
            return
        for identity in self.debts.first_of(home, _GIVEN_UP_AT_ONCE):
            task = self._unsettled.get(identity)
            if task is None or home not in task.pending:
                self.debts.paid(home, identity)
                continue
            names = tuple(task.pending.pop(home).registrations)
            task.unknown.update((home, name) for name in names)
            self.forgone.miss(home, names, turn)
            self.debts.paid(home, identity)
            if task.pending:
                self._keep(task, turn)
            else:
                self._settle(task, turn)
        if home in self.forgone:
            self.forgone.keep(home, turn)
        self._given_up = home if self.debts.first_of(home, 1) else None
        self._relief = self._core.timers.at(turn.now_ns + _GIVE_UP_NS, self._relieve)

    def forgo(self, task: Task, homes: Iterable[str]) -> None:
        """Leave out of an item who has missed one before it, and is told so."""
        for home in task.pending.keys() & self.forgone.homes(homes):
            registrations = task.pending[home].registrations
            skipped = [name for name in registrations if self.forgone.skips(home, name, 0)]
            task.confirmed(home, (), skipped)

    def changed(self, came: set[str], gone: set[str], turn: Turn) -> None:
        """Note which homes are owed nothing any more for being away."""
        for home in sorted(came | gone):
            self.debts.clear(home)
            if home == self._given_up:
                self._given_up = None
            if home not in self.forgone:
                continue
            if home in gone:
                self.forgone.forget(home, turn)
            else:
                self._tell(home, turn)

    def _tell(self, home: str, turn: Turn) -> None:
        """Tell a home that is back what it has missed, which ends those subscriptions."""
        if self._core.membership.is_alive(home):
            self._core.links.send(home, self.forgone.message(home), turn)
            # By then it has withdrawn them. What it registers anew is in force later.
            self._excusing.keep(home, turn.now_ns + self._excused_ns)
