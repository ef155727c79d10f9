"""What brokers say to each other to carry streams of values.

A link of a tree leads from a parent to a child. The child numbers its links, and all that
is said on one names that number: whatever arrives late from an earlier link is recognised.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from distributary.broker.addresses import Speaker
from distributary.broker.core import Check, Rules
from distributary.broker.encoding import encodable
from distributary.broker.planning import publication_of
from distributary.content.divergence import DIVERGENCES
from distributary.content.publication import Publication
from distributary.errors import BadInput, PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
    "Amounts",
    "Ask",
    "Attach",
    "AttachRefused",
    "Attached",
    "Demand",
    "Detach",
    "Dropped",
    "FollowObject",
    "Following",
    "ObjectAnnounced",
    "ObjectKnown",
    "Promised",
    "Pulse",
    "PulseAnswer",
    "Update",
    "Values",
    "Wanted",
    "read_object",
]

Values: TypeAlias = tuple[tuple[str, float | str | None], ...]
"""What stands at each pointer of an object's data."""

Amounts: TypeAlias = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
"""The smallest amount of each divergence, for each pointer that anybody asks about, sorted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a child wants of one object.

    Attributes
    ----------
    number
        What the child calls the object on this link.
    amounts
        Its effective tolerance.
    held
        The change number of its copy; -1 when it has none.
    """

    source: str
    subject: str
    number: int
    amounts: Amounts
    held: int


@encodable(110, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Attach:
    """A broker asks another to be its parent in a tree.

    Attributes
    ----------
    link
        What the child calls the link.
    demand
        The number of the demand in `wanted`.
    insist
        Whether to be taken even where there is hardly room.
    """

    link: int
    tree: str
    root: str
    demand: int
    wanted: tuple[Wanted, ...]
    insist: bool


@encodable(111, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Attached:
    """A broker is a parent now, and keeps to what the child demanded.

    Attributes
    ----------
    path
        The brokers from the root to the parent, both included.
    """

    link: int
    demand: int
    path: tuple[str, ...]


@encodable(112, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class AttachRefused:
    """A broker cannot be a parent; `to` may have room."""

    link: int
    to: str | None


@encodable(113, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Detach:
    """A child does not need a link any more, or does not know of it."""

    link: int


@encodable(114, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Dropped:
    """A parent does not know of a link."""

    link: int


@encodable(115, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Demand:
    """All that a child wants, in place of what it wanted before."""

    link: int
    demand: int
    wanted: tuple[Wanted, ...]


@encodable(116, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Promised:
    """From here to the root everybody keeps to what the child demanded."""

    link: int
    demand: int


@encodable(117, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Update:
    """A version of an object for a child. Also kept: the last one sent.

    Attributes
    ----------
    number
        Counts the updates on the link from 1.
    object
        What the child calls the object.
    """

    link: int
    number: int
    object: int
    sequence: int
    time_ns: int
    values: Values


@encodable(118, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Ask:
    """A child has missed something, or holds something else than its parent may believe.

    Attributes
    ----------
    count
        Counts such questions on the link from 1.
    held
        For each object: (what the child calls it, the change number of its copy, the least
        change number that it needs).
    """

    link: int
    count: int
    held: tuple[tuple[int, int, int], ...]


@encodable(119, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Pulse:
    """A parent is there.

    Attributes
    ----------
    number
        The number of the last update.
    asked
        The count of the last `Ask` that arrived.
    path
        The brokers from the root to the parent, both included.
    sent_ns
        When, by the parent's clock; it comes back in the answer.
    """

    link: int
    number: int
    asked: int
    path: tuple[str, ...]
    sent_ns: int


@encodable(120, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class PulseAnswer:
    """A child has heard a pulse."""

    link: int
    sent_ns: int


@encodable(122, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ObjectAnnounced:
    """The home of a publisher tells the root of an object's cell that there is the object.

    Attributes
    ----------
    since_ns
        Since when, by the home's clock: of two homes the later one is right.
    """

    event: str
    home: str
    since_ns: int
    tenant: str = ""


@encodable(123, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class FollowObject:
    """Subscriptions of a home follow an object, whose tree has its root at `root`.

    Attributes
    ----------
    since_ns
        Since when, by the root's clock.
    """

    event: str
    root: str
    since_ns: int
    tenant: str = ""


@encodable(124, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Following:
    """A home knows of an object."""

    source: str
    subject: str
    tenant: str = ""


@encodable(125, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class ObjectKnown:
    """All homes whose subscriptions follow an object know of it."""

    source: str
    subject: str
    tenant: str = ""


def _check_announced(message: ObjectAnnounced, rules: Rules) -> None:
    """Refuse what is no object."""
    read_object(message.event)
    rules.brokers((message.home,))
    rules.tenants((message.tenant,))


def _check_follow(message: FollowObject, rules: Rules) -> None:
    """Refuse what is no object."""
    read_object(message.event)
    rules.brokers((message.root,))
    rules.tenants((message.tenant,))


def _check_attach(message: Attach, rules: Rules) -> None:
    """Refuse a tree of nobody."""
    rules.brokers((message.root,))
    _check_wanted(message.wanted, rules)


def _check_demand(message: Demand, rules: Rules) -> None:
    """Refuse a demand that nobody can meet."""
    _check_wanted(message.wanted, rules)


def _check_path(message: Attached | Pulse, rules: Rules) -> None:
    """Refuse a way over nobody."""
    rules.brokers(message.path)


def _check_refused(message: AttachRefused, rules: Rules) -> None:
    """Refuse to be sent to nobody."""
    if message.to is not None:
        rules.brokers((message.to,))


def _check_wanted(wanted: Iterable[Wanted], rules: Rules) -> None:
    for one in wanted:
        for _, kinds in one.amounts:
            for kind, amount in kinds:
                if kind not in DIVERGENCES:
                    raise PeerMisbehaved(f"a divergence {quoted(kind)}, which there is not")
                # Clients choose it, in the unit of whatever they follow.
                rules.amounts((amount,), sys.float_info.max)


def read_object(event: str) -> Publication:
    """Return an object from the event that announces it.

    Raises
    ------
    BadInput
        When it is no event, or has no subject.
    """
    publication = publication_of(event)
    if "subject" not in publication.attributes:
        raise BadInput("subject", "is missing", hint="an object is a source and a subject")
    return publication


CHECKS: Mapping[type, Check] = {
    Attach: _check_attach,
    Attached: _check_path,
    AttachRefused: _check_refused,
    Demand: _check_demand,
    Pulse: _check_path,
    ObjectAnnounced: _check_announced,
    FollowObject: _check_follow,
}
"""What must hold of messages beyond the types of their fields."""
