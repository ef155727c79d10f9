"""The adaptation node: a pure machine that says when a broker may change a tree.

Theory of operation
-------------------
Zhou, Ooi and Tan, section 4.2, repaired. The root of every tree sends a token down, round by
round. A broker with a token *waits*: it asks its children in that tree to hold still, because
what it decides depends on how busy they are, and that depends on all trees. When all have
acknowledged, with their figures, it attempts a move (`Attempt`, answered by `Chosen`), orders
it step by step, releases *every* child it asked, and passes the token on to those of its
children that have children. A broker that is *held* decides nothing; tokens queue.

What differs from Algorithms 4 and 5, and why:

- Every child that was asked is released by a message of its own, also one that was moved
  away and one that is a leaf. There the token was to do this, and it reaches neither.
- A wait without children is complete at once. There nobody ever completes it.
- A broker waits for one tree at a time, and tokens of others queue. With many waits side by
  side all of them decide by the figures from before, and all move the same child.
- A held broker that is asked by somebody with a larger number than its holder refuses. There
  it queues every request, and two parents with two children in common block each other for
  ever, each holding one child. Here who waits always waits for a larger number:
  for the child itself, if it waits with a larger one (a smaller one lets itself be held),
  or for the child's holder.
- A refusal ends the attempt for this round; so does the end of patience. A hold expires. An
  acknowledgement that nobody waits for is answered by a release.

Everything here is a value, so that an explorer can try all orders of events
(`tests/explorer`). Brokers and trees are anything that can be ordered and hashed.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

__all__ = [
    "Acknowledged",
    "Attempt",
    "Chosen",
    "Event",
    "Held",
    "Hold",
    "HoldExpired",
    "Input",
    "Links",
    "Moved",
    "Node",
    "Output",
    "PassToken",
    "Phase",
    "Released",
    "SendAcknowledgement",
    "SendHold",
    "SendOrder",
    "SendRelease",
    "Token",
    "Wait",
    "WaitExpired",
]

Name: TypeAlias = Any
"""Of a broker; it is also the number that prevents deadlocks."""
Tree: TypeAlias = Any
Round: TypeAlias = tuple[Tree, int]
"""A tree, and a number that rises from round to round."""
Report: TypeAlias = Any
"""What a child tells, whatever it is; hashable."""
Step: TypeAlias = tuple[Name, Name]
"""A broker that is to move, and its new parent."""


class Phase(Enum):
    """What a broker is doing."""

    IDLE = "idle"
    WAIT = "wait"
    HOLD = "hold"


class Event(Enum):
    """What happens to a broker, as seen in its phase."""

    ROUND = "token"
    HOLD = "hold"
    HOLD_BY_LARGER = "hold by a larger number"
    HOLD_BY_SMALLER = "hold by a smaller number"
    HOLD_WHILE_MOVING = "hold while a move is weighed or made"
    HOLD_BY_STRANGER = "hold by another than the parent"
    HOLD_BY_HOLDER = "hold by the holder"
    ANSWER = "acknowledgement"
    REFUSAL = "refusal"
    STRAY_ANSWER = "acknowledgement that nobody waits for"
    COMPLETE = "all have acknowledged"
    ORDERED = "step to make"
    FINISHED = "no step left"
    IMPATIENCE = "patience ends"
    RELEASE = "release"
    RELEASE_INTO_WAIT = "release of one that waits"
    RELEASE_OF_ONE = "release from one of several rounds"
    WITHDRAWAL = "release of a hold in the queue"


class Wait(NamedTuple):
    """A token in hand.

    Attributes
    ----------
    round
        Of which tree and round.
    pending
        Children that have not answered.
    reports
        Children that hold still, each with what it told.
    attempting
        Whether all have answered, and moves are weighed or made.
    steps, done
        The steps of the move that was chosen, and how many of them have been made.
    """

    round: Round
    pending: tuple[Name, ...]
    reports: tuple[tuple[Name, Report], ...] = ()
    attempting: bool = False
    steps: tuple[Step, ...] = ()
    done: int = 0


class Held(NamedTuple):
    """By whom a broker is held, and for which rounds: more than one if a release got lost."""

    holder: Name
    rounds: tuple[Round, ...]


class Node(NamedTuple):
    """The state of one broker.

    Attributes
    ----------
    name
        Its own.
    wait, held
        What it is doing; both when it was held while it waited.
    tokens
        Rounds to be taken up later, in the order in which they came.
    holds
        Who wants to hold it later, and for which round; largest first.
    seen
        The last round of each tree that it had a token of.
    """

    name: Name
    wait: Wait | None = None
    held: Held | None = None
    tokens: tuple[Round, ...] = ()
    holds: tuple[tuple[Name, Round], ...] = ()
    seen: tuple[Round, ...] = ()

    @property
    def phase(self) -> Phase:
        """What the broker is doing."""
        if self.held is not None:
            return Phase.HOLD
        return Phase.IDLE if self.wait is None else Phase.WAIT

    def obeys(self, tree: Tree) -> bool:
        """Whether it moves in a tree when told to: not while it has a token of that tree."""
        return self.wait is None or self.wait.round[0] != tree


class Links(Protocol):
    """What the machine asks about the trees as they are now."""

    def parent(self, tree: Tree) -> Name | None:
        """Return the broker's parent; None at the root."""

    def children(self, tree: Tree) -> tuple[Name, ...]:
        """Return its children in order."""


class Token(NamedTuple):
    """A token has come, or a root begins a round."""

    round: Round


class Hold(NamedTuple):
    """A parent asks the broker to hold still."""

    round: Round
    holder: Name


class Acknowledged(NamedTuple):
    """A child holds still and reports, or refuses."""

    round: Round
    child: Name
    granted: bool
    report: Report = None


class Chosen(NamedTuple):
    """The answer to `Attempt`: the steps of the best move, none if no move helps."""

    round: Round
    steps: tuple[Step, ...]


class Moved(NamedTuple):
    """A step has been made, or will not be."""

    round: Round
    mover: Name
    done: bool


class Released(NamedTuple):
    """A parent does not need the broker to hold still any longer."""

    round: Round
    holder: Name


class HoldExpired(NamedTuple):
    """Nobody has released the broker for too long."""


class WaitExpired(NamedTuple):
    """Children or movers have not answered for too long."""


Input: TypeAlias = (
    Token | Hold | Acknowledged | Chosen | Moved | Released | HoldExpired | WaitExpired
)


class SendHold(NamedTuple):
    """Ask a child to hold still."""

    to: Name
    round: Round


class SendAcknowledgement(NamedTuple):
    """Tell a parent the own figures, or that it asks at the wrong time."""

    to: Name
    round: Round
    granted: bool


class SendRelease(NamedTuple):
    """Let a child go on."""

    to: Name
    round: Round


class Attempt(NamedTuple):
    """Weigh moves, and answer with `Chosen`."""

    wait: Wait


class SendOrder(NamedTuple):
    """Have a child or grandchild move."""

    to: Name
    round: Round
    parent: Name


class PassToken(NamedTuple):
    """Send the token on to all children that have children, after a wait."""

    wait: Wait


Output: TypeAlias = SendHold | SendAcknowledgement | SendRelease | Attempt | SendOrder | PassToken
