"""Effective tolerances of brokers as plain data, and the rules that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from distributary.broker.messages.streams import Amounts
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule, Tolerance

__all__ = ["NOTHING", "Rules", "amounts_of", "kept_throughout", "rules_between", "smallest"]

NOTHING: Amounts = ()

Rules = tuple[tuple[str, ForwardingRule], ...]
"""For each pointer that a receiver asks about, when it needs another version."""

# Pairs of a parent's and a child's amounts; children of one broker often want the same.
_PAIRS_CACHED = 16_384


def amounts_of(tolerance: Tolerance) -> Amounts:
    """Return what one subscription asks for."""
    return ((tolerance.value, ((tolerance.divergence, tolerance.amount),)),)


def smallest(several: Iterable[Amounts]) -> Amounts:
    """Return what keeps all of them: the smallest amount wherever one is asked for."""
    distinct = list(dict.fromkeys(several))
    if len(distinct) == 1:
        return distinct[0]
    found: dict[str, dict[str, float]] = {}
    for amounts in distinct:
        for pointer, kinds in amounts:
            least = found.setdefault(pointer, {})
            for kind, amount in kinds:
                least[kind] = min(least.get(kind, amount), amount)
    return _written(found)


def kept_throughout(several: Sequence[Amounts]) -> Amounts:
    """Return what is kept whichever of them is: the largest amount, of what all ask for."""
    first, *others = dict.fromkeys(several)
    if not others:
        return first
    found = {pointer: dict(kinds) for pointer, kinds in first}
    for amounts in others:
        other = {pointer: dict(kinds) for pointer, kinds in amounts}
        found = {
            pointer: {
                kind: max(amount, other[pointer][kind])
                for kind, amount in kinds.items()
                if kind in other[pointer]
            }
            for pointer, kinds in found.items()
            if pointer in other
        }
    return _written(found)


@lru_cache(maxsize=_PAIRS_CACHED)
def rules_between(parent: Amounts | None, child: Amounts) -> Rules:
    """Return when a broker sends a version on.

    Parameters
    ----------
    parent
        What is kept for the broker itself; None at the source, which is never off.
    child
        What the receiver asks for.
    """
    kept = None if parent is None else {pointer: dict(kinds) for pointer, kinds in parent}
    return tuple(
        (
            pointer,
            ForwardingRule(
                parent=None if kept is None else EffectiveTolerance(kept.get(pointer, {})),
                child=EffectiveTolerance(dict(kinds)),
            ),
        )
        for pointer, kinds in child
    )


def _written(found: dict[str, dict[str, float]]) -> Amounts:
    return tuple(
        (pointer, tuple(sorted(kinds.items()))) for pointer, kinds in sorted(found.items())
    )
