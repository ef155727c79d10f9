"""The mover: a pure machine that takes a broker to another parent without making a cycle.

Theory of operation
-------------------
An order says: go below this broker. Looking at the path of the new parent is not enough,
because two brokers that move at the same time can each go below the other. So the mover asks
first. Its question climbs from the new parent to the root, hop by hop. Whoever is the mover
itself, or is on the move, refuses. Only the root clears. From the question until it
has its new parent the mover refuses what climbs past it.

Suppose moves closed a cycle. The question of each mover passed the next one on the cycle, and
found it at rest: before that one asked its own question, or after it had arrived, and then the
question went on from the new place. Around the cycle, each one's question was asked before the
next one's: a contradiction.

A new parent that is the root needs no question: nothing is above it. This is why a broker
that has lost its parent goes to the root. The old link is dropped when the new one is up, and
when anything goes wrong on the way the broker stays where it is.

Moves as sequences of steps, each of which takes one broker to another parent.

After every step the tree is a tree, so that a sequence can end anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from distributary.broker.adaptation.messages import Answer, Moved, Order, Question
from distributary.broker.adaptation.node import Name, Round, Step
from distributary.broker.addresses import Address
from distributary.broker.core import Core, Transitions
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.broker.timers import Timer
from distributary.fidelity.local import (
    COUSIN_SWAP,
    DEMOTION,
    NEPHEW_ADOPTION,
    PARENT_CHILD_SWAP,
    PROMOTION,
    UNCLE_NEPHEW_SWAP,
)

__all__ = [
    "AT_REST",
    "TRANSITIONS",
    "Answered",
    "Arrived",
    "Attach",
    "Climb",
    "Expired",
    "Move",
    "Movers",
    "Ordered",
    "Stage",
    "Tell",
    "Verdict",
    "judge",
    "step",
    "steps_of",
    "with_children",
]


def steps_of(
    kind: str, *, top: Name, moved: Name, other: Name, parents: Mapping[Name, Name]
) -> tuple[Step, ...]:
    """Return a move as steps.

    Parameters
    ----------
    kind
        One of `fidelity.local.MOVES`.
    top
        The broker among whose children and grandchildren the move is made.
    moved, other
        The two brokers that it is about, as in `LocalMove`.
    parents
        The parent of each child and grandchild.
    """
    if kind == PROMOTION:
        return ((moved, top),)
    if kind in (DEMOTION, NEPHEW_ADOPTION):
        return ((moved, other),)
    if kind == PARENT_CHILD_SWAP:
        return ((moved, top), (parents[moved], moved))
    assert kind in (COUSIN_SWAP, UNCLE_NEPHEW_SWAP)
    return ((moved, parents[other]), (other, parents[moved]))


def with_children(
    children: Sequence[Name],
    grandchildren: Mapping[Name, Sequence[Name]],
    steps: Sequence[Step],
) -> list[Name]:
    """Return those of a broker's children that have children themselves.

    Parameters
    ----------
    children
        As they are now.
    grandchildren
        The children of each that reported, before the steps; who did not report is taken
        to have some.
    steps
        What has been done since.
    """
    below = {child: set(all_below) for child, all_below in grandchildren.items()}
    for mover, parent in steps:
        for all_below in below.values():
            all_below.discard(mover)
        if parent in below:
            below[parent].add(mover)
    return [child for child in children if below.get(child, {child})]


class Stage(Enum):
    """How far a mover is."""

    STILL = "at rest"
    CLIMBING = "asking"
    ATTACHING = "attaching"


class StageEvent(Enum):
    """What happens to a mover."""

    ORDER = "order"
    ORDER_TO_ROOT = "order to go to the root"
    CLEARANCE = "clearance by the root"
    REFUSAL = "refusal"
    ARRIVAL = "new link is up"
    EXPIRY = "patience ends"


TRANSITIONS: Transitions[Stage, StageEvent] = Transitions(
    "mover",
    Stage.STILL,
    {
        (Stage.STILL, StageEvent.ORDER): Stage.CLIMBING,
        (Stage.STILL, StageEvent.ORDER_TO_ROOT): Stage.ATTACHING,
        (Stage.CLIMBING, StageEvent.CLEARANCE): Stage.ATTACHING,
        (Stage.CLIMBING, StageEvent.REFUSAL): Stage.STILL,
        (Stage.CLIMBING, StageEvent.EXPIRY): Stage.STILL,
        (Stage.ATTACHING, StageEvent.ARRIVAL): Stage.STILL,
        (Stage.ATTACHING, StageEvent.REFUSAL): Stage.STILL,
        (Stage.ATTACHING, StageEvent.EXPIRY): Stage.STILL,
    },
)


class Move(NamedTuple):
    """The state of a mover in one tree.

    Attributes
    ----------
    number
        Of the last attempt, so that late answers to earlier ones are known.
    parent
        Where it goes.
    orderer, round
        By whose order, and in which round.
    """

    stage: Stage = Stage.STILL
    number: int = 0
    parent: Name = None
    orderer: Name = None
    round: Round | None = None


AT_REST = Move()


class Ordered(NamedTuple):
    """An order has come.

    Attributes
    ----------
    obeys
        Whether the broker may move in this tree now, see `Node.obeys`.
    to_root
        Whether the new parent is the root of the tree.
    number
        Of the attempt; larger than all before.
    """

    round: Round
    orderer: Name
    parent: Name
    obeys: bool
    to_root: bool
    number: int


class Answered(NamedTuple):
    """The question was answered by the root, or by somebody on the way."""

    number: int
    cleared: bool


class Arrived(NamedTuple):
    """The new link is up, or the new parent does not want it."""

    number: int
    accepted: bool


class Expired(NamedTuple):
    """There was no answer for too long."""


Given: TypeAlias = Ordered | Answered | Arrived | Expired


class Climb(NamedTuple):
    """Send the question to the new parent."""

    to: Name
    number: int


class Attach(NamedTuple):
    """Put up the new link; the old one stays until it is up."""

    to: Name
    number: int


class Tell(NamedTuple):
    """Tell who ordered the move what became of it."""

    to: Name
    round: Round
    done: bool


Doing: TypeAlias = Climb | Attach | Tell


def step(move: Move, given: Given) -> tuple[Move, Doing | None]:
    """Return how the mover goes on, and what to do."""
    if isinstance(given, Ordered):
        return _ordered(move, given)
    if isinstance(given, Answered):
        event = StageEvent.CLEARANCE if given.cleared else StageEvent.REFUSAL
        fitting = move.stage is Stage.CLIMBING and move.number == given.number
    elif isinstance(given, Arrived):
        event = StageEvent.ARRIVAL if given.accepted else StageEvent.REFUSAL
        fitting = move.stage is Stage.ATTACHING and move.number == given.number
    else:
        event, fitting = StageEvent.EXPIRY, True
    stage = TRANSITIONS.step(move.stage, event) if fitting else None
    if stage is None:
        return move, None
    if stage is Stage.ATTACHING:
        return move._replace(stage=stage), Attach(move.parent, move.number)
    assert move.round is not None
    told = Tell(move.orderer, move.round, event is StageEvent.ARRIVAL)
    return Move(number=move.number), told


def _ordered(move: Move, given: Ordered) -> tuple[Move, Doing | None]:
    event = StageEvent.ORDER_TO_ROOT if given.to_root else StageEvent.ORDER
    stage = TRANSITIONS.step(move.stage, event) if given.obeys else None
    if stage is None:
        return move, Tell(given.orderer, given.round, done=False)
    following = Move(stage, given.number, given.parent, given.orderer, given.round)
    if stage is Stage.ATTACHING:
        return following, Attach(given.parent, given.number)
    return following, Climb(given.parent, given.number)


class Verdict(Enum):
    """What a broker says to a question that climbs past it."""

    CLEARED = "cleared"
    REFUSED = "refused"
    ON = "to be asked of the parent"


def judge(name: Name, parent: Name | None, move: Move, mover: Name) -> Verdict:
    """Return what a broker says to a mover that wants to go below it, or further down.

    Parameters
    ----------
    name
        The broker that is asked.
    parent
        Its parent; None when it is the root.
    move
        Its own state as a mover in this tree.
    mover
        Who asks.
    """
    if name == mover or move.stage is not Stage.STILL:
        return Verdict.REFUSED
    return Verdict.CLEARED if parent is None else Verdict.ON


# Longer than any tree is deep: a question that has gone further goes round in circles.
_HOPS_MAX = 64
# A question is answered in some round trips. The share of a hold that it may take leaves time
# for the link itself, and for a second step.
_PATIENCE = 0.25


class Movers:
    """What a broker does about moves of its own and of those below it.

    Parameters
    ----------
    obeys
        Whether the broker may be moved in a tree now.
    """

    def __init__(self, core: Core, obeys: Callable[[str], bool]) -> None:
        self._core = core
        self._obeys = obeys
        self._moves: dict[str, Move] = {}
        self._timers: dict[str, Timer] = {}
        self._number = 0

    def take_order(self, message: Order, sender: Address, turn: Turn) -> None:
        """Handle that somebody above wants the broker below another one."""
        streams = self._core.streams
        tree = message.tree
        if streams.parent(tree) == message.parent:
            turn.send(sender, Moved(tree, message.round, done=True))
            return
        obeys = (
            self._obeys(tree)
            and streams.parent(tree) is not None
            and streams.asking(tree) is None
            and message.parent != self._core.identity
        )
        # Larger than any number before a crash, which nobody remembers.
        self._number = max(self._number + 1, turn.now_ns)
        self._step(
            tree,
            Ordered(
                (tree, message.round),
                sender,
                message.parent,
                obeys=obeys,
                to_root=obeys and streams.root(tree) == message.parent,
                number=self._number,
            ),
            turn,
        )

    def take_question(self, message: Question, sender: Address, turn: Turn) -> None:
        """Handle that a broker wants to go below us, or further down."""
        streams = self._core.streams
        tree = message.tree
        parent = streams.parent(tree)
        is_root = tree in streams.trees() and streams.root(tree) == self._core.identity
        verdict = Verdict.REFUSED
        if (is_root or parent is not None) and streams.asking(tree) is None:
            move = self._moves.get(tree, AT_REST)
            verdict = judge(self._core.identity, parent, move, message.mover)
        if verdict is Verdict.ON and message.hops < _HOPS_MAX:
            assert parent is not None
            turn.send(parent, Question(tree, message.mover, message.number, message.hops + 1))
            return
        cleared = verdict is Verdict.CLEARED
        turn.send(message.mover, Answer(tree, message.number, cleared))

    def take_answer(self, message: Answer, sender: Address, turn: Turn) -> None:
        """Handle that we may go where we want to, or not."""
        self._step(message.tree, Answered(message.number, message.cleared), turn)

    def settled(self, tree: str, turn: Turn) -> None:
        """Learn that nobody is asked any more to be the parent in a tree."""
        move = self._moves.get(tree, AT_REST)
        accepted = self._core.streams.parent(tree) == move.parent
        self._step(tree, Arrived(move.number, accepted), turn)

    def _step(self, tree: str, given: Given, turn: Turn) -> None:
        before = self._moves.get(tree, AT_REST)
        after, doing = step(before, given)
        self._moves[tree] = after
        if after.stage is Stage.STILL:
            del self._moves[tree]
        if after.stage is not before.stage:
            self._watch(tree, after.stage, turn)
        match doing:
            case Climb(to, number):
                turn.send(to, Question(tree, self._core.identity, number, 0))
            case Attach(to, number):
                self._core.streams.attach_to(tree, to, turn)
                if self._core.streams.asking(tree) != to:
                    self._step(tree, Arrived(number, accepted=False), turn)
            case Tell(to, round_, done):
                turn.send(to, Moved(tree, round_[1], done))

    def _watch(self, tree: str, stage: Stage, turn: Turn) -> None:
        """Lose patience with a question; the streams part does so with a link."""
        timer = self._timers.pop(tree, None)
        if timer is not None:
            timer.cancel()
        if stage is Stage.CLIMBING:
            patience_ns = ns(self._core.settings.adaptation.hold_s * _PATIENCE)
            self._timers[tree] = self._core.timers.at(turn.now_ns + patience_ns, self._expire, tree)

    def _expire(self, turn: Turn, tree: str) -> None:
        self._timers.pop(tree, None)
        self._step(tree, Expired(), turn)
