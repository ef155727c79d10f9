"""Intake: what a home takes from its clients, in which order, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Accepted, Busy, ContentMissing, Publish, Refused, named_in
from distributary.broker.core import Check, Rules
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import SourceOwners, Turn
from distributary.broker.publishing.publications import checked, key_of
from distributary.broker.settings import PublishingSettings, ns
from distributary.broker.timers import Obstacle, Pacing, Timer, Timers
from distributary.content import Publication
from distributary.errors import BadInput, PeerMisbehaved, quoted

if TYPE_CHECKING:
    from distributary.broker.publishing.publishing import Publishing

__all__ = ["CHECKS", "SESSION_CHARACTERS_MAX", "Admission", "Intake", "SessionRecord"]


# Sessions: in which order a home takes what its clients have under way.
#
# A client may publish before it has heard of what it published before. Messages overtake each
# other and get lost, homes crash, clients move: numbers say in which order publications are taken.
# What comes early waits for a while; what comes again is answered again.
#
# How far a session is follows from what is kept of its publications. Only numbers of which nothing
# is kept, those of what was refused or was known already, have a record of their own. Should even
# that be forgotten, the client still says what it has no answer to.


@encodable(650)
@dataclass(frozen=True, slots=True)
class SessionRecord:
    """How far a session of a client is, as it is kept."""

    client: str
    session: str
    last: int


class Session:
    """A session of a client.

    Attributes
    ----------
    last
        The number that was used up last.
    early
        What has come before its turn, by number.
    busy
        The number that must come again before anything above it is taken,
    obstacle
        and why that was not.
    due_ns, counted
        Until when the client was told to wait, and the last number that stands in line then.
    used_ns
        When the client was last heard of.
    recorded
        Whether there is a record of it.
    """

    __slots__ = (
        "busy",
        "client",
        "counted",
        "due_ns",
        "early",
        "last",
        "name",
        "obstacle",
        "recorded",
        "used_ns",
    )

    def __init__(self, client: Address, name: str, last: int) -> None:
        self.client = client
        self.name = name
        self.last = last
        self.early: dict[int, Publish] = {}
        self.busy: int | None = None
        self.obstacle: Obstacle | None = None
        self.due_ns = 0
        self.counted = 0
        self.used_ns = 0
        self.recorded = False


class Sessions:
    """The sessions of all clients of one broker.

    Parameters
    ----------
    settings
        How many sessions there may be, and for how long.

    Attributes
    ----------
    early_bytes
        What all that has come early takes.
    """

    def __init__(self, timers: Timers, settings: PublishingSettings) -> None:
        self.early_bytes = 0
        self._timers = timers
        self._kept_ns = ns(settings.dedupe_s)
        self._most = settings.sessions_max
        # Both in the order in which they were used.
        self._all: dict[tuple[Address, str], Session] = {}
        self._by_client: dict[Address, dict[str, Session]] = {}
        self._timer: Timer | None = None

    # What is kept.

    def noted(self, client: Address, name: str, number: int, *, recorded: bool = False) -> None:
        """Take back that a number was used up."""
        if number:
            session = self._all.get((client, name)) or Session(client, name, number)
            session.last = max(session.last, number)
            session.recorded = session.recorded or recorded
            self._enter(session)

    def start(self, turn: Turn) -> None:
        """Give every client time to come back: while the broker was down none could."""
        for session in list(self._all.values()):
            session.used_ns = turn.now_ns
            self._limit(session.client, turn)
        self._arm()

    def record(self, session: Session, turn: Turn) -> None:
        """Keep how far a session is."""
        session.recorded = True
        told = SessionRecord(session.client, session.name, session.last)
        turn.persist(_key(session), told)

    # What clients do.

    def open(self, client: Address, name: str, first: int, turn: Turn) -> Session:
        """Return a session whose client has been answered everything before a number."""
        session = self._all.get((client, name)) or Session(client, name, first - 1)
        session.used_ns = turn.now_ns
        if first - 1 > session.last:
            # By another home, which is lost, or by this one before it forgot.
            session.last = first - 1
            for number in sorted(n for n in session.early if n < first):
                self._pop(session, number)
        if session.busy is not None and session.busy <= session.last:
            session.busy = None
        self._enter(session)
        self._limit(client, turn)
        self._arm()
        return session

    def hold(self, session: Session, message: Publish) -> None:
        """Keep what has come early until its turn."""
        if message.number not in session.early:
            session.early[message.number] = message
            self.early_bytes += len(message.event)

    def following(self, session: Session) -> Publish | None:
        """Return what is to be taken next, if it is there."""
        return self._pop(session, session.last + 1) if session.last + 1 in session.early else None

    def give_way(self, session: Session, number: int) -> list[Publish]:
        """Take nothing from a number on until it comes again; return what has waited above it."""
        session.busy = number
        return [self._pop(session, n) for n in sorted(session.early) if n > number]

    def _pop(self, session: Session, number: int) -> Publish:
        message = session.early.pop(number)
        self.early_bytes -= len(message.event)
        return message

    # Clients that move.

    def of_client(self, client: Address) -> Iterator[SessionRecord]:
        """Go through the sessions of a client, by name."""
        for name, session in sorted(self._by_client.get(client, {}).items()):
            yield SessionRecord(client, name, session.last)

    def adopt(self, record: SessionRecord, turn: Turn) -> None:
        """Take over a session from another broker."""
        self.record(self.open(record.client, record.session, record.last + 1, turn), turn)

    def drop_client(self, client: Address, turn: Turn) -> None:
        """Forget the sessions of a client that has moved."""
        for session in list(self._by_client.get(client, {}).values()):
            self._drop(session, turn)

    # Forgetting.

    def _enter(self, session: Session) -> None:
        """Put a session behind all that were used before."""
        place = (session.client, session.name)
        self._all.pop(place, None)
        self._all[place] = session
        sessions = self._by_client.setdefault(session.client, {})
        sessions.pop(session.name, None)
        sessions[session.name] = session

    def _limit(self, client: Address, turn: Turn) -> None:
        sessions = self._by_client[client]
        while len(sessions) > self._most:
            self._drop(next(iter(sessions.values())), turn)

    def _arm(self) -> None:
        if self._timer is None and self._all:
            oldest = next(iter(self._all.values()))
            self._timer = self._timers.at(oldest.used_ns + self._kept_ns, self._sweep)

    def _sweep(self, turn: Turn) -> None:
        self._timer = None
        for session in list(self._all.values()):
            if session.used_ns + self._kept_ns > turn.now_ns:
                break
            self._drop(session, turn)
        self._arm()

    def _drop(self, session: Session, turn: Turn) -> None:
        for number in list(session.early):
            self._pop(session, number)
        if session.recorded:
            turn.erase(_key(session))
        del self._all[session.client, session.name]
        sessions = self._by_client[session.client]
        del sessions[session.name]
        if not sessions:
            del self._by_client[session.client]


def _key(session: Session) -> str:
    return f"publishing/session/{journal_key(session.client, session.name)}"


# Admission: what a home takes from its clients, what it refuses, and when it is busy.
#
# All of it is decided here. A refusal is for good: the client did something that it may not do. A
# broker that is busy has done too much for now, and takes the same publication later.

SESSION_CHARACTERS_MAX = 64
_ENDS = ("/", ":")
# The shortest that clients have to wait, as a part of the time when nothing better is known.
_SHORTEST = 50


class Admission:
    """What one broker takes from its clients.

    Attributes
    ----------
    items, bytes
        How many publications are kept, and what they take.
    unknown_ns
        How long clients are to wait when nothing better is known.
    content_bytes_max
        How large content may be.
    """

    def __init__(self, settings: PublishingSettings, content_bytes_max: int) -> None:
        self.content_bytes_max = content_bytes_max
        self.items = 0
        self.bytes = 0
        self.unknown_ns = ns(settings.busy_s)
        self._settings = settings
        self._lines: dict[str, Pacing] = {}
        self._owners: dict[str, str] = {}

    def told(self, owners: Iterable[tuple[str, str]]) -> None:
        """Learn whose sources are whose."""
        self._owners = dict(owners)

    def read(self, message: Publish, client: Address) -> Publication:
        """Return the event that a client publishes.

        Raises
        ------
        BadInput
            When it is none that this client may publish.
        """
        publication = checked(message, self.content_bytes_max)
        self.check_source(publication.source, client)
        return publication

    def check_source(self, source: str, client: Address) -> None:
        """Refuse the source of another tenant by `BadInput`."""
        owner = self._owner(source)
        if owner is not None and owner != tenant_of(client):
            raise BadInput("source", f"{quoted(source)} is another tenant's")

    def _owner(self, source: str) -> str | None:
        """Return whose a source is, by the longest prefix; None when it is everybody's."""
        if self._owners:
            for end in range(len(source), 0, -1):
                if source[end - 1] in _ENDS:
                    owner = self._owners.get(source[:end])
                    if owner is not None:
                        return owner
        return None

    def is_busy(self, *, early_bytes: int, identities: int) -> bool:
        """Whether nothing more can be taken now.

        Parameters
        ----------
        early_bytes
            What publications that wait for others take.
        identities
            How many publications are known.
        """
        settings = self._settings
        return (
            self.items >= settings.items_max
            or self.bytes + early_bytes >= settings.bytes_max
            or identities >= settings.identities_max
        )

    def wait_ns(self, obstacle: Obstacle, session: Session | None, number: int, now_ns: int) -> int:
        """Return how long a client is to wait.

        Each publication stands in line once. A client that comes before its time is told what is
        left of it: whoever does not wait must not make others wait longer.
        """
        line = self._lines.get(obstacle.line)
        if line is None:
            shortest_ns = self.unknown_ns // _SHORTEST
            longest_ns = max(ns(self._settings.busy_s_max), self.unknown_ns)
            line = self._lines[obstacle.line] = Pacing(shortest_ns, longest_ns)
        free_ns, gap_ns = obstacle.free_ns, obstacle.gap_ns
        if session is None:
            return line.wait_ns(now_ns, free_ns=free_ns, gap_ns=gap_ns, joins=False)
        # Who has waited in vain goes first.
        wait_ns = line.bounded_ns(free_ns - now_ns)
        if number > session.counted:
            wait_ns = line.wait_ns(now_ns, free_ns=free_ns, gap_ns=gap_ns)
            session.counted = number
        if now_ns >= session.due_ns:
            session.due_ns = now_ns + wait_ns
        return line.bounded_ns(session.due_ns - now_ns)

    def forget(self, line: str) -> None:
        """Forget a line in which nobody stands any more, as what they waited for is lost."""
        self._lines.pop(line, None)


def _check_publish(message: Publish, rules: Rules) -> None:
    """Refuse a number that no session has."""
    if len(message.session) > SESSION_CHARACTERS_MAX:
        raise PeerMisbehaved(f"a session with a name of {len(message.session):,} characters")
    rules.numbers((message.number, message.first))
    if message.number and not 1 <= message.first <= message.number:
        raise PeerMisbehaved(f"publication {message.number} of a session, begun at {message.first}")


def _check_owners(message: SourceOwners, rules: Rules) -> None:
    """Refuse prefixes that end within a name, and tenants that are none."""
    for prefix, _ in message.owners:
        if not prefix.endswith(_ENDS):
            raise PeerMisbehaved(f"the prefix {quoted(prefix)} of sources ends at neither / nor :")
    rules.tenants(tenant for _, tenant in message.owners)


CHECKS: Mapping[type, Check] = {Publish: _check_publish, SourceOwners: _check_owners}
"""What must hold of messages beyond the types of their fields."""


_Objection = Obstacle | ContentMissing
"""Why a publication is not taken now, and uses up no number."""


class Intake:
    """What comes from the clients of one broker.

    Attributes
    ----------
    sessions
        How far each client is.
    admission
        What is taken at all.
    """

    def __init__(self, publishing: Publishing) -> None:
        core = publishing.core
        settings = core.settings.publishing
        self.sessions = Sessions(core.timers, settings)
        self.admission = Admission(settings, core.settings.content.content_bytes_max)
        self._publishing = publishing
        self._early_max = settings.early_max

    def source_owners(self, message: SourceOwners, sender: Address, turn: Turn) -> None:
        """Learn whose sources are whose."""
        self.admission.told(message.owners)

    def publish(self, message: Publish, sender: Address, turn: Turn) -> None:
        """Take a publication in its turn."""
        number = message.number
        if not number:
            objection = self._take(message, sender, None, turn)
            if objection is not None:
                self._object(message, sender, None, objection, turn)
            return
        session = self.sessions.open(sender, message.session, message.first, turn)
        if number == session.busy:
            session.busy = None
        if number <= session.last:
            self._answer_again(message, sender, turn)
        elif session.busy is not None and number > session.busy:
            self._object(message, sender, session, self._behind(session, turn), turn)
        elif number == session.last + 1:
            self._take_in_turn(message, session, turn)
        elif number > session.last + 1 + self._early_max:
            self._give_way(message, session, self._behind(session, turn), turn)
        elif (obstacle := self._publishing.obstacle(None, turn)) is not None:
            self._give_way(message, session, obstacle, turn)
        else:
            self.sessions.hold(session, message)

    def _behind(self, session: Session, turn: Turn) -> Obstacle:
        """Return what keeps those back whose turn it is not: what keeps back those before them."""
        if session.busy is not None and session.obstacle is not None:
            return session.obstacle
        unknown = Obstacle("", "", turn.now_ns + self.admission.unknown_ns, 0)
        return self._publishing.obstacle(None, turn) or unknown

    def _take_in_turn(self, message: Publish, session: Session, turn: Turn) -> None:
        """Take a publication whose turn it is, and those that have waited for it."""
        following: Publish | None = message
        while following is not None:
            objection = self._take(following, session.client, session, turn)
            if objection is not None:
                self._give_way(following, session, objection, turn)
                return
            following = self.sessions.following(session)

    def _give_way(
        self, message: Publish, session: Session, objection: _Objection, turn: Turn
    ) -> None:
        """Take nothing from a publication on until it comes again."""
        session.obstacle = None if isinstance(objection, ContentMissing) else objection
        later = self.sessions.give_way(session, message.number)
        self._object(message, session.client, session, objection, turn)
        for refused in later:
            self._object(refused, session.client, session, self._behind(session, turn), turn)

    def _missing(
        self, message: Publish, publication: Publication, client: Address
    ) -> ContentMissing | None:
        """Return what a client is told whose content is not here; None when it is.

        Raises
        ------
        BadInput
            When the content that is here has another size.
        """
        blob = message.blob
        if blob is None:
            return None
        size = self._publishing.core.content.size_for(tenant_of(client), blob.digest)
        if size is None:
            number = (message.session, message.number)
            return ContentMissing(*publication.identity, blob.digest, *number)
        if size != blob.size_bytes:
            raise BadInput("content", f"has {size:,} bytes, not {blob.size_bytes:,}")
        return None

    def _object(
        self,
        message: Publish,
        client: Address,
        session: Session | None,
        objection: _Objection,
        turn: Turn,
    ) -> None:
        """Tell a client why a publication is not taken now."""
        if isinstance(objection, ContentMissing):
            turn.send(client, objection)
            return
        # A refusal would use up the client's number: it can have it again when there is room.
        name = ("", "") if message.number else named_in(message.event)
        wait_ns = self.admission.wait_ns(objection, session, message.number, turn.now_ns)
        busy = Busy(wait_ns, *name, message.session, message.number, objection.reason)
        turn.send(client, busy)

    def _answer_again(self, message: Publish, sender: Address, turn: Turn) -> None:
        """Answer what comes again as it was answered before.

        What is not known was refused: what was accepted is known for as long as clients may
        come back. To try it anew would let it come after what was published later.
        """
        try:
            publication = checked(message, self.admission.content_bytes_max)
            if not self._publishing.knows(key_of(sender, *publication.identity)):
                self.admission.check_source(publication.source, sender)
                raise BadInput("number", f"{message.number} of the session was used before")
        except BadInput as error:
            self._refuse(message, sender, error, turn)
        else:
            self._accept(message, sender, publication, turn)

    def _accept(
        self, message: Publish, client: Address, publication: Publication, turn: Turn
    ) -> None:
        turn.send(client, Accepted(*publication.identity, message.session, message.number))

    def _refuse(self, message: Publish, client: Address, error: BadInput, turn: Turn) -> None:
        name = named_in(message.event)
        number = (message.session, message.number)
        turn.send(client, Refused("publication", str(error), *name, *number))

    def _take(
        self, message: Publish, client: Address, session: Session | None, turn: Turn
    ) -> _Objection | None:
        """Accept or refuse a publication, whose number is used up, or return why that must wait."""
        try:
            publication = self.admission.read(message, client)
            known = self._publishing.knows(key_of(client, *publication.identity))
            missing = None if known else self._missing(message, publication, client)
        except BadInput as error:
            self._use_up(session, turn)
            self._refuse(message, client, error, turn)
            return None
        kept = None
        if known:
            self._use_up(session, turn)
        else:
            cell = self._publishing.core.settings.space.cell_of(publication)
            objection = self._publishing.obstacle(cell, turn) or missing
            if objection is not None:
                return objection
            if session is not None:
                session.last = message.number
            kept = self._publishing.store(message, publication, cell, client, turn)
        self._accept(message, client, publication, turn)
        if kept is not None:
            self._publishing.offer(kept, turn)
        return None

    def _use_up(self, session: Session | None, turn: Turn) -> None:
        """Note that the next number is used up by something of which nothing is kept."""
        if session is not None:
            session.last += 1
            self.sessions.record(session, turn)
