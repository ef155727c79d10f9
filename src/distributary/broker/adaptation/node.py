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

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

from distributary.broker.core import Transitions

__all__ = [
    "TRANSITIONS",
    "Acknowledged",
    "AdaptationNode",
    "Attempt",
    "Chosen",
    "Held",
    "Hold",
    "HoldExpired",
    "Input",
    "Links",
    "Output",
    "PassToken",
    "Phase",
    "PhaseEvent",
    "Released",
    "SendAcknowledgement",
    "SendHold",
    "SendOrder",
    "SendRelease",
    "StepMade",
    "TokenCame",
    "Wait",
    "WaitExpired",
    "step",
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


class PhaseEvent(Enum):
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


class AdaptationNode(NamedTuple):
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
        """Return the broker's children, in an order that all runs share."""


class TokenCame(NamedTuple):
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


class StepMade(NamedTuple):
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
    TokenCame | Hold | Acknowledged | Chosen | StepMade | Released | HoldExpired | WaitExpired
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


# How the node goes on: a table, and a small action for every line of it. What is not in the table
# is ignored.

_Action: TypeAlias = Callable[[AdaptationNode, Any, Links, list[Output]], AdaptationNode]


def step(
    node: AdaptationNode, given: Input, links: Links
) -> tuple[AdaptationNode, tuple[Output, ...]]:
    """Return the state that follows, and what to do.

    Parameters
    ----------
    links
        The broker's trees as they are now.
    """
    outputs: list[Output] = []
    event = _event(node, given, links)
    while event is not None:
        found = _TABLE.get((node.phase, event))
        if found is None:
            break
        phase, act = found
        node = act(node, given, links, outputs)
        assert node.phase is phase
        # What queued may be possible now. The order is that of Algorithm 4: what is ready,
        # then tokens, then holds.
        event = None
        wait = node.wait
        if node.held is not None or (wait is not None and wait.attempting):
            break
        if wait is not None and not wait.pending:
            event = PhaseEvent.COMPLETE
        elif wait is None and node.tokens:
            given = TokenCame(node.tokens[0])
            node = node._replace(tokens=node.tokens[1:])
            event = PhaseEvent.ROUND
        elif node.holds and (wait is None or node.holds[0][0] > node.name):
            holder, round_ = node.holds[0]
            given = Hold(round_, holder)
            node = node._replace(holds=node.holds[1:])
            event = _event(node, given, links)
    return node, tuple(outputs)


def _event(node: AdaptationNode, given: Input, links: Links) -> PhaseEvent | None:
    """Return what an input means to a broker in its state; None when it means nothing."""
    kind = type(given)
    wait = node.wait
    if kind is Acknowledged:
        assert isinstance(given, Acknowledged)
        if wait is not None and wait.round == given.round:
            if given.child in wait.pending:
                return PhaseEvent.ANSWER if given.granted else PhaseEvent.REFUSAL
            if any(child == given.child for child, _ in wait.reports):
                return None
        return PhaseEvent.STRAY_ANSWER if given.granted else None
    if kind is Hold:
        assert isinstance(given, Hold)
        return _hold_event(node, given, links)
    if kind is Released:
        assert isinstance(given, Released)
        return _release_event(node, given)
    if kind is TokenCame:
        assert isinstance(given, TokenCame)
        tree, number = given.round
        known = any(seen == tree and last >= number for seen, last in node.seen)
        return None if known else PhaseEvent.ROUND
    if kind is HoldExpired:
        return PhaseEvent.RELEASE if wait is None else PhaseEvent.RELEASE_INTO_WAIT
    if wait is None:
        return None
    if kind is WaitExpired:
        return PhaseEvent.IMPATIENCE
    assert isinstance(given, Chosen | StepMade)
    if wait.round != given.round or not wait.attempting:
        return None
    if isinstance(given, Chosen):
        if wait.steps:
            return None
        return PhaseEvent.ORDERED if given.steps else PhaseEvent.FINISHED
    if not wait.steps or wait.steps[wait.done][0] != given.mover:
        return None
    return (
        PhaseEvent.ORDERED
        if given.done and wait.done + 1 < len(wait.steps)
        else PhaseEvent.FINISHED
    )


def _hold_event(node: AdaptationNode, given: Hold, links: Links) -> PhaseEvent:
    if links.parent(given.round[0]) != given.holder:
        return PhaseEvent.HOLD_BY_STRANGER
    if node.held is not None:
        if given.holder == node.held.holder:
            return PhaseEvent.HOLD_BY_HOLDER
        larger = given.holder > node.held.holder
    elif node.wait is None:
        return PhaseEvent.HOLD
    elif node.wait.attempting:
        return PhaseEvent.HOLD_WHILE_MOVING
    else:
        larger = given.holder > node.name
    return PhaseEvent.HOLD_BY_LARGER if larger else PhaseEvent.HOLD_BY_SMALLER


def _release_event(node: AdaptationNode, given: Released) -> PhaseEvent | None:
    held = node.held
    if held is not None and held.holder == given.holder and given.round in held.rounds:
        if len(held.rounds) > 1:
            return PhaseEvent.RELEASE_OF_ONE
        return PhaseEvent.RELEASE if node.wait is None else PhaseEvent.RELEASE_INTO_WAIT
    if (given.holder, given.round) in node.holds:
        return PhaseEvent.WITHDRAWAL
    return None


def _begin(
    node: AdaptationNode, given: TokenCame, links: Links, outputs: list[Output]
) -> AdaptationNode:
    children = links.children(given.round[0])
    outputs.extend(SendHold(child, given.round) for child in children)
    return node._replace(wait=Wait(given.round, children), seen=_newest(node.seen, given.round))


def _queue_token(
    node: AdaptationNode, given: TokenCame, links: Links, outputs: list[Output]
) -> AdaptationNode:
    return node._replace(
        tokens=_newest(node.tokens, given.round), seen=_newest(node.seen, given.round)
    )


def _grant(
    node: AdaptationNode, given: Hold, links: Links, outputs: list[Output]
) -> AdaptationNode:
    outputs.append(SendAcknowledgement(given.holder, given.round, granted=True))
    rounds = node.held.rounds if node.held is not None else ()
    return node._replace(held=Held(given.holder, _newest(rounds, given.round)))


def _refuse(
    node: AdaptationNode, given: Hold, links: Links, outputs: list[Output]
) -> AdaptationNode:
    outputs.append(SendAcknowledgement(given.holder, given.round, granted=False))
    return node


def _queue_hold(
    node: AdaptationNode, given: Hold, links: Links, outputs: list[Output]
) -> AdaptationNode:
    tree = given.round[0]
    others = [
        (holder, round_)
        for holder, round_ in node.holds
        if (holder, round_[0]) != (given.holder, tree)
    ]
    # Largest first: then whoever is left in the queue may go on waiting for who is granted.
    return node._replace(holds=tuple(sorted([*others, (given.holder, given.round)], reverse=True)))


def _note(
    node: AdaptationNode, given: Acknowledged, links: Links, outputs: list[Output]
) -> AdaptationNode:
    wait = node.wait
    assert wait is not None
    return node._replace(
        wait=wait._replace(
            pending=tuple(child for child in wait.pending if child != given.child),
            reports=tuple(sorted([*wait.reports, (given.child, given.report)])),
        )
    )


def _attempt(
    node: AdaptationNode, given: Input, links: Links, outputs: list[Output]
) -> AdaptationNode:
    assert node.wait is not None
    wait = node.wait._replace(attempting=True)
    outputs.append(Attempt(wait))
    return node._replace(wait=wait)


def _order(
    node: AdaptationNode, given: Chosen | StepMade, links: Links, outputs: list[Output]
) -> AdaptationNode:
    wait = node.wait
    assert wait is not None
    if isinstance(given, Chosen):
        wait = wait._replace(steps=given.steps)
    else:
        wait = wait._replace(done=wait.done + 1)
    mover, parent = wait.steps[wait.done]
    outputs.append(SendOrder(mover, wait.round, parent))
    return node._replace(wait=wait)


def _end(node: AdaptationNode, given: Input, links: Links, outputs: list[Output]) -> AdaptationNode:
    wait = node.wait
    assert wait is not None
    # Those that have not answered are released too: the release undoes a hold that queues.
    asked = sorted([*wait.pending, *(child for child, _ in wait.reports)])
    if isinstance(given, Acknowledged):
        asked.remove(given.child)
    outputs.extend(SendRelease(child, wait.round) for child in asked)
    if isinstance(given, StepMade) and given.done:
        wait = wait._replace(done=wait.done + 1)
    outputs.append(PassToken(wait))
    return node._replace(wait=None)


def _send_away(
    node: AdaptationNode, given: Acknowledged, links: Links, outputs: list[Output]
) -> AdaptationNode:
    outputs.append(SendRelease(given.child, given.round))
    return node


def _go_on(
    node: AdaptationNode, given: Input, links: Links, outputs: list[Output]
) -> AdaptationNode:
    return node._replace(held=None)


def _drop_round(
    node: AdaptationNode, given: Released, links: Links, outputs: list[Output]
) -> AdaptationNode:
    assert node.held is not None
    rounds = tuple(round_ for round_ in node.held.rounds if round_ != given.round)
    return node._replace(held=node.held._replace(rounds=rounds))


def _withdraw(
    node: AdaptationNode, given: Released, links: Links, outputs: list[Output]
) -> AdaptationNode:
    return node._replace(
        holds=tuple(queued for queued in node.holds if queued != (given.holder, given.round))
    )


def _newest(rounds: tuple[Round, ...], new: Round) -> tuple[Round, ...]:
    """Return rounds with the one of a tree in place of an older one of that tree."""
    return (*(round_ for round_ in rounds if round_[0] != new[0]), new)


_IDLE, _WAIT, _HOLD = Phase.IDLE, Phase.WAIT, Phase.HOLD

_TABLE: Mapping[tuple[Phase, PhaseEvent], tuple[Phase, _Action]] = {
    (_IDLE, PhaseEvent.ROUND): (_WAIT, _begin),
    (_IDLE, PhaseEvent.HOLD): (_HOLD, _grant),
    (_IDLE, PhaseEvent.HOLD_BY_STRANGER): (_IDLE, _refuse),
    (_IDLE, PhaseEvent.STRAY_ANSWER): (_IDLE, _send_away),
    (_WAIT, PhaseEvent.ROUND): (_WAIT, _queue_token),
    (_WAIT, PhaseEvent.ANSWER): (_WAIT, _note),
    (_WAIT, PhaseEvent.COMPLETE): (_WAIT, _attempt),
    (_WAIT, PhaseEvent.ORDERED): (_WAIT, _order),
    (_WAIT, PhaseEvent.FINISHED): (_IDLE, _end),
    (_WAIT, PhaseEvent.REFUSAL): (_IDLE, _end),
    (_WAIT, PhaseEvent.IMPATIENCE): (_IDLE, _end),
    (_WAIT, PhaseEvent.HOLD_BY_LARGER): (_HOLD, _grant),
    (_WAIT, PhaseEvent.HOLD_BY_SMALLER): (_WAIT, _queue_hold),
    (_WAIT, PhaseEvent.HOLD_WHILE_MOVING): (_WAIT, _queue_hold),
    (_WAIT, PhaseEvent.HOLD_BY_STRANGER): (_WAIT, _refuse),
    (_WAIT, PhaseEvent.WITHDRAWAL): (_WAIT, _withdraw),
    (_WAIT, PhaseEvent.STRAY_ANSWER): (_WAIT, _send_away),
    (_HOLD, PhaseEvent.ROUND): (_HOLD, _queue_token),
    (_HOLD, PhaseEvent.RELEASE): (_IDLE, _go_on),
    (_HOLD, PhaseEvent.RELEASE_INTO_WAIT): (_WAIT, _go_on),
    (_HOLD, PhaseEvent.RELEASE_OF_ONE): (_HOLD, _drop_round),
    (_HOLD, PhaseEvent.HOLD_BY_HOLDER): (_HOLD, _grant),
    (_HOLD, PhaseEvent.HOLD_BY_LARGER): (_HOLD, _refuse),
    (_HOLD, PhaseEvent.HOLD_BY_SMALLER): (_HOLD, _queue_hold),
    (_HOLD, PhaseEvent.HOLD_BY_STRANGER): (_HOLD, _refuse),
    (_HOLD, PhaseEvent.WITHDRAWAL): (_HOLD, _withdraw),
    (_HOLD, PhaseEvent.ANSWER): (_HOLD, _note),
    (_HOLD, PhaseEvent.REFUSAL): (_HOLD, _end),
    (_HOLD, PhaseEvent.IMPATIENCE): (_HOLD, _end),
    (_HOLD, PhaseEvent.STRAY_ANSWER): (_HOLD, _send_away),
}

TRANSITIONS: Transitions[Phase, PhaseEvent] = Transitions(
    "adaptation node", Phase.IDLE, {line: phase for line, (phase, _) in _TABLE.items()}
)
"""Which phase follows which; a restart begins anew in the first."""
