"""Patience: how long a root waits for homes to confirm, and what it does then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from distributary.broker.dissemination.task import Task
from distributary.broker.membership import Status
from distributary.broker.messages.content import AskServed
from distributary.broker.settings import ns
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Patience"]

# Each time that nobody answers the root waits twice as long, up to so many times.
_DOUBLINGS_MAX = 3
# Conversions may take this much longer than they are expected to.
_WORK_FACTOR = 2.0


class Patience:
    """When a root looks after its items.

    Homes that have not confirmed by half of the time are asked: what got lost may have been
    their answer. By the end of it the item is sent anew.

    Parameters
    ----------
    core
        The broker's.
    try_anew
        Called with `(task, turn)` when the time is up.
    """

    def __init__(self, core: Core, try_anew: Callable[[Task, Turn], None]) -> None:
        self._core = core
        self._try_anew = try_anew
        self._repeat_ns = ns(core.settings.content.repeat_s)
        self._work_s_max = core.settings.content.retention_s
        self._lost_ns = ns(core.settings.membership.lost_s)

    def look_after(self, task: Task, turn: Turn) -> None:
        """Wait for the homes of an item, which need some time for conversions."""
        # Some homes want nothing that takes long, and may wait for something that got lost.
        work_s = min(_WORK_FACTOR * task.work_s, self._work_s_max)
        patience_ns = (self._repeat_ns << task.repeats) + ns(work_s)
        self._wait(task, patience_ns, turn)

    def wait_long(self, task: Task, turn: Turn) -> None:
        """Wait for homes that are away; they tell when they are back."""
        self._wait(task, self._repeat_ns << _DOUBLINGS_MAX, turn)

    def end(self, task: Task) -> None:
        """Wait no longer."""
        task.repeats = 0
        if task.timer is not None:
            task.timer.cancel()
            task.timer = None

    def _wait(self, task: Task, patience_ns: int, turn: Turn) -> None:
        if task.timer is not None:
            task.timer.cancel()
        half_ns = patience_ns // 2
        task.timer = self._core.timers.at(
            turn.now_ns + half_ns, self._ask, task, patience_ns - half_ns
        )

    def _ask(self, turn: Turn, task: Task, rest_ns: int) -> None:
        item = task.item
        for home in sorted(task.pending):
            if home != self._core.identity and self._core.membership.is_alive(home):
                attempt = task.pending[home].attempt
                turn.send(home, AskServed(item.source, item.id, attempt))
        task.timer = self._core.timers.at(turn.now_ns + rest_ns, self._time_is_up, task)

    def _time_is_up(self, turn: Turn, task: Task) -> None:
        for home in sorted(task.pending):
            unknown = self._core.membership.status(home) is Status.UNKNOWN
            if unknown and turn.now_ns - task.pending[home].since_ns > self._lost_ns:
                del task.pending[home]
        task.repeats = min(task.repeats + 1, _DOUBLINGS_MAX)
        self._try_anew(task, turn)
