"""No copy is ever outside its tolerance as written, and compiled rules agree with decimals."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
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
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule, Tolerance, outside
from distributary.content.trace import Trace, forwarded


def hardly_a_number(*versions: Version) -> bool:
    """Whether a value is so small that a double has few digits of it, or next to overflow."""
    return any(
        isinstance(version.value, float)
        and version.value != 0.0
        and not 1e-270 <= abs(version.value) <= 1e270
        for version in versions
    )


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
        """No copy is outside, neither as computed nor in decimals."""
        for copy, clients in zip(self.held, self.tree.clients, strict=True):
            for tolerance in clients:
                assert copy is not None
                assert not outside(tolerance, version, copy)
                kind = tolerance.divergence
                if not hardly_a_number(version, copy):
                    assert not exact.outside(kind, version, copy, tolerance.amount)


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
    """Differences are rounded up and thresholds down, never the other way."""
    child, parent = max(one, other), min(one, other)
    rule = DIVERGENCES[kind]
    for version in versions:
        for last in versions:
            if hardly_a_number(version, last):
                continue
            if exact.forwards(kind, version, last, child=child, parent=parent):
                assert rule.forwards(version, last, child=child, parent=parent)
            if exact.outside(kind, version, last, child):
                assert outside(Tolerance("/v", kind, child), version, last)


@given(st.sampled_from(KINDS), streams(versions_max=8), AMOUNTS, st.just(0.0) | AMOUNTS)
def test_hardly_more_is_forwarded_than_the_exact_rule_asks_for(
    kind: str, versions: list[Version], one: float, other: float
) -> None:
    """Rounding costs a few units in the last place of the amount and of the larger value."""
    child, parent = Decimal(repr(max(one, other))), Decimal(repr(min(one, other)))
    rule = DIVERGENCES[kind]
    for version in versions:
        for last in versions:
            if hardly_a_number(version, last):
                continue
            room = child * 8
            if kind in ("absolute", "relative"):
                numbers = [abs(v.value) for v in (version, last) if isinstance(v.value, float)]
                value = version.value if isinstance(version.value, float) else 0.0
                # A share of the value is as much of the value as of its room.
                larger = Decimal(max(numbers, default=0.0))
                room += larger * 8 / (abs(Decimal(value)) if kind == "relative" and value else 1)
            lower = child - room * Decimal(2) ** -50 * (1 + parent)
            if lower > parent and rule.forwards(
                version, last, child=float(child), parent=float(parent)
            ):
                assert exact.forwards_written(kind, version, last, child=lower, parent=parent)


# Whole numbers of steps, in which values, copies and amounts are written: cents, for one.
_STEPS = st.integers(0, 10**14 - 1)


@given(
    st.tuples(_STEPS, st.integers(-3, 3) | _STEPS),
    st.integers(1, 10**14 - 1),
    st.none() | st.integers(1, 10**14 - 1),
    st.integers(-20, 6),
    st.booleans(),
)
def test_up_to_fourteen_digits_the_rule_is_exactly_that_of_decimals(
    values: tuple[int, int], amount: int, used: int | None, exponent: int, negative: bool
) -> None:
    """Drawn so that differences of exactly what is left, and a step more or less, are common."""
    amount = max(amount, 1 + (used or 0))
    near = amount - (used or 0)
    first, other = values
    for steps in (other, first + near + other % 7 - 3, first - near + other % 3):
        if not 0 <= steps < 10**14:
            continue
        a, b = (float(f"{'-' * negative}{n}e{exponent}") for n in (first, steps))
        child, parent = (float(f"{n}e{exponent}") for n in (amount, used or 0))
        version, last = Version(a), Version(b)
        assert DIVERGENCES["absolute"].forwards(
            version, last, child=child, parent=parent
        ) == exact.forwards("absolute", version, last, child=child, parent=parent)
        assert outside(Tolerance("/v", "absolute", child), version, last) == exact.outside(
            "absolute", version, last, child
        )


@given(
    st.integers(1, 10**7),
    st.integers(1, 10**6),
    st.integers(-2, 2),
    st.integers(0, 6),
    st.sampled_from([-2, 0, 3]),
)
def test_shares_of_few_digits_are_exactly_those_of_decimals(
    value: int, amount: int, off: int, digits: int, exponent: int
) -> None:
    """The product of a value and an amount has as many digits as both together."""
    share = float(f"{amount}e-{digits}")
    copy = value + round(value * amount / 10**digits) + off
    version, last = (Version(float(f"{n}e{exponent}")) for n in (value, copy))
    expected = exact.outside("relative", version, last, share)
    assert outside(Tolerance("/v", "relative", share), version, last) == expected
    assert (
        DIVERGENCES["relative"].forwards(version, last, child=share, parent=0.0)
        == exact.forwards("relative", version, last, child=share, parent=0.0)
        == expected
    )


@given(
    st.integers(10**14, 10**15 - 1),
    st.integers(1, 10**15 - 1),
    st.integers(0, 10**15 - 1),
    st.sampled_from(["absolute", "relative"]),
    st.integers(-30, 30),
)
def test_at_fifteen_digits_nothing_is_forwarded_late(
    value: int, amount: int, used: int, kind: str, exponent: int
) -> None:
    child, parent = max(amount, used), min(amount, used)
    scale = exponent if kind == "absolute" else -14
    for steps in (value - (child - parent), value + (child - parent)):
        version, last = (Version(float(f"{n}e{exponent}")) for n in (value, steps))
        amounts = [float(f"{n}e{scale}") for n in (child, parent)]
        if exact.forwards(kind, version, last, child=amounts[0], parent=amounts[1]):
            assert DIVERGENCES[kind].forwards(version, last, child=amounts[0], parent=amounts[1])


@given(st.sampled_from(KINDS), streams(versions_max=8))
def test_divergences_are_those_of_the_definition(kind: str, versions: list[Version]) -> None:
    for version in versions:
        for copy in versions:
            if hardly_a_number(version, copy):
                continue
            computed = DIVERGENCES[kind].between(version, copy)
            true = exact.divergence(kind, version, copy)
            numbers = [abs(v.value) for v in (version, copy) if isinstance(v.value, float)]
            # What two doubles leave of their difference is off by their own last places.
            off = 0.0
            if kind in ("absolute", "relative") and numbers:
                off = 2.0**-51 * max(numbers)
            if kind == "relative" and version.value:
                off /= abs(version.number)
            assert computed == pytest.approx(true, rel=1e-15, abs=off)


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
