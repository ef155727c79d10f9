"""No copy is ever outside its tolerance, and compiled rules agree with fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.reference import tolerance as exact
from tests.strategies_content import (
    AMOUNTS,
    KINDS,
    BrokerTree,
    broker_trees,
    effective,
    streams,
)

from distributary.content._tolerance_kernels import edit_distance
from distributary.content.divergence import DIVERGENCES, Version, code_points
from distributary.content.rounding import relative_threshold, threshold
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule, Tolerance, outside
from distributary.content.trace import Trace, forwarded


class Brokers:
    """A tree of brokers without delay: what each of them holds."""

    def __init__(self, tree: BrokerTree) -> None:
        self.tree = tree
        kept = tree.effective()
        self.rules = [
            ForwardingRule(parent=kept[parent] if parent > 0 else None, child=kept[broker])
            for broker, parent in enumerate(tree.parents)
        ]
        self.held: list[Version | None] = [None] * len(kept)

    def publish(self, version: Version) -> None:
        """Send a version down the tree; parents come before their children."""
        self.held[0] = version
        arrived = {0}
        for broker, parent in enumerate(self.tree.parents):
            new = self.held[parent]
            if parent not in arrived or new is None:
                continue
            if self.rules[broker].forwards(new, self.held[broker]):
                self.held[broker] = new
                arrived.add(broker)

    def strain(self, version: Version) -> float:
        """Return how much of its amount the worst copy has used up."""
        return max(
            DIVERGENCES[tolerance.divergence].between(version, copy) / tolerance.amount
            for copy, clients in zip(self.held, self.tree.clients, strict=True)
            for tolerance in clients
            if copy is not None and tolerance.divergence != "changes"
        )

    def check(self, version: Version) -> None:
        """No copy is outside, neither as computed nor in fractions."""
        for copy, clients in zip(self.held, self.tree.clients, strict=True):
            for tolerance in clients:
                assert copy is not None
                assert not outside(tolerance, version, copy)
                assert exact.divergence(tolerance.divergence, version, copy) < tolerance.amount


@given(broker_trees(), streams())
def test_without_delay_no_copy_is_ever_outside_its_tolerance(
    tree: BrokerTree, versions: list[Version]
) -> None:
    """For any tree, any mix of tolerances and any stream."""
    brokers = Brokers(tree)
    for version in versions:
        brokers.publish(version)
        brokers.check(version)


@settings(max_examples=40)
@given(
    broker_trees(kinds=["relative", "changes", "absolute"], brokers_max=4),
    st.integers(0, 2**32),
    st.sampled_from([1.0, -0.1, 1e-300, 1e300]),
)
def test_an_adversary_who_knows_every_copy_finds_no_way_outside(
    tree: BrokerTree, seed: int, value: float
) -> None:
    """The source moves to where somebody only just need not be sent anything.

    Mostly to the value that leaves some copy worst off, sometimes to any other. Changes
    give brokers on the way versions that their other tolerances do not need.
    """
    brokers = Brokers(tree)
    rng = np.random.default_rng(seed)
    for number in range(12):
        version = Version(value, number)
        brokers.publish(version)
        brokers.check(version)
        before = list(brokers.held)
        tempting = values_just_inside(brokers, rng)
        if not tempting:
            break
        strain = []
        for candidate in tempting:
            brokers.publish(Version(candidate, number + 1))
            strain.append(brokers.strain(Version(candidate, number + 1)))
            brokers.held = list(before)
        chosen = int(np.argmax(strain)) if rng.random() < 0.6 else rng.integers(len(tempting))
        value = tempting[chosen]


def values_just_inside(brokers: Brokers, rng: np.random.Generator) -> list[float]:
    """Return source values that are nearly too far from what some broker holds."""
    found = []
    for copy, kept in zip(brokers.held, brokers.tree.effective(), strict=True):
        assert copy is not None
        assert isinstance(copy.value, float)
        for share in (0.999, -0.999, rng.uniform(-1.0, 1.0)):
            if "relative" in kept.amounts:
                # Where |value - copy| = share * amount * |value|, on one side or the other.
                found.append(copy.value / (1.0 - share * min(kept.amounts["relative"], 0.99)))
            if "absolute" in kept.amounts:
                found.append(copy.value + share * kept.amounts["absolute"])
    return [value for value in found if math.isfinite(value)]


@given(streams(), effective(), st.none() | effective(), st.lists(effective(), max_size=3))
def test_a_compiled_trace_forwards_what_the_rule_forwards_one_by_one(
    versions: list[Version],
    child: EffectiveTolerance,
    parent: EffectiveTolerance | None,
    others: list[EffectiveTolerance],
) -> None:
    children = [child, *others]
    sent = forwarded(Trace.of(versions), children, parent=parent)
    assert sent.tolist() == [exact.received_one_by_one(versions, parent, c) for c in children]


@given(st.sampled_from(KINDS), streams(versions_max=8), AMOUNTS, st.just(0.0) | AMOUNTS)
def test_what_the_exact_rule_forwards_is_forwarded(
    kind: str, versions: list[Version], one: float, other: float
) -> None:
    """Thresholds are rounded down, never up."""
    child, parent = max(one, other), min(one, other)
    rule = DIVERGENCES[kind]
    for version in versions:
        for last in versions:
            if exact.forwards(kind, version, last, child=child, parent=parent):
                assert rule.forwards(version, last, child=child, parent=parent)


@given(st.sampled_from(KINDS), streams(versions_max=8), AMOUNTS, st.just(0.0) | AMOUNTS)
def test_hardly_more_is_forwarded_than_the_exact_rule_asks_for(
    kind: str, versions: list[Version], one: float, other: float
) -> None:
    """Rounding costs an amount a few steps, not more."""
    child, parent = max(one, other), min(one, other)
    lower = child - 16 * math.ulp(child)
    assume(lower > parent)
    for version in versions:
        for last in versions:
            # Near the ends of the range of a double there is no room for steps.
            if not all(
                not isinstance(v.value, float) or 1e-270 <= abs(v.value) <= 1e270
                for v in (version, last)
            ):
                continue
            if DIVERGENCES[kind].forwards(version, last, child=child, parent=parent):
                assert exact.forwards(kind, version, last, child=lower, parent=parent)


@given(st.sampled_from(KINDS), streams(versions_max=8))
def test_divergences_are_those_of_the_definition(kind: str, versions: list[Version]) -> None:
    for version in versions:
        for copy in versions:
            computed = DIVERGENCES[kind].between(version, copy)
            true = exact.divergence(kind, version, copy)
            if true == math.inf or true > Fraction(1.7e308):
                assert computed >= 1.7e308
            else:
                assert computed == pytest.approx(float(true), rel=1e-15, abs=5e-324)


@given(AMOUNTS, AMOUNTS)
def test_a_threshold_is_the_largest_double_that_is_not_above(one: float, other: float) -> None:
    child, parent = max(one, other), min(one, other)
    true = Fraction(child) - Fraction(parent)
    least = threshold(child, parent)
    assert Fraction(least) <= true < Fraction(math.nextafter(least, math.inf))


@given(
    st.floats(0.0, 1e15),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just(1.0) | st.floats(1.0, 1e15),
)
def test_a_relative_threshold_is_not_above(numerator: float, value: float, divisor: float) -> None:
    true = Fraction(numerator) * abs(Fraction(value)) / Fraction(divisor)
    assert Fraction(relative_threshold(numerator, value, divisor)) <= true


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_the_edit_distance_is_that_of_the_recurrence(a: str, b: str) -> None:
    computed = edit_distance(code_points(a), code_points(b), 8)
    assert computed == exact.edit_distance(a, b)


@given(st.text("ab", min_size=3, max_size=5), st.text("ab", max_size=5))
def test_a_text_beyond_the_limit_is_infinitely_far_from_another(a: str, b: str) -> None:
    computed = edit_distance(code_points(a), code_points(b), 2)
    assert computed == (0.0 if a == b else math.inf)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), AMOUNTS)
def test_numbers_alone_make_the_same_trace(values: list[float], amount: float) -> None:
    child = EffectiveTolerance.of([Tolerance("/v", "absolute", amount)])
    numbers = forwarded(Trace.of_numbers(np.array(values)), [child], parent=None)
    versions = [Version(value, n) for n, value in enumerate(values)]
    assert numbers.tolist() == forwarded(Trace.of(versions), [child], parent=None).tolist()
