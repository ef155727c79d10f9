"""Dissemination: what the root of a cell does for every item, from its offer to the last home.

Items of one publisher are taken in order. An item is matched against the registrations of its
cell, planned, and sent along a tree; `Relays` does the rest. Homes confirm to the root. Those
that do not are asked, and then served again on a new tree. Everything is kept until it is
settled, and for a while after that.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.core import Handler, Part
from distributary.broker.dissemination.contents import Contents
from distributary.broker.dissemination.messages import (
    AskOwed,
    ContentLost,
    ConversionLost,
    Item,
    ItemId,
    Offer,
    Owed,
    Portion,
    ProbeAnswer,
    Served,
    Settled,
    Taken,
)
from distributary.broker.dissemination.planner import Planner, Probes
from distributary.broker.dissemination.settled_items import SettledItems, SettledRecord
from distributary.broker.dissemination.task import (
    ContentRecord,
    Event,
    Pending,
    ProgressRecord,
    Sequence,
    State,
    Supervision,
    Task,
)
from distributary.broker.dissemination.unsettled import Unsettled
from distributary.broker.dissemination.validation import CHECKS
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key
from distributary.broker.formats import formats_of, publication_of
from distributary.broker.membership.messages import Status
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.plan_part import NOTHING_BEFORE, RELAY, PlanPart, Route
from distributary.broker.planning import Planning, PlanningProblem, reversed_route
from distributary.broker.rendezvous.messages import Registration
from distributary.broker.settings import ns
from distributary.broker.telemetry import Planned
from distributary.broker.timers import Retention

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Dissemination"]

# As many plans are kept to be looked at.
_RECENT_MAX = 100


class Dissemination(Part):
    """What one broker does for the items of the cells of which it is the root."""

    name = "dissemination"
    uses = ("membership", "links", "content", "rendezvous", "relays")
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings
        self._tasks: dict[ItemId, Task] = {}
        self._sequences: dict[tuple[str, str, int, int], Sequence] = {}
        self._open = Unsettled()
        self._settled_items = SettledItems(core)
        self._probes = Probes(core, self._found)
        self._planner = Planner(core)
        self._recent: deque[tuple[int, Planned, PlanPart]] = deque(maxlen=_RECENT_MAX)
        self._supervision = Supervision(core, self._try_anew)
        self._kept_ns = ns(settings.content.retention_s)
        self._skew_ns = ns(settings.subscriptions.clock_skew_s)
        self._forgetting = Retention(core.timers, self._forget)
        self._contents = Contents(core, self._open, self._content_had, self._send)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Offer: self._offered,
            Served: self._served,
            AskOwed: self._asked_owed,
            ProbeAnswer: self._probes.answered,
            ConversionLost: self._conversion_lost,
            ContentLost: self._contents.lost,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back an item, or how far it was."""
        if isinstance(record, ContentRecord):
            self._enter(Task(record.item, record.blob))
            return
        if isinstance(record, SettledRecord):
            self._settled_items.load(record)
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
        if record.settled:
            task.step(Event.ALL_SERVED)

    def start(self, turn: Turn) -> None:
        """Go on with what was not settled."""
        self._settled_items.start(turn)
        for task in self._in_order(self._tasks.values()):
            if task.settled:
                self._forgetting.keep(task.item.identity, turn.now_ns + self._kept_ns)
                continue
            self._open.add(task)
            for pending in task.pending.values():
                pending.since_ns = turn.now_ns
            # The ways to homes were not kept; registrations that are still there tell them.
            self._match(task, turn)
            self._send(task, tuple(task.pending), turn)

    def snapshot(self) -> dict[str, Any]:
        """Return what is not settled, and the plans that were made last, the newest first."""
        pending = Counter(home for task in self._open for home in task.pending)
        return {
            "open": sum(1 for _ in self._open),
            "kept": len(self._tasks),
            "owed": dict(sorted(pending.items())),
            "recent": [
                {
                    "at_ns": at_ns,
                    "source": report.source,
                    "id": report.id,
                    "chosen": report.chosen,
                    "cost": report.worth._asdict(),
                    "all_in_root": report.all_in_root and report.all_in_root._asdict(),
                    "all_in_leaves": report.all_in_leaves and report.all_in_leaves._asdict(),
                    "plan": part.as_data(),
                }
                for at_ns, report, part in reversed(self._recent)
            ],
        }

    # What publishers' homes offer.

    def _offered(self, offer: Offer, sender: Address, turn: Turn) -> None:
        item = offer.item
        if offer.root != self.core.identity:
            # It says what another root has heard of. To take it for what this one has would
            # leave items out; the home offers all of them once it agrees.
            known = self._sequences.get(item.sequence)
            if known is None or known.following is None:
                return
            offer = replace(offer, first=min(offer.first, known.following))
        sequence = self._sequence(item)
        if sequence.is_new(offer):
            while (following := sequence.ready()) is not None:
                self._take(following, sequence, turn)
            if sequence.is_idle:
                del self._sequences[item.sequence]
            return
        task = self._tasks.get(item.identity)
        if task is None:
            # Settled so long ago that it is forgotten here.
            self._tell_settled(item, (), turn)
            return
        self._offered_again(task, offer, turn)

    def _take(self, offer: Offer, sequence: Sequence, turn: Turn) -> None:
        item = offer.item
        if item.identity in self._tasks:
            # The same publication in another series: its home had forgotten it.
            self._offered_again(self._tasks[item.identity], offer, turn)
            return
        if item.identity in self._settled_items:
            self._tell_settled(item, (), turn)
            return
        task = Task(item, offer.blob)
        task.served.update(offer.served)
        self._enter(task)
        self._open.add(task)
        turn.persist(_key("content", item), ContentRecord(item, offer.blob))
        self._send(task, self._match(task, turn), turn)
        self._tell_taken(task, turn)

    def _offered_again(self, task: Task, offer: Offer, turn: Turn) -> None:
        self._contents.offered(task, offer)
        task.item = task.item._replace(home=offer.item.home)
        task.served.update(offer.served)
        homes = self._match(task, turn)
        if homes or task.state is State.FETCHING:
            # Its home may be another one by now, which has the content.
            self._send(task, homes or tuple(task.pending), turn)
        if task.settled:
            self._tell_settled(task.item, tuple(sorted(task.served)), turn)
        else:
            self._tell_taken(task, turn)

    def registered_late(self, cell: int, registration: Registration, turn: Turn) -> None:
        """Serve a registration that others have confirmed and that is new here."""
        concerned = [task for task in self._tasks.values() if task.item.cell == cell]
        for task in self._in_order(concerned):
            homes = self._match(task, turn, only=registration)
            if homes:
                self._send(task, homes, turn)

    def owes(self, home: str, cell: int) -> bool:
        """Whether a home has yet to confirm something in a cell."""
        return any(task.item.cell == cell and home in task.pending for task in self._open)

    def _match(
        self,
        task: Task,
        turn: Turn,
        *,
        only: Registration | None = None,
        anew: bool = False,
    ) -> tuple[str, ...]:
        """Enter who is to get an item and has not, and return the homes concerned.

        Parameters
        ----------
        only
            The only registration to be looked at.
        anew
            Whether clients may have subscribed anew, as their homes are lost. What is older than
            their claim is not owed then, and would come behind what is newer.
        """
        item = task.item
        owed_ns = item.published_ns + self._skew_ns
        homes: set[str] = set()
        publication = publication_of(item.event)
        # A client that has moved is registered from two homes for a while. What one of them
        # was sent it passes on to the other.
        taken = {name: home for home, name in task.served}
        for home, waiting in task.pending.items():
            taken.update(dict.fromkeys(waiting.registrations, home))
        matches = self.core.rendezvous.matches(item.cell, publication, item.tenant)
        # The higher claim counts. One that has subscribed anew elsewhere, as its home is
        # lost, is served there.
        for registration in sorted(matches, key=lambda one: -one.claim):
            name = registration.id
            if only is not None and (registration.home, name) != (only.home, only.id):
                continue
            if anew and registration.claim > item.published_ns:
                continue
            home, route = self._server(task, registration)
            if taken.get(name, home) != home or registration.since_ns > owed_ns:
                continue
            if (home, name) in task.served or (home, name) in task.unknown:
                continue
            known = task.pending.get(home)
            if known is None:
                if self.core.membership.status(home) in (Status.LOST, Status.LEFT):
                    continue
                known = task.pending[home] = Pending(turn.now_ns)
            taken[name] = home
            if name not in known.registrations:
                known.attempt = task.attempt + 1
                homes.add(home)
            known.registrations[name] = (registration.profile, route)
        if homes and task.settled:
            task.step(Event.WANTED)
            self._open.add(task)
        return tuple(sorted(homes))

    def _server(self, task: Task, registration: Registration) -> tuple[str, Route]:
        """Return the home that is to get an item for a registration, and the way there.

        All generations of a subscription are served at one home at a time. A client moves from A
        to B and changes its subscription there, while A is behind a partition. A is owed item 6,
        and B alone has registered the new generation. Were B sent item 17 for that, A would say
        afterwards that it does not have the subscription any more, and 6 would come to B behind
        17. So A is asked about both, and B gets both in order. The same goes for A when it is
        owed 6, and another root hands over that it has withdrawn, which it does not wait for
        here.
        """
        name = registration.id
        higher, withdrawn = self.core.rendezvous.rivals(task.item.cell, registration)
        for rival in higher:
            gone = self.core.membership.status(rival.home) in (Status.LOST, Status.LEFT)
            if not gone and (rival.home, name) not in task.unknown:
                return rival.home, reversed_route(rival.path)
        for home in withdrawn:
            if (home, name) not in task.unknown and self._open.owed_before(task, home, name):
                return home, ()
        return registration.home, reversed_route(registration.path)

    # Sending.

    def _send(self, task: Task, homes: Iterable[str], turn: Turn) -> None:
        """Plan and send an item to some homes, as far as they are there."""
        if not task.pending:
            self._settle(task, turn)
            return
        membership = self.core.membership
        if task.state is State.PLANNING:
            # They are not sent what is being planned for them: this attempt takes its place.
            homes = {*homes, *(home for home in task.planned_for if home in task.pending)}
        there = tuple(home for home in sorted(homes) if membership.is_alive(home))
        if not there:
            if not any(membership.is_alive(home) for home in task.pending):
                task.step(Event.ALL_AWAY)
                self._supervision.wait_long(task, turn)
            self._keep(task, turn)
            return
        if self._contents.lacks(task):
            task.step(Event.FETCHING)
            self._supervision.pause(task)
            self._keep(task, turn)
            self._contents.fetch(task, turn)
            return
        task.attempt += 1
        if self.core.settings.content.tree == "discovered" and there != (self.core.identity,):
            task.step(Event.PROBED)
            self._keep(task, turn)
            self._probes.find(task, there, turn)
        else:
            self._send_along(task, there, {}, turn)

    def _content_had(self, task: Task, turn: Turn) -> None:
        """Go on with an item whose content is here, or is lost for good."""
        if task.state is State.FETCHING:
            self._send(task, tuple(task.pending), turn)
        self._tell_taken(task, turn)

    def _send_along(
        self, task: Task, homes: tuple[str, ...], routes: Mapping[str, Route], turn: Turn
    ) -> None:
        after = {home: self._open.before(task, home) for home in homes}
        problem = self._planner.problem(task, after, routes, turn.now_ns)
        if problem.size <= self.core.settings.content.plan_size_max:
            self._send_planned(task, problem, problem.solve(), turn)
            return
        task.step(Event.PLANNING)
        task.planned_for = homes
        self._supervision.pause(task)
        self._keep(task, turn)
        self.core.make_plan(turn, problem, self._planned, task, task.attempt, problem)

    def _planned(
        self, turn: Turn, planning: Planning, task: Task, attempt: int, problem: PlanningProblem
    ) -> None:
        """Send along a plan that the host has made, unless another attempt has begun since."""
        if task.attempt != attempt or task.state is not State.PLANNING:
            return
        # Earlier items may have been sent anew, or confirmed, while this one was planned.
        nodes = tuple(
            node
            if node.after == RELAY
            else node._replace(after=self._open.before(task, node.broker))
            for node in planning.part.nodes
        )
        current = replace(planning, part=replace(planning.part, nodes=nodes))
        self._send_planned(task, problem, current, turn)

    def _send_planned(
        self, task: Task, problem: PlanningProblem, planning: Planning, turn: Turn
    ) -> None:
        self._planner.adopt(task, problem, planning, turn.now_ns)
        report = self._planner.report(task, planning)
        turn.report(report)
        self._recent.append((turn.now_ns, report, planning.part))
        task.step(Event.SENT)
        self._supervision.look_after(task, turn)
        self._keep(task, turn)
        own, original = self.core.identity, formats_of(self.core.settings, task.item).own
        self.core.relays.carry_out(
            Portion(task.item, own, task.attempt, original, planning.part, (task.blob,)), turn
        )

    def _try_anew(self, task: Task, turn: Turn) -> None:
        self._send(task, tuple(task.pending), turn)

    def _found(
        self, task: Task, homes: tuple[str, ...], routes: Mapping[str, Route], turn: Turn
    ) -> None:
        membership = self.core.membership
        there = tuple(h for h in homes if h in task.pending and membership.is_alive(h))
        if there:
            self._send_along(task, there, routes, turn)

    # What homes and relays say.

    def _served(self, message: Served, sender: Address, turn: Turn) -> None:
        task = self._open.get(message.identity)
        pending = None if task is None else task.pending.get(sender)
        if task is None or pending is None:
            return
        # What is kept is kept, whichever attempt brought it. But whom the home did not know it
        # may know by now, if an attempt that is for all was planned later.
        unknown = message.unknown if message.attempt >= pending.attempt else ()
        if unknown and self._open.before(task, sender) != NOTHING_BEFORE:
            # What it has said of an earlier item got lost. It is asked again about both: where
            # their clients are now, that one comes first.
            unknown = ()
        # What it does not name is sent again when its time is up: at once would be no better.
        task.confirmed(sender, message.served, unknown)
        # Where their clients are now, another home may have registered them.
        elsewhere = self._match(task, turn) if unknown else ()
        if elsewhere:
            self._send(task, elsewhere, turn)
        elif not task.pending:
            self._settle(task, turn)

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
        formats = formats_of(self.core.settings, task.item)
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
        came, down, gone = set(change.came), set(change.down), set(change.gone)
        for task in self._in_order(self._open):
            for home in sorted(gone & task.pending.keys()):
                del task.pending[home]
            again: set[str] = set()
            if gone:
                # Their clients may be elsewhere by now.
                again.update(self._match(task, turn, anew=True))
            again |= {
                home
                for home, pending in task.pending.items()
                if home in came or pending.above & (down | gone)
            }
            if again or not task.pending:
                self._send(task, again, turn)

    # Ending.

    def _settle(self, task: Task, turn: Turn) -> None:
        item = task.item
        task.step(Event.ALL_SERVED)
        self._supervision.end(task)
        self._open.remove(task)
        self._keep(task, turn)
        self._forgetting.keep(item.identity, turn.now_ns + self._kept_ns)
        self._tell_settled(item, tuple(sorted(task.served)), turn)

    def _tell_taken(self, task: Task, turn: Turn) -> None:
        item = task.item
        if task.settled or self._contents.lacks(task):
            return
        self.core.tell(item.home, Taken(item.identity), turn)

    def _tell_settled(self, item: Item, served: tuple[tuple[str, str], ...], turn: Turn) -> None:
        self.core.links.send(item.home, Settled(item.identity, served), turn)

    def _forget(self, identity: ItemId, turn: Turn) -> None:
        task = self._tasks.get(identity)
        if task is None or not task.settled:
            return
        item = task.item
        if self.core.membership.status(item.home) is Status.DOWN:
            # It may not know that the item is settled, and offer it again when it is back.
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
            return
        del self._tasks[identity]
        self.core.content.release(item.tenant, task.blob, turn)
        sequence = self._sequences[item.sequence]
        sequence.remove(task)
        if not sequence.tasks:
            del self._sequences[item.sequence]
        self._settled_items.add(identity, turn)
        turn.erase(_key("content", item))
        turn.erase(_key("progress", item))

    # What is kept.

    def _enter(self, task: Task) -> None:
        self._tasks[task.item.identity] = task
        self.core.content.refer(task.item.tenant, task.blob)
        self._sequence(task.item).add(task)

    def _sequence(self, item: Item) -> Sequence:
        return self._sequences.setdefault(item.sequence, Sequence())

    def _keep(self, task: Task, turn: Turn) -> None:
        turn.persist(_key("progress", task.item), task.progress())

    def _in_order(self, tasks: Iterable[Task]) -> list[Task]:
        return sorted(tasks, key=lambda task: (task.item.sequence, task.item.number))


def _key(what: str, item: Item) -> str:
    return f"dissemination/{what}/{journal_key(*item.identity)}"
