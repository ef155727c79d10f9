"""Versions on their way down the trees.

The handling of a version is the queueing model of Zhou, Ooi and Tan: it waits for the
processor, then children are looked at in random order, and looking and sending take time.

Tolerances on their way up the trees, and promises on their way down.

A broker demands of its parent the smallest amounts of its own clients and its children. Its
parent promises to keep to them as soon as it has been promised what it demands itself in
turn, so that a promise means everybody up to the root. Until then a broker does not rely on
amounts smaller than those it was promised before: it forwards more than it would have to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from distributary.broker.addresses import Address
from distributary.broker.client import Updated
from distributary.broker.host import Persist, Send, Spend, Turn
from distributary.broker.streams.messages import (
    Ask,
    Attached,
    Demand,
    Dropped,
    Promised,
    Update,
    Wanted,
)
from distributary.broker.streams.stream import (
    Branch,
    ChildRecord,
    Copy,
    Follower,
    Stream,
    needs,
    rules_between,
)
from distributary.broker.streams.tree import ChildLink, ParentLink
from distributary.broker.subscriptions.subscription import own_id
from distributary.broker.telemetry import CopyChanged

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.streams.tree import Forest, Tree

__all__ = ["Demands", "Flow", "ask"]

_FILTER: Final = Spend("filter")
_SEND: Final = Spend("send")

# Clients do not answer. What they were sent last is sent again this often when there is
# nothing newer: with every pulse at first, then after two, four and so on.
_REPEATS: Final = 8
_REPEATS_APART: Final = 4


class Flow:
    """Passes versions on to children and to the broker's own clients."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._conflate = core.settings.streams.conflate

    def take(self, stream: Stream, copy: Copy, turn: Turn) -> None:
        """Take a version that is newer than the copy here."""
        stream.copy = copy
        if copy.sequence >= stream.wanted:
            stream.wanted = -1
        if stream.followers:
            turn.report(CopyChanged(*stream.name, copy.sequence))
            self.tell_followers(stream, turn)
        if stream.branches:
            if self._conflate:
                self.look(stream, turn)
            else:
                self._core.serve(turn, self._pass_on, stream, copy)

    def look(self, stream: Stream, turn: Turn) -> None:
        """Have the processor see who needs the copy as it will be then."""
        if not stream.waiting:
            stream.waiting = True
            self._core.serve(turn, self._pass_on, stream, None)

    def tell_followers(self, stream: Stream, turn: Turn) -> None:
        """Send the copy to the own clients who need it."""
        copy = stream.copy
        if copy is None:
            return
        needed = False
        for follower in stream.followers:
            last = follower.last
            if last is None or (
                copy.sequence != last.sequence and needs(follower.rules, copy, last)
            ):
                follower.last = copy
                follower.repeats = _REPEATS
                follower.wait = 1
                needed = True
                self._tell(stream, follower, copy, turn)
        stream.count += needed

    def repeat(self, stream: Stream, turn: Turn) -> None:
        """Send again what a client may have missed; to be called with every pulse."""
        for follower in stream.followers:
            if follower.repeats == 0 or follower.last is None:
                continue
            follower.wait -= 1
            if follower.wait == 0:
                follower.repeats -= 1
                follower.wait = 1 << max(0, _REPEATS_APART - follower.repeats)
                self._tell(stream, follower, follower.last, turn)

    def tell_again(self, stream: Stream, client: Address, turn: Turn) -> None:
        """Send a client that was gone what it has not been sent meanwhile."""
        for follower in stream.followers:
            if follower.client == client and follower.last is not None:
                follower.repeats = _REPEATS
                follower.wait = 1
                self._tell(stream, follower, follower.last, turn)

    def want(self, stream: Stream, least: int, turn: Turn) -> None:
        """Get a version at least this new from above, because somebody below has one."""
        if stream.held < least and least > stream.wanted:
            stream.wanted = least
            link = stream.tree.parent
            if link is not None:
                ask(link, [stream], turn)

    def _pass_on(self, turn: Turn, stream: Stream, version: Copy | None) -> None:
        if version is None:
            stream.waiting = False
            version = stream.copy
        branches = stream.branches
        if len(branches) > 1:
            self._core.rng.shuffle(branches)
        spend = turn.effects.append
        for branch in branches:
            if not branch.link.awake:
                continue
            if version is None or version.sequence < branch.least:
                self.want(stream, branch.least, turn)
                continue
            spend(_FILTER)
            last = branch.last
            if last is None or (
                version.sequence > last.sequence and needs(branch.rules, version, last)
            ):
                spend(_SEND)
                _send(branch, version, turn)

    def _tell(self, stream: Stream, follower: Follower, copy: Copy, turn: Turn) -> None:
        turn.send(
            follower.client,
            Updated(own_id(follower.id), *stream.name, copy.sequence, copy.time_ns, copy.values),
        )


def ask(link: ParentLink, streams: list[Stream], turn: Turn) -> None:
    """Tell a parent what is held here, and what is needed; it sends what is missing."""
    if link.answered < link.asks:
        # An earlier question may be lost. This one stands for it too.
        streams = list(link.tree.streams.values())
    link.asks += 1
    for stream in streams:
        link.believed[stream.number] = stream.held
    turn.send(
        link.peer,
        Ask(
            link.number,
            link.asks,
            tuple((s.number, s.held, max(s.held, s.wanted)) for s in streams),
        ),
    )


def _send(branch: Branch, copy: Copy, turn: Turn) -> None:
    link = branch.link
    link.sent += 1
    link.quiet = False
    branch.last = copy
    branch.kept = True
    branch.count += 1
    update = Update(link.number, link.sent, branch.number, copy.sequence, copy.time_ns, copy.values)
    turn.effects.append(Persist(branch.key, update))
    turn.effects.append(Send(link.peer, update))


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
