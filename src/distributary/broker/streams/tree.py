"""Trees: one broker's place in one of them.

A broker that wants to be in a tree asks another to be its parent. It has at most one parent
and at most one further broker that it has asked; the new link is up before the old one is
dropped.

- LOOSE: no parent, and nobody was asked.
- SEEKING: no parent yet.
- LINKED: one parent.
- MOVING: one parent, which serves us as before, and another one that was asked. Whoever
  doubts its parent is in this state too: a parent that is silent may yet be heard of.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from distributary.broker.messages.streams import Attach, Wanted
from distributary.broker.streams.links import ChildLink, ParentLink
from distributary.broker.streams.stream import ObjectName, Stream
from distributary.broker.timers import Timer
from distributary.broker.transitions import Transitions

__all__ = ["TRANSITIONS", "Tree", "TreeEvent", "TreeState"]


class TreeState(Enum):
    """How a broker that is not the root stands to a tree."""

    LOOSE = "loose"
    SEEKING = "seeking"
    LINKED = "linked"
    MOVING = "moving"


class TreeEvent(Enum):
    """What changes that."""

    SEEK = "seek"
    ATTACHED = "attached"
    FAILED = "failed"
    DROPPED = "dropped"


TRANSITIONS: Final = Transitions(
    "place in a tree",
    TreeState.LOOSE,
    {
        (TreeState.LOOSE, TreeEvent.SEEK): TreeState.SEEKING,
        (TreeState.SEEKING, TreeEvent.SEEK): TreeState.SEEKING,
        (TreeState.SEEKING, TreeEvent.ATTACHED): TreeState.LINKED,
        (TreeState.SEEKING, TreeEvent.FAILED): TreeState.LOOSE,
        (TreeState.LINKED, TreeEvent.SEEK): TreeState.MOVING,
        (TreeState.LINKED, TreeEvent.DROPPED): TreeState.LOOSE,
        (TreeState.MOVING, TreeEvent.SEEK): TreeState.MOVING,
        (TreeState.MOVING, TreeEvent.ATTACHED): TreeState.LINKED,
        (TreeState.MOVING, TreeEvent.FAILED): TreeState.LINKED,
        (TreeState.MOVING, TreeEvent.DROPPED): TreeState.SEEKING,
    },
)


class Tree:
    """One broker's place in one tree.

    Attributes
    ----------
    root
        The broker at the root; empty until it is known.
    owned
        Whether that is this broker.
    planted
        Whether a plan put this broker here; it stays even when nobody needs it.
    expected
        Children that a plan put here; there is room for them.
    streams
        The objects that somebody here or below wants.
    children
        Links to children, by child.
    parent, attempt
        The link to the parent, and to a broker that was asked to be one.
    doubted
        Whether the parent is to be left as soon as there is another.
    path
        The brokers from the root to the parent, both included.
    demand
        Counts the changes of what is wanted here and below.
    postponed
        Brokers that asked us to be their parent while we were below them and moving.
    timer
        When to try again to find a parent.
    """

    def __init__(self, name: str, root: str, *, owned: bool) -> None:
        self.name = name
        self.root = root
        self.owned = owned
        self.planted = False
        self.expected: frozenset[str] = frozenset()
        self.streams: dict[ObjectName, Stream] = {}
        self.numbered: dict[int, Stream] = {}
        self.children: dict[str, ChildLink] = {}
        self.state = TRANSITIONS.initial
        self.parent: ParentLink | None = None
        self.attempt: ParentLink | None = None
        self.doubted = False
        self.path: tuple[str, ...] = ()
        self.demand = 0
        self.postponed: dict[str, Attach] = {}
        self.timer: Timer | None = None
        self.recorded_parent: str | None = None
        self._count = 0

    @property
    def key(self) -> str:
        """Under which the place is kept."""
        return f"streams/tree/{self.name}"

    def step(self, event: TreeEvent) -> None:
        """Change the state; the caller has set the links."""
        following = TRANSITIONS.step(self.state, event)
        assert following is not None, f"{event} while {self.state}"
        self.state = following

    def add(self, name: ObjectName) -> Stream:
        """Add an object to the tree."""
        stream = Stream(name, self, self._count)
        self._count += 1
        self.streams[name] = self.numbered[stream.number] = stream
        if not self.owned:
            stream.kept = ()
        return stream

    def remove(self, stream: Stream) -> None:
        """Forget an object."""
        del self.streams[stream.name]
        del self.numbered[stream.number]

    def links_up(self) -> list[ParentLink]:
        """Return the links to parents, present and perhaps to come."""
        return [link for link in (self.parent, self.attempt) if link is not None]

    def settled(self) -> int:
        """Return the last of our demands that is kept to by everybody up to the root."""
        if self.owned:
            return self.demand
        return -1 if self.parent is None or self.parent.confirmed == 0 else self.parent.confirmed

    def wanted(self) -> tuple[Wanted, ...]:
        """Return what to demand of a parent."""
        return tuple(
            Wanted(*stream.name, stream.number, stream.asked, stream.held)
            for stream in self.streams.values()
            if stream.asked
        )
