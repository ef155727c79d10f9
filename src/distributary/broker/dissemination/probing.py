"""Probes: how a root finds the ways on which content will go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.dissemination.task import Task
from distributary.broker.messages.content import Probe, ProbeAnswer
from distributary.broker.plan_part import Route
from distributary.broker.settings import ns
from distributary.broker.timers import Timer
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Probes"]

Found = Callable[[Task, tuple[str, ...], Mapping[str, Route], Turn], None]
"""Told the item, the homes whose ways were looked for, and the ways that were found."""


class _Probing:
    """One probe: for whom, what was found, and when the root does without the rest."""

    __slots__ = ("homes", "routes", "task", "timer")

    def __init__(self, task: Task, homes: tuple[str, ...]) -> None:
        self.task = task
        self.homes = homes
        self.routes: dict[str, Route] = {}
        self.timer: Timer | None = None


class Probes:
    """The probes that one root has sent out.

    Parameters
    ----------
    core
        The broker's.
    found
        Called when all homes have answered, or the time is up.
    """

    def __init__(self, core: Core, found: Found) -> None:
        self._core = core
        self._found = found
        self._wait_ns = ns(core.settings.content.probe_s)
        self._probing: dict[tuple[str, str, int], _Probing] = {}

    def find(self, task: Task, homes: tuple[str, ...], turn: Turn) -> None:
        """Look for the ways to some homes."""
        item, own = task.item, self._core.identity
        key = (item.source, item.id, task.attempt)
        probing = self._probing[key] = _Probing(task, homes)
        probing.timer = self._core.timers.at(turn.now_ns + self._wait_ns, self._end, key)
        if own in homes:
            probing.routes[own] = ()
        others = tuple(home for home in homes if home != own)
        probe = Probe(item.source, item.id, task.attempt, own, others, (), b"")
        self._core.relays.pass_on_probe(probe, turn)

    def answered(self, message: ProbeAnswer, sender: Address, turn: Turn) -> None:
        """Enter the way to a home."""
        key = (message.source, message.id, message.attempt)
        probing = self._probing.get(key)
        if probing is None or sender not in probing.homes:
            return
        probing.routes[sender] = message.steps
        if len(probing.routes) == len(probing.homes):
            self._end(turn, key)

    def _end(self, turn: Turn, key: tuple[str, str, int]) -> None:
        probing = self._probing.pop(key)
        if probing.timer is not None:
            probing.timer.cancel()
        self._found(probing.task, probing.homes, probing.routes, turn)
