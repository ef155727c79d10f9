"""Divergences and the forwarding rule in fractions: slow, and exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from distributary.content.divergence import EDIT_CHARACTERS_MAX, Version
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule

Exact = Fraction | float
"""A fraction, or infinity."""


def edit_distance(a: str, b: str) -> int:
    """The Levenshtein distance, by its recurrence."""

    @cache
    def ends(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            ends(i - 1, j) + 1, ends(i, j - 1) + 1, ends(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        )

    return ends(len(a), len(b))


def distance(kind: str, version: Version, copy: Version) -> Exact:
    """How far apart two versions are; for `relative`, not yet divided by anything."""
    if kind == "changes":
        return Fraction(abs(version.change_number - copy.change_number))
    if kind == "age":
        return Fraction(abs(version.time_ns - copy.time_ns), 10**9)
    ours, theirs = version.value, copy.value
    if kind == "edit":
        if not isinstance(ours, str) or not isinstance(theirs, str):
            return math.inf if isinstance(ours, str) or isinstance(theirs, str) else Fraction(0)
        if ours != theirs and max(len(ours), len(theirs)) > EDIT_CHARACTERS_MAX:
            return math.inf
        return Fraction(edit_distance(ours, theirs))
    numbers = [value for value in (ours, theirs) if isinstance(value, int | float)]
    if len(numbers) < 2:
        return math.inf if numbers else Fraction(0)
    return abs(Fraction(numbers[0]) - Fraction(numbers[1]))


def divergence(kind: str, version: Version, copy: Version) -> Exact:
    """DIV(version, copy), where `version` is the source's."""
    apart = distance(kind, version, copy)
    if kind != "relative" or apart in (0, math.inf):
        return apart
    assert isinstance(version.value, int | float)
    return apart / abs(Fraction(version.value)) if version.value else math.inf


def forwards(
    kind: str, version: Version, last_sent: Version, *, child: float, parent: float
) -> bool:
    """The rule for one kind, in the words of the specification."""
    least = Fraction(child) - Fraction(parent)
    if kind == "relative" and isinstance(version.value, int | float):
        least = least * abs(Fraction(version.value)) / (1 + Fraction(parent))
    return distance(kind, version, last_sent) >= least


def received_one_by_one(
    versions: Sequence[Version], parent: EffectiveTolerance | None, child: EffectiveTolerance
) -> list[bool]:
    """Which versions a child is sent, asking about one after the other."""
    rule = ForwardingRule(parent=parent, child=child)
    last_sent = None
    sent = []
    for version in versions:
        sent.append(rule.forwards(version, last_sent))
        if sent[-1]:
            last_sent = version
    return sent
