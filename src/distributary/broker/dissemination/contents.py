"""The content of a root's items: had before they are sent, and brought to homes or done without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.dissemination.messages import ContentLost, Offer
from distributary.broker.dissemination.task import Task
from distributary.broker.dissemination.unsettled import Unsettled
from distributary.broker.effects import Turn
from distributary.broker.formats import formats_of
from distributary.broker.timers import Backoff

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Contents"]

# How often content may fail to get to a home before it is done without, and how long to wait.
_TRIES_MAX = 3
_WAIT_NS = 500_000_000


class Contents:
    """The content of the items of one root.

    Parameters
    ----------
    core
        The broker's.
    unsettled
        The items for which something is to be done.
    had
        Called with `(task, turn)` when the content of an item is here, or is lost for good.
    send
        Called with `(task, homes, turn)` when homes are to be sent an item again.
    """

    def __init__(
        self,
        core: Core,
        unsettled: Unsettled,
        had: Callable[[Task, Turn], None],
        send: Callable[[Task, Sequence[str], Turn], None],
    ) -> None:
        self._core = core
        self._unsettled = unsettled
        self._had = had
        self._send = send
        self._backoff = Backoff(_WAIT_NS, 8 * _WAIT_NS)

    def lacks(self, task: Task) -> bool:
        """Whether an item's content is not here, and can still be had."""
        if task.blob is None or self._core.content.has(task.blob):
            return False
        return self._own_format(task) not in task.lost

    def fetch(self, task: Task, turn: Turn) -> None:
        """Get the content of an item from where it was published."""
        assert task.blob is not None
        item = task.item
        self._core.content.fetch(task.blob, item.home, turn, item.identity, self._fetched, task)

    def offered(self, task: Task, offer: Offer) -> None:
        """Hope again for content that is lost, if another home offers it, which has it."""
        if offer.item.home != task.item.home:
            task.lost.pop(self._own_format(task), None)

    def _fetched(self, turn: Turn, failure: str, task: Task) -> None:
        if self._unsettled.get(task.item.identity) is not task:
            return
        if failure:
            task.lost[self._own_format(task)] = failure
        self._had(task, turn)

    def lost(self, message: ContentLost, sender: Address, turn: Turn) -> None:
        """Try again to bring an item to homes, on another way if there is one, then do without.

        Whoever should have had the bytes may be gone, or have freed them because the next hop was
        away for long. So not every failure counts as one of the format.
        """
        task = self._unsettled.get(message.identity)
        if task is None or message.attempt > task.attempt:
            return
        formats = formats_of(self._core.settings, task.item)
        homes: list[str] = []
        for home in message.homes:
            pending = task.pending.get(home)
            if pending is None or message.attempt <= pending.unfetched_at:
                continue
            homes.append(home)
            pending.unfetched += 1
            pending.unfetched_at = task.attempt
            if pending.unfetched >= _TRIES_MAX:
                pending.unfetched = 0
                for name, reason in message.lost:
                    if name == formats.own:
                        pending.without = reason
                    elif name in formats.places:
                        task.lost.setdefault(name, reason)
        if homes:
            wait_ns = self._backoff.after(max(task.pending[home].unfetched for home in homes))
            self._core.timers.at(turn.now_ns + wait_ns, self._again, task, homes)

    def _again(self, turn: Turn, task: Task, homes: list[str]) -> None:
        left = [home for home in homes if home in task.pending]
        if left:
            self._send(task, left, turn)

    def _own_format(self, task: Task) -> str:
        return formats_of(self._core.settings, task.item).own
