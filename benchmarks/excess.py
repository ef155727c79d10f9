"""How far a cost is from another one, in percent."""

from __future__ import annotations

__all__ = ["excess_percent", "saving_percent"]

# Two sums of the same numbers differ by less than this share of themselves.
_ROUNDING = 1e-9


def excess_percent(total_cost: float, optimum: float) -> float:
    """Return by how many percent of the optimum a cost exceeds it."""
    if abs(total_cost - optimum) <= _ROUNDING * abs(optimum):
        return 0.0
    return 100.0 * (total_cost - optimum) / optimum


def saving_percent(total_cost: float, baseline: float) -> float:
    """Return how many percent of a baseline's cost are saved."""
    if abs(total_cost - baseline) <= _ROUNDING * abs(baseline):
        return 0.0
    return 100.0 * (baseline - total_cost) / baseline
