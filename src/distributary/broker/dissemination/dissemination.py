"""Dissemination: what the root of a cell does for every item, from its offer to the last home.

Items of one publisher are taken in order. An item is matched against the registrations of its
cell, planned, and sent along a tree; `Relays` does the rest. Homes confirm to the root. Those
that do not are asked, and then served again on a new tree. Everything is kept until it is
settled, and for a while after that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.core import Core, Handler, Part
from distributary.broker.dissemination.audience import (
    LATE_SINCE,
    AbsentHomes,
    Audience,
    EarlyOffers,
    LatePlace,
    LateRecord,
    MissedRecord,
    Room,
)
from distributary.broker.dissemination.items import Contents, SettledItems, SettledRecord, Unsettled
from distributary.broker.dissemination.messages import (
    CHECKS,
    PRESSURE_SINCE,
    AskOwed,
    ContentLost,
    ConversionLost,
    Deferred,
    Item,
    ItemId,
    NextHops,
    Offer,
    Owed,
    Portion,
    ProbeAnswer,
    SequenceName,
    Served,
    Settled,
    Taken,
    in_order,
)
from distributary.broker.dissemination.planner import Planner, Prepared, Probes, RecentPlans
from distributary.broker.dissemination.task import (
    ContentRecord,
    Pending,
    ProgressRecord,
    Sequence,
    Stream,
    Supervision,
    Task,
    TaskEvent,
    TaskState,
)
from distributary.broker.encoding import journal_key
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MembersChanged, MemberStatus
from distributary.broker.plan_part import NOTHING_BEFORE, After, Route
from distributary.broker.planning import Planning, formats_of
from distributary.broker.rendezvous.messages import Registration
from distributary.broker.settings import ns
from distributary.broker.timers import Backlog, Retention

__all__ = ["Dissemination"]

# A home that counts what it has offered and nobody has taken does not wait for longer.
_TAKEN_NS_MAX = 1_000_000_000


class Dissemination(Part):
    """What one broker does for the items of the cells of which it is the root."""

    name = "dissemination"
    uses = ("membership", "links", "content", "rendezvous", "relays")
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings
        self._tasks: dict[ItemId, Task] = {}
        self._sequences: dict[SequenceName, Sequence] = {}
        self._open = Unsettled()
        self._settled_items = SettledItems(core)
        self._probes = Probes(core, self._found)
        self._planner = Planner(core)
        self._absent = AbsentHomes(core, self._open, self._keep, self._settle)
        self._audience = Audience(core, self._open, self._absent.forgone)
        # What homes have said before they had answered for an earlier item.
        self._heard_early: dict[tuple[ItemId, str], Served] = {}
        # What has come late and is not served, and whether that is on disk.
        self._late: dict[LatePlace, bool] = {}
        self._room = Room(settings, self._open, self._absent.debts)
        self._early_offers = EarlyOffers(settings)
        self.recent = RecentPlans(settings.content)
        self._backlog = Backlog(core.timers)
        self._supervision = Supervision(core, self._try_anew)
        self._kept_ns = ns(settings.content.retention_s)
        self._forgetting = Retention(core.timers, self._forget)
        # Offers are repeated until they are answered. Nearly every item is settled long before
        # that, which says enough.
        self._taken_ns = min(ns(settings.content.repeat_s) // 4, _TAKEN_NS_MAX)
        self._telling = Retention(core.timers, self._still_open)
        self._contents = Contents(core, self._open, self._content_had, self._send)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Offer: self._offered,
            Served: self._served,
            AskOwed: self._asked_owed,
            ProbeAnswer: self._probes.answered,
            NextHops: self._planner.told_hops,
            ConversionLost: self._conversion_lost,
            ContentLost: self._contents.lost,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back an item, or how far it was."""
        if isinstance(record, ContentRecord):
            task = Task(record.item, record.blob)
            self._enter(task)
            self._open.add(task)
            return
        if isinstance(record, SettledRecord):
            self._settled_items.load(record)
            return
        if isinstance(record, MissedRecord):
            self._absent.forgone.load(record)
            return
        if isinstance(record, LateRecord):
            self._late[record.cell, record.home, record.id] = True
            return
        assert isinstance(record, ProgressRecord)
        task = self._tasks[record.identity]
        task.item = task.item._replace(home=record.home)
        task.attempt = record.attempt
        task.served = set(record.served)
        task.lost = dict(record.lost)
        for kept in record.pending:
            pending = task.pending[kept.home] = Pending(0)
            pending.attempt = kept.attempt
            pending.registrations = {name: (profile, ()) for name, profile in kept.registrations}
            self._open.owe(task, kept.home)
        if record.settled:
            task.step(TaskEvent.ALL_SERVED)
            self._open.remove(task)

    def start(self, turn: Turn) -> None:
        """Go on with what was not settled."""
        self._settled_items.start(turn)
        settled = [identity for identity in self._tasks if self._open.get(identity) is None]
        self._forgetting.keep_all(settled, turn.now_ns + self._kept_ns)
        self._absent.start(turn)
        # First: nothing else may be sent for these before.
        for place in sorted(self._late):
            registration = self.core.rendezvous.registration(*place[1:])
            if registration is None:
                self._served_late(place, turn)
            else:
                self.registered_late(place[0], registration, turn)

        def find(task: Task, turn: Turn) -> tuple[set[str], set[str]]:
            if task.settled:
                return set(), set()
            for pending in task.pending.values():
                pending.since_ns = turn.now_ns
            # The ways to homes were not kept; registrations that are still there tell them. No
            # others: what came late is above, and what else has come since is not of its time.
            owed = _owed(task, task.pending)
            return self._audience.match(task, turn, elsewhere=owed), set(task.pending)

        self._send_in_order(self._open, find, turn)

    def snapshot(self, *, plans: bool = True, baselines: bool = False) -> dict[str, Any]:
        """Return what is not settled, and the plans that were made last, the newest first.

        Parameters
        ----------
        plans, baselines
            Whether there are to be plans, and beside them what the simple ones would cost.
        """
        pending = Counter(home for task in self._open for home in task.pending)
        made = self._planner.plans
        found = {
            "open": len(self._open),
            "kept": len(self._tasks),
            "owed": dict(sorted(pending.items())),
            "plans": {"made": made.made, "reused": made.reused},
            **self._absent.snapshot(),
        }
        return found | ({"recent": self.recent.newest(baselines=baselines)} if plans else {})

    # What publishers' homes offer.

    def _offered(self, offer: Offer, sender: Address, turn: Turn) -> None:
        if self._backlog:
            # Earlier items of its publisher may be about to get further homes, which must have
            # those first.
            self._backlog.each(self._consider, (offer,), turn)
        else:
            self._consider(offer, turn)

    def _consider(self, offer: Offer, turn: Turn) -> None:
        item = offer.item
        if offer.root != self.core.identity:
            # It says what another root has heard of. To take it for what this one has would
            # leave items out; the home offers all of them once it agrees.
            known = self._sequences.get(item.sequence)
            if known is None or known.following is None:
                return
            offer = replace(offer, first=min(offer.first, known.following), settled=0)
        full = self._room.is_full(len(self._settled_items)) and self._is_unknown(item)
        if full and self.core.membership.version >= PRESSURE_SINCE:
            wait_ns = self._room.wait_ns(turn.now_ns, self._forgetting.next_ns)
            self.core.tell(item.home, Deferred(item.identity, wait_ns), turn)
            return
        sequence = self._sequence(item)
        if sequence.is_new(offer):
            self._backlog.each(self._take_ready, (item.sequence,), turn)
            # Not before: what is about to be taken must not give way to what follows it.
            self._backlog.each(self._count_early, (offer,), turn)
            return
        task = self._tasks.get(item.identity)
        if task is None:
            # Settled so long ago that it is forgotten here.
            self._tell_settled(item, (), turn)
            return
        self._offered_again(task, offer, turn)

    def _is_unknown(self, item: Item) -> bool:
        known = self._sequences.get(item.sequence)
        taken = known is not None and known.following is not None and item.number < known.following
        return not taken and item.identity not in self._tasks

    def _count_early(self, offer: Offer, turn: Turn) -> None:
        """Have an item wait for one before it, in the place of others if need be."""
        sequence = self._sequences.get(offer.item.sequence)
        if sequence is not None and sequence.waits(offer.item.number):
            self._early_offers.enter(offer, self._sequences)

    def _take_ready(self, key: SequenceName, turn: Turn) -> None:
        """Take the next item of a series, if it is there, and go on with the one after it."""
        sequence = self._sequences.get(key)
        following = None if sequence is None else sequence.ready()
        if following is not None:
            self._early_offers.leave(following.item)
            self._take(following, turn)
            # It may be the one for which many others have waited.
            self._backlog.each(self._take_ready, (key,), turn)
        elif sequence is not None and sequence.is_idle:
            del self._sequences[key]

    def _take(self, offer: Offer, turn: Turn) -> None:
        item, identity = offer.item, offer.item.identity
        if identity in self._tasks:
            # The same publication in another series: its home had forgotten it.
            self._offered_again(self._tasks[identity], offer, turn)
            return
        if identity in self._settled_items:
            self._tell_settled(item, (), turn)
            return
        task = Task(item, offer.blob)
        task.served.update(offer.served)
        self._enter(task)
        self._open.add(task)
        turn.persist(_key("content", task), ContentRecord(item, offer.blob))
        self._send_new(task, self._audience.match(task, turn), turn)
        if not task.pending and not task.settled:
            self._settle(task, turn)
        if task.settled:
            return
        if all(map(self.core.membership.is_alive, task.pending)):
            self._telling.keep(task.identity, turn.now_ns + self._taken_ns)
        else:
            # It will not be settled soon, and nobody is to wait for homes that are away.
            self._tell_taken(task, turn)

    def _offered_again(self, task: Task, offer: Offer, turn: Turn) -> None:
        self._contents.offered(task, offer)
        task.item = task.item._replace(home=offer.item.home)
        task.served.update(offer.served)
        homes = self._audience.match(task, turn)
        if not homes and task.state is TaskState.FETCHING:
            # Its home may be another one by now, which has the content.
            self._send(task, tuple(task.pending), turn)
        self._send_new(task, homes, turn)
        if task.settled:
            self._tell_settled(task.item, tuple(sorted(task.served)), turn)
        elif not self._contents.lacks(task):
            # Whoever asks is answered, however much there is to do: nobody waits for ever.
            self._say_taken(task, turn)

    def registered_late(self, cell: int, registration: Registration, turn: Turn) -> None:
        """Serve a registration that others have confirmed and that is new here, in its turn."""
        place = self._audience.await_turn(cell, registration)
        self._late.setdefault(place, False)
        self._backlog.each(self._serve_late, (place,), turn)
        if not self._late.get(place, True) and self.core.version >= LATE_SINCE:
            # A root that is down for a moment is not told of it again.
            self._late[place] = True
            turn.persist(_late_key(place), LateRecord(*place))

    def _serve_late(self, place: LatePlace, turn: Turn) -> None:
        registration = self._audience.admitted(place)
        if registration is None:
            return
        self._backlog.each(self._served_late, (place,), turn, first=True)

        def find(task: Task, turn: Turn) -> tuple[set[str], set[str]]:
            return self._audience.match(task, turn, only=registration), set()

        # As they are by now: some may have been taken since it came.
        concerned = [task for task in self._tasks.values() if task.item.cell == place[0]]
        self._send_in_order(concerned, find, turn, first=True)

    def _served_late(self, place: LatePlace, turn: Turn) -> None:
        if not self._audience.awaits_turn(place) and self._late.pop(place, False):
            turn.erase(_late_key(place))

    def owes(self, home: str, cell: int) -> bool:
        """Whether a home has yet to confirm something in a cell."""
        return self._open.owes(home, cell)

    def cells_owed(self, home: str) -> set[int]:
        """Return the cells in which a home has yet to confirm something."""
        return self._open.cells_owed(home)

    # Sending.

    def _send_new(self, task: Task, homes: set[str], turn: Turn) -> None:
        """Send an item to homes to which it is new, and again what they wait for behind it."""
        if not homes:
            return

        def find(_: Task, __: Turn) -> tuple[set[str], set[str]]:
            return set(), set()

        self._send(task, homes, turn)
        later = self._open.later(task, homes)
        if later:
            self._send_in_order(later, find, turn, behind=homes, first=True)

    def _send_in_order(
        self,
        tasks: Iterable[Task],
        find: Callable[[Task, Turn], tuple[set[str], set[str]]],
        turn: Turn,
        *,
        behind: Iterable[str] = (),
        first: bool = False,
    ) -> None:
        """Send items to the homes that `find` names: those to which they are new, and others.

        A home that is sent an item for one more subscription is also sent again what follows and
        it has not confirmed. It has been sent 1 and 2. Then 1 is for one more, and so is 3. It is
        told that 3 comes after 2, and would not wait, having 2, although 1 is still on its way;
        so it is told anew that 2 comes after 1.

        Parameters
        ----------
        behind
            The homes to which one before all of these is new, which are then of one stream.
        first
            As in `Backlog.each`.
        """
        ordered = in_order(tasks)
        news: dict[Stream, set[str]] = {}
        if behind and ordered:
            news[ordered[0].stream] = set(behind)

        def send(identity: ItemId, turn: Turn) -> None:
            task = self._tasks.get(identity)
            if task is None:
                return
            new, others = find(task, turn)
            before = news.setdefault(task.stream, set())
            again = (before & task.pending.keys()) - new
            for home in again:
                task.pending[home].attempt = task.attempt + 1
            before |= new
            homes = {*new, *others, *again}
            if homes or not (task.pending or task.settled):
                self._send(task, homes, turn)

        self._backlog.each(send, [task.identity for task in ordered], turn, first=first)

    def _send(self, task: Task, homes: Iterable[str], turn: Turn) -> None:
        """Plan and send an item to some homes, as far as they are there."""
        if not task.pending:
            self._settle(task, turn)
            return
        membership = self.core.membership
        if task.state is TaskState.PLANNING:
            # They are not sent what is being planned for them: this attempt takes its place.
            homes = {*homes, *(home for home in task.planned_for if home in task.pending)}
        there = tuple(filter(membership.is_alive, sorted(homes)))
        if len(there) < len(task.pending):
            self._absent.owe(task, turn)
        if not there:
            if not any(membership.is_alive(home) for home in task.pending):
                task.step(TaskEvent.ALL_AWAY)
                self._supervision.wait_long(task, turn)
            self._keep(task, turn)
            return
        if self._contents.lacks(task):
            task.step(TaskEvent.FETCHING)
            self._supervision.pause(task)
            self._keep(task, turn)
            self._contents.fetch(task, turn)
            return
        task.attempt += 1
        if self.core.settings.content.tree == "discovered" and there != (self.core.identity,):
            task.step(TaskEvent.PROBED)
            self._keep(task, turn)
            self._probes.find(task, there, turn)
        else:
            self._send_along(task, there, {}, turn)

    def _content_had(self, task: Task, turn: Turn) -> None:
        """Go on with an item whose content is here, or is lost for good."""
        if task.state is TaskState.FETCHING:
            self._send(task, tuple(task.pending), turn)
        self._tell_taken(task, turn)

    def _send_along(
        self, task: Task, homes: tuple[str, ...], routes: Mapping[str, Route], turn: Turn
    ) -> None:
        after = {home: self._open.before(task, home) for home in homes}
        prepared = self._planner.prepare(task, after, routes, turn.now_ns)
        problem, known = prepared.problem, prepared.planning
        if known is None and problem.size <= self.core.settings.content.plan_size_max:
            known = problem.solve()
        if known is not None:
            self._send_planned(task, prepared, known, after, turn)
            return
        task.step(TaskEvent.PLANNING)
        task.planned_for = homes
        self._supervision.pause(task)
        self._keep(task, turn)
        self.core.make_plan(turn, problem, self._planned, task, task.attempt, prepared)

    def _planned(
        self, turn: Turn, planning: Planning, task: Task, attempt: int, prepared: Prepared
    ) -> None:
        """Send along a plan that the host has made, unless another attempt has begun since."""
        if task.attempt != attempt or task.state is not TaskState.PLANNING:
            return
        # Earlier items may have been sent anew, or confirmed, while this one was planned.
        after = {home: self._open.before(task, home) for home in prepared.problem.homes}
        self._send_planned(task, prepared, planning, after, turn)

    def _send_planned(
        self,
        task: Task,
        prepared: Prepared,
        planning: Planning,
        after: Mapping[str, After],
        turn: Turn,
    ) -> None:
        self._planner.adopt(task, prepared, planning, turn.now_ns)
        part = prepared.part.following(after)
        report = self._planner.report(task, planning)
        turn.report(report)
        self.recent.add(turn.now_ns, report, part, task.item, task.blob)
        task.step(TaskEvent.SENT)
        task.sent_ns = turn.now_ns
        self._supervision.look_after(task, turn)
        self._keep(task, turn)
        own, original = self.core.identity, prepared.problem.formats.own
        self.core.relays.carry_out(
            Portion(task.item, own, task.attempt, original, part, (task.blob,)), turn
        )

    def _try_anew(self, task: Task, turn: Turn) -> None:
        """Send an item again to the homes that have not confirmed.

        Not to those for whom it waits in the own outbox: the second would stand in line behind
        the first.
        """
        carries, identity = self.core.links.carries, task.identity
        homes = tuple(home for home in task.pending if not carries((identity, home)))
        is_alive = self.core.membership.is_alive
        if any(map(is_alive, homes)) or not any(map(is_alive, task.pending)):
            self._send(task, homes, turn)
        else:
            self._supervision.look_after(task, turn)

    def _found(
        self, task: Task, homes: tuple[str, ...], routes: Mapping[str, Route], turn: Turn
    ) -> None:
        membership = self.core.membership
        there = tuple(h for h in homes if h in task.pending and membership.is_alive(h))
        if task.state is TaskState.FETCHING or not there:
            # All that are left are sent it when its content is here.
            return
        if self._contents.lacks(task):
            # It was lost when the way was asked for, and another home has it.
            self._send(task, there, turn)
        else:
            self._send_along(task, there, routes, turn)

    # What homes and relays say.

    def _served(self, message: Served, sender: Address, turn: Turn) -> None:
        if message.unknown and self._backlog:
            # Where their clients are now, earlier items may be about to go, too.
            self._backlog.each(self._heard, ((message, sender),), turn)
        else:
            self._heard((message, sender), turn)

    def _heard(self, told: tuple[Served, Address], turn: Turn) -> None:
        """Note what a home has served, and ask elsewhere for what it says it does not have.

        Where their clients are now, another home may have registered them. But as long as the
        home has not answered for an earlier item, that one has to come there first: its answer
        is late or was lost, and what it says of this one counts afterwards.
        """
        message, home = told
        task = self._open.get(message.identity)
        pending = None if task is None else task.pending.get(home)
        if task is None or pending is None:
            return
        # What is kept is kept, whichever attempt brought it. But whom the home did not know it
        # may know by now, if an attempt that is for all was planned later.
        unknown = message.unknown if message.attempt >= pending.attempt else ()
        if unknown and self._open.before(task, home) != NOTHING_BEFORE:
            self._heard_early[task.identity, home] = message
            unknown = ()
        self._supervision.served(task, turn)
        # What it does not name is sent again when its time is up: at once would be no better.
        task.confirmed(home, message.served, unknown)
        elsewhere = self._audience.match(task, turn, elsewhere=unknown) if unknown else None
        if not task.pending:
            self._settle(task, turn)
        if elsewhere:
            self._send_new(task, elsewhere, turn)
        if self._heard_early and home not in task.pending:
            later = self._open.following(task, home)
            early = None if later is None else self._heard_early.pop((later.identity, home), None)
            if early is not None:
                self._backlog.each(self._heard, ((early, home),), turn)

    def _asked_owed(self, message: AskOwed, sender: Address, turn: Turn) -> None:
        task = self._open.get(message.identity)
        pending = None if task is None else task.pending.get(sender)
        names: tuple[str, ...] = ()
        after = NOTHING_BEFORE
        if task is not None and pending is not None:
            names = tuple(sorted(pending.registrations))
            after = self._open.before(task, sender)
        owed = Owed(message.identity, message.attempt, names, after)
        self.core.tell(sender, owed, turn)

    def _conversion_lost(self, message: ConversionLost, sender: Address, turn: Turn) -> None:
        task = self._open.get(message.identity)
        if task is None:
            return
        formats = formats_of(self.core.settings, task.item, size_bytes=0)
        makeable = formats.places.keys() - {formats.own}
        lost = [(name, reason) for name, reason in message.lost if name in makeable]
        if not lost or message.attempt > task.attempt:
            return
        for name, reason in lost:
            task.lost.setdefault(name, reason)
        # Several relays may say the same of one attempt, each of other homes, and late. But
        # no home is left out by the same format twice.
        homes = [
            home
            for home in message.homes
            if home in task.pending and task.pending[home].lost_count < len(task.lost)
        ]
        for home in homes:
            task.pending[home].lost_count = len(task.lost)
        if homes:
            self._send(task, homes, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Serve homes that have come back, find ways around brokers that are away."""
        came, away = set(change.came), {*change.down, *change.gone}
        gone = bool(change.gone)
        self._absent.changed(came, set(change.gone), turn)

        def passes_away(task: Task) -> bool:
            return any(not one.above.isdisjoint(away) for one in task.pending.values())

        def concerned(task: Task) -> set[str]:
            return {
                home
                for home, pending in task.pending.items()
                if home in came or not pending.above.isdisjoint(away)
            }

        def find(task: Task, turn: Turn) -> tuple[set[str], set[str]]:
            self._absent.forgo(task, came)
            new: set[str] = set()
            if gone and not task.settled:
                # By now one may be back, as a new one with the same name.
                lost = [home for home in task.pending if self.core.membership.is_gone(home)]
                owed = _owed(task, lost)
                for home in lost:
                    del task.pending[home]
                # Their clients may be elsewhere by now.
                new = self._audience.match(task, turn, elsewhere=owed, anew=True)
            return new, concerned(task)

        # There may be many: no more is done for each of them here than must be.
        tasks = [
            task
            for task in self._open
            if gone or not came.isdisjoint(task.pending) or (away and passes_away(task))
        ]
        self._send_in_order(tasks, find, turn)

    # Ending.

    def _settle(self, task: Task, turn: Turn) -> None:
        item = task.item
        task.step(TaskEvent.ALL_SERVED)
        self._supervision.end(task)
        self._open.remove(task)
        for early in [one for one in self._heard_early if one[0] == task.identity]:
            del self._heard_early[early]
        self._absent.debts.settled(task)
        self._room.said(task.identity)
        for identity in self._room.to_say():
            self._tell_taken(self._tasks[identity], turn)
        self._keep(task, turn)
        self._forgetting.keep(task.identity, turn.now_ns + self._kept_ns)
        self._tell_settled(item, tuple(sorted(task.served)), turn)

    def _still_open(self, identity: ItemId, turn: Turn) -> None:
        task = self._open.get(identity)
        if task is not None:
            self._tell_taken(task, turn)

    def _tell_taken(self, task: Task, turn: Turn) -> None:
        item = task.item
        if task.settled or self._contents.lacks(task):
            return
        if self._room.is_behind:
            self._room.say_later(item.identity)
        else:
            self._say_taken(task, turn)

    def _say_taken(self, task: Task, turn: Turn) -> None:
        self._room.said(task.identity)
        self.core.links.tell_soon(task.item.home, Taken(task.identity), turn)

    def _tell_settled(self, item: Item, served: tuple[tuple[str, str], ...], turn: Turn) -> None:
        # A home that does not hear of it offers the item again.
        self.core.links.tell_soon(item.home, Settled(item.identity, served), turn)

    def _forget(self, identity: ItemId, turn: Turn) -> None:
        task = self._tasks.get(identity)
        if task is None or not task.settled:
            return
        item = task.item
        if self.core.membership.status(item.home) is MemberStatus.DOWN:
            # It may not know that the item is settled, and offer it again when it is back.
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
            return
        del self._tasks[identity]
        self.core.content.release(item.tenant, task.blob, turn)
        self._room.leave(task)
        sequence = self._sequences[item.sequence]
        sequence.remove(task)
        if sequence.is_idle:
            del self._sequences[item.sequence]
        self._settled_items.add(identity, turn)
        turn.erase(_key("content", task))
        turn.erase(_key("progress", task))

    # What is kept.

    def _enter(self, task: Task) -> None:
        self._tasks[task.identity] = task
        self.core.content.refer(task.item.tenant, task.blob)
        self._room.enter(task)
        self._sequence(task.item).add(task)

    def _sequence(self, item: Item) -> Sequence:
        return self._sequences.setdefault(item.sequence, Sequence())

    def _keep(self, task: Task, turn: Turn) -> None:
        turn.persist(_key("progress", task), task.progress())


def _owed(task: Task, homes: Iterable[str]) -> set[str]:
    """Return the registrations for which some homes are owed an item."""
    return {name for home in homes for name in task.pending[home].registrations}


def _late_key(place: LatePlace) -> str:
    cell, home, name = place
    return f"dissemination/late/{cell}/{home}/{journal_key(name)}"


def _key(what: str, task: Task) -> str:
    return f"dissemination/{what}/{task.key}"
