"""Publishing: what a home broker does with what its clients publish.

A publication is checked, numbered among those of its source in its cell, kept, and accepted.
Then it is offered to the root of its cell until the root has taken it, and again whenever the
cell has another root, as long as it is kept.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Accepted, Publish, Refused
from distributary.broker.core import Handler, Part
from distributary.broker.dissemination.messages import Item, ItemId, Offer, Settled, Taken
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.publishing.publications import (
    CountRecord,
    DroppedRecord,
    Event,
    Kept,
    KeptRecord,
    State,
    checked,
    item_of,
)
from distributary.broker.settings import ns
from distributary.broker.timers import Backoff, Retention
from distributary.content import Publication
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["ClientPublications", "Publishing"]

_Identity = ItemId
_Place = tuple[str, str, int]


@wire(603)
@dataclass(frozen=True, slots=True)
class ClientPublications:
    """What a client that moves takes with it."""

    client: str
    counts: tuple[CountRecord, ...]
    kept: tuple[KeptRecord, ...]
    dropped: tuple[DroppedRecord, ...]


class _Count:
    """The numbers of a source in a cell, and the items with a number that are kept."""

    __slots__ = ("client", "items", "last", "series")

    def __init__(self, client: str, series: int, last: int = 0) -> None:
        self.client = client
        self.series = series
        self.last = last
        self.items: list[tuple[int, _Identity]] = []


class Publishing(Part):
    """What one broker does with what its clients publish."""

    name = "publishing"
    uses = ("membership", "links", "rendezvous", "migration", "storage")

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings
        self._kept: dict[_Identity, Kept] = {}
        self._dropped: dict[_Identity, str] = {}
        self._counts: dict[_Place, _Count] = {}
        repeat_ns = ns(settings.content.repeat_s)
        self._backoff = Backoff(repeat_ns, 8 * repeat_ns)
        self._kept_ns = ns(settings.content.retention_s)
        self._repeating = Retention(core.timers, self._look_after)
        self._forgetting = Retention(core.timers, self._forget)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {Publish: self._publish, Taken: self._taken, Settled: self._settled}

    def load(self, key: str, record: Any) -> None:
        """Take back a publication, a count, or that something was dropped."""
        if isinstance(record, CountRecord):
            place = (tenant_of(record.client), record.source, record.cell)
            self._counts[place] = _Count(record.client, record.series, record.last)
        elif isinstance(record, DroppedRecord):
            self._dropped[_dropped_identity(record)] = record.client
        else:
            assert isinstance(record, KeptRecord)
            self._enter(Kept.from_record(record))

    def start(self, turn: Turn) -> None:
        """Offer again what no root, or another one than now, has answered."""
        for identity in sorted(self._dropped):
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
        for kept in self._in_order():
            identity = kept.item.identity
            if kept.settled:
                self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
            kept.root_is(self._root_of(kept.item.cell))
            if kept.state is State.OFFERED:
                self._offer(kept, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Offer what is kept of cells whose root is another one now."""
        roots: dict[int, str] = {}
        for kept in self._in_order():
            cell = kept.item.cell
            root = roots.get(cell)
            if root is None:
                root = roots[cell] = self._root_of(cell)
            before = kept.state
            kept.root_is(root)
            if kept.state is State.OFFERED and before is not State.OFFERED:
                self._offer(kept, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return how many publications are kept, by how far they are."""
        states = Counter(kept.state.name.lower() for kept in self._kept.values())
        return {"kept": dict(sorted(states.items())), "dropped": len(self._dropped)}

    # What clients publish.

    def _publish(self, message: Publish, sender: Address, turn: Turn) -> None:
        try:
            publication = checked(message)
        except BadInput as error:
            turn.send(sender, Refused("publication", str(error)))
            return
        identity = ItemId(tenant_of(sender), *publication.identity)
        accepted = Accepted(*publication.identity)
        if identity in self._kept or identity in self._dropped:
            turn.send(sender, accepted)
            return
        if self.core.storage.low:
            turn.send(sender, Refused("publication", "the disk of this broker is nearly full"))
            return
        cell = self.core.settings.space.cell_of(publication)
        if self.core.rendezvous.unwanted(cell, turn.now_ns):
            self._dropped[identity] = sender
            turn.persist(_dropped_key(identity), DroppedRecord(sender, *publication.identity))
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
            turn.send(sender, accepted)
            # It has published, and nothing of it is traffic.
            self.core.migration.published(sender, cell, 0)
            return
        item = self._numbered(message, publication, cell, sender, turn)
        kept = Kept(sender, item, message.blob)
        self._enter(kept)
        self.core.migration.published(sender, cell, item.size_bytes)
        self.core.measured.published(sender, cell, item.size_bytes)
        turn.persist(_kept_key(identity), kept.record())
        turn.send(sender, accepted)
        self._offer(kept, turn)

    def _numbered(
        self, message: Publish, publication: Publication, cell: int, client: str, turn: Turn
    ) -> Item:
        source, tenant = publication.source, tenant_of(client)
        place = (tenant, source, cell)
        count = self._counts.get(place)
        if count is None:
            count = self._counts[place] = _Count(client, turn.now_ns)
        count.last += 1
        turn.persist(_count_key(place), CountRecord(client, source, cell, count.series, count.last))
        return item_of(
            message,
            publication,
            cell=cell,
            series=count.series,
            number=count.last,
            home=self.core.identity,
            now_ns=turn.now_ns,
            tenant=tenant,
        )

    # What roots answer.

    def _offer(self, kept: Kept, turn: Turn) -> None:
        item = kept.item
        self._repeating.keep(item.identity, turn.now_ns + self._backoff.after(kept.repeats))
        kept.repeats += 1
        root = self._root_of(item.cell)
        offer = Offer(item, kept.blob, root, self._first(item, root), kept.served)
        self.core.links.route(self.core.rendezvous.key_of(item.cell), offer, turn)

    def _first(self, item: Item, root: str) -> int:
        """Return the lowest number that the root must have heard of before what follows."""
        for number, identity in self._counts[_place(item)].items:
            kept = self._kept[identity]
            if kept.state is not State.SETTLED or kept.answered_by != root:
                return number
        return item.number

    def _look_after(self, identity: _Identity, turn: Turn) -> None:
        kept = self._kept.get(identity)
        if kept is None:
            return
        kept.root_is(self._root_of(kept.item.cell))
        if kept.state is State.OFFERED:
            self._offer(kept, turn)
        elif kept.state is State.TAKEN:
            self._repeating.keep(identity, turn.now_ns + self._backoff.longest_ns)

    def _taken(self, message: Taken, sender: Address, turn: Turn) -> None:
        kept = self._kept.get(message.identity)
        if kept is not None:
            kept.answered(sender, Event.TAKEN)

    def _settled(self, message: Settled, sender: Address, turn: Turn) -> None:
        identity = message.identity
        kept = self._kept.get(identity)
        if kept is None:
            return
        if not kept.settled:
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
        kept.answered(sender, Event.SETTLED)
        kept.served = tuple(sorted({*kept.served, *message.served}))
        turn.persist(_kept_key(identity), kept.record())
        kept.root_is(self._root_of(kept.item.cell))
        if kept.state is State.OFFERED:
            self._repeating.keep(identity, turn.now_ns + self._backoff.first_ns)

    # What is kept.

    def _root_of(self, cell: int) -> str:
        return self.core.membership.root_of(self.core.rendezvous.key_of(cell))

    def _enter(self, kept: Kept) -> None:
        item = kept.item
        self._kept[item.identity] = kept
        count = self._counts[_place(item)]
        insort(count.items, (item.number, item.identity))

    def _in_order(self) -> list[Kept]:
        return sorted(self._kept.values(), key=lambda kept: (kept.item.sequence, kept.item.number))

    def _forget(self, identity: _Identity, turn: Turn) -> None:
        if self._dropped.pop(identity, None) is not None:
            turn.erase(_dropped_key(identity))
            return
        kept = self._kept.get(identity)
        if kept is None:
            return
        if kept.state is not State.SETTLED:
            # Another root has settled it, and the one there is now has not. That one may have
            # come back just before, and alone know of a subscriber; and who was root meanwhile
            # may have answered the offer that was meant for it, so that it takes a while.
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
            return
        self._remove(kept, turn)
        item = kept.item
        count = self._counts[_place(item)]
        if not count.items:
            # What is published next begins another series.
            del self._counts[_place(item)]
            turn.erase(_count_key(_place(item)))

    def _remove(self, kept: Kept, turn: Turn) -> None:
        item = kept.item
        del self._kept[item.identity]
        self._counts[_place(item)].items.remove((item.number, item.identity))
        turn.erase(_kept_key(item.identity))

    # Clients that move.

    def export_client(self, client: Address) -> ClientPublications:
        """Return all that is kept for a client: its numbers and its publications."""
        counts = [
            CountRecord(client, source, cell, count.series, count.last)
            for (_, source, cell), count in sorted(self._counts.items())
            if count.client == client
        ]
        kept = [kept.record() for kept in self._in_order() if kept.client == client]
        dropped = [
            DroppedRecord(client, identity.source, identity.id)
            for identity, whose in sorted(self._dropped.items())
            if whose == client
        ]
        return ClientPublications(client, tuple(counts), tuple(kept), tuple(dropped))

    def adopt_client(self, record: ClientPublications, turn: Turn) -> None:
        """Take over all that another broker has kept for a client."""
        for told in record.counts:
            place = (tenant_of(told.client), told.source, told.cell)
            if place not in self._counts:
                self._counts[place] = _Count(told.client, told.series, told.last)
                turn.persist(_count_key(place), told)
        for moved in record.kept:
            identity = moved.item.identity
            if identity in self._kept:
                continue
            kept = Kept.from_record(moved)
            kept.item = moved.item._replace(home=self.core.identity)
            self._enter(kept)
            turn.persist(_kept_key(identity), kept.record())
            if kept.settled:
                self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
        for gone in record.dropped:
            identity = _dropped_identity(gone)
            self._dropped[identity] = gone.client
            turn.persist(_dropped_key(identity), gone)
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
        for kept in self._in_order():
            if kept.client == record.client:
                kept.root_is(self._root_of(kept.item.cell))
                if kept.state is State.OFFERED:
                    self._offer(kept, turn)

    def drop_client(self, client: Address, turn: Turn) -> None:
        """Forget all that is kept for a client, which has moved."""
        for kept in self._in_order():
            if kept.client == client:
                self._remove(kept, turn)
        for place in sorted(self._counts):
            if self._counts[place].client == client:
                del self._counts[place]
                turn.erase(_count_key(place))
        for identity in sorted(self._dropped):
            if self._dropped[identity] == client:
                del self._dropped[identity]
                turn.erase(_dropped_key(identity))


def _kept_key(identity: _Identity) -> str:
    return f"publishing/kept/{journal_key(*identity)}"


def _dropped_key(identity: _Identity) -> str:
    return f"publishing/dropped/{journal_key(*identity)}"


def _count_key(place: _Place) -> str:
    tenant, source, cell = place
    return f"publishing/count/{journal_key(tenant, source)}/{cell}"


def _place(item: Item) -> _Place:
    return item.tenant, item.source, item.cell


def _dropped_identity(record: DroppedRecord) -> ItemId:
    return ItemId(tenant_of(record.client), record.source, record.id)
