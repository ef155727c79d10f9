"""Sessions: in which order a home takes what its clients have under way.

A client may publish before it has heard of what it published before. Messages overtake each
other and get lost, homes crash, clients move: numbers say in which order publications are taken.
What comes early waits for a while; what comes again is answered again.

How far a session is follows from what is kept of its publications. Only numbers of which nothing
is kept, those of what was refused or was known already, have a record of their own. Should even
that be forgotten, the client still says what it has no answer to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from distributary.broker.addresses import Address
from distributary.broker.client import Publish
from distributary.broker.encoding import journal_key, wire
from distributary.broker.host import Turn
from distributary.broker.settings import PublishingSettings, ns
from distributary.broker.timers import Obstacle, Timer, Timers

__all__ = ["Session", "SessionRecord", "Sessions"]


@wire(650)
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
