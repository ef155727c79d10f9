"""What clients and their home brokers say to each other.

Clients repeat what is not answered. Brokers therefore take a subscription with a known `id`
and a publication with a known number, or (`source`, `id`), as the same one again.

A client may have many publications under way. It numbers them in a session of its own, from 1
without gaps, and its home takes them in that order, whatever becomes of the messages, of the
home, or of the client's place. Every number is used up by `Accepted` or `Refused`. `Busy` uses
up none: the client waits, and goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from distributary.broker.addresses import Blob, Speaker
from distributary.broker.encoding import encodable, since
from distributary.content.documents import parse_document
from distributary.errors import BadInput

__all__ = [
    "Accepted",
    "Acknowledge",
    "Advertise",
    "Advertised",
    "Announce",
    "Announced",
    "AskStatus",
    "Busy",
    "Changed",
    "ContentMissing",
    "Delivery",
    "Ended",
    "ListSubscriptions",
    "Publish",
    "Received",
    "Refused",
    "Status",
    "Subscribe",
    "Subscribed",
    "SubscriptionStatus",
    "SubscriptionsListed",
    "Undeliverable",
    "Unsubscribe",
    "Unsubscribed",
    "Updated",
    "named_in",
]


_NAMED_CHARACTERS_MAX = 1024


def named_in(text: str, name: str = "id") -> tuple[str, str]:
    """Return the `source` and `id` in JSON that may break the rules otherwise; "" for none.

    A refusal names what it refuses, as far as it can be read.
    """
    try:
        document = parse_document(text.encode("utf-8", "surrogatepass"))
    except BadInput:
        return "", ""
    if not isinstance(document, dict):
        return "", ""
    return _text(document.get("source")), _text(document.get(name))


def _text(value: object) -> str:
    # JSON can escape halves of characters, which cannot be sent, and a refusal is no echo.
    fits = isinstance(value, str) and len(value) <= _NAMED_CHARACTERS_MAX and value.isprintable()
    return str(value) if fits else ""


@encodable(200, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Subscribe:
    """Register a subscription, or change it: JSON as `content.Subscription.parse` reads it.

    Attributes
    ----------
    revision
        Numbers what the client has said of a subscription: a change has a higher one. What is
        repeated has the same, and what comes after a later one is not heard.
    epoch
        How often the client has begun anew, because its home was lost or is out of its reach. A
        home that knows the subscription from an earlier epoch forgets what waits there: the
        client has got newer things elsewhere since.
    """

    subscription: str
    revision: int = 0
    epoch: int = since(2, 0)


@encodable(201, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription is registered everywhere it must be; publications from now on count.

    Attributes
    ----------
    revision
        What the client has said last of it, and is in force.
    """

    id: str
    revision: int = 0


@encodable(202, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Refused:
    """Something a client asked for breaks the rules.

    Attributes
    ----------
    what
        Its kind: a publication, a subscription, an announcement, a change or an advertisement.
    source, id
        What it is called, as far as that could be read. Of a stream object `id` is the subject.
    session, number
        Of a publication, as in `Publish`.
    """

    what: str
    reason: str
    source: str = ""
    id: str = ""
    session: str = ""
    number: int = 0


@encodable(204, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End a subscription."""

    id: str


@encodable(205, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """A subscription has ended, or was never there; nothing published from now on counts."""

    id: str


@encodable(360, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Ended:
    """A subscription has ended by itself; said until its client answers with `Unsubscribe`.

    Attributes
    ----------
    reason
        `expired`: when it should. `bytes` or `age`: too much waited for the client, or for too
        long. `missed`: its home was away for so long that others have given up what was for it.
    count, first, last
        How many deliveries were left that the client has not acknowledged, and their numbers.
        Some of them may have been on their way.
    missed
        How many more, at least, have not even come to the home. Of a subscription that is
        covered by another it is how many that one has missed.
    """

    id: str
    reason: str
    count: int
    first: int
    last: int
    missed: int = since(2, 0)


class SubscriptionStatus(NamedTuple):
    """How one subscription of a client stands at its home.

    Attributes
    ----------
    id, revision
        What its client calls it, and the last that its client has said of it.
    state
        `registering`: not all roots have it yet. `registered`, or `covered` by the
        registration of another one.
    confirmed
        Whether it is in force, as `Subscribed` says.
    waiting, waiting_bytes
        How many deliveries its client has not acknowledged, and how many bytes they are.
    acknowledged, last
        The number up to which its client has acknowledged, and the last that was given.
    oldest_s
        For how many seconds the oldest of them has waited; 0 when there is none.
    """

    id: str
    revision: int
    state: str
    confirmed: bool
    waiting: int
    waiting_bytes: int
    acknowledged: int
    last: int
    oldest_s: float


@encodable(363, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class ListSubscriptions:
    """Ask for all subscriptions that one has at this home.

    Attributes
    ----------
    request
        A number of the client's choice, which tells the parts of one answer from another's.
    """

    request: int = 0


@encodable(364, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class SubscriptionsListed:
    """A part of the subscriptions of a client, by id; those that have ended are not among them.

    Attributes
    ----------
    request
        As in `ListSubscriptions`.
    part, parts
        Which part this is, from 1, and how many there are. All parts of an answer are of the
        same moment. Who misses one asks again.
    """

    request: int
    part: int
    parts: int
    subscriptions: tuple[SubscriptionStatus, ...]


@encodable(365, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class AskStatus:
    """Ask how one subscription stands."""

    id: str


@encodable(366, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Status:
    """How a subscription stands; None when the client has none of this id at this home."""

    id: str
    status: SubscriptionStatus | None


@encodable(206, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Publish:
    """Publish an event.

    Attributes
    ----------
    event
        JSON of a CloudEvent. Content that is not JSON is put to the home before.
    blob
        What refers to the content, if there is any that is not JSON.
    session
        A name of the client's choice, such as a random number. A client that has forgotten
        how far it was begins another session; there is no order between sessions.
    number
        Counts the publications of the session from 1. 0 is for a publication by itself, which
        follows none and is followed by none.
    first
        The lowest number that the client has no answer to, when it sends this, also when it
        sends it again. A home that does not know the session begins there.
    """

    event: str
    blob: Blob | None = None
    session: str = ""
    number: int = 0
    first: int = 0


@encodable(207, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Accepted:
    """A publication is stored, and will reach everybody who is registered.

    `session` and `number` are those of `Publish`.
    """

    source: str
    id: str
    session: str = ""
    number: int = 0


@encodable(341, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Busy:
    """A publication cannot be taken now.

    Nothing above its number is taken either until it comes again: those are answered by `Busy`
    too, or have been.

    Attributes
    ----------
    wait_ns
        How long to wait before it is sent again.
    source, id
        What was published, if the home has looked at it.
    session, number
        As in `Publish`.
    reason
        Why, if it is not only that there is much to do.
    """

    wait_ns: int
    source: str = ""
    id: str = ""
    session: str = ""
    number: int = 0
    reason: str = ""


@encodable(375, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ContentMissing:
    """A publication cannot be taken now: its content is not here.

    The client has not put it, or has put it so long ago, or at another home, that it is
    forgotten. It puts it again and publishes again. As with `Busy`, nothing above its number is
    taken until it comes again.

    Attributes
    ----------
    source, id
        What was published.
    digest
        The content that it refers to.
    session, number
        As in `Publish`.
    """

    source: str
    id: str
    digest: str
    session: str = ""
    number: int = 0


@encodable(208, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Advertise:
    """Say what will be published: cells of the content space with events per second."""

    source: str
    rates: tuple[tuple[int, float], ...]


@encodable(209, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Advertised:
    """An advertisement is known at the rendezvous brokers concerned."""

    source: str


@encodable(210, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Delivery:
    """A publication for a subscription.

    Attributes
    ----------
    number
        Counts the deliveries of the subscription from 1.
    event
        JSON of the CloudEvent as delivered.
    blob
        What refers to its content in the format chosen for the device, if there is any beside
        the event. The bytes are in the content store of the home's host.
    """

    subscription: str
    number: int
    event: str
    blob: Blob | None = None


@encodable(211, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Undeliverable:
    """A publication that could not be made in any format that the device takes."""

    subscription: str
    number: int
    source: str
    id: str
    reason: str


@encodable(212, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Everything of a subscription up to a number has arrived."""

    subscription: str
    number: int


@encodable(480, Speaker.CLIENT, since=2)
@dataclass(frozen=True, slots=True)
class Received:
    """Everything of a subscription up to a number has come, and is not acknowledged yet.

    More may be sent in its place. Until it is acknowledged it is kept, and sent again to a client
    that comes back: a gateway has received what somebody behind it may still lose.
    """

    subscription: str
    number: int


@encodable(213, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Announce:
    """Open a stream object; its publisher's home broker becomes the root of its tree.

    `event` is JSON of a CloudEvent without data: what its versions have in common.
    """

    event: str


@encodable(214, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Announced:
    """A stream object is known to those whose subscriptions follow it."""

    source: str
    subject: str


@encodable(215, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Changed:
    """A stream object has a new version.

    Attributes
    ----------
    sequence
        How often it has changed.
    time_ns
        When, in nanoseconds since 1970.
    values
        What stands at each pointer of its data now.
    """

    source: str
    subject: str
    sequence: int
    time_ns: int
    values: tuple[tuple[str, float | str | None], ...]


@encodable(216, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Updated:
    """A version of a stream object for a subscription with a tolerance."""

    subscription: str
    source: str
    subject: str
    sequence: int
    time_ns: int
    values: tuple[tuple[str, float | str | None], ...]
