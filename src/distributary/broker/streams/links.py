"""Links of a tree, as the child and as the parent see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.messages.streams import Amounts
from distributary.broker.streams.amounts import NOTHING, kept_throughout

if TYPE_CHECKING:
    from distributary.broker.streams.stream import Branch, Stream
    from distributary.broker.streams.tree import Tree

__all__ = ["ChildLink", "ParentLink"]


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
