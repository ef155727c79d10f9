"""Tolerances on their way up the trees, and promises on their way down.

A broker demands of its parent the smallest amounts of its own clients and its children. Its
parent promises to keep to them as soon as it has been promised what it demands itself in
turn, so that a promise means everybody up to the root. Until then a broker does not rely on
amounts smaller than those it was promised before: it forwards more than it would have to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.messages.streams import Attached, Demand, Dropped, Promised, Wanted
from distributary.broker.streams.amounts import rules_between
from distributary.broker.streams.links import ChildLink, ParentLink
from distributary.broker.streams.records import ChildRecord
from distributary.broker.streams.stream import Stream
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.streams.flow import Flow
    from distributary.broker.streams.forest import Forest
    from distributary.broker.streams.tree import Tree

__all__ = ["Demands"]


class Demands:
    """Keeps what is demanded, promised and relied upon.

    Parameters
    ----------
    leave
        What to do when nobody needs a tree here any more: `leave(tree, turn)`.
    """

    def __init__(self, forest: Forest, flow: Flow, leave: Callable[[Tree, Turn], None]) -> None:
        self._forest = forest
        self._flow = flow
        self._leave = leave

    def reconsider(self, tree: Tree, streams: Iterable[Stream], turn: Turn) -> None:
        """Find out what these objects are needed for, after something has changed."""
        changed = False
        present: list[Stream] = []
        for stream in dict.fromkeys(streams):
            if stream.tree is not tree or stream.name not in tree.streams:
                continue
            asked = stream.effective()
            if asked != stream.asked:
                stream.asked = asked
                changed = True
            if asked or (stream.event is not None and (tree.owned or tree.planted)):
                present.append(stream)
            else:
                self._forest.remove(stream)
        if not (tree.streams or tree.children or tree.owned or tree.planted):
            self._leave(tree, turn)
            return
        if changed and not tree.owned:
            tree.demand += 1
            for link in tree.links_up():
                self.note(link)
                self.send(link, turn)
        for stream in present:
            self.rely(stream)
            self._flow.tell_followers(stream, turn)
            if stream.branches:
                self._flow.look(stream, turn)

    def rely(self, stream: Stream) -> None:
        """Bring the rules of everybody who gets an object up to date."""
        tree = stream.tree
        if tree.owned:
            stream.kept = None
        else:
            stream.kept = () if tree.parent is None else tree.parent.kept(stream)
        for follower in stream.followers:
            follower.rules = rules_between(stream.kept, follower.amounts)
        for branch in stream.branches:
            branch.rules = rules_between(stream.kept, branch.amounts)

    def note(self, link: ParentLink) -> None:
        """Remember what is demanded now on a link."""
        tree = link.tree
        link.demands[tree.demand] = {s.number: s.asked for s in tree.streams.values()}

    def send(self, link: ParentLink, turn: Turn) -> None:
        """Demand of a parent what is needed now."""
        tree = link.tree
        turn.send(link.peer, Demand(link.number, tree.demand, tree.wanted()))

    def apply(self, link: ChildLink, demand: int, wanted: tuple[Wanted, ...], turn: Turn) -> None:
        """Take what a child wants, in place of what it wanted before."""
        touched: list[Stream] = []
        missing = set(link.branches)
        for entry in wanted:
            missing.discard(entry.number)
            branch = link.branches.get(entry.number)
            if branch is None:
                branch = self._forest.add_branch(link, entry, turn.now_ns)
                branch.holds(entry.held, entry.held)
            elif branch.amounts == entry.amounts:
                continue
            branch.amounts = entry.amounts
            touched.append(branch.stream)
        touched += [
            self._forest.remove_branch(link.branches.pop(number), turn)
            for number in sorted(missing)
        ]
        link.demanded = demand
        record = ChildRecord(link.tree.name, link.peer, link.number, demand, wanted)
        turn.persist(link.key, record)
        self.reconsider(link.tree, touched, turn)
        link.needed = link.tree.demand
        self.promise(link.tree, turn)

    def promise(self, tree: Tree, turn: Turn) -> None:
        """Tell children what is kept to by everybody from here to the root."""
        settled = tree.settled()
        for link in tree.children.values():
            if link.promised < link.demanded and link.needed <= settled:
                link.promised = link.demanded
                self._tell(link, turn)

    def take_demand(self, message: Demand, sender: Address, turn: Turn) -> None:
        """Handle what a child wants."""
        link = self._forest.down.get((sender, message.link))
        if link is None:
            turn.send(sender, Dropped(message.link))
        elif message.demand > link.demanded:
            self.apply(link, message.demand, message.wanted, turn)
        elif message.demand == link.promised:
            self._tell(link, turn)

    def take_promise(self, message: Promised, link: ParentLink, turn: Turn) -> None:
        """Handle what a parent keeps to."""
        if link.confirm(message.demand) and link is link.tree.parent:
            for stream in link.tree.streams.values():
                self.rely(stream)
            self.promise(link.tree, turn)

    def _tell(self, link: ChildLink, turn: Turn) -> None:
        if link.accepted:
            turn.send(link.peer, Promised(link.number, link.promised))
        else:
            link.accepted = True
            path = (*link.tree.path, self._forest.identity)
            turn.send(link.peer, Attached(link.number, link.promised, path))
