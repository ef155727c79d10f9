"""The forwarding rule where it is easily got wrong, and what the wrong rules would do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from distributary.content.divergence import DIVERGENCES, Version
from distributary.content.publication import Publication
from distributary.content.tolerance import (
    EffectiveTolerance,
    ForwardingRule,
    Tolerance,
    outside,
)
from distributary.content.trace import Trace, forwarded
from distributary.errors import BadInput

Rule = Callable[[Version, Version], bool]


def last_copy(versions: list[Version], *rules: Rule) -> Version:
    """Return what the last broker of a chain has in the end; rules look at new and last sent."""
    for rule in rules:
        received: list[Version] = []
        for version in versions:
            if not received or rule(version, received[-1]):
                received.append(version)
        versions = received
    return versions[-1]


def rule_of(*, parent: dict[str, float] | None, child: dict[str, float]) -> Rule:
    return ForwardingRule(
        parent=None if parent is None else EffectiveTolerance(parent),
        child=EffectiveTolerance(child),
    ).forwards


def test_a_parent_leaves_room_for_being_off_itself() -> None:
    """Without that, what the parent was not sent and what it does not send add up."""
    versions = [Version(0.0), Version(0.95), Version(1.8)]
    wanted = Tolerance("/v", "absolute", 1.0)
    near, far = {"absolute": 0.9}, {"absolute": 1.0}
    to_near = rule_of(parent=None, child=near)
    careless = last_copy(versions, to_near, rule_of(parent=None, child=far))
    assert outside(wanted, versions[-1], careless)
    good = last_copy(versions, to_near, rule_of(parent=near, child=far))
    assert not outside(wanted, versions[-1], good)


def test_a_slow_drift_does_not_slip_through() -> None:
    """Comparing with what was last received, instead of sent, would never send anything."""
    versions = [Version(0.4 * n) for n in range(10)]
    rule = rule_of(parent=None, child={"absolute": 1.0})
    assert not any(rule(new, old) for old, new in itertools.pairwise(versions))
    copy = last_copy(versions, rule)
    assert not outside(Tolerance("/v", "absolute", 1.0), versions[-1], copy)


def test_a_relative_share_of_the_parents_value_is_one_of_the_sources() -> None:
    """The parent may hold a value larger than the source's: its share must be divided.

    Changes bring the parent the version in the middle, which its own tolerance did not need.
    """
    versions = [Version(1.638, 0), Version(1.49, 2), Version(1.0, 3)]
    near = {"relative": 0.5, "changes": 2.0}
    far = {"relative": 0.6}
    to_near = rule_of(parent=None, child=near)

    def undivided(new: Version, last: Version) -> bool:
        assert isinstance(new.value, float)
        assert isinstance(last.value, float)
        return abs(new.value - last.value) >= (0.6 - 0.5) * abs(new.value)

    wanted = Tolerance("/v", "relative", 0.6)
    assert outside(wanted, versions[-1], last_copy(versions, to_near, undivided))
    good = last_copy(versions, to_near, rule_of(parent=near, child=far))
    assert not outside(wanted, versions[-1], good)


@pytest.mark.parametrize(
    ("far", "near", "values"),
    [
        (1.1, 0.15, (-0.5897761541627988, 0.3602238458372012, 0.5102238458372012)),
        (1.1, 0.38, (-0.9339303145058738, -0.2139303145058738, 0.16606968549412615)),
        (1.02, 0.36, (-0.7469002676628506, -0.0869002676628506, 0.27309973233714935)),
    ],
)
def test_two_differences_below_their_thresholds_do_not_round_up_to_the_amount(
    far: float, near: float, values: tuple[float, ...]
) -> None:
    """Their sum is below the amount, but as computed it reaches it."""
    versions = [Version(value) for value in values]

    def careless(threshold: float) -> Rule:
        return lambda new, last: DIVERGENCES["absolute"].between(new, last) >= threshold

    wanted = Tolerance("/v", "absolute", far)
    loose = last_copy(versions, careless(near), careless(far - near))
    assert outside(wanted, versions[-1], loose)
    good = last_copy(
        versions,
        rule_of(parent=None, child={"absolute": near}),
        rule_of(parent={"absolute": near}, child={"absolute": far}),
    )
    assert not outside(wanted, versions[-1], good)


def test_at_zero_every_relative_difference_is_infinite() -> None:
    wanted = Tolerance("/v", "relative", 1e15)
    assert outside(wanted, Version(0.0), Version(5e-324))
    assert not outside(wanted, Version(0.0), Version(-0.0))
    assert rule_of(parent={"relative": 0.1}, child={"relative": 9.0})(Version(0.0), Version(1.0))


@pytest.mark.parametrize(
    ("kind", "version", "copy", "expected"),
    [
        ("absolute", Version(3), Version(-1.5), 4.5),
        ("absolute", Version("3"), Version(1.0), math.inf),
        ("absolute", Version(None), Version("x"), 0.0),
        ("absolute", Version(math.inf), Version(math.inf), 0.0),
        ("relative", Version(100.0), Version(90.0), 0.1),
        ("relative", Version(1.7e308), Version(-1.7e308), 2.0),
        ("relative", Version(math.inf), Version(1.0), math.inf),
        ("changes", Version(None, 7), Version(1.0, 3), 4.0),
        ("edit", Version("kitten"), Version("sitting"), 3.0),
        ("edit", Version("\U0001f600"), Version(""), 1.0),
        ("edit", Version("a" * 1025), Version("b"), math.inf),
        ("edit", Version("a" * 1025), Version("a" * 1025), 0.0),
        ("edit", Version(1.0), Version("1.0"), math.inf),
        ("edit", Version(1.0), Version(2.0), 0.0),
        ("age", Version(None, 0, 3_500_000_000), Version(None, 0, 1_000_000_000), 2.5),
    ],
)
def test_divergences_of_chosen_versions(
    kind: str, version: Version, copy: Version, expected: float
) -> None:
    assert DIVERGENCES[kind].between(version, copy) == expected


def test_a_copy_that_diverges_by_the_amount_is_outside() -> None:
    wanted = Tolerance("/v", "absolute", 0.5)
    assert outside(wanted, Version(1.0), Version(0.5))
    assert not outside(wanted, Version(1.0), Version(0.75))
    assert outside(wanted, Version(1.0), None)


def test_a_broker_keeps_to_the_smallest_amount_of_each_kind_below_it() -> None:
    asked = [
        Tolerance("/price", "absolute", 2.0),
        Tolerance("/price", "absolute", 1.0),
        Tolerance("/price", "age", 60.0),
    ]
    kept = EffectiveTolerance.of(asked)
    assert kept == EffectiveTolerance({"absolute": 1.0, "age": 60.0})
    merged = kept.merged([EffectiveTolerance({"age": 5.0, "edit": 3.0})])
    assert merged == EffectiveTolerance({"absolute": 1.0, "age": 5.0, "edit": 3.0})


def test_a_parent_that_promises_nothing_forwards_everything() -> None:
    """Its copy may be off by anything while tolerances are on their way up."""
    assert rule_of(parent={}, child={"absolute": 5.0})(Version(1.0), Version(1.0))
    assert not rule_of(parent=None, child={"absolute": 5.0})(Version(1.0), Version(1.0))


def test_a_child_that_asks_for_nothing_is_sent_the_first_version_only() -> None:
    rule = ForwardingRule(parent=None, child=EffectiveTolerance({}))
    assert rule.forwards(Version(1.0), None)
    assert not rule.forwards(Version(9.0), Version(1.0))


class Parity:
    """Numbers are apart when one is odd and the other even."""

    name = "parity"

    def between(self, version: Version, copy: Version) -> float:
        assert isinstance(version.value, float)
        assert isinstance(copy.value, float)
        return abs(version.value - copy.value) % 2.0

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        return self.between(version, last_sent) > 0.0


def test_a_plug_in_divergence_brings_its_own_rule() -> None:
    known = {**DIVERGENCES, "parity": Parity()}
    document = {"value": "/v", "divergence": "parity", "amount": 1}
    wanted = Tolerance.parse(document, divergences=known)
    kept = EffectiveTolerance.of([wanted])
    rule = ForwardingRule(parent=None, child=kept, divergences=known)
    assert [rule.forwards(Version(v), Version(0.0)) for v in (1.0, 2.0, 3.0)] == [True, False, True]
    assert outside(wanted, Version(3.0), Version(2.0), divergences=known)
    with pytest.raises(BadInput, match="'parity' is not a divergence"):
        Tolerance.parse(document)
    with pytest.raises(BadInput, match="'parity' has no compiled rule"):
        forwarded(Trace.of([Version(1.0)]), [kept], parent=None)


def test_a_version_is_read_from_an_event_of_a_stream() -> None:
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "quote",
        "time": "1970-01-01T00:00:01Z",
        "sequence": "0042",
        "data": {"price": 2, "state": "open"},
    }
    publication = Publication.parse(event)
    assert Version.of(publication, "/price") == Version(2.0, 42, 10**9)
    assert Version.of(publication, "/state") == Version("open", 42, 10**9)
    assert Version.of(publication, "/other") == Version(None, 42, 10**9)
    for fault in ({"sequence": "x"}, {"sequence": None}, {"sequence": "9" * 19}, {"time": None}):
        with pytest.raises(BadInput):
            Version.of(Publication.parse(event | fault), "/price")


def cents(first: int, count: int) -> list[Version]:
    """Return prices that rise by a cent at a time, as a file of quotes has them."""
    return [Version(float(f"{n / 100:.2f}"), n) for n in range(first, first + count)]


@pytest.mark.parametrize("first", [1, 4900, 99_900, 10**11])
def test_every_tick_of_a_cent_reaches_a_cent(first: int) -> None:
    """As written, whatever doubles make of it: 49.01 less 49.00 is below 0.01 in doubles."""
    versions = cents(first, 500)
    kept = EffectiveTolerance({"absolute": 0.01})
    wanted = Tolerance("/price", "absolute", 0.01)
    rule = ForwardingRule(parent=None, child=kept)
    for old, new in itertools.pairwise(versions):
        assert rule.forwards(new, old)
        assert outside(wanted, new, old)
    assert forwarded(Trace.of(versions), [kept], parent=None).all()


def test_three_ticks_of_a_cent_are_less_than_four() -> None:
    kept = [EffectiveTolerance({"absolute": cents / 100}) for cents in (2, 3, 4, 7)]
    sent = forwarded(Trace.of(cents(4900, 8401)), kept, parent=None)
    assert sent.sum(axis=1).tolist() == [4201, 2801, 2101, 1201]


def test_what_a_chain_leaves_is_what_is_left_in_decimals() -> None:
    """A parent within 0.1 leaves a child within 0.3 two tenths, and not two and a bit."""
    rule = rule_of(parent={"absolute": 0.1}, child={"absolute": 0.3})
    assert rule(Version(0.9), Version(0.7))
    assert not rule(Version(0.9), Version(0.71))


def test_shares_amounts_of_changes_and_ages_are_as_written() -> None:
    tenth = rule_of(parent=None, child={"relative": 0.1})
    assert all(
        tenth(Version(float(f"{n}e-3")), Version(float(f"{9 * n}e-4"))) for n in range(1, 9999)
    )
    assert not tenth(Version(100.0), Version(90.01))
    age = rule_of(parent={"age": 0.1}, child={"age": 0.3})
    assert age(Version(None, 0, 200_000_000), Version(None, 0, 0))
    assert not age(Version(None, 0, 199_999_999), Version(None, 0, 0))
    changes = rule_of(parent={"changes": 1.1}, child={"changes": 3.3})
    assert not changes(Version(None, 2), Version(None, 0))
    assert changes(Version(None, 3), Version(None, 0))


def test_a_value_that_stays_is_not_sent_again() -> None:
    """However small the amount, and at 0, of which every share is 0."""
    for kind in ("absolute", "relative"):
        for value in (0.0, 1e15, 0.1):
            assert not rule_of(parent=None, child={kind: 1e-15})(Version(value), Version(value))
