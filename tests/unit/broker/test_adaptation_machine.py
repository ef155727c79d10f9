"""The adaptation node and the mover, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from tests.explorer.moves import legal_moves

from distributary.broker.adaptation import mover
from distributary.broker.adaptation.adaptation import differs
from distributary.broker.adaptation.messages import Figures, ObjectFigures
from distributary.broker.adaptation.mover import steps_of, with_children
from distributary.broker.adaptation.node import (
    Acknowledged,
    AdaptationNode,
    Attempt,
    Chosen,
    Hold,
    HoldExpired,
    Input,
    Output,
    PassToken,
    Phase,
    Released,
    SendAcknowledgement,
    SendHold,
    SendOrder,
    SendRelease,
    StepMade,
    TokenCame,
    WaitExpired,
    step,
)

R1, R2 = ("t", 1), ("t", 2)
OTHER = ("u", 1)


@dataclass
class FixedLinks:
    """Trees that stay as they are: by tree, a parent and children."""

    trees: dict[str, tuple[int | None, tuple[int, ...]]] = field(default_factory=dict)

    def parent(self, tree: str) -> int | None:
        return self.trees.get(tree, (None, ()))[0]

    def children(self, tree: str) -> tuple[int, ...]:
        return self.trees.get(tree, (None, ()))[1]


ROOT = FixedLinks({"t": (None, (6, 7)), "u": (9, (6,))})


def run(
    node: AdaptationNode, links: FixedLinks, *given: Input
) -> tuple[AdaptationNode, list[Output]]:
    outputs: list[Output] = []
    for one in given:
        node, more = step(node, one, links)
        outputs += more
    return node, outputs


def test_a_token_makes_a_broker_hold_its_children_attempt_release_and_pass_it_on() -> None:
    node, asked = run(AdaptationNode(5), ROOT, TokenCame(R1))
    assert asked == [SendHold(6, R1), SendHold(7, R1)]
    assert node.phase is Phase.WAIT
    node, attempt = run(
        node, ROOT, Acknowledged(R1, 7, True, "seven"), Acknowledged(R1, 6, True, "six")
    )
    assert isinstance(attempt[0], Attempt)
    assert attempt[0].wait.reports == ((6, "six"), (7, "seven"))
    node, ordered = run(node, ROOT, Chosen(R1, ((8, 5), (6, 8))))
    assert ordered == [SendOrder(8, R1, 5)]
    node, ordered = run(node, ROOT, StepMade(R1, 8, done=True))
    assert ordered == [SendOrder(6, R1, 8)]
    node, last = run(node, ROOT, StepMade(R1, 6, done=True))
    assert last[:2] == [SendRelease(6, R1), SendRelease(7, R1)]
    assert isinstance(last[2], PassToken)
    assert last[2].wait.done == 2
    assert node.phase is Phase.IDLE


def test_a_wait_without_children_is_complete_at_once() -> None:
    leaf = FixedLinks({"t": (3, ())})
    node, outputs = run(AdaptationNode(5), leaf, TokenCame(R1))
    assert [type(output) for output in outputs] == [Attempt]
    node, outputs = run(node, leaf, Chosen(R1, ()))
    assert [type(output) for output in outputs] == [PassToken]
    assert node.phase is Phase.IDLE


def test_a_step_that_is_not_made_ends_the_move_and_releases_everybody() -> None:
    node, _ = run(
        AdaptationNode(5),
        ROOT,
        TokenCame(R1),
        Acknowledged(R1, 6, True),
        Acknowledged(R1, 7, True),
        Chosen(R1, ((6, 7), (7, 6))),
    )
    node, outputs = run(node, ROOT, StepMade(R1, 6, done=False))
    assert outputs[:2] == [SendRelease(6, R1), SendRelease(7, R1)]
    assert node.phase is Phase.IDLE


def test_who_waits_lets_itself_be_held_by_a_larger_number_only() -> None:
    node, _ = run(AdaptationNode(5), ROOT, TokenCame(R1))
    held, outputs = run(node, ROOT, Hold(OTHER, 9))
    assert held.phase is Phase.HOLD
    assert outputs == [SendAcknowledgement(9, OTHER, granted=True)]
    small = FixedLinks({**ROOT.trees, "u": (2, ())})
    queued, outputs = run(node, small, Hold(OTHER, 2))
    assert queued.phase is Phase.WAIT
    assert outputs == []
    assert queued.holds == ((2, OTHER),)
    released, outputs = run(queued, small, WaitExpired())
    assert released.phase is Phase.HOLD
    assert SendAcknowledgement(2, OTHER, granted=True) in outputs


def test_what_completes_while_a_broker_is_held_is_attempted_after_its_release() -> None:
    node, _ = run(AdaptationNode(5), ROOT, TokenCame(R1), Hold(OTHER, 9))
    node, outputs = run(
        node, ROOT, Acknowledged(R1, 6, True), Acknowledged(R1, 7, True), TokenCame(("v", 1))
    )
    assert outputs == []
    node, outputs = run(node, ROOT, Released(OTHER, 9))
    assert [type(output) for output in outputs] == [Attempt]
    node, outputs = run(node, ROOT, Chosen(R1, ()))
    assert isinstance(outputs[-1], Attempt), "the token that queued is taken up"
    assert outputs[-1].wait.round == ("v", 1)


def test_a_held_broker_queues_smaller_numbers_than_its_holder_and_refuses_larger_ones() -> None:
    links = FixedLinks({"t": (4, ()), "u": (9, ()), "v": (3, ())})
    node, _ = run(AdaptationNode(5), links, Hold(R1, 4))
    node, outputs = run(node, links, Hold(OTHER, 9), Hold(("v", 1), 3))
    assert outputs == [SendAcknowledgement(9, OTHER, granted=False)]
    node, outputs = run(node, links, Released(R1, 4))
    assert outputs == [SendAcknowledgement(3, ("v", 1), granted=True)]
    assert node.phase is Phase.HOLD


def test_nobody_but_the_parent_may_hold_a_broker() -> None:
    node, outputs = run(AdaptationNode(5), FixedLinks({"t": (4, ())}), Hold(R1, 3))
    assert outputs == [SendAcknowledgement(3, R1, granted=False)]
    assert node.phase is Phase.IDLE


def test_a_refusal_ends_the_attempt_and_releases_the_others() -> None:
    node, _ = run(AdaptationNode(5), ROOT, TokenCame(R1), Acknowledged(R1, 6, True))
    node, outputs = run(node, ROOT, Acknowledged(R1, 7, False))
    assert outputs[0] == SendRelease(6, R1)
    assert isinstance(outputs[1], PassToken)
    assert node.phase is Phase.IDLE


def test_an_acknowledgement_that_nobody_waits_for_is_answered_by_a_release() -> None:
    assert run(AdaptationNode(5), ROOT, Acknowledged(R1, 6, True))[1] == [SendRelease(6, R1)]
    assert run(AdaptationNode(5), ROOT, Acknowledged(R1, 6, False))[1] == []


def test_a_release_that_overtakes_a_queued_hold_takes_it_out() -> None:
    links = FixedLinks({"t": (4, ()), "v": (3, ())})
    node, _ = run(AdaptationNode(5), links, Hold(R1, 4), Hold(("v", 1), 3), Released(("v", 1), 3))
    assert node.holds == ()


def test_a_hold_expires_and_an_old_release_does_nothing() -> None:
    links = FixedLinks({"t": (4, ())})
    node, _ = run(AdaptationNode(5), links, Hold(R1, 4))
    assert run(node, links, HoldExpired())[0].phase is Phase.IDLE
    node, _ = run(node, links, Hold(R2, 4), Released(R1, 4))
    assert node.phase is Phase.HOLD


def test_a_token_of_an_old_round_is_ignored() -> None:
    leaf = FixedLinks({"t": (4, ())})
    node, _ = run(AdaptationNode(5), leaf, TokenCame(R2), Chosen(R2, ()))
    assert run(node, leaf, TokenCame(R1))[1] == []
    assert run(node, leaf, TokenCame(R2))[1] == []
    assert run(node, leaf, TokenCame(("t", 3)))[1] != []


def test_a_broker_with_a_token_of_a_tree_is_not_moved_in_that_tree() -> None:
    node, _ = run(AdaptationNode(5), ROOT, TokenCame(R1))
    assert not node.obeys("t")
    assert node.obeys("u")
    order = mover.Ordered(R1, 1, 2, obeys=False, to_root=False, number=1)
    assert mover.step(mover.AT_REST, order) == (mover.AT_REST, mover.Tell(1, R1, done=False))


def test_a_mover_asks_attaches_and_tells() -> None:
    order = mover.Ordered(R1, 1, 2, obeys=True, to_root=False, number=4)
    move, doing = mover.step(mover.AT_REST, order)
    assert doing == mover.Climb(2, 4)
    assert mover.judge(5, 1, move, 8) is mover.Verdict.REFUSED
    assert mover.step(move, mover.Answered(3, cleared=True)) == (move, None)
    move, doing = mover.step(move, mover.Answered(4, cleared=True))
    assert doing == mover.Attach(2, 4)
    move, doing = mover.step(move, mover.Arrived(4, accepted=True))
    assert doing == mover.Tell(1, R1, done=True)
    assert mover.judge(5, 1, move, 8) is mover.Verdict.ON
    assert mover.judge(5, None, move, 8) is mover.Verdict.CLEARED
    assert mover.judge(8, 1, move, 8) is mover.Verdict.REFUSED


@pytest.mark.parametrize("end", [mover.Answered(4, cleared=False), mover.Expired()])
def test_a_mover_that_is_refused_or_not_answered_stays(end: mover.Given) -> None:
    order = mover.Ordered(R1, 1, 2, obeys=True, to_root=False, number=4)
    move, _ = mover.step(mover.AT_REST, order)
    move, doing = mover.step(move, end)
    assert doing == mover.Tell(1, R1, done=False)
    assert move.stage is mover.Stage.STILL


def test_every_step_of_every_move_leaves_a_tree() -> None:
    below = {1: (3, 4), 2: (5,), 6: ()}
    parents = {1: 0, 2: 0, 6: 0, 3: 1, 4: 1, 5: 2}
    for _, steps in legal_moves(0, below):
        now = dict(parents)
        for who, to in steps:
            assert now[who] != to
            now[who] = to
            for start in now:
                seen = [start]
                while seen[-1] != 0:
                    seen.append(now[seen[-1]])
                    assert len(set(seen)) == len(seen)


def test_swaps_exchange_both() -> None:
    parents = {1: 0, 2: 0, 3: 1, 5: 2}
    cousins = steps_of("cousin swap", top=0, moved=3, other=5, parents=parents)
    assert cousins == ((3, 2), (5, 1))
    uncle = steps_of("uncle-nephew swap", top=0, moved=3, other=2, parents=parents)
    assert uncle == ((3, 0), (2, 1))
    upside_down = steps_of("parent-child swap", top=0, moved=3, other=0, parents=parents)
    assert upside_down == ((3, 0), (1, 3))


def test_the_token_goes_to_children_with_children_after_the_move() -> None:
    below = {1: (3,), 2: ()}
    assert with_children((1, 2), below, ()) == [1]
    assert with_children((1, 2), below, ((3, 2),)) == [2]
    assert with_children((1, 2, 8), below, ()) == [1, 8], "who did not report may have some"


FIGURES = Figures(
    (ObjectFigures("s", "o", 1.0, 2.0, 1, 2.0),), ("c",), 1.0, 3.0, 0.1, 0.1, 0.5, 4.0, 2.0
)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (FIGURES, False),
        (replace(FIGURES, weight=1.19), False),
        (replace(FIGURES, weight=1.21), True),
        (replace(FIGURES, weight=0.84), False),
        (replace(FIGURES, weight=0.82), True),
        (replace(FIGURES, load_elsewhere=0.0), True),
        (replace(FIGURES, children=()), True),
        (replace(FIGURES, objects=()), True),
    ],
)
def test_figures_are_news_when_one_changes_by_more_than_tau(
    changed: Figures, expected: bool
) -> None:
    assert differs(FIGURES, changed, 0.2) is expected
