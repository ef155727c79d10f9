"""Children: whom a broker takes as one, and how they hear from it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from distributary.broker.addresses import Address
from distributary.broker.effects import Turn
from distributary.broker.streams.messages import (
    Ask,
    Attach,
    Attached,
    AttachRefused,
    Detach,
    Dropped,
    Pulse,
    PulseAnswer,
)
from distributary.broker.streams.stream import Stream
from distributary.broker.streams.tree import ChildLink, Tree

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.streams.flow import Demands, Flow
    from distributary.broker.streams.forest import Forest

__all__ = ["Downlinks"]

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
