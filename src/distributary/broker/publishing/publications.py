"""Publications that their home keeps: until everybody has got them, and for a while after.

Intake: what is checked when a client publishes, and what becomes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from distributary.broker.addresses import Address, Blob, is_digest, publisher_of, tenant_of
from distributary.broker.client import Publish
from distributary.broker.core import Transitions
from distributary.broker.dissemination.messages import Item, ItemId
from distributary.broker.encoding import wire
from distributary.broker.planning import publication_of
from distributary.content import Publication
from distributary.content.attributes import DATA_SIZE, declared_bytes
from distributary.errors import BadInput, quoted

__all__ = [
    "PUBLICATION",
    "CountRecord",
    "Event",
    "Kept",
    "KeptRecord",
    "Remembered",
    "SettlementRecord",
    "State",
    "checked",
    "item_of",
    "key_of",
]


def key_of(client: Address, source: str, identifier: str) -> ItemId:
    """Return what a client's publication is known by.

    By `source` and `id` alone, one tenant could publish under another's source first, and what
    the other then publishes would be taken for known.
    """
    return ItemId(tenant_of(client), source, identifier)


class State(Enum):
    """How far a publication is."""

    OFFERED = "offered"
    TAKEN = "taken"
    SETTLED = "settled"


class Event(Enum):
    """What can happen to a publication at its home."""

    TAKEN = "taken"
    SETTLED = "settled"
    ROOT_CHANGED = "root changed"


# A publication is offered to the root of its cell, again and again, until the root has taken
# it. Then it is kept in case that the root is lost, until all who are to get it have got it.
# Should the cell have another root by then, it is offered to that one too, which may know of
# subscribers that the first did not.
PUBLICATION: Transitions[State, Event] = Transitions(
    "publication at its home",
    State.OFFERED,
    {
        (State.OFFERED, Event.TAKEN): State.TAKEN,
        (State.OFFERED, Event.SETTLED): State.SETTLED,
        (State.TAKEN, Event.SETTLED): State.SETTLED,
        (State.TAKEN, Event.ROOT_CHANGED): State.OFFERED,
        (State.SETTLED, Event.SETTLED): State.SETTLED,
        (State.SETTLED, Event.ROOT_CHANGED): State.OFFERED,
    },
)


@wire(600)
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


@wire(601)
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


@wire(604)
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


@wire(651)
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
        The root that it was offered to and that has not taken it, as `offers.Offers` counts it.
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
        settled_by = self.answered_by if self.state is State.SETTLED else None
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
        return self.state is State.SETTLED and self.answered_by == root

    def answered(self, root: str, event: Event) -> None:
        """Note what a root has said."""
        following = PUBLICATION.step(self.state, event)
        if following is None:
            return
        self.state = following
        self.answered_by = root
        self.settled = self.settled or event is Event.SETTLED

    def has_been_settled(self, root: str, served: tuple[tuple[str, str], ...]) -> None:
        """Note that a root has settled it, and for whom."""
        self.answered(root, Event.SETTLED)
        self.served = served

    def root_is(self, root: str) -> None:
        """Offer it again if it was another root that has answered."""
        if self.answered_by is not None and self.answered_by != root:
            following = PUBLICATION.step(self.state, Event.ROOT_CHANGED)
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
