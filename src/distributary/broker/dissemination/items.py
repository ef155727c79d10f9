"""Items: which of them a root has not settled or still knows, and whether their content is here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from distributary.broker.addresses import Address
from distributary.broker.core import Core
from distributary.broker.dissemination.messages import ContentLost, ItemId, Offer
from distributary.broker.dissemination.task import Place, Stream, Task
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import Turn
from distributary.broker.plan_part import NOTHING_BEFORE, After
from distributary.broker.planning import formats_of
from distributary.broker.settings import ns
from distributary.broker.subscriptions.subscription import subscription_of
from distributary.broker.timers import Backoff, Retention

__all__ = ["Contents", "SettledItems", "SettledRecord", "Unsettled"]


class Unsettled:
    """The items that a root has not settled.

    A series follows the one that began before it. A publisher whose home is lost goes on at
    another, which numbers anew; what a home that was away has yet to get of the first series
    must not be overtaken by the second, although nothing in their numbers says so.

    Attributes
    ----------
    bytes
        What they take.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._tasks: dict[ItemId, Task] = {}
        self._counts: Counter[Stream] = Counter()
        # By stream and home, in order: whatever the home has not confirmed, and some that it
        # has. Most homes have confirmed all while one is away for which a thousand items wait;
        # to look through those for every home and item would take most of a root's time.
        self._owed: dict[Stream, dict[str, list[Place]]] = {}

    def __iter__(self) -> Iterator[Task]:
        """Go through all of them, in the order in which they came."""
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)

    def get(self, identity: ItemId) -> Task | None:
        """Return an item, if it is not settled."""
        return self._tasks.get(identity)

    def add(self, task: Task) -> None:
        """Note that an item is not settled, or not any more."""
        if task.identity not in self._tasks:
            self._tasks[task.identity] = task
            self.bytes += task.size_bytes
            self._counts[task.stream] += 1
            for home in task.pending:
                self.owe(task, home)

    def owe(self, task: Task, home: str) -> None:
        """Note that a home has not confirmed an item, whenever it begins to be waited for."""
        if task.identity in self._tasks:
            owed = self._owed.setdefault(task.stream, {}).setdefault(home, [])
            place = task.place
            at = bisect_left(owed, place)
            if at == len(owed) or owed[at] != place:
                owed.insert(at, place)

    def remove(self, task: Task) -> None:
        """Note that an item is settled."""
        stream = task.stream
        del self._tasks[task.identity]
        self.bytes -= task.size_bytes
        self._counts[stream] -= 1
        if not self._counts[stream]:
            del self._counts[stream]
            self._owed.pop(stream, None)

    def before(self, task: Task, home: str) -> After:
        """Return the last earlier item that a home has not confirmed, if there is one."""
        for earlier in self._owed_before(task, home):
            return earlier.item.series, earlier.item.number, earlier.pending[home].attempt
        return NOTHING_BEFORE

    def owes(self, home: str, cell: int) -> bool:
        """Whether a home has not confirmed something in a cell."""
        return any(self._waits(home, stream) for stream in self._owed if stream[2] == cell)

    def cells_owed(self, home: str) -> set[int]:
        """Return the cells in which a home has not confirmed something."""
        return {stream[2] for stream in self._owed if self._waits(home, stream)}

    def _waits(self, home: str, stream: Stream) -> bool:
        owed = self._owed[stream].get(home)
        while owed:
            task = self._at(owed[-1])
            if task is not None and home in task.pending:
                return True
            owed.pop()
        return False

    def last_owed(self, task: Task, registration: str) -> frozenset[str]:
        """Return the homes that are owed the last earlier item for the same subscription.

        Not all that are owed an earlier one: a root that has crashed may have forgotten that a
        home has confirmed, and that it has sent what followed to another.
        """
        subscription = subscription_of(registration)
        last: dict[str, Place] = {}
        for home in self._owed.get(task.stream, {}):
            for earlier in self._owed_before(task, home):
                registrations = earlier.pending[home].registrations
                if subscription in map(subscription_of, registrations):
                    last[home] = earlier.place
                    break
        latest = max(last.values(), default=None)
        return frozenset(home for home, place in last.items() if place == latest)

    def following(self, task: Task, home: str) -> Task | None:
        """Return the first later item that a home has not confirmed, if there is one."""
        owed = self._owed.get(task.stream, {}).get(home)
        # Nearly always the item is the last one.
        if not owed or owed[-1] <= task.place:
            return None
        for place in owed[bisect_right(owed, task.place) :]:
            later = self._at(place)
            if later is not None and home in later.pending:
                return later
        return None

    def later(self, task: Task, homes: Iterable[str]) -> list[Task]:
        """Return what its publisher has published since and some homes have not confirmed."""
        owed, place = self._owed.get(task.stream, {}), task.place
        places: set[Place] = set()
        for home in homes:
            of_home = owed.get(home)
            # Nearly always the item is the last one.
            if of_home and of_home[-1] > place:
                places.update(of_home[bisect_right(of_home, place) :])
        if not places:
            return []
        later = [self._at(place) for place in sorted(places)]
        return [one for one in later if one is not None]

    def _at(self, place: Place) -> Task | None:
        """Return the item that stands at a place, if it is not settled."""
        return self._tasks.get(place[2])

    def _owed_before(self, task: Task, home: str) -> Iterator[Task]:
        """Go through what a home waits for of what came before, the last first."""
        if self._counts[task.stream] <= (task.identity in self._tasks):
            # It is the only one, as is usual where brokers keep up.
            return
        owed = self._owed.get(task.stream, {}).get(home)
        if not owed:
            return
        for at in range(bisect_left(owed, task.place) - 1, -1, -1):
            earlier = self._at(owed[at])
            if earlier is not None and home in earlier.pending:
                yield earlier
            else:
                # It has been confirmed since.
                del owed[at]


# Settled items: what a root still knows when it keeps no more of an item.
#
# Content is kept for as long as it may be asked for. That there was an item is known for longer: a
# client that was away, or another one with the same event, may publish it again.


@encodable(652)
@dataclass(frozen=True, slots=True)
class SettledRecord:
    """That a root has settled an item, of which it keeps no more."""

    identity: ItemId


class SettledItems:
    """The items that a root has settled and keeps no longer."""

    def __init__(self, core: Core) -> None:
        self._known: set[ItemId] = set()
        self._kept_ns = ns(core.settings.publishing.dedupe_s)
        self._forgetting = Retention(core.timers, self._forget)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, identity: ItemId) -> bool:
        """Whether an item was settled."""
        return identity in self._known

    def load(self, record: SettledRecord) -> None:
        """Take back an item."""
        self._known.add(record.identity)

    def start(self, turn: Turn) -> None:
        """Know everything for as long again."""
        self._forgetting.keep_all(sorted(self._known), turn.now_ns + self._kept_ns)

    def add(self, identity: ItemId, turn: Turn) -> None:
        """Know an item from now on."""
        self._known.add(identity)
        turn.persist(_key(identity), SettledRecord(identity))
        self._forgetting.keep(identity, turn.now_ns + self._kept_ns)

    def _forget(self, identity: ItemId, turn: Turn) -> None:
        if identity in self._known:
            self._known.remove(identity)
            turn.erase(_key(identity))


def _key(identity: ItemId) -> str:
    return f"dissemination/settled/{journal_key(*identity)}"


# How often content may fail to get to a home before it is done without, and how long to wait.
_TRIES_MAX = 3
_WAIT_NS = 500_000_000


class Contents:
    """The content of the items of one root.

    Parameters
    ----------
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
