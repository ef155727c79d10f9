"""Divergences and the forwarding rule in decimals, as numbers are written: slow, and exact."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache

from distributary.content.divergence import EDIT_CHARACTERS_MAX, Version
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule

_NS_PER_SECOND = 10**9
# Sums and products of any doubles fit, and what would not is an error.
_EXACT = decimal.Context(prec=4000, traps=[decimal.Inexact, decimal.InvalidOperation])
_INFINITE = Decimal("Infinity")


def written(number: float) -> Decimal:
    """The shortest decimal that is read as this double: the one that somebody wrote."""
    return Decimal(repr(float(number)))


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


def distance(kind: str, version: Version, copy: Version) -> Decimal:
    """How far apart two versions are; for `relative`, not yet divided by anything.

    Nanoseconds for `age`.
    """
    if kind == "changes":
        return Decimal(abs(version.change_number - copy.change_number))
    if kind == "age":
        return Decimal(abs(version.time_ns - copy.time_ns))
    ours, theirs = version.value, copy.value
    if kind == "edit":
        if not isinstance(ours, str) or not isinstance(theirs, str):
            return _INFINITE if isinstance(ours, str) or isinstance(theirs, str) else Decimal(0)
        if ours != theirs and max(len(ours), len(theirs)) > EDIT_CHARACTERS_MAX:
            return _INFINITE
        return Decimal(edit_distance(ours, theirs))
    numbers = [value for value in (ours, theirs) if isinstance(value, int | float)]
    if len(numbers) < 2:
        return _INFINITE if numbers else Decimal(0)
    return abs(_EXACT.subtract(written(numbers[0]), written(numbers[1])))


def least(kind: str, version: Version, amount: Decimal, parent: Decimal) -> Decimal:
    """What `distance` is compared with, times `1 + parent` for `relative`."""
    left = _EXACT.subtract(amount, parent)
    if kind == "age":
        return _EXACT.multiply(left, Decimal(_NS_PER_SECOND))
    if kind == "relative" and isinstance(version.value, int | float):
        return _EXACT.multiply(left, abs(written(version.value)))
    return left


def forwards(
    kind: str, version: Version, last_sent: Version, *, child: float, parent: float
) -> bool:
    """The rule for one kind, in the words of the specification."""
    return forwards_written(kind, version, last_sent, child=written(child), parent=written(parent))


def forwards_written(
    kind: str, version: Version, last_sent: Version, *, child: Decimal, parent: Decimal
) -> bool:
    """The rule for amounts that no double has."""
    if child <= parent:
        return True
    apart = distance(kind, version, last_sent)
    if kind == "relative" and isinstance(version.value, int | float):
        apart = _EXACT.multiply(apart, _EXACT.add(Decimal(1), parent))
    return apart > 0 and apart >= least(kind, version, child, parent)


def outside(kind: str, version: Version, copy: Version, amount: float) -> bool:
    """Whether DIV(version, copy), where `version` is the source's, reaches the amount."""
    apart = distance(kind, version, copy)
    return apart > 0 and apart >= least(kind, version, written(amount), Decimal(0))


def divergence(kind: str, version: Version, copy: Version) -> float:
    """DIV(version, copy), but for the rounding of one division."""
    apart = distance(kind, version, copy)
    if kind == "age":
        apart /= _NS_PER_SECOND
    if kind == "relative" and 0 < apart < _INFINITE:
        assert isinstance(version.value, int | float)
        return float(apart / abs(written(version.value))) if version.value else math.inf
    return float(apart)


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
