"""Versions on their way down the trees.

The handling of a version is the queueing model of Zhou, Ooi and Tan: it waits for the
processor, then children are looked at in random order, and looking and sending take time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from distributary.broker.effects import Persist, Send, Spend
from distributary.broker.messages.client import Updated
from distributary.broker.messages.streams import Ask, Update
from distributary.broker.streams.links import ParentLink
from distributary.broker.streams.stream import Branch, Copy, Follower, Stream, needs
from distributary.broker.telemetry import CopyChanged
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Flow", "ask"]

_FILTER: Final = Spend("filter")
_SEND: Final = Spend("send")

# Clients do not answer. What they were sent last is sent again this often when there is
# nothing newer, after one pulse, two, four and so on.
_REPEATS: Final = 6


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
                follower.wait = 1 << (_REPEATS - follower.repeats)
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
            Updated(follower.id, *stream.name, copy.sequence, copy.time_ns, copy.values),
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
