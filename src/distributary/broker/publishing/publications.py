"""Publications that their home keeps: until everybody has got them, and for a while after.

Intake: what is checked when a client publishes, and what becomes of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from typing import NamedTuple

from distributary.broker.addresses import Address, Blob, is_digest, publisher_of, tenant_of
from distributary.broker.client import Publish
from distributary.broker.core import Transitions
from distributary.broker.dissemination.messages import Item, ItemId
from distributary.broker.encoding import encodable
from distributary.broker.planning import publication_of
from distributary.broker.settings import PublishingSettings
from distributary.broker.timers import Backoff, RoundTrip
from distributary.content import Publication
from distributary.content.attributes import DATA_SIZE, declared_bytes
from distributary.errors import BadInput, quoted

__all__ = [
    "PUBLICATION",
    "Count",
    "CountRecord",
    "Kept",
    "KeptRecord",
    "Offers",
    "Place",
    "PublicationEvent",
    "PublicationState",
    "Remembered",
    "SettlementRecord",
    "checked",
    "item_of",
    "key_of",
    "series_of",
]


def key_of(client: Address, source: str, identifier: str) -> ItemId:
    """Return what a client's publication is known by.

    By `source` and `id` alone, one tenant could publish under another's source first, and what
    the other then publishes would be taken for known.
    """
    return ItemId(tenant_of(client), source, identifier)


class PublicationState(Enum):
    """How far a publication is."""

    OFFERED = "offered"
    TAKEN = "taken"
    SETTLED = "settled"


class PublicationEvent(Enum):
    """What can happen to a publication at its home."""

    TAKEN = "taken"
    SETTLED = "settled"
    ROOT_CHANGED = "root changed"


# A publication is offered to the root of its cell, again and again, until the root has taken
# it. Then it is kept in case that the root is lost, until all who are to get it have got it.
# Should the cell have another root by then, it is offered to that one too, which may know of
# subscribers that the first did not.
PUBLICATION: Transitions[PublicationState, PublicationEvent] = Transitions(
    "publication at its home",
    PublicationState.OFFERED,
    {
        (PublicationState.OFFERED, PublicationEvent.TAKEN): PublicationState.TAKEN,
        (PublicationState.OFFERED, PublicationEvent.SETTLED): PublicationState.SETTLED,
        (PublicationState.TAKEN, PublicationEvent.SETTLED): PublicationState.SETTLED,
        (PublicationState.TAKEN, PublicationEvent.ROOT_CHANGED): PublicationState.OFFERED,
        (PublicationState.SETTLED, PublicationEvent.SETTLED): PublicationState.SETTLED,
        (PublicationState.SETTLED, PublicationEvent.ROOT_CHANGED): PublicationState.OFFERED,
    },
)


@encodable(600)
@dataclass(frozen=True, slots=True)
class CountRecord:
    """How many items of a session in a cell have been numbered, as it is kept.

    Only when the last of them is not kept any more: otherwise that one says it.
    """

    client: str
    session: str
    cell: int
    series: int
    last: int


@encodable(601)
@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A publication as it is kept.

    Attributes
    ----------
    settled_by, served
        As in `SettlementRecord`, when it was settled before it came to this home.
    session, number
        As in `Publish`.
    """

    client: str
    item: Item
    blob: Blob | None
    settled_by: str | None
    served: tuple[tuple[str, str], ...]
    session: str = ""
    number: int = 0


@encodable(604)
@dataclass(frozen=True, slots=True)
class SettlementRecord:
    """That a root has settled a publication, as it is kept beside that.

    The publication itself is written once. Nothing in it changes, and it is the larger by far.

    Attributes
    ----------
    settled_by
        The root.
    served
        The registrations that are known to have got it.
    """

    identity: ItemId
    settled_by: str
    served: tuple[tuple[str, str], ...]


@encodable(651)
@dataclass(frozen=True, slots=True)
class Remembered:
    """A publication of which no more is kept than that it was taken, as it is kept.

    Everybody has got it, or nobody wanted it. `session` and `number` are as in `Publish`.
    """

    client: str
    source: str
    id: str
    session: str = ""
    number: int = 0

    @property
    def key(self) -> ItemId:
        """What it is known by."""
        return key_of(self.client, self.source, self.id)


class Kept:
    """A publication that is kept.

    Attributes
    ----------
    key
        What it is known by.
    client, session, number
        Whose it is, and which one in its session.
    item, blob
        What was published.
    answered_by
        The root that has taken or settled it.
    settled
        Whether some root has settled it, this one or an earlier one.
    served
        The registrations that are known to have got it.
    repeats, offered_ns, due_ns
        How often it was offered without an answer, when it was offered last, and when it is to
        be looked after.
    offered_to
        The root that it was offered to and that has not taken it, as `Offers` counts it.
    """

    __slots__ = (
        "answered_by",
        "blob",
        "client",
        "due_ns",
        "item",
        "key",
        "number",
        "offered_ns",
        "offered_to",
        "repeats",
        "served",
        "session",
        "settled",
        "state",
    )

    def __init__(
        self, client: str, item: Item, blob: Blob | None, session: str = "", number: int = 0
    ) -> None:
        self.key = key_of(client, item.source, item.id)
        self.client = client
        self.session = session
        self.number = number
        self.item = item
        self.blob = blob
        self.state = PUBLICATION.initial
        self.answered_by: str | None = None
        self.settled = False
        self.served: tuple[tuple[str, str], ...] = ()
        self.repeats = 0
        self.offered_ns = 0
        self.due_ns = 0
        self.offered_to: str | None = None

    @classmethod
    def from_record(cls, record: KeptRecord) -> Kept:
        """Return a publication as it was kept."""
        kept = cls(record.client, record.item, record.blob, record.session, record.number)
        if record.settled_by is not None:
            kept.has_been_settled(record.settled_by, record.served)
        return kept

    def record(self) -> KeptRecord:
        """Return it as it is kept."""
        settled_by = self.answered_by if self.state is PublicationState.SETTLED else None
        return KeptRecord(
            self.client,
            self.item,
            self.blob,
            settled_by,
            self.served,
            self.session,
            self.number,
        )

    @property
    def size_bytes(self) -> int:
        """What it takes to keep it; its content is in the host's store."""
        return len(self.item.event)

    def remembered(self) -> Remembered:
        """Return what is kept of it when its content is not."""
        item = self.item
        return Remembered(self.client, item.source, item.id, self.session, self.number)

    def settled_by(self, root: str) -> bool:
        """Whether a root has settled it, and none has been asked since."""
        return self.state is PublicationState.SETTLED and self.answered_by == root

    def answered(self, root: str, event: PublicationEvent) -> None:
        """Note what a root has said."""
        following = PUBLICATION.step(self.state, event)
        if following is None:
            return
        self.state = following
        self.answered_by = root
        self.settled = self.settled or event is PublicationEvent.SETTLED

    def has_been_settled(self, root: str, served: tuple[tuple[str, str], ...]) -> None:
        """Note that a root has settled it, and for whom."""
        self.answered(root, PublicationEvent.SETTLED)
        self.served = served

    def root_is(self, root: str) -> None:
        """Offer it again if it was another root that has answered."""
        if self.answered_by is not None and self.answered_by != root:
            following = PUBLICATION.step(self.state, PublicationEvent.ROOT_CHANGED)
            if following is not None:
                self.state = following
                self.answered_by = None
                self.repeats = 0


_NO_CONTENT = "application/json"


def checked(message: Publish, bytes_max: int) -> Publication:
    """Return the event that a client publishes.

    Parameters
    ----------
    bytes_max
        How large content may be.

    Raises
    ------
    BadInput
        When it is none, or does not go with the content beside it, or that is too large.
    """
    publication = publication_of(message.event)
    blob = message.blob
    if blob is None:
        return publication
    if not is_digest(blob.digest):
        raise BadInput("digest", f"{quoted(blob.digest)} is not 64 hexadecimal digits")
    if not 0 <= blob.size_bytes <= bytes_max:
        raise BadInput("content", f"has {blob.size_bytes:,} bytes; at most {bytes_max:,}")
    declared = declared_bytes(publication.attributes)
    if declared not in (None, blob.size_bytes):
        raise BadInput(DATA_SIZE, f"is {declared:,}, and the content has {blob.size_bytes:,} bytes")
    if publication.data is not None:
        raise BadInput("data", "is in the event and beside it")
    if publication.media_type not in (None, blob.media_type):
        raise BadInput(
            "datacontenttype", f"is {publication.media_type}, and the content {blob.media_type}"
        )
    return publication


def item_of(
    message: Publish,
    publication: Publication,
    *,
    cell: int,
    series: int,
    number: int,
    home: str,
    now_ns: int,
    client: Address,
) -> Item:
    """Return a publication with its number, as it goes on its way."""
    media_type, size_bytes = _content(publication, message.blob)
    return Item(
        publication.source,
        publication.id,
        cell,
        series,
        number,
        home,
        now_ns,
        message.event,
        media_type,
        size_bytes,
        message.blob is None,
        tenant_of(client),
        publisher_of(client),
    )


def _content(publication: Publication, blob: Blob | None) -> tuple[str, int]:
    if blob is None:
        return publication.media_type or _NO_CONTENT, len(publication.content)
    return blob.media_type, blob.size_bytes


# Offers: what a home has numbered and offered to roots, and they have not taken.
#
# A root that has much to do takes its time before it says `Taken`. What it has not taken counts
# against its clients, so that publishers are no faster than the slowest broker that their content
# goes by, and whoever publishes by way of others does not notice.

# Over about so many times at which a root has said something.
_LATELY = 8


class _Offered:
    """What one root has not taken, and how fast it is.

    Attributes
    ----------
    items, bytes
        How much that is.
    heard_ns
        When it took the last one, or began to have something to take.
    waited_ns, taken
        For how long it was waited for lately, and how many it took meanwhile. What roots say is
        gathered: a hundred come together, then one, then none for a while. The mean of the times
        between two of them would be that of the few that come alone.
    trip
        How long it takes from an offer until it is taken.
    """

    __slots__ = ("bytes", "heard_ns", "items", "taken", "trip", "waited_ns")

    def __init__(self) -> None:
        self.items = 0
        self.bytes = 0
        self.heard_ns = 0
        self.waited_ns = 0
        self.taken = 0.0
        self.trip = RoundTrip()


class Offers:
    """What roots have been offered and have not taken."""

    def __init__(self, settings: PublishingSettings, backoff: Backoff) -> None:
        self._items_max, self._bytes_max = settings.untaken_items, settings.untaken_bytes
        self._backoff = backoff
        self._by_root: dict[str, _Offered] = {}

    def enter(self, kept: Kept, root: str, now_ns: int) -> None:
        """Note that a publication is offered to a root, and to no other any more."""
        if kept.offered_to == root:
            return
        self.leave(kept)
        offered = self._by_root.get(root)
        if offered is None:
            offered = self._by_root[root] = _Offered()
        if not offered.items:
            offered.heard_ns = now_ns
        kept.offered_to = root
        offered.items += 1
        offered.bytes += kept.size_bytes

    def leave(self, kept: Kept) -> None:
        """Note that a publication waits for no root."""
        if kept.offered_to is None:
            return
        offered = self._by_root[kept.offered_to]
        kept.offered_to = None
        offered.items -= 1
        offered.bytes -= kept.size_bytes

    def taken(self, kept: Kept, root: str, now_ns: int) -> None:
        """Note that a root has taken a publication."""
        if kept.offered_to != root:
            # Roots do not agree yet, or it was offered to another since. Whether that one has to
            # be waited for is found out when it is next looked after.
            self.leave(kept)
            return
        offered = self._by_root[root]
        if offered.items > 1:
            if now_ns > offered.heard_ns:
                waited_ns = now_ns - offered.heard_ns
                offered.waited_ns += waited_ns - offered.waited_ns // _LATELY
                offered.taken -= offered.taken / _LATELY
            offered.taken += 1.0
        offered.heard_ns = now_ns
        if kept.repeats == 1:
            offered.trip.measure(now_ns - kept.offered_ns)
        self.leave(kept)

    def forget(self, root: str) -> None:
        """Forget how fast a broker was that is lost for ever."""
        offered = self._by_root.get(root)
        if offered is not None and not offered.items:
            del self._by_root[root]

    def is_full(self, root: str) -> bool:
        """Whether a root has not taken so much that it should be offered no more."""
        offered = self._by_root.get(root)
        return offered is not None and (
            offered.items >= self._items_max or offered.bytes >= self._bytes_max
        )

    def gap_ns(self, root: str, now_ns: int) -> int:
        """Return how long it should be until a root takes one more."""
        offered = self._by_root.get(root)
        if offered is None:
            return 0
        return int((offered.waited_ns + now_ns - offered.heard_ns) / max(offered.taken, 1.0))

    def timeout_ns(self, root: str, repeats: int) -> int:
        """Return how long to wait for a root before it is offered something again."""
        offered = self._by_root.get(root)
        wait_ns = self._backoff.after(repeats)
        return wait_ns if offered is None else max(wait_ns, offered.trip.timeout_ns)


# Of the time in a series, so many bits (a millisecond) give way to what tells counts apart.
_MARK_BITS = 20


class Place(NamedTuple):
    """What numbers count: one session's publications in one cell, whatever their sources.

    Clients that share a source have a count each. With one for all of them, a client that
    moves would take the numbers of the others along.
    """

    client: str
    session: str
    cell: int


def series_of(place: Place, home: str, now_ns: int) -> int:
    """Return the name of a count that begins now.

    Names are ordered as counts begin, and a root tells counts of one client apart by name
    alone. Two gateways that publish the same may well begin in the same instant.
    """
    text = "\n".join((*map(str, place), home))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    mark = int.from_bytes(digest, "big") >> (64 - _MARK_BITS)
    return (now_ns >> _MARK_BITS << _MARK_BITS) | mark


class Count:
    """The numbers of one place, and the publications with a number that are kept.

    Attributes
    ----------
    series
        Its name.
    last
        The number that was given last.
    kept
        What is kept, by number.
    recorded
        Whether there is a record of it. Without one the last number is that of what is kept.
    reviewed_for
        The last root for which everything that is kept has been looked through.
    """

    __slots__ = ("_open", "_root", "kept", "last", "recorded", "reviewed_for", "series")

    def __init__(self, series: int, last: int = 0) -> None:
        self.series = series
        self.last = last
        self.kept: dict[int, Kept] = {}
        self.recorded = False
        self.reviewed_for: str | None = None
        self._root: str | None = None
        # A heap with every number that the root has not settled, and some that it has.
        self._open: list[int] = []

    def enter(self, kept: Kept) -> None:
        """Keep a publication under its number, which the root has not settled yet."""
        self.kept[kept.item.number] = kept
        self.last = max(self.last, kept.item.number)
        heappush(self._open, kept.item.number)

    def reopen(self, kept: Kept) -> None:
        """Note that a publication is offered again."""
        heappush(self._open, kept.item.number)

    def remove(self, kept: Kept) -> None:
        """Keep a publication no longer."""
        del self.kept[kept.item.number]

    def settled_before(self, number: int) -> int:
        """Return how many of the numbers right before one are not kept any more."""
        before = number - 1
        while before > 0 and before not in self.kept:
            before -= 1
        return number - 1 - before

    def first(self, kept: Kept, root: str) -> int:
        """Return the lowest number that the root must have heard of before what follows.

        Every number is pushed when it is entered and whenever it is offered again, and popped
        once for that. Only a new root, which is offered everything anyway, makes the heap anew.
        To look through all that is kept instead would be simpler, and at a few hundred a second
        take most of a broker's time.
        """
        if root != self._root:
            self._root = root
            self._open = sorted(self.kept)
        while True:
            number = self._open[0]
            known = self.kept.get(number)
            if known is not None and not known.settled_by(root):
                assert number <= kept.item.number
                return number
            heappop(self._open)
