"""Audience: who is to get an item, at which home and on which way, and what homes are owed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any

from distributary.broker.core import Core
from distributary.broker.dissemination.items import Unsettled
from distributary.broker.dissemination.messages import (
    PRESSURE_SINCE,
    Item,
    ItemId,
    Missed,
    Offer,
    SequenceName,
)
from distributary.broker.dissemination.task import Pending, Sequence, Task, TaskEvent
from distributary.broker.encoding import encodable
from distributary.broker.host import Turn
from distributary.broker.links.messages import Step
from distributary.broker.plan_part import Route
from distributary.broker.planning import publication_of, reversed_route
from distributary.broker.rendezvous.messages import Registration
from distributary.broker.settings import ContentSettings, Settings, ns
from distributary.broker.subscriptions.registrar import MOVES_MAX
from distributary.broker.subscriptions.subscription import (
    filter_of,
    subscription_of,
    superseded,
)
from distributary.broker.timers import Pacing, Retention, Timer

__all__ = [
    "LATE_SINCE",
    "AbsentHomes",
    "Audience",
    "Debts",
    "EarlyOffers",
    "LatePlace",
    "LateRecord",
    "MissedRecord",
    "Room",
]


# Debts: what a root keeps for homes that are away, and whom it has given up.
#
# A home may be away for minutes while everybody else goes on. What it has to get stays at the root,
# and with it at the publishers' homes. When that is too much the root gives up one home, the one
# that is owed most, and nobody else hears of it. To forget the oldest of everybody instead would
# end many subscriptions for the sake of one home.


@encodable(620, since=PRESSURE_SINCE)
@dataclass(frozen=True, slots=True)
class MissedRecord:
    """What a home is to be told that it has missed, as it is kept; the fields are `Missed`'s."""

    home: str
    registrations: tuple[tuple[str, int], ...]
    given_up_ns: int


class Debts:
    """What one root keeps for homes that are away.

    Attributes
    ----------
    bytes
        How much that is; an item that several homes are owed counts once.
    """

    def __init__(self, settings: ContentSettings) -> None:
        self._items_max, self._bytes_max = settings.absent_items, settings.absent_bytes
        self.bytes = 0
        self._sizes: dict[ItemId, int] = {}
        self._homes: dict[ItemId, set[str]] = {}
        self._by_home: dict[str, dict[ItemId, None]] = {}
        self._owed_bytes: dict[str, int] = {}

    @property
    def items(self) -> int:
        """How many items are kept."""
        return len(self._sizes)

    def owe(self, home: str, task: Task) -> None:
        """Note that an item is kept for a home."""
        identity = task.item.identity
        owed = self._by_home.setdefault(home, {})
        if identity in owed:
            return
        owed[identity] = None
        if identity not in self._sizes:
            self._sizes[identity] = task.size_bytes
            self._homes[identity] = set()
            self.bytes += task.size_bytes
        self._homes[identity].add(home)
        self._owed_bytes[home] = self._owed_bytes.get(home, 0) + self._sizes[identity]

    def settled(self, task: Task) -> None:
        """Note that nobody is owed an item any more."""
        for home in self._homes.get(task.identity, set()).copy():
            self.paid(home, task.identity)

    def paid(self, home: str, identity: ItemId) -> None:
        """Note that a home is not owed an item any more."""
        owed, homes = self._by_home.get(home, {}), self._homes.get(identity, set())
        if identity not in owed:
            return
        del owed[identity]
        homes.discard(home)
        self._owed_bytes[home] -= self._sizes[identity]
        if not owed:
            del self._by_home[home], self._owed_bytes[home]
        if not homes:
            del self._homes[identity]
            self.bytes -= self._sizes.pop(identity)

    def clear(self, home: str) -> set[ItemId]:
        """Note that a home is back, or lost for ever; return what it was owed."""
        owed = self._by_home.pop(home, {})
        self._owed_bytes.pop(home, None)
        for identity in owed:
            homes = self._homes[identity]
            homes.discard(home)
            if not homes:
                del self._homes[identity]
                self.bytes -= self._sizes.pop(identity)
        return set(owed)

    def first_of(self, home: str, count: int) -> list[ItemId]:
        """Return some of the items that a home is owed, the oldest first."""
        return list(islice(self._by_home.get(home, {}), count))

    def owed_most(self) -> str | None:
        """Return the home to be given up, if more is kept than should be."""
        if self.items <= self._items_max and self.bytes <= self._bytes_max:
            return None
        return max(self._by_home, key=lambda home: (self._owed_bytes[home], home))


class Forgone:
    """The registrations that a root has given up, and what they have missed, by home.

    A home may be away again soon after it was told. Its clients may have subscribed anew by then,
    under the same names. So what is missed in each absence is kept for itself, with the time from
    which on a registration is not concerned: else these would be taken for those that have
    ended, and go on behind a gap of which nobody is told.
    """

    def __init__(self) -> None:
        # What was missed, by home and by when the first of it was given up.
        self._by_home: dict[str, dict[int, dict[str, int]]] = {}
        # Under which of these times it is noted what a home misses that has not been told.
        self._noting: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether any home is to be told that it has missed something."""
        return bool(self._by_home)

    def __contains__(self, home: str) -> bool:
        """Whether a home is to be told that it has missed something."""
        return home in self._by_home

    def __iter__(self) -> Iterator[str]:
        """Go through the homes that are."""
        return iter(sorted(self._by_home))

    def homes(self, homes: Iterable[str]) -> set[str]:
        """Return those of some homes that are."""
        return {home for home in homes if home in self._by_home}

    def load(self, record: MissedRecord) -> None:
        """Take back what was kept; whether the home was told of it is not known."""
        missed = self._by_home.setdefault(record.home, {})
        missed[record.given_up_ns] = dict(record.registrations)

    def miss(self, home: str, registrations: Iterable[str], turn: Turn) -> None:
        """Note that some registrations of a home do not get an item."""
        given_up_ns = self._noting.setdefault(home, turn.now_ns)
        counts = self._by_home.setdefault(home, {}).setdefault(given_up_ns, {})
        for name in registrations:
            counts[name] = counts.get(name, 0) + 1

    def skips(self, home: str, name: str, since_ns: int) -> bool:
        """Whether a registration misses the next item too, and take note of that.

        What its client gets before it is told would come behind a gap.
        """
        for given_up_ns, counts in self._by_home.get(home, {}).items():
            if name in counts and since_ns <= given_up_ns:
                counts[name] += 1
                return True
        return False

    def tell(self, home: str) -> list[Missed]:
        """Return what a home is told; what it misses from now on it is told by itself."""
        self._noting.pop(home, None)
        missed = sorted(self._by_home[home].items())
        return [Missed(tuple(sorted(counts.items())), at_ns) for at_ns, counts in missed]

    def keep(self, home: str, turn: Turn) -> None:
        """Make durable what a home has missed since it was told, if anything."""
        given_up_ns = self._noting.get(home)
        if given_up_ns is not None:
            counts = self._by_home[home][given_up_ns]
            record = MissedRecord(home, tuple(sorted(counts.items())), given_up_ns)
            turn.persist(_key(home, given_up_ns), record)

    def forget(self, home: str, turn: Turn) -> None:
        """Give up nothing of a home any more."""
        for given_up_ns in list(self._by_home.get(home, {})):
            self.excuse((home, given_up_ns), turn)

    def excuse(self, place: tuple[str, int], turn: Turn) -> None:
        """Give up nothing more of what a home has missed since a time, and been told."""
        home, given_up_ns = place
        missed = self._by_home.get(home, {})
        if missed.pop(given_up_ns, None) is None:
            return
        turn.erase(_key(home, given_up_ns))
        if self._noting.get(home) == given_up_ns:
            del self._noting[home]
        if not missed:
            del self._by_home[home]
            # As the version before kept it, which knew one absence of a home.
            turn.erase(f"dissemination/missed/{home}")


def _key(home: str, given_up_ns: int) -> str:
    return f"dissemination/missed/{home}/{given_up_ns}"


# So many items are given up in one turn, and this long after that the next ones.
_GIVEN_UP_AT_ONCE = 64
_GIVE_UP_NS = 1_000_000


class AbsentHomes:
    """The homes that are away, as one root sees them.

    Parameters
    ----------
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
        self._excusing = Retention(core.timers, self.forgone.excuse)
        # The home that is being given up, which takes some turns.
        self._given_up: str | None = None
        self._relief: Timer | None = None

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
        moved: dict[tuple[str, str], int] = {}
        for identity in self.debts.first_of(home, _GIVEN_UP_AT_ONCE):
            task = self._unsettled.get(identity)
            if task is None or home not in task.pending:
                self.debts.paid(home, identity)
                continue
            names = tuple(task.pending.pop(home).registrations)
            task.unknown.update((home, name) for name in names)
            self.forgone.miss(home, names, turn)
            for one in (one for name in names for one in self._core.rendezvous.moved(home, name)):
                moved[one.home, one.id] = one.since_ns
            self.debts.paid(home, identity)
            if task.pending:
                self._keep(task, turn)
            else:
                self._settle(task, turn)
        self.forgone.keep(home, turn)
        self._end_elsewhere(moved, turn)
        self._given_up = home if self.debts.first_of(home, 1) else None
        self._relief = self._core.timers.at(turn.now_ns + _GIVE_UP_NS, self._relieve)

    def _end_elsewhere(self, moved: Mapping[tuple[str, str], int], turn: Turn) -> None:
        """Tell other homes what clients have missed that are moving, or have moved, to them.

        What was given up the home that is away would have redirected. It may never be back, and
        what follows comes there by another way, behind a gap.

        Parameters
        ----------
        moved
            Since when publications are owed, by the other home and what is registered there.
        """
        homes: set[str] = set()
        for (home, name), since_ns in sorted(moved.items()):
            if not self.forgone.skips(home, name, since_ns):
                self.forgone.miss(home, (name,), turn)
                homes.add(home)
        for home in sorted(homes):
            self.forgone.keep(home, turn)
            self._tell(home, turn)

    def forgo(self, task: Task, homes: Iterable[str]) -> None:
        """Leave out of an item who has missed one before it, and is told so."""
        for home in task.pending.keys() & self.forgone.homes(homes):
            registrations = task.pending[home].registrations
            skipped = [name for name in registrations if self._skips(home, name)]
            task.confirmed(home, (), skipped)

    def _skips(self, home: str, name: str) -> bool:
        """Whether a registration, as it is known now, has missed an item and misses the next."""
        registration = self._core.rendezvous.registration(home, name)
        return self.forgone.skips(home, name, 0 if registration is None else registration.since_ns)

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
            for message in self.forgone.tell(home):
                self._core.links.send(home, message, turn)
                # By then it has withdrawn them. What it registers anew is in force later.
                place = (home, message.given_up_ns)
                self._excusing.keep(place, turn.now_ns + self._excused_ns)


# Room: how much a root takes, and when it says so.
#
# `Taken` is what lets a publisher's home offer more. A root that has more on its way than it
# should takes an item all the same, as it is there already, and says so later. Only when it cannot
# keep any more it defers what it is offered, which then has to be sent again. What is kept for
# homes that are away does not count as on its way: they may be away for long, and nobody is to
# wait for them.


class Room:
    """How much room one root has.

    Attributes
    ----------
    items, bytes
        How many items it keeps, and what they take.
    """

    def __init__(self, settings: Settings, under_way: Unsettled, debts: Debts) -> None:
        content = settings.content
        self.items = 0
        self.bytes = 0
        self._items_max, self._bytes_max = content.items_max, content.bytes_max
        self._identities_max = settings.publishing.identities_max
        self._open_items, self._open_bytes = content.open_items, content.open_bytes
        self._kept_ns = ns(content.retention_s)
        self._under_way = under_way
        self._debts = debts
        self._untold: dict[ItemId, None] = {}
        self._pacing = Pacing(ns(settings.publishing.busy_s), 2 * self._kept_ns)

    def enter(self, task: Task) -> None:
        """Note that an item is kept."""
        self.items += 1
        self.bytes += task.size_bytes

    def leave(self, task: Task) -> None:
        """Note that an item is kept no longer."""
        self.items -= 1
        self.bytes -= task.size_bytes

    def is_full(self, identities: int) -> bool:
        """Whether no more can be kept, or known."""
        return (
            self.items >= self._items_max
            or self.bytes >= self._bytes_max
            or self.items + identities >= self._identities_max
        )

    def wait_ns(self, now_ns: int, free_ns: int | None) -> int:
        """Return after how long something that is deferred is to be offered again.

        Parameters
        ----------
        free_ns
            When the next item is forgotten.
        """
        gap_ns = self._kept_ns // max(self.items, 1)
        return self._pacing.wait_ns(now_ns, free_ns=free_ns or now_ns, gap_ns=gap_ns)

    @property
    def is_behind(self) -> bool:
        """Whether more is on its way to homes that are there than should be."""
        under_way, debts = self._under_way, self._debts
        return (
            len(under_way) - debts.items > self._open_items
            or under_way.bytes - debts.bytes > self._open_bytes
        )

    def say_later(self, identity: ItemId) -> None:
        """Say that an item is taken when less is on its way."""
        self._untold[identity] = None

    def said(self, identity: ItemId) -> None:
        """Note that it was said, or need not be any more."""
        self._untold.pop(identity, None)

    def to_say(self) -> Iterator[ItemId]:
        """Go through the items of which it can be said now, the first first."""
        while self._untold and not self.is_behind:
            identity = next(iter(self._untold))
            del self._untold[identity]
            yield identity


class EarlyOffers:
    """The items that wait for one before them, of all sequences; the oldest give way to others.

    Whoever has offered them does so again. Should what they wait for never come, as nobody has
    it, they do not stay for ever.
    """

    def __init__(self, settings: Settings) -> None:
        self._items_max = settings.content.early_items
        self._bytes_max = settings.content.early_bytes
        self._sizes: dict[tuple[SequenceName, int], int] = {}
        self.bytes = 0

    @property
    def items(self) -> int:
        """How many wait."""
        return len(self._sizes)

    def enter(self, offer: Offer, sequences: dict[SequenceName, Sequence]) -> None:
        """Have an item wait, in the place of others if need be."""
        item = offer.item
        self.leave(item)
        size_bytes = len(item.event)
        self._sizes[item.sequence, item.number] = size_bytes
        self.bytes += size_bytes
        while self.items > self._items_max or self.bytes > self._bytes_max:
            place, number = next(iter(self._sizes))
            self.bytes -= self._sizes.pop((place, number))
            sequence = sequences.get(place)
            if sequence is not None:
                sequence.drop(number)
                if sequence.is_idle:
                    del sequences[place]

    def leave(self, item: Item) -> None:
        """Have an item wait no longer."""
        self.bytes -= self._sizes.pop((item.sequence, item.number), 0)


_CLAIM = attrgetter("claim")

# So many ways are turned round once.
_WAYS_MAX = 65_536

_Rivals = tuple[list[Registration], list[tuple[str, int]]]

LatePlace = tuple[int, str, str]
"""(cell, home, id) of a registration that has come late."""


LATE_SINCE = 2
"""The version with which roots keep what has come late."""


@encodable(592, since=LATE_SINCE)
@dataclass(frozen=True, slots=True)
class LateRecord:
    """That a registration has come late, kept until it has got what it is owed."""

    cell: int
    home: str
    id: str


class Audience:
    """Those who are to get the items of one root.

    Parameters
    ----------
    unsettled
        The items for which something is to be done.
    forgone
        The registrations that were given up.
    """

    def __init__(self, core: Core, unsettled: Unsettled, forgone: Forgone) -> None:
        self._core = core
        self._unsettled = unsettled
        self._forgone = forgone
        self._skew_ns = ns(core.settings.subscriptions.clock_skew_s)
        self._ways: dict[tuple[str, str], tuple[tuple[Step, ...], Route]] = {}
        self._late: dict[LatePlace, Registration] = {}

    def await_turn(self, cell: int, registration: Registration) -> LatePlace:
        """Send nothing for a registration that has come late until it is `admitted`.

        A root goes through all items of the cell for it, when it has done what it had to do
        before. Among that may be item 6, which is taken or offered again: were it sent for the
        registration, 1 to 5 would come behind it.
        """
        place = _late_place(cell, registration)
        self._late[place] = registration
        return place

    def awaits_turn(self, place: LatePlace) -> bool:
        """Whether a registration has not had its turn, or has been told once more since."""
        return place in self._late

    def admitted(self, place: LatePlace) -> Registration | None:
        """Return a registration whose turn has come, as last told; None if it has had it."""
        return self._late.pop(place, None)

    def match(
        self,
        task: Task,
        turn: Turn,
        *,
        only: Registration | None = None,
        elsewhere: Iterable[str] | None = None,
        anew: bool = False,
    ) -> set[str]:
        """Enter who is to get an item and has not, and return the homes that this is new to.

        What has come late and waits for its turn gets the item then.

        Parameters
        ----------
        only
            The only registration to be looked at.
        elsewhere
            Registrations that a home does not have, or that a root had before it restarted, if
            others of the same subscriptions are looked for, and nothing else: a broker that is
            not the root any more may have been told of new ones since, to which the items before
            this one have not been sent.
        anew
            Whether clients may have subscribed anew, as their homes are lost. What is older than
            their claim is not owed then, and would come behind what is newer.
        """
        item, rendezvous = task.item, self._core.rendezvous
        owed_ns = item.published_ns + self._skew_ns
        homes: set[str] = set()
        forgone = self._forgone if self._forgone else None
        publication = publication_of(item.event)
        # A client that has moved is registered from two homes for a while. What one of them
        # was sent it passes on to the other.
        taken = {name: home for home, name in task.served}
        for home, waiting in task.pending.items():
            taken.update(dict.fromkeys(waiting.registrations, home))
        if only is None:
            matches = rendezvous.matches(item.cell, publication, item.tenant)
            if self._late:
                matches = [one for one in matches if not self._is_late(item.cell, one)]
            if elsewhere is not None:
                names = {subscription_of(name) for name in elsewhere}
                matches = [one for one in matches if subscription_of(one.id) in names]
        else:
            # One may come late to many items, among many others.
            meant = only.tenant == item.tenant and filter_of(only.filters).matches(publication)
            matches = [only] if meant else []
        # The higher claim counts. One that has subscribed anew elsewhere, as its home is
        # lost, is served there.
        has_rivals = rendezvous.has_rivals
        for registration in sorted(matches, key=_CLAIM, reverse=True):
            name = registration.id
            if anew and registration.claim > item.published_ns:
                continue
            rivals = rendezvous.rivals(item.cell, registration) if has_rivals else None
            if rivals is None:
                home, route = registration.home, self._way_to(registration)
            elif rivals[0] and rivals[0][0].claim - registration.claim >= MOVES_MAX:
                # Its client has begun anew elsewhere. What it covers there has nobody else.
                home, route = registration.home, self._way_to(registration)
                before = task.pending.get(home)
                is_sent = before is not None and name in before.registrations
                if is_sent or _is_answered(task, home, name):
                    continue
                name = superseded(name, registration.claim)
            else:
                home, route = self._server(task, registration, *rivals)
            if registration.since_ns > owed_ns:
                continue
            other = taken.get(name, home)
            if other != home and not _redirects(home, other, registration, rivals):
                continue
            if _is_answered(task, home, name):
                continue
            if forgone is not None and forgone.skips(home, name, registration.since_ns):
                task.unknown.add((home, name))
                continue
            known = task.pending.get(home)
            if known is None:
                if self._core.membership.is_gone(home):
                    continue
                known = task.pending[home] = Pending(turn.now_ns)
                self._unsettled.owe(task, home)
            taken[name] = home
            if name not in known.registrations:
                known.attempt = task.attempt + 1
                homes.add(home)
            known.registrations[name] = (registration.profile, route)
        if homes and task.settled:
            task.step(TaskEvent.WANTED)
            self._unsettled.add(task)
        return homes

    def _server(
        self,
        task: Task,
        registration: Registration,
        others: list[Registration],
        withdrawn: list[tuple[str, int]],
    ) -> tuple[str, Route]:
        """Return the home that is to get an item for a registration, and the way there.

        All generations of a subscription are served at one home at a time: at the one that is
        still owed the item before, or else at that with the highest claim. A client moves from A
        to B and changes its subscription there, while A is behind a partition. A is owed item 6,
        and B alone has registered the new generation. Were B sent item 17 for that, A would say
        afterwards that it does not have the subscription any more, and 6 would come to B behind
        17. So A is asked about both, and B gets both in order. The same goes for A when it is
        owed 6, and another root hands over that it has withdrawn, which it does not wait for
        here. And it goes for B, when it was sent 6 at a time when nobody here knew of A: sent to
        A, 17 would be redirected, and be there first. Where both are owed the item before, each for
        another generation, the other one is asked first all the same: what it does not have comes
        here, and was published earlier. Whoever has subscribed anew elsewhere does not listen to
        either, and waits for neither.
        """
        name = registration.id
        able = [
            one
            for one in sorted((registration, *others), key=lambda one: -one.claim)
            if one is registration or self._can_serve(task, one.home, name)
        ]
        first = next(one for one in able if not self._is_late(task.item.cell, one))
        owed = self._unsettled.last_owed(task, name)
        if owed - {first.home}:
            for one in able:
                if one is first:
                    continue
                if one.home in owed and first.claim - one.claim < MOVES_MAX:
                    return one.home, self._way_to(one)
            for home, claim in withdrawn:
                # One that nobody knows may be of the same client, who has only moved.
                anew = claim and first.claim - claim >= MOVES_MAX
                if home in owed and not anew and (home, name) not in task.unknown:
                    return home, ()
        return first.home, self._way_to(first)

    def _is_late(self, cell: int, registration: Registration) -> bool:
        """Whether a registration waits for its turn."""
        return self.awaits_turn(_late_place(cell, registration))

    def _can_serve(self, task: Task, home: str, name: str) -> bool:
        return not self._core.membership.is_gone(home) and (home, name) not in task.unknown

    def _way_to(self, registration: Registration) -> Route:
        """Return the way to the home of a registration, turned round once."""
        key, path = (registration.home, registration.id), registration.path
        known = self._ways.get(key)
        if known is None or known[0] is not path:
            if len(self._ways) == _WAYS_MAX:
                self._ways.clear()
            known = self._ways[key] = (path, reversed_route(path))
        return known[1]


def _redirects(home: str, other: str, registration: Registration, rivals: _Rivals | None) -> bool:
    """Whether a home is to get an item too that another one has got, to which its client moves.

    While the network was split a root has served the next home, and did not know of this one. What
    the registration covers here has nobody else, and would get the item behind later ones, when it
    is registered by itself. The next home has had what is redirected for the client.
    """
    claims = {one.home: one.claim for one in (registration, *(rivals[0] if rivals else ()))}
    return home in claims and other in claims and 0 < claims[home] - claims[other] < MOVES_MAX


def _is_answered(task: Task, home: str, name: str) -> bool:
    """Whether a home has said that a registration has got an item, or that there is none."""
    return (home, name) in task.served or (home, name) in task.unknown


def _late_place(cell: int, registration: Registration) -> LatePlace:
    return cell, registration.home, registration.id
