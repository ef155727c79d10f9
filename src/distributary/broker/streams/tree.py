"""Trees: one broker's place in one of them.

A broker that wants to be in a tree asks another to be its parent. It has at most one parent
and at most one further broker that it has asked; the new link is up before the old one is
dropped.

- LOOSE: no parent, and nobody was asked.
- SEEKING: no parent yet.
- LINKED: one parent.
- MOVING: one parent, which serves us as before, and another one that was asked. Whoever
  doubts its parent is in this state too: a parent that is silent may yet be heard of.

Links of a tree, as the child and as the parent see them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from distributary.broker.core import Transitions
from distributary.broker.encoding import journal_key
from distributary.broker.host import Turn
from distributary.broker.streams.messages import Amounts, Attach, Update, Wanted
from distributary.broker.streams.stream import (
    NOTHING,
    Branch,
    ChildRecord,
    Copy,
    ObjectKey,
    ObjectName,
    Stream,
    TreeRecord,
    kept_throughout,
)
from distributary.broker.timers import Timer

__all__ = [
    "TRANSITIONS",
    "ChildLink",
    "Forest",
    "ParentLink",
    "Tree",
    "TreeEvent",
    "TreeState",
    "tree_name",
]


class ParentLink:
    """A link to a parent, or to a broker that was asked to be one.

    Attributes
    ----------
    number
        What tells it from other links of this broker, earlier ones among them.
    insist
        Whether the parent was asked to take us in any case.
    hops
        How many brokers have passed us on.
    confirmed
        The last demand that is kept to; 0 for none.
    demands
        Amounts by object, by the number of the demand: the confirmed one and later ones.
    received
        The highest number of an update that has arrived.
    believed
        By object: the change number that the parent takes us to hold.
    asks, answered
        How many questions were asked, and the last one that the parent has heard.
    heard_ns
        When the parent was last heard of.
    """

    __slots__ = (
        "answered",
        "asks",
        "believed",
        "confirmed",
        "demands",
        "heard_ns",
        "hops",
        "insist",
        "number",
        "peer",
        "received",
        "tree",
    )

    def __init__(self, tree: Tree, peer: str, number: int, *, insist: bool, hops: int) -> None:
        self.tree = tree
        self.peer = peer
        self.number = number
        self.insist = insist
        self.hops = hops
        self.confirmed = 0
        self.demands: dict[int, dict[int, Amounts]] = {}
        self.received = 0
        self.believed: dict[int, int] = {}
        self.asks = 0
        self.answered = 0
        self.heard_ns = 0

    def confirm(self, demand: int) -> bool:
        """Learn that a demand is kept to; whether that is news."""
        if demand <= self.confirmed or demand not in self.demands:
            return False
        self.confirmed = demand
        for number in [number for number in self.demands if number < demand]:
            del self.demands[number]
        return True

    def kept(self, stream: Stream) -> Amounts:
        """Return what the parent keeps to for an object, whichever demand it has seen.

        A demand for less than before is not kept to before it is confirmed; one for more may
        be in force already.
        """
        if self.confirmed == 0:
            return NOTHING
        return kept_throughout(
            [amounts.get(stream.number, NOTHING) for amounts in self.demands.values()]
        )


class ChildLink:
    """A link to a child.

    Attributes
    ----------
    branches
        The objects that the child wants, by what it calls them.
    demanded, promised
        The last demand of the child, and the last that it was told is kept to.
    needed
        The demand of this broker that must be kept to before the child's is.
    accepted
        Whether the child knows that it is one.
    awake
        Whether the child is there, as far as is known.
    sent
        How many updates were sent.
    asked
        The child's last question.
    quiet
        Whether nothing was sent since the last look.
    spared
        For how many looks the child had no pulse because there were updates.
    passed_on
        How many brokers that wanted to attach here were sent to it.
    """

    __slots__ = (
        "accepted",
        "asked",
        "awake",
        "branches",
        "demanded",
        "needed",
        "number",
        "passed_on",
        "peer",
        "promised",
        "quiet",
        "sent",
        "spared",
        "tree",
    )

    def __init__(self, tree: Tree, peer: str, number: int) -> None:
        self.tree = tree
        self.peer = peer
        self.number = number
        self.branches: dict[int, Branch] = {}
        self.demanded = 0
        self.promised = 0
        self.needed = 0
        self.accepted = False
        self.awake = True
        self.sent = 0
        self.asked = 0
        self.quiet = True
        self.spared = 0
        self.passed_on = 0

    @property
    def key(self) -> str:
        """Under which the link is kept."""
        return f"streams/child/{self.peer}/{self.number}"


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
    def tenant(self) -> str:
        """Whose objects these are; none of any other tenant is in the same tree."""
        return self.name[1:].partition(" ")[0] if self.name.startswith(" ") else ""

    @property
    def key(self) -> str:
        """Under which the place is kept."""
        return f"streams/tree/{journal_key(self.name)}"

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


def tree_name(key: ObjectKey, *, root: str, approach: str) -> str:
    """Return what the tree of an object is called.

    A source has no spaces, so that no two objects share a name by chance. The name says whose
    tree it is, so that whoever is asked to be a parent knows; see `Tree.tenant`.
    """
    tenant, (source, subject) = key
    name = root if approach == "one-tree" else f"{source} {subject}"
    return f" {tenant} {name}" if tenant else name


class Forest:
    """The trees, objects and links of one broker.

    Attributes
    ----------
    trees
        By name.
    streams
        Objects by tenant and name; each is in one tree.
    up
        Links to parents, by number.
    down
        Links to children, by child and what it calls the link.
    link_count
        How many links to parents there have been.
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.trees: dict[str, Tree] = {}
        self.streams: dict[ObjectKey, Stream] = {}
        self.up: dict[int, ParentLink] = {}
        self.down: dict[tuple[str, int], ChildLink] = {}
        self.link_count = 0

    def tree(self, name: str, root: str) -> Tree:
        """Return a tree, which may be new."""
        tree = self.trees.get(name)
        if tree is None:
            tree = self.trees[name] = Tree(name, root, owned=root == self.identity)
        return tree

    def stream(self, tree: Tree, name: ObjectName) -> Stream:
        """Return an object of a tree, which may be new."""
        key = (tree.tenant, name)
        stream = self.streams.get(key)
        if stream is None or stream.tree is not tree:
            stream = self.streams[key] = tree.add(name)
        return stream

    def remove(self, stream: Stream) -> None:
        """Forget an object."""
        stream.tree.remove(stream)
        if self.streams.get(stream.key) is stream:
            del self.streams[stream.key]

    def add_child(self, tree: Tree, peer: str, number: int) -> ChildLink:
        """Add a link to a child, in place of an earlier one to the same child."""
        link = ChildLink(tree, peer, number)
        tree.children[peer] = self.down[peer, number] = link
        return link

    def remove_child(self, link: ChildLink, turn: Turn) -> list[Stream]:
        """Forget a link to a child; return the objects that it had."""
        del self.down[link.peer, link.number]
        del link.tree.children[link.peer]
        turn.erase(link.key)
        return [self.remove_branch(branch, turn) for branch in link.branches.values()]

    def add_branch(self, link: ChildLink, wanted: Wanted, now_ns: int) -> Branch:
        """Add an object to a link to a child."""
        stream = self.stream(link.tree, (wanted.source, wanted.subject))
        branch = link.branches[wanted.number] = Branch(link, stream, wanted.number, now_ns)
        branch.amounts = wanted.amounts
        stream.branches.append(branch)
        return branch

    def remove_branch(self, branch: Branch, turn: Turn) -> Stream:
        """Take an object from a link that the caller takes it from; return the object."""
        branch.stream.branches.remove(branch)
        if branch.kept:
            turn.erase(branch.key)
        return branch.stream

    def keep_tree(self, tree: Tree, turn: Turn) -> None:
        """Keep the place in a tree."""
        parent = tree.recorded_parent if tree.parent is None else tree.parent.peer
        events = tuple(s.event for s in tree.streams.values() if s.event is not None)
        turn.persist(tree.key, TreeRecord(tree.name, tree.root, parent, tree.planted, events))

    def restore_child(self, record: ChildRecord) -> None:
        """Take back a link to a child."""
        tree = self.tree(record.tree, "")
        known = tree.children.get(record.child)
        if known is not None and known.number > record.link:
            return
        link = self.add_child(tree, record.child, record.link)
        link.demanded = record.demand
        link.accepted = True
        for wanted in record.wanted:
            self.add_branch(link, wanted, 0)

    def restore_sent(self, child: str, update: Update) -> None:
        """Take back what a child was sent last."""
        link = self.down.get((child, update.link))
        branch = None if link is None else link.branches.get(update.object)
        if link is not None and branch is not None:
            branch.last = Copy(update.sequence, update.time_ns, update.values)
            branch.kept = True
            link.sent = max(link.sent, update.number)

    def restore_tree(self, record: TreeRecord) -> Tree:
        """Take back a place in a tree."""
        tree = self.tree(record.tree, record.root)
        tree.root = record.root
        tree.owned = record.root == self.identity
        tree.planted = record.planted
        tree.recorded_parent = record.parent
        if tree.owned:
            for stream in tree.streams.values():
                stream.kept = None
        return tree
