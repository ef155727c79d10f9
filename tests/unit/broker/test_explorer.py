"""The protocol of adaptation in every order of its messages, and what the search would find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explorer import AdaptingBrokers, explore, wander
from tests.explorer.brokers import Trees
from tests.explorer.literal import DEADLOCKS, REPAIRS, deadlock
from tests.protocol_diagrams import state_diagram

from distributary.broker.adaptation import mover, node

STAR: Trees = ((None, 0, 0),)
CHAIN: Trees = ((None, 0, 1),)
TWO_ROWS: Trees = ((None, 0, 0, 1),)
# Each is above another in one tree and below a third in another.
RING: Trees = ((None, 0, -1), (-1, None, 1), (2, -1, None))
UPSIDE_DOWN: Trees = ((None, 0, 1), (1, 2, None))
TWO_PARENTS: Trees = ((None, -1, 0, 0), (-1, None, 1, 1))
THREE_TREES: Trees = ((None, 0, 0, 1, 1), (1, None, 1, 0, 0), (3, 4, 4, None, 3))

EVERYTHING = {"lost": 1, "crash": 1, "expire": 1, "return": 1}


GUIDE = Path(__file__).parents[3] / "docs" / "adaptation.md"


@pytest.mark.parametrize("trees", [STAR, CHAIN, TWO_ROWS, RING, UPSIDE_DOWN, TWO_PARENTS], ids=str)
def test_without_faults_nobody_needs_patience(trees: Trees) -> None:
    """All states are seen, and from each there is a way to rest without any timer."""
    found = explore(AdaptingBrokers(trees, patient=True), states_max=100_000)
    assert found.fault is None
    assert found.complete


@pytest.mark.parametrize(
    ("trees", "allowed"),
    [
        (TWO_ROWS, {"lost": 1}),
        (TWO_ROWS, {"crash": 1}),
        (RING, EVERYTHING),
        (CHAIN, {"lost": 1, "expire": 1}),
    ],
    ids=str,
)
def test_with_faults_trees_stay_whole_and_everybody_comes_to_rest(
    trees: Trees, allowed: Mapping[str, int]
) -> None:
    found = explore(AdaptingBrokers(trees, allowed=allowed), states_max=200_000)
    assert found.fault is None
    assert found.complete
    assert found.state_count >= 1_000


def test_the_guide_says_how_many_states_a_parent_with_two_children_has() -> None:
    found = explore(AdaptingBrokers(STAR, allowed=EVERYTHING), states_max=100_000)
    assert found.fault is None
    assert found.complete
    assert f"has {found.state_count:,} states" in GUIDE.read_text(encoding="utf-8")


def test_three_trees_of_five_brokers_have_no_fault_in_a_hundred_thousand_states() -> None:
    found = explore(AdaptingBrokers(THREE_TREES, allowed=EVERYTHING), states_max=100_000)
    assert found.fault is None
    assert found.state_count >= 100_000


def test_walks_to_the_end_find_no_fault_either() -> None:
    """The search sees what is near the beginning; walks see what is far."""
    system = AdaptingBrokers(
        THREE_TREES, rounds=2, allowed={"lost": 3, "crash": 2, "expire": 3, "return": 2}
    )
    found = wander(system, seed=1, walks=60)
    assert found.fault is None
    assert found.state_count >= 3_000


@st.composite
def forests(draw: st.DrawFn) -> Trees:
    """Draw trees of all shapes over a few brokers, some of them outside."""
    count = draw(st.integers(2, 5))
    trees = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(count)))
        inside = draw(st.integers(1, count))
        parents: list[int | None] = [-1] * count
        parents[order[0]] = None
        for at in range(1, inside):
            parents[order[at]] = order[draw(st.integers(0, at - 1))]
        trees.append(tuple(parents))
    return tuple(trees)


@settings(max_examples=15)
@given(forests(), st.integers(0, 2**32))
def test_walks_through_any_forest_find_no_fault(trees: Trees, seed: int) -> None:
    for patient, allowed in ((True, {}), (False, EVERYTHING)):
        system = AdaptingBrokers(trees, allowed=allowed, patient=patient)
        found = wander(system, seed=seed, walks=2)
        assert found.fault is None


@pytest.mark.full
@pytest.mark.parametrize(
    ("trees", "rounds", "allowed"),
    [
        (STAR, 2, {"expire": 1}),
        (STAR, 2, {"lost": 2}),
        (CHAIN, 1, EVERYTHING),
        (UPSIDE_DOWN, 1, {"lost": 1, "crash": 1}),
        (TWO_PARENTS, 1, {"lost": 1}),
    ],
    ids=str,
)
def test_larger_spaces_have_no_fault(trees: Trees, rounds: int, allowed: Mapping[str, int]) -> None:
    found = explore(AdaptingBrokers(trees, rounds=rounds, allowed=allowed), states_max=1_500_000)
    assert found.fault is None
    assert found.state_count >= 100_000


@pytest.mark.full
def test_long_walks_through_three_trees_have_no_fault() -> None:
    for seed in range(4):
        allowed = {"lost": 4, "crash": 3, "expire": 4, "return": 3}
        system = AdaptingBrokers(THREE_TREES, rounds=2, allowed=allowed)
        assert wander(system, seed=seed, walks=600).fault is None


# The search finds what it is there to find: each of these breaks one rule.


def rewrite(
    monkeypatch: pytest.MonkeyPatch, line: tuple[node.Phase, node.PhaseEvent], action: Any
) -> None:
    phase, _ = node._TABLE[line]
    monkeypatch.setattr(node, "_TABLE", {**node._TABLE, line: (phase, action)})


def test_a_held_broker_that_only_queues_lets_two_parents_block_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = (node.Phase.HOLD, node.PhaseEvent.HOLD_BY_LARGER)
    rewrite(monkeypatch, line, node._queue_hold)
    fault = explore(AdaptingBrokers(TWO_PARENTS, patient=True), states_max=100_000).fault
    assert fault is not None
    assert fault.nodes == ("WAIT", "WAIT", "HOLD", "HOLD")


def test_a_reversed_number_rule_lets_two_parents_block_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs with chance seldom meet the order of messages that shows it; the search always does."""
    hold_event = node._hold_event
    reverse = {
        node.PhaseEvent.HOLD_BY_LARGER: node.PhaseEvent.HOLD_BY_SMALLER,
        node.PhaseEvent.HOLD_BY_SMALLER: node.PhaseEvent.HOLD_BY_LARGER,
    }

    def reversed_event(given_node: Any, given: Any, links: Any) -> node.PhaseEvent:
        event = hold_event(given_node, given, links)
        return reverse.get(event, event)

    monkeypatch.setattr(node, "_hold_event", reversed_event)
    fault = explore(AdaptingBrokers(TWO_PARENTS, patient=True), states_max=100_000).fault
    assert fault is not None
    assert "WAIT" in fault.nodes


def test_a_child_that_is_moved_and_not_released_holds_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forget_the_moved(
        given_node: node.AdaptationNode, given: Any, links: Any, outputs: list[Any]
    ) -> Any:
        following = node._end(given_node, given, links, outputs)
        assert given_node.wait is not None
        children = links.children(given_node.wait.round[0])
        outputs[:] = [
            output
            for output in outputs
            if not isinstance(output, node.SendRelease) or output.to in children
        ]
        return following

    rewrite(monkeypatch, (node.Phase.WAIT, node.PhaseEvent.FINISHED), forget_the_moved)
    fault = explore(AdaptingBrokers(STAR, patient=True), states_max=100_000).fault
    assert fault is not None
    assert "HOLD" in fault.nodes


def test_two_brokers_that_look_only_at_paths_go_below_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why a question is refused by whoever is on the move."""

    def look_at_the_path(name: Any, parent: Any, move: mover.Move, who: Any) -> mover.Verdict:
        return judge(name, parent, mover.AT_REST, who)

    judge = mover.judge
    monkeypatch.setattr(mover, "judge", look_at_the_path)
    system = AdaptingBrokers(STAR, rounds=2, allowed={"expire": 1})
    fault = explore(system, states_max=400_000).fault
    assert fault is not None
    assert "cycle" in fault.what


def test_a_late_detachment_without_a_number_makes_an_orphan() -> None:
    class WithoutNumbers(AdaptingBrokers):
        def deliver(self, broker: Any, message: Any) -> Any:
            if message[1] == "detach":
                message = (*message[:4], 10**6)
            return super().deliver(broker, message)

    system = WithoutNumbers(CHAIN, rounds=2, allowed={"return": 1})
    fault = explore(system, states_max=400_000).fault
    assert fault is not None
    assert "orphan" in fault.what


def test_every_line_of_the_table_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """No transition is there that no order of events ever needs."""
    used: set[Any] = set()

    class Recorded(dict[Any, Any]):
        def get(self, line: Any, default: Any = None) -> Any:
            used.add(line)
            return super().get(line, default)

    monkeypatch.setattr(node, "_TABLE", Recorded(node._TABLE))
    for trees in (TWO_PARENTS, THREE_TREES, UPSIDE_DOWN):
        system = AdaptingBrokers(trees, rounds=2, allowed=EVERYTHING)
        assert explore(system, states_max=30_000).fault is None
        assert wander(system, seed=3, walks=15).fault is None
    assert {(state, event) for state, event, _ in node.TRANSITIONS} <= used


# The algorithms as they are printed.


@pytest.mark.parametrize(("what", "repairs", "trees"), DEADLOCKS)
def test_the_printed_algorithms_deadlock(what: str, repairs: int, trees: Any) -> None:
    fault = deadlock(trees, repairs=repairs)
    assert fault is not None
    assert set(fault.nodes) != {"IDLE"}


@pytest.mark.parametrize(("what", "repairs", "trees"), DEADLOCKS)
def test_every_repair_ends_one_deadlock_and_ours_end_all(
    what: str, repairs: int, trees: Any
) -> None:
    if repairs < len(REPAIRS):
        after = deadlock(trees, repairs=len(REPAIRS))
        assert after is None
    assert explore(AdaptingBrokers(trees, patient=True), states_max=100_000).fault is None


def test_the_first_deadlock_takes_one_parent_one_child_and_three_steps() -> None:
    fault = deadlock(((None, 0),), repairs=0)
    assert fault is not None
    assert fault.lines() == [
        "1. 0 begins a round of tree 0",
        "2. 1 gets hold of tree 0 from 0",
        "3. 0 gets acknowledgement of tree 0 from 1",
        "then nothing can happen any more, and somebody waits: 0 is in IDLE, 1 is in HOLD",
    ]


def test_the_guide_shows_the_deadlocks_and_the_tables_as_they_are() -> None:
    """What stands in its blocks is what the search finds and what the code looks up."""
    guide = GUIDE.read_text(encoding="utf-8")
    blocks = [block.partition("\n")[::2] for block in guide.split("```")[1::2]]
    drawn = [text for language, text in blocks if language == "mermaid"]
    assert drawn == [state_diagram(node.TRANSITIONS), state_diagram(mover.TRANSITIONS)]
    traces = [text for language, text in blocks if language == "text" and text[:3] == "1. "]
    faults = [deadlock(trees, repairs=repairs) for _, repairs, trees in DEADLOCKS]
    assert traces == ["\n".join(fault.lines()) + "\n" for fault in faults if fault is not None]
    for what, _, _ in DEADLOCKS:
        assert f"**{what}.**" in guide
    for repair in REPAIRS:
        assert repair in guide
