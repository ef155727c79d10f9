"""The best line with no negative part, by search: slope by slope, ever more narrowly."""

from __future__ import annotations

_STEPS = 200


def relative_error(
    points: list[tuple[float, float]], fixed: float, per_mb: float, resolution: float = 1e-6
) -> float:
    """Return the sum of the squares of how far the line misses each amount, as shares."""
    return sum(
        ((fixed + per_mb * size - amount) / max(amount, resolution)) ** 2 for size, amount in points
    )


def searched_error(points: list[tuple[float, float]]) -> float:
    """Return the least error of any line whose two parts are not negative.

    A slope beyond every amount divided by its size passes above all of them.
    """

    def error_at(slope: float) -> float:
        weights = [1 / max(amount, 1e-6) ** 2 for _, amount in points]
        above = sum(
            weight * (amount - slope * size)
            for weight, (size, amount) in zip(weights, points, strict=True)
        )
        return relative_error(points, max(above / sum(weights), 0.0), slope)

    low, high = 0.0, max(amount / size for size, amount in points)
    for _ in range(_STEPS):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        if error_at(one) <= error_at(other):
            high = other
        else:
            low = one
    return min(error_at(0.0), error_at(low), error_at(high))
