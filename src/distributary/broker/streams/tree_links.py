"""Links of trees: how a broker finds a parent, whom it takes as a child, and how they talk."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from distributary.broker.addresses import Address
from distributary.broker.core import Core
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.broker.streams.messages import (
    Ask,
    Attach,
    Attached,
    AttachRefused,
    Detach,
    Dropped,
    Promised,
    Pulse,
    PulseAnswer,
    Update,
)
from distributary.broker.streams.stream import Copy, LinkCount, Stream, ask
from distributary.broker.streams.tree import ChildLink, ParentLink, Tree, TreeEvent
from distributary.broker.telemetry import TreeLinked

if TYPE_CHECKING:
    from distributary.broker.streams.stream import Demands, Flow
    from distributary.broker.streams.tree import Forest

__all__ = ["Downlinks", "Uplinks"]

# Parents: how a broker finds one, leaves it for another, and hears from it.
#
# A child takes versions from its parent, and already from a broker that it has asked to be
# one, as long as they are newer than its copy: copies never go back. What each of the two
# believes the child to hold may therefore be something else than it does hold. The child sets
# that right as soon as it has chosen, by `Ask`.

# Whoever is sent on more often than this goes back to the root and insists.
_HOPS_MAX: Final = 32


class Uplinks:
    """The links of one broker to its parents."""

    def __init__(
        self, core: Core, forest: Forest, flow: Flow, demands: Demands, downlinks: Downlinks
    ) -> None:
        self._core = core
        self._forest = forest
        self._flow = flow
        self._demands = demands
        self._downlinks = downlinks
        self._patience_ns = ns(core.settings.streams.pulse_s)
        self._silence_ns = ns(core.settings.streams.silence_s)

    def seek(
        self, tree: Tree, peer: str, turn: Turn, *, insist: bool = False, hops: int = 0
    ) -> None:
        """Ask a broker to be the parent; the present one stays until there is an answer."""
        assert not tree.owned
        assert peer != self._forest.identity
        if tree.attempt is not None:
            self._abandon(tree, turn)
        tree.demand = max(tree.demand, 1)
        self._forest.link_count += 1
        link = ParentLink(tree, peer, self._forest.link_count, insist=insist, hops=hops)
        link.heard_ns = turn.now_ns
        self._demands.note(link)
        wanted = tree.wanted()
        link.believed = {entry.number: entry.held for entry in wanted}
        tree.attempt = self._forest.up[link.number] = link
        tree.step(TreeEvent.SEEK)
        turn.persist("streams/links", LinkCount(self._forest.link_count))
        turn.send(peer, Attach(link.number, tree.name, tree.root, tree.demand, wanted, insist))
        self._try_later(tree, turn)

    def doubt(self, tree: Tree, turn: Turn, *, insist: bool = False) -> None:
        """Look for another parent at the root, because the present one is no good."""
        tree.doubted = True
        if tree.attempt is None:
            # Nothing is above the root. Sent on from there, a broker with others below it
            # could come below one of them, if that one moves at the same time.
            self.seek(tree, tree.root, turn, insist=insist or bool(tree.children))

    def leave(self, tree: Tree, turn: Turn) -> None:
        """Leave a tree that nobody needs here."""
        for link in tree.links_up():
            del self._forest.up[link.number]
            turn.send(link.peer, Detach(link.number))
        if tree.timer is not None:
            tree.timer.cancel()
        if tree.parent is not None:
            turn.report(TreeLinked(tree.name, None))
        tree.parent = tree.attempt = None
        del self._forest.trees[tree.name]
        turn.erase(tree.key)
        self._core.adaptation.settled(tree.name, turn)

    def look_after(self, tree: Tree, turn: Turn) -> None:
        """See whether the parent is there and has heard; to be called with every pulse."""
        link = tree.parent
        if link is None:
            return
        if turn.now_ns - link.heard_ns > self._silence_ns:
            self.doubt(tree, turn)
        behind = [stream for stream in tree.streams.values() if stream.wanted > stream.held]
        if link.answered < link.asks:
            ask(link, list(tree.streams.values()), turn)
        elif behind:
            ask(link, behind, turn)
        for upward in tree.links_up():
            if upward.confirmed < tree.demand:
                self._demands.send(upward, turn)

    def peer_lost(self, tree: Tree, peer: str, turn: Turn) -> None:
        """Learn that a broker does not answer, or is gone."""
        if tree.attempt is not None and tree.attempt.peer == peer:
            self._fail(tree, turn)
        if tree.parent is not None and tree.parent.peer == peer:
            self.doubt(tree, turn)

    def take_update(self, message: Update, sender: Address, turn: Turn) -> None:
        """Handle a version from a parent."""
        link = self._link(message.link, sender, turn)
        if link is None:
            return
        number, sequence = message.number, message.sequence
        tree = link.tree
        newest = number > link.received
        gap = number > link.received + 1
        if newest:
            link.received = number
        stream = tree.numbered.get(message.object)
        if stream is not None:
            if newest:
                link.believed[message.object] = sequence
            copy = stream.copy
            if copy is None or sequence > copy.sequence:
                stream.late_ns += max(0, turn.now_ns - message.time_ns)
                self._flow.take(stream, Copy(sequence, message.time_ns, message.values), turn)
            elif newest and sequence < copy.sequence and link is tree.parent and not gap:
                ask(link, [stream], turn)
        if gap:
            ask(link, list(tree.streams.values()), turn)

    def take_pulse(self, message: Pulse, sender: Address, turn: Turn) -> None:
        """Handle a sign of life."""
        link = self._link(message.link, sender, turn)
        if link is None:
            return
        turn.send(sender, PulseAnswer(link.number, message.sent_ns))
        link.answered = max(link.answered, message.asked)
        if message.number > link.received:
            # What the answer does not bring up to date comes with a higher number.
            link.received = message.number
            ask(link, list(link.tree.streams.values()), turn)
        if link is link.tree.parent:
            self._take_path(link.tree, message.path, turn)

    def take_attached(self, message: Attached, sender: Address, turn: Turn) -> None:
        """Handle that there is a new parent."""
        link = self._link(message.link, sender, turn)
        if link is None:
            return
        tree = link.tree
        if link is tree.attempt and self._forest.identity in message.path:
            self._fail(tree, turn)
            return
        self._demands.take_promise(Promised(link.number, message.demand), link, turn)
        if link is tree.attempt:
            old, tree.parent, tree.attempt, tree.doubted = tree.parent, link, None, False
            tree.step(TreeEvent.ATTACHED)
            if tree.timer is not None:
                tree.timer.cancel()
            self._forest.keep_tree(tree, turn)
            if old is not None:
                del self._forest.up[old.number]
                turn.send(old.peer, Detach(old.number))
            turn.report(TreeLinked(tree.name, sender))
            self._choose(link, turn)
        self._take_path(tree, message.path, turn)
        self._demands.promise(tree, turn)
        self._downlinks.resume(tree, turn)
        if link is tree.parent:
            self._core.adaptation.settled(tree.name, turn)

    def take_refusal(self, message: AttachRefused, sender: Address, turn: Turn) -> None:
        """Handle that a broker does not want to be a parent."""
        link = self._forest.up.get(message.link)
        if link is None or link.peer != sender or link is not link.tree.attempt:
            return
        tree = link.tree
        self._forget_attempt(tree, turn)
        if message.to not in (None, self._forest.identity) and link.hops < _HOPS_MAX:
            assert message.to is not None
            self.seek(tree, message.to, turn, hops=link.hops + 1)
        elif tree.parent is None or tree.doubted:
            if sender == tree.root:
                self._try_later(tree, turn)
            else:
                self.seek(tree, tree.root, turn, insist=True)
        else:
            self._stay(tree, turn)

    def take_promise(self, message: Promised, sender: Address, turn: Turn) -> None:
        """Handle what a parent keeps to."""
        link = self._link(message.link, sender, turn)
        if link is not None:
            self._demands.take_promise(message, link, turn)

    def take_drop(self, message: Dropped, sender: Address, turn: Turn) -> None:
        """Handle that a parent does not know us; whoever was only asked may yet hear it."""
        link = self._forest.up.get(message.link)
        if link is None or link.peer != sender or link is not link.tree.parent:
            return
        tree = link.tree
        del self._forest.up[link.number]
        tree.parent = None
        tree.step(TreeEvent.DROPPED)
        if tree.attempt is None:
            self.seek(tree, tree.root, turn)

    def attach(self, tree: Tree, peer: str, turn: Turn) -> None:
        """Attach to a certain parent, unless it is the present one or somebody is asked."""
        if peer == self._forest.identity or tree.attempt is not None:
            return
        if tree.parent is None or tree.parent.peer != peer:
            self.seek(tree, peer, turn, insist=True)

    def _link(self, number: int, sender: Address, turn: Turn) -> ParentLink | None:
        """Return a link on which something was said; whoever says it in vain is told."""
        link = self._forest.up.get(number)
        if link is None or link.peer != sender:
            turn.send(sender, Detach(number))
            return None
        link.heard_ns = turn.now_ns
        return link

    def _choose(self, link: ParentLink, turn: Turn) -> None:
        """Rely on one parent alone from now on, and tell it what is held here."""
        tree = link.tree
        for stream in tree.streams.values():
            self._demands.rely(stream)
            self._flow.tell_followers(stream, turn)
            if stream.branches:
                self._flow.look(stream, turn)
        streams = [
            stream
            for stream in tree.streams.values()
            if link.believed.get(stream.number, -1) != stream.held or stream.wanted > stream.held
        ]
        if streams:
            ask(link, streams, turn)

    def _take_path(self, tree: Tree, path: tuple[str, ...], turn: Turn) -> None:
        if self._forest.identity in path:
            # Moves at the same time can close a circle, which the root is never part of.
            self.doubt(tree, turn, insist=True)
        elif path != tree.path:
            tree.path = path
            self._downlinks.pulse_all(tree, turn)

    def _fail(self, tree: Tree, turn: Turn) -> None:
        """Give up on the broker that was asked; without a parent, ask the root."""
        self._abandon(tree, turn)
        if tree.parent is None or tree.doubted:
            self.seek(tree, tree.root, turn, insist=True)
        else:
            self._stay(tree, turn)

    def _stay(self, tree: Tree, turn: Turn) -> None:
        """Stay with the parent there is, after nobody else could be won."""
        self._downlinks.resume(tree, turn)
        self._core.adaptation.settled(tree.name, turn)

    def _abandon(self, tree: Tree, turn: Turn) -> None:
        assert tree.attempt is not None
        turn.send(tree.attempt.peer, Detach(tree.attempt.number))
        self._forget_attempt(tree, turn)

    def _forget_attempt(self, tree: Tree, turn: Turn) -> None:
        assert tree.attempt is not None
        del self._forest.up[tree.attempt.number]
        tree.attempt = None
        tree.step(TreeEvent.FAILED)
        if tree.timer is not None:
            tree.timer.cancel()
        if tree.parent is not None:
            self._choose(tree.parent, turn)

    def _try_later(self, tree: Tree, turn: Turn) -> None:
        if tree.timer is not None:
            tree.timer.cancel()
        at_ns = turn.now_ns + self._patience_ns
        tree.timer = self._core.timers.at(at_ns, self._out_of_patience, tree)

    def _out_of_patience(self, turn: Turn, tree: Tree) -> None:
        if tree.attempt is not None:
            self._fail(tree, turn)
        elif tree.parent is None or tree.doubted:
            self.seek(tree, tree.root, turn, insist=True)


# A child that gets updates knows that its parent is there. It has a pulse at least this
# often all the same, for the sake of what its answers tell about delays.
_SPARED_MAX: Final = 8
# Pulses and their answers wait for processors that are busy. The least of some is how far it is.
_MEASURED: Final = 4


class Downlinks:
    """The links of one broker to its children.

    Attributes
    ----------
    delays_ns
        How long a message takes to each child, half of what a pulse and its answer took; the
        least of the last few.
    """

    def __init__(self, core: Core, forest: Forest, flow: Flow, demands: Demands) -> None:
        self._core = core
        self._forest = forest
        self._flow = flow
        self._demands = demands
        self._fanout = core.settings.streams.fanout
        self.delays_ns: dict[str, int] = {}
        self._measured_ns: dict[str, deque[int]] = {}

    def take_attach(self, message: Attach, sender: Address, turn: Turn) -> None:
        """Handle that a broker wants us for its parent."""
        tree = self._forest.trees.get(message.tree)
        if tree is None or tree.root != message.root:
            turn.send(sender, AttachRefused(message.link, None))
            return
        known = tree.children.get(sender)
        if known is not None and known.number >= message.link:
            if known.number == message.link and known.accepted:
                path = (*tree.path, self._forest.identity)
                turn.send(sender, Attached(known.number, known.promised, path))
            return
        if sender in tree.path or sender == self._forest.identity:
            if tree.attempt is not None:
                # We may be about to leave its subtree, as when the two of us trade places.
                tree.postponed[sender] = message
            else:
                turn.send(sender, AttachRefused(message.link, None))
            return
        if known is None and not message.insist and sender not in tree.expected:
            to = self._with_room(tree, sender)
            if to is not None:
                turn.send(sender, AttachRefused(message.link, to))
                return
        self._take_in(tree, known, message, sender, turn)

    def resume(self, tree: Tree, turn: Turn) -> None:
        """Answer those who had to wait until it was clear where we are ourselves."""
        postponed, tree.postponed = tree.postponed, {}
        for sender, message in postponed.items():
            self.take_attach(message, sender, turn)

    def take_detach(self, message: Detach, sender: Address, turn: Turn) -> None:
        """Handle that a child has gone elsewhere."""
        link = self._forest.down.get((sender, message.link))
        if link is not None:
            self.drop(link, turn)

    def drop(self, link: ChildLink, turn: Turn) -> None:
        """Forget a child."""
        touched = self._forest.remove_child(link, turn)
        self._demands.reconsider(link.tree, touched, turn)

    def take_question(self, message: Ask, sender: Address, turn: Turn) -> None:
        """Handle what a child holds and needs."""
        link = self._forest.down.get((sender, message.link))
        if link is None:
            turn.send(sender, Dropped(message.link))
            return
        if message.count <= link.asked:
            return
        link.asked = message.count
        for number, held, least in message.held:
            branch = link.branches.get(number)
            if branch is not None:
                branch.holds(held, least)
                self._flow.look(branch.stream, turn)
        self.pulse(link, turn)

    def take_pulse_answer(self, message: PulseAnswer, sender: Address, turn: Turn) -> None:
        """Handle that a child has heard a pulse."""
        if (sender, message.link) in self._forest.down:
            measured_ns = self._measured_ns.setdefault(sender, deque(maxlen=_MEASURED))
            measured_ns.append(max(turn.now_ns - message.sent_ns, 0) // 2)
            self.delays_ns[sender] = min(measured_ns)
        else:
            turn.send(sender, Dropped(message.link))

    def look_after(self, turn: Turn) -> None:
        """Send a pulse to children that would not hear of us otherwise."""
        for link in self._forest.down.values():
            if not link.awake:
                continue
            if link.quiet or link.spared >= _SPARED_MAX:
                self.pulse(link, turn)
                link.spared = 0
            else:
                link.spared += 1
            link.quiet = True

    def pulse_all(self, tree: Tree, turn: Turn) -> None:
        """Tell all children where we are."""
        for link in tree.children.values():
            if link.awake and link.accepted:
                self.pulse(link, turn)

    def pulse(self, link: ChildLink, turn: Turn) -> None:
        """Tell a child that we are there."""
        path = (*link.tree.path, self._forest.identity)
        turn.send(link.peer, Pulse(link.number, link.sent, link.asked, path, turn.now_ns))

    def wake(self, peer: str, turn: Turn) -> None:
        """Learn that a broker is there again."""
        for link in [link for link in self._forest.down.values() if link.peer == peer]:
            link.awake = True
            self.pulse(link, turn)
            for branch in link.branches.values():
                self._flow.look(branch.stream, turn)

    def peer_down(self, peer: str) -> None:
        """Learn that a broker does not answer; nothing is sent to it until it is back."""
        for link in self._forest.down.values():
            if link.peer == peer:
                link.awake = False

    def peer_gone(self, peer: str, turn: Turn) -> None:
        """Learn that a broker is lost for ever."""
        for link in [link for link in self._forest.down.values() if link.peer == peer]:
            self.drop(link, turn)

    def _take_in(
        self, tree: Tree, known: ChildLink | None, message: Attach, sender: Address, turn: Turn
    ) -> None:
        before: list[Stream] = []
        if known is not None:
            before = self._forest.remove_child(known, turn)
        link = self._forest.add_child(tree, sender, message.link)
        self._demands.apply(link, message.demand, message.wanted, turn)
        self._demands.reconsider(tree, before, turn)

    def _with_room(self, tree: Tree, sender: Address) -> str | None:
        """Return the child to send a broker on to; None when there is room here."""
        if len(tree.children) < self._fanout:
            return None
        takers = [
            link
            for link in tree.children.values()
            if link.awake and link.accepted and link.peer != sender
        ]
        if not takers:
            return None
        link = min(takers, key=lambda taker: (taker.passed_on, taker.peer))
        link.passed_on += 1
        return link.peer
