"""Publishing: what a home broker does with what its clients publish.

A publication is taken in its turn among those of its session, checked, numbered among those of
the session in its cell, kept, and accepted. Then it is offered to the root of its cell until the
root has taken it, and again whenever the cell has another root, as long as it is kept. After that
the home still knows that it has had it, so that it takes it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.client import Publish
from distributary.broker.core import Core, Handler, Part
from distributary.broker.dissemination.messages import (
    Deferred,
    ItemId,
    Offer,
    Settled,
    Taken,
    in_order,
    offered,
)
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import SourceOwners, Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.publishing.intake import CHECKS, Intake, SessionRecord
from distributary.broker.publishing.publications import (
    Count,
    CountRecord,
    Kept,
    KeptRecord,
    Offers,
    Place,
    PublicationEvent,
    PublicationState,
    Remembered,
    SettlementRecord,
    item_of,
    series_of,
)
from distributary.broker.settings import ns
from distributary.broker.timers import Backlog, Backoff, Obstacle, Retention
from distributary.content import Publication

__all__ = ["ClientPublications", "Publishing"]

_DISK_FULL = "the disk of this broker is nearly full"
_WAY_FULL = "the broker that its content goes by has much to do"


@encodable(603)
@dataclass(frozen=True, slots=True)
class ClientPublications:
    """What a client that moves takes with it."""

    client: str
    counts: tuple[CountRecord, ...]
    kept: tuple[KeptRecord, ...]
    remembered: tuple[Remembered, ...]
    sessions: tuple[SessionRecord, ...]


class Publishing(Part):
    """What one broker does with what its clients publish."""

    name = "publishing"
    uses = ("membership", "links", "content", "rendezvous", "migration", "storage")
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings
        self._kept: dict[ItemId, Kept] = {}
        self._remembered: dict[ItemId, Remembered] = {}
        self._counts: dict[Place, Count] = {}
        self._intake = Intake(self)
        repeat_ns = ns(settings.content.repeat_s)
        self._backoff = Backoff(repeat_ns, 8 * repeat_ns)
        self._offers = Offers(settings.publishing, self._backoff)
        self._kept_ns = ns(settings.content.retention_s)
        self._dedupe_ns = ns(settings.publishing.dedupe_s)
        self._backlog = Backlog(core.timers)
        self._repeating = Retention(core.timers, self._look_after)
        self._releasing = Retention(core.timers, self._release)
        self._forgetting = Retention(core.timers, self._forget)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Publish: self._intake.publish,
            Taken: self._taken,
            Settled: self._settled,
            Deferred: self._deferred,
            SourceOwners: self._intake.source_owners,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back a publication, that there was one, a count, or how far a session is."""
        if isinstance(record, CountRecord):
            place = Place(record.client, record.session, record.cell)
            count = self._counts[place] = Count(record.series, record.last)
            count.recorded = True
        elif isinstance(record, SessionRecord):
            self._intake.sessions.noted(record.client, record.session, record.last, recorded=True)
        elif isinstance(record, Remembered):
            self._remembered[record.key] = record
            self._intake.sessions.noted(record.client, record.session, record.number)
        elif isinstance(record, SettlementRecord):
            self._kept[record.identity].has_been_settled(record.settled_by, record.served)
        else:
            assert isinstance(record, KeptRecord)
            self._enter(Kept.from_record(record))
            self._intake.sessions.noted(record.client, record.session, record.number)

    def start(self, turn: Turn) -> None:
        """Offer again what no root, or another one than now, has answered."""
        self._intake.sessions.start(turn)
        self._forgetting.keep_all(self._remembered, turn.now_ns + self._dedupe_ns)
        ordered = self._in_order()
        settled = (kept.key for kept in ordered if kept.settled)
        self._releasing.keep_all(settled, turn.now_ns + self._kept_ns)
        self._backlog.each(self._resume, [kept.key for kept in ordered], turn)

    def _resume(self, key: ItemId, turn: Turn) -> None:
        """Offer something again after a restart, or after it has come with its client."""
        kept = self._kept.get(key)
        if kept is not None:
            self._review(kept)
            if kept.state is PublicationState.OFFERED:
                self._offer_unless_carried(kept, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Offer what is kept of cells whose root is another one now."""
        for broker in change.gone:
            self._offers.forget(broker)
            self._intake.admission.forget(broker)
        for place in sorted(self._counts):
            count, root = self._counts[place], self._root_of(place.cell)
            # Most changes leave most roots what they were, and much may be kept.
            if count.reviewed_for == root:
                continue
            count.reviewed_for = root
            keys = [count.kept[number].key for number in sorted(count.kept)]
            self._backlog.each(self._reconsider, keys, turn)

    def _reconsider(self, key: ItemId, turn: Turn) -> None:
        """Offer something anew if another root than now has answered, or was asked."""
        kept = self._kept.get(key)
        if kept is None:
            return
        self._review(kept)
        if kept.state is PublicationState.OFFERED and kept.offered_to != self._root_of(
            kept.item.cell
        ):
            self.offer(kept, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return how many publications are kept, by how far they are, and how many remembered."""
        states = Counter(kept.state.name.lower() for kept in self._kept.values())
        return {"kept": dict(sorted(states.items())), "remembered": len(self._remembered)}

    # What is taken from clients.

    @property
    def known_count(self) -> int:
        """How many publications are known, with those of which no content is kept."""
        return len(self._kept) + len(self._remembered)

    @property
    def idle(self) -> bool:
        """Whether no content is only here: roots have fetched what they want of it."""
        return not any(
            kept.blob is not None and kept.state is PublicationState.OFFERED
            for kept in self._kept.values()
        )

    def knows(self, key: ItemId) -> bool:
        """Whether a publication was taken before."""
        return key in self._kept or key in self._remembered

    def check_source(self, source: str, client: Address) -> None:
        """Refuse the source of another tenant by `BadInput`."""
        self._intake.admission.check_source(source, client)

    def obstacle(self, cell: int | None, turn: Turn) -> Obstacle | None:
        """Return why nothing more can be taken now, or not in this cell, if that is so."""
        now_ns, admission = turn.now_ns, self._intake.admission
        later_ns = now_ns + admission.unknown_ns
        if self.core.storage.low:
            return Obstacle("disk", _DISK_FULL, later_ns, 0)
        early_bytes = self._intake.sessions.early_bytes
        if admission.is_busy(early_bytes=early_bytes, identities=self.known_count):
            # What is kept leaves in about the order and at the rate at which it came.
            free_ns, kept_ns = self._releasing.next_ns, self._kept_ns
            if self.known_count >= self.core.settings.publishing.identities_max:
                kept_ns += self._dedupe_ns
                free_ns = self._forgetting.next_ns or (free_ns and free_ns + self._dedupe_ns)
            gap_ns = kept_ns // max(self.known_count, 1)
            return Obstacle("", "", free_ns or later_ns, gap_ns)
        if cell is None:
            return None
        root = self._root_of(cell)
        hop = self.core.membership.next_hop(self.core.rendezvous.key_of(cell))
        full = self._offers.is_full(root) or self.core.links.is_full(hop)
        if not full or self.core.rendezvous.unwanted(cell, now_ns):
            return None
        gap_ns = self._offers.gap_ns(root, now_ns)
        return Obstacle(root, _WAY_FULL, now_ns + gap_ns, gap_ns)

    def store(
        self, message: Publish, publication: Publication, cell: int, client: Address, turn: Turn
    ) -> Kept | None:
        """Keep a publication, or that there was one that nobody wants."""
        if self.core.rendezvous.unwanted(cell, turn.now_ns):
            number = (message.session, message.number)
            record = Remembered(client, *publication.identity, *number)
            self._remember(record.key, record, turn)
            # It has published, and nothing of it is traffic.
            self.core.migration.published(client, cell, 0)
            return None
        place = Place(client, message.session, cell)
        count = self._counts.get(place)
        if count is None:
            series = series_of(place, self.core.identity, turn.now_ns)
            count = self._counts[place] = Count(series)
        item = item_of(
            message,
            publication,
            cell=cell,
            series=count.series,
            number=count.last + 1,
            home=self.core.identity,
            now_ns=turn.now_ns,
            client=client,
        )
        kept = Kept(client, item, message.blob, message.session, message.number)
        self._enter(kept)
        if kept.blob is not None:
            self.core.content.published(item.tenant, kept.blob, turn)
        self.core.migration.published(client, cell, item.size_bytes)
        self.core.measured.published(client, cell, item.size_bytes)
        turn.persist(_key(kept.key), kept.record())
        return kept

    # What roots answer.

    def offer(self, kept: Kept, turn: Turn) -> None:
        """Offer a publication to the root of its cell."""
        item = kept.item
        root = self._root_of(item.cell)
        self._wait_for(kept, root, turn)
        kept.repeats += 1
        kept.offered_ns = turn.now_ns
        count = self._count_of(kept)
        first = count.first(kept, root)
        # Before the first one all of them may be.
        settled = count.settled_before(item.number) if item.number > first else 0
        offer = Offer(item, kept.blob, root, first, kept.served, settled)
        # It is kept here, and offered again after a crash.
        self.core.links.route(self.core.rendezvous.key_of(item.cell), offer, turn, kept=False)

    def _offer_unless_carried(self, kept: Kept, turn: Turn) -> None:
        """Offer a publication, unless an offer to the same root waits in the own outbox.

        A second one would stand in line behind the first, and make the line longer.
        """
        root = self._root_of(kept.item.cell)
        if self.core.links.carries(offered(kept.key, root)):
            self._wait_for(kept, root, turn)
        else:
            self.offer(kept, turn)

    def _wait_for(self, kept: Kept, root: str, turn: Turn) -> None:
        """Wait for a root's answer."""
        if kept.state is PublicationState.OFFERED:
            self._offers.enter(kept, root, turn.now_ns)
        self._look_at(kept, turn.now_ns + self._offers.timeout_ns(root, kept.repeats))

    def _look_at(self, kept: Kept, at_ns: int) -> None:
        kept.due_ns = at_ns
        self._repeating.keep(kept.key, at_ns)

    def _review(self, kept: Kept) -> None:
        """See whether it must be offered anew, as another root than now has answered."""
        before = kept.state
        kept.root_is(self._root_of(kept.item.cell))
        if kept.state is not before:
            self._offers.leave(kept)
            self._count_of(kept).reopen(kept)

    def _look_after(self, key: ItemId, turn: Turn) -> None:
        kept = self._kept.get(key)
        if kept is None or turn.now_ns < kept.due_ns:
            return
        self._review(kept)
        if kept.state is PublicationState.OFFERED:
            self._offer_unless_carried(kept, turn)
        elif kept.state is PublicationState.TAKEN:
            # Somebody else may have published the same elsewhere: a root tells the home that
            # has offered it last when it is settled. So the others ask, but rarely.
            again_ns = kept.offered_ns + self._backoff.longest_ns
            if turn.now_ns >= again_ns:
                self.offer(kept, turn)
            else:
                self._look_at(kept, again_ns)

    def _taken(self, message: Taken, sender: Address, turn: Turn) -> None:
        kept = self._kept.get(message.identity)
        if kept is not None:
            self._offers.taken(kept, sender, turn.now_ns)
            kept.answered(sender, PublicationEvent.TAKEN)

    def _deferred(self, message: Deferred, sender: Address, turn: Turn) -> None:
        """Offer a publication again when its root should have room for it."""
        kept = self._kept.get(message.identity)
        if kept is not None and kept.offered_to == sender:
            # That is an answer: should it give way to others then, it is offered again soon.
            kept.repeats = 0
            self._look_at(kept, turn.now_ns + message.wait_ns)

    def _settled(self, message: Settled, sender: Address, turn: Turn) -> None:
        kept = self._kept.get(message.identity)
        if kept is None:
            return
        if not kept.settled:
            self._releasing.keep(kept.key, turn.now_ns + self._kept_ns)
        self._offers.taken(kept, sender, turn.now_ns)
        kept.has_been_settled(sender, tuple(sorted({*kept.served, *message.served})))
        record = SettlementRecord(kept.key, sender, kept.served)
        turn.persist(_settlement_key(kept.key), record)
        self._review(kept)
        if kept.state is PublicationState.OFFERED:
            self._look_at(kept, turn.now_ns + self._backoff.first_ns)

    # What is kept.

    def _root_of(self, cell: int) -> str:
        return self.core.membership.root_of(self.core.rendezvous.key_of(cell))

    def _count_of(self, kept: Kept) -> Count:
        return self._counts[_place_of(kept)]

    def _enter(self, kept: Kept) -> None:
        self._kept[kept.key] = kept
        # A client that comes may bring what another one has published here before.
        self._remembered.pop(kept.key, None)
        self._counts.setdefault(_place_of(kept), Count(kept.item.series)).enter(kept)
        self.core.content.refer(kept.item.tenant, kept.blob)
        self._intake.admission.items += 1
        self._intake.admission.bytes += kept.size_bytes

    def _in_order(self) -> list[Kept]:
        return in_order(self._kept.values())

    def _release(self, key: ItemId, turn: Turn) -> None:
        """Keep the content of a publication no longer, only that there was one."""
        kept = self._kept.get(key)
        if kept is None:
            return
        # There may be another root, and it is in the backlog to be offered to that.
        self._reconsider(key, turn)
        if kept.state is not PublicationState.SETTLED:
            # Another root has settled it, and the one there is now has not, which alone may
            # know of a subscriber.
            self._releasing.keep(key, turn.now_ns + self._kept_ns)
            return
        place = _place_of(kept)
        count = self._counts[place]
        self._remove(kept, count, turn)
        turn.erase(_settlement_key(kept.key))
        self._remember(kept.key, kept.remembered(), turn)
        if not count.kept:
            # What is published next begins another series.
            self._drop_count(place, turn)
        elif count.last == kept.item.number:
            self._record_count(place, turn)

    def _remove(self, kept: Kept, count: Count, turn: Turn) -> None:
        del self._kept[kept.key]
        self._offers.leave(kept)
        self.core.content.release(kept.item.tenant, kept.blob, turn)
        count.remove(kept)
        self._intake.admission.items -= 1
        self._intake.admission.bytes -= kept.size_bytes

    def _record_count(self, place: Place, turn: Turn) -> None:
        count = self._counts[place]
        count.recorded = True
        turn.persist(_count_key(place), CountRecord(*place, count.series, count.last))

    def _drop_count(self, place: Place, turn: Turn) -> None:
        if self._counts.pop(place).recorded:
            turn.erase(_count_key(place))

    def _remember(self, key: ItemId, record: Remembered, turn: Turn) -> None:
        self._remembered[key] = record
        turn.persist(_key(key), record)
        self._forgetting.keep(key, turn.now_ns + self._dedupe_ns)

    def _forget(self, key: ItemId, turn: Turn) -> None:
        if self._remembered.pop(key, None) is not None:
            turn.erase(_key(key))

    # Clients that move.

    def export_client(self, client: Address) -> ClientPublications:
        """Return all that is kept for a client: its numbers and its publications."""
        counts = [
            CountRecord(*place, count.series, count.last)
            for place, count in sorted(self._counts.items())
            if place.client == client
        ]
        kept = [kept.record() for kept in self._in_order() if kept.client == client]
        remembered = [
            record for _, record in sorted(self._remembered.items()) if record.client == client
        ]
        sessions = self._intake.sessions.of_client(client)
        return ClientPublications(
            client, tuple(counts), tuple(kept), tuple(remembered), tuple(sessions)
        )

    def adopt_client(self, record: ClientPublications, home: str, turn: Turn) -> None:
        """Take over all that another broker has kept for a client."""
        for session in record.sessions:
            self._intake.sessions.adopt(session, turn)
        for told in record.counts:
            place = Place(told.client, told.session, told.cell)
            if place not in self._counts:
                self._counts[place] = Count(told.series, told.last)
                self._record_count(place, turn)
        for moved in record.kept:
            kept = Kept.from_record(moved)
            if kept.key in self._kept:
                self.core.content.borrow(kept.blob, home, turn)
                continue
            kept.item = moved.item._replace(home=self.core.identity)
            self._enter(kept)
            self.core.content.borrow(kept.blob, home, turn)
            turn.persist(_key(kept.key), kept.record())
            if kept.settled:
                self._releasing.keep(kept.key, turn.now_ns + self._kept_ns)
        for remembered in record.remembered:
            if remembered.key not in self._kept:
                self._remember(remembered.key, remembered, turn)
        moved_keys = [kept.key for kept in self._in_order() if kept.client == record.client]
        self._backlog.each(self._resume, moved_keys, turn)

    def drop_client(self, client: Address, turn: Turn) -> None:
        """Forget all that is kept for a client, which has moved."""
        self._intake.sessions.drop_client(client, turn)
        for kept in self._in_order():
            if kept.client == client:
                self._remove(kept, self._count_of(kept), turn)
                turn.erase(_key(kept.key))
                if kept.settled:
                    turn.erase(_settlement_key(kept.key))
        for place in sorted(self._counts):
            if place.client == client:
                self._drop_count(place, turn)
        for key in sorted(self._remembered):
            if self._remembered[key].client == client:
                self._forget(key, turn)


def _place_of(kept: Kept) -> Place:
    return Place(kept.client, kept.session, kept.item.cell)


def _key(key: ItemId) -> str:
    """Where a publication is kept, and then that there was one."""
    return f"publishing/kept/{journal_key(*key)}"


def _settlement_key(key: ItemId) -> str:
    return f"publishing/settled/{journal_key(*key)}"


def _count_key(place: Place) -> str:
    client, session, cell = place
    return f"publishing/count/{journal_key(client, session)}/{cell}"
