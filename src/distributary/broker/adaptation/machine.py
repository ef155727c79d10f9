"""How the adaptation node goes on: a table, and a small action for every line of it.

`node` has the theory of operation. What is not in the table is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from distributary.broker.adaptation.node import (
    Acknowledged,
    Attempt,
    Chosen,
    Event,
    Held,
    Hold,
    HoldExpired,
    Input,
    Links,
    Moved,
    Node,
    Output,
    PassToken,
    Phase,
    Released,
    Round,
    SendAcknowledgement,
    SendHold,
    SendOrder,
    SendRelease,
    Token,
    Wait,
    WaitExpired,
)
from distributary.broker.transitions import Transitions

__all__ = ["TRANSITIONS", "step"]

_Action: TypeAlias = Callable[[Node, Any, Links, list[Output]], Node]


def step(node: Node, given: Input, links: Links) -> tuple[Node, tuple[Output, ...]]:
    """Return the state that follows, and what to do.

    Parameters
    ----------
    node
        The state.
    given
        What has happened.
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
            event = Event.COMPLETE
        elif wait is None and node.tokens:
            given = Token(node.tokens[0])
            node = node._replace(tokens=node.tokens[1:])
            event = Event.ROUND
        elif node.holds and (wait is None or node.holds[0][0] > node.name):
            holder, round_ = node.holds[0]
            given = Hold(round_, holder)
            node = node._replace(holds=node.holds[1:])
            event = _event(node, given, links)
    return node, tuple(outputs)


def _event(node: Node, given: Input, links: Links) -> Event | None:
    """Return what an input means to a broker in its state; None when it means nothing."""
    kind = type(given)
    wait = node.wait
    if kind is Acknowledged:
        assert isinstance(given, Acknowledged)
        if wait is not None and wait.round == given.round:
            if given.child in wait.pending:
                return Event.ANSWER if given.granted else Event.REFUSAL
            if any(child == given.child for child, _ in wait.reports):
                return None
        return Event.STRAY_ANSWER if given.granted else None
    if kind is Hold:
        assert isinstance(given, Hold)
        return _hold_event(node, given, links)
    if kind is Released:
        assert isinstance(given, Released)
        return _release_event(node, given)
    if kind is Token:
        assert isinstance(given, Token)
        tree, number = given.round
        known = any(seen == tree and last >= number for seen, last in node.seen)
        return None if known else Event.ROUND
    if kind is HoldExpired:
        return Event.RELEASE if wait is None else Event.RELEASE_INTO_WAIT
    if wait is None:
        return None
    if kind is WaitExpired:
        return Event.IMPATIENCE
    assert isinstance(given, Chosen | Moved)
    if wait.round != given.round or not wait.attempting:
        return None
    if isinstance(given, Chosen):
        if wait.steps:
            return None
        return Event.ORDERED if given.steps else Event.FINISHED
    if not wait.steps or wait.steps[wait.done][0] != given.mover:
        return None
    return Event.ORDERED if given.done and wait.done + 1 < len(wait.steps) else Event.FINISHED


def _hold_event(node: Node, given: Hold, links: Links) -> Event:
    if links.parent(given.round[0]) != given.holder:
        return Event.HOLD_BY_STRANGER
    if node.held is not None:
        if given.holder == node.held.holder:
            return Event.HOLD_BY_HOLDER
        larger = given.holder > node.held.holder
    elif node.wait is None:
        return Event.HOLD
    elif node.wait.attempting:
        return Event.HOLD_WHILE_MOVING
    else:
        larger = given.holder > node.name
    return Event.HOLD_BY_LARGER if larger else Event.HOLD_BY_SMALLER


def _release_event(node: Node, given: Released) -> Event | None:
    held = node.held
    if held is not None and held.holder == given.holder and given.round in held.rounds:
        if len(held.rounds) > 1:
            return Event.RELEASE_OF_ONE
        return Event.RELEASE if node.wait is None else Event.RELEASE_INTO_WAIT
    if (given.holder, given.round) in node.holds:
        return Event.WITHDRAWAL
    return None


def _begin(node: Node, given: Token, links: Links, outputs: list[Output]) -> Node:
    children = links.children(given.round[0])
    outputs.extend(SendHold(child, given.round) for child in children)
    return node._replace(wait=Wait(given.round, children), seen=_newest(node.seen, given.round))


def _queue_token(node: Node, given: Token, links: Links, outputs: list[Output]) -> Node:
    return node._replace(
        tokens=_newest(node.tokens, given.round), seen=_newest(node.seen, given.round)
    )


def _grant(node: Node, given: Hold, links: Links, outputs: list[Output]) -> Node:
    outputs.append(SendAcknowledgement(given.holder, given.round, granted=True))
    rounds = node.held.rounds if node.held is not None else ()
    return node._replace(held=Held(given.holder, _newest(rounds, given.round)))


def _refuse(node: Node, given: Hold, links: Links, outputs: list[Output]) -> Node:
    outputs.append(SendAcknowledgement(given.holder, given.round, granted=False))
    return node


def _queue_hold(node: Node, given: Hold, links: Links, outputs: list[Output]) -> Node:
    tree = given.round[0]
    others = [
        (holder, round_)
        for holder, round_ in node.holds
        if (holder, round_[0]) != (given.holder, tree)
    ]
    # Largest first: then whoever is left in the queue may go on waiting for who is granted.
    return node._replace(holds=tuple(sorted([*others, (given.holder, given.round)], reverse=True)))


def _note(node: Node, given: Acknowledged, links: Links, outputs: list[Output]) -> Node:
    wait = node.wait
    assert wait is not None
    return node._replace(
        wait=wait._replace(
            pending=tuple(child for child in wait.pending if child != given.child),
            reports=tuple(sorted([*wait.reports, (given.child, given.report)])),
        )
    )


def _attempt(node: Node, given: Input, links: Links, outputs: list[Output]) -> Node:
    assert node.wait is not None
    wait = node.wait._replace(attempting=True)
    outputs.append(Attempt(wait))
    return node._replace(wait=wait)


def _order(node: Node, given: Chosen | Moved, links: Links, outputs: list[Output]) -> Node:
    wait = node.wait
    assert wait is not None
    if isinstance(given, Chosen):
        wait = wait._replace(steps=given.steps)
    else:
        wait = wait._replace(done=wait.done + 1)
    mover, parent = wait.steps[wait.done]
    outputs.append(SendOrder(mover, wait.round, parent))
    return node._replace(wait=wait)


def _end(node: Node, given: Input, links: Links, outputs: list[Output]) -> Node:
    wait = node.wait
    assert wait is not None
    # Those that have not answered are released too: the release undoes a hold that queues.
    asked = sorted([*wait.pending, *(child for child, _ in wait.reports)])
    if isinstance(given, Acknowledged):
        asked.remove(given.child)
    outputs.extend(SendRelease(child, wait.round) for child in asked)
    if isinstance(given, Moved) and given.done:
        wait = wait._replace(done=wait.done + 1)
    outputs.append(PassToken(wait))
    return node._replace(wait=None)


def _send_away(node: Node, given: Acknowledged, links: Links, outputs: list[Output]) -> Node:
    outputs.append(SendRelease(given.child, given.round))
    return node


def _go_on(node: Node, given: Input, links: Links, outputs: list[Output]) -> Node:
    return node._replace(held=None)


def _drop_round(node: Node, given: Released, links: Links, outputs: list[Output]) -> Node:
    assert node.held is not None
    rounds = tuple(round_ for round_ in node.held.rounds if round_ != given.round)
    return node._replace(held=node.held._replace(rounds=rounds))


def _withdraw(node: Node, given: Released, links: Links, outputs: list[Output]) -> Node:
    return node._replace(
        holds=tuple(queued for queued in node.holds if queued != (given.holder, given.round))
    )


def _newest(rounds: tuple[Round, ...], new: Round) -> tuple[Round, ...]:
    """Return rounds with the one of a tree in place of an older one of that tree."""
    return (*(round_ for round_ in rounds if round_[0] != new[0]), new)


_IDLE, _WAIT, _HOLD = Phase.IDLE, Phase.WAIT, Phase.HOLD

_TABLE: Mapping[tuple[Phase, Event], tuple[Phase, _Action]] = {
    (_IDLE, Event.ROUND): (_WAIT, _begin),
    (_IDLE, Event.HOLD): (_HOLD, _grant),
    (_IDLE, Event.HOLD_BY_STRANGER): (_IDLE, _refuse),
    (_IDLE, Event.STRAY_ANSWER): (_IDLE, _send_away),
    (_WAIT, Event.ROUND): (_WAIT, _queue_token),
    (_WAIT, Event.ANSWER): (_WAIT, _note),
    (_WAIT, Event.COMPLETE): (_WAIT, _attempt),
    (_WAIT, Event.ORDERED): (_WAIT, _order),
    (_WAIT, Event.FINISHED): (_IDLE, _end),
    (_WAIT, Event.REFUSAL): (_IDLE, _end),
    (_WAIT, Event.IMPATIENCE): (_IDLE, _end),
    (_WAIT, Event.HOLD_BY_LARGER): (_HOLD, _grant),
    (_WAIT, Event.HOLD_BY_SMALLER): (_WAIT, _queue_hold),
    (_WAIT, Event.HOLD_WHILE_MOVING): (_WAIT, _queue_hold),
    (_WAIT, Event.HOLD_BY_STRANGER): (_WAIT, _refuse),
    (_WAIT, Event.WITHDRAWAL): (_WAIT, _withdraw),
    (_WAIT, Event.STRAY_ANSWER): (_WAIT, _send_away),
    (_HOLD, Event.ROUND): (_HOLD, _queue_token),
    (_HOLD, Event.RELEASE): (_IDLE, _go_on),
    (_HOLD, Event.RELEASE_INTO_WAIT): (_WAIT, _go_on),
    (_HOLD, Event.RELEASE_OF_ONE): (_HOLD, _drop_round),
    (_HOLD, Event.HOLD_BY_HOLDER): (_HOLD, _grant),
    (_HOLD, Event.HOLD_BY_LARGER): (_HOLD, _refuse),
    (_HOLD, Event.HOLD_BY_SMALLER): (_HOLD, _queue_hold),
    (_HOLD, Event.HOLD_BY_STRANGER): (_HOLD, _refuse),
    (_HOLD, Event.WITHDRAWAL): (_HOLD, _withdraw),
    (_HOLD, Event.ANSWER): (_HOLD, _note),
    (_HOLD, Event.REFUSAL): (_HOLD, _end),
    (_HOLD, Event.IMPATIENCE): (_HOLD, _end),
    (_HOLD, Event.STRAY_ANSWER): (_HOLD, _send_away),
}

TRANSITIONS: Transitions[Phase, Event] = Transitions(
    "adaptation node", Phase.IDLE, {line: phase for line, (phase, _) in _TABLE.items()}
)
"""Which phase follows which; a restart begins anew in the first."""
