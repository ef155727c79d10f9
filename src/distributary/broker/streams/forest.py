"""All trees that one broker is in."""

from __future__ import annotations

from distributary.broker.effects import Turn
from distributary.broker.streams.announcements import ChildRecord, TreeRecord
from distributary.broker.streams.messages import Update, Wanted
from distributary.broker.streams.stream import Branch, Copy, ObjectKey, ObjectName, Stream
from distributary.broker.streams.tree import ChildLink, ParentLink, Tree

__all__ = ["Forest", "tree_name"]


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
    identity
        The broker's.
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
