"""What brokers say to each other to know who is there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from distributary.broker.addresses import Speaker
from distributary.broker.encoding import OLDEST, since, wire
from distributary.broker.settings import Digests

__all__ = ["Gossip", "Join", "Members", "News", "Ping", "PingFor", "Pong", "Reached", "Status"]


NO_DIGESTS = Digests(0, 0)


class Status(Enum):
    """What a broker thinks of another one."""

    UNKNOWN = 0
    ALIVE = 1
    SUSPECT = 2
    DOWN = 3
    LOST = 4
    LEFT = 5


@dataclass(frozen=True, slots=True)
class News:
    """What is told about a broker.

    Attributes
    ----------
    incarnation
        Only the broker itself raises it; what is said of a smaller one is out of date.
    version
        Which it speaks, at least: others may not have heard of a newer one.
    """

    identity: str
    incarnation: int
    status: Status
    version: int = since(2, OLDEST)


@wire(10, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Ping:
    """A broker asks whether another one is there.

    Attributes
    ----------
    number
        Tells its answer from other answers.
    incarnation
        The sender's.
    digest
        Of all that the sender takes for alive, so that two who disagree notice.
    news
        What may be new to the other.
    settings
        Digests of the sender's settings, so that two who do not have the same notice.
    version
        Which the sender speaks.
    """

    number: int
    incarnation: int
    digest: int
    news: tuple[News, ...] = ()
    settings: Digests = NO_DIGESTS
    version: int = since(2, OLDEST)


@wire(11, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Pong:
    """A broker is there."""

    number: int
    incarnation: int
    digest: int
    news: tuple[News, ...] = ()
    settings: Digests = NO_DIGESTS
    version: int = since(2, OLDEST)


@wire(12, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class PingFor:
    """A broker asks others whether they reach one that does not answer it."""

    number: int
    target: str


@wire(13, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Reached:
    """A broker that was asked has got an answer from the one in question."""

    number: int


@wire(14, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Join:
    """A broker is new, or was away, and asks who is there."""

    incarnation: int
    version: int = since(2, OLDEST)


@wire(15, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Members:
    """All that a broker knows about all others, and itself.

    Attributes
    ----------
    answer
        Whether the receiver is to answer with what the sender does not know.
    after, upto
        Where there are too many for one message each has those with identifiers above the
        one and up to the other; empty where there is no such limit.
    """

    members: tuple[News, ...]
    answer: bool = False
    after: str = since(2, "")
    upto: str = since(2, "")

    def covers(self, identity: str) -> bool:
        """Whether it would have told of a broker."""
        return self.after < identity and (not self.upto or identity <= self.upto)


@wire(16, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Gossip:
    """What a broker has just learnt, passed on."""

    news: tuple[News, ...]
