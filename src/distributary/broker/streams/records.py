"""What a broker keeps about streams: its links, and the versions of its own clients' objects.

The last update sent on each branch is kept as the message itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.encoding import wire
from distributary.broker.messages.streams import Values, Wanted

__all__ = ["ChildRecord", "LinkCount", "ObjectRecord", "TreeRecord"]


@wire(610)
@dataclass(frozen=True, slots=True)
class TreeRecord:
    """A place in a tree.

    Attributes
    ----------
    events
        What the versions of each object have in common that is followed here.
    """

    tree: str
    root: str
    parent: str | None
    planted: bool
    events: tuple[str, ...]


@wire(611)
@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A link to a child, with what it demanded."""

    tree: str
    child: str
    link: int
    demand: int
    wanted: tuple[Wanted, ...]


@wire(612)
@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """An object of a client of this broker, with its last version.

    Attributes
    ----------
    client
        Who announced it; empty when a plan did.
    since_ns
        When it was announced here.
    sequence
        -1 as long as there is no version.
    """

    event: str
    client: str
    tree: str
    since_ns: int
    sequence: int
    time_ns: int
    values: Values


@wire(613)
@dataclass(frozen=True, slots=True)
class LinkCount:
    """How many links to parents this broker has asked for."""

    count: int
