"""A wiring: the broker of every user, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray, IntArray, shaped
from distributary.drawing.embedded import embedded
from distributary.errors import InvalidPlan
from distributary.frames import frame
from distributary.wiring.names import broker_named, user_columns, users_at
from distributary.wiring.problem import WiringProblem

__all__ = ["CORES", "Wiring", "WiringCost", "check", "loads", "verified"]

# How traffic travels between brokers: along a minimum spanning tree of those concerned,
# the same with other brokers as branching points, or within one tree of all brokers.
CORES = ("mst", "steiner", "one-tree")

# Capacities are compared with sums of many rates: what rounding adds is not an overload.
ROUNDING = 1e-9


@dataclass(frozen=True)
class WiringCost:
    """What a wiring costs: access between users and their brokers, core between brokers."""

    access: float
    core: float

    @property
    def total(self) -> float:
        """Access and core together."""
        return self.access + self.core


@dataclass(frozen=True, eq=False)
class Wiring:
    """A finished wiring.

    Attributes
    ----------
    method
        The method that was asked for.
    core
        How traffic between brokers is routed, one of `CORES`.
    broker_of
        `broker_of[u]` is the index of the broker of user `u`.
    cost
        What it costs.
    lower_bound
        No wiring costs less than this.
    seconds
        From the parsed problem to the finished wiring, before the bound.
    steiner_saving
        With core "steiner": by how much the core is cheaper than along spanning trees.
    moved
        When it was made from another wiring: how many users left their broker.
    problem
        What was planned: it has the names.
    """

    method: str
    core: str
    broker_of: IntArray = field(repr=False)
    cost: WiringCost
    lower_bound: float
    seconds: float
    steiner_saving: float | None = None
    moved: int | None = None
    problem: WiringProblem = field(repr=False, kw_only=True)

    @property
    def gap(self) -> float:
        """How far above the lower bound it is at most, as a share of the cost."""
        if self.cost.total <= 0.0:
            return 0.0
        return max(0.0, (self.cost.total - self.lower_bound) / self.cost.total)

    def at(self, broker: str) -> tuple[str, ...]:
        """Return the users of a broker, by names."""
        return users_at(self, broker)

    def broker(self, user: str) -> str:
        """Return the broker of a user, by names."""
        return broker_named(self, user)

    def to_dict(self) -> dict[str, Any]:
        """Return the wiring with names, as `distributary wire` writes it."""
        from distributary.wiring.wiring_file import wiring_document

        return wiring_document(self.problem, self)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a row per user: its broker, its traffic, and what its access costs.

        `library` is "pandas", "polars" or "arrow".
        """
        return frame(user_columns(self), library)

    def _repr_html_(self) -> str:
        # Of many users, a picture shows a sample.
        from distributary.wiring.draw import wiring_picture

        return embedded(wiring_picture(self.problem, self).svg(), repr(self))


@checked
def loads(problem: WiringProblem, broker_of: IntArray) -> FloatArray:
    """Return the traffic of the users of each broker together."""
    carried = np.bincount(broker_of, weights=problem.demands, minlength=problem.broker_count)
    return np.asarray(carried, dtype=np.float64)


def verified(problem: WiringProblem, broker_of: object) -> IntArray:
    """Return the wiring that a stranger made, or raise unless it is one, and a valid one."""
    copy = shaped("broker_of", broker_of, (problem.user_count,), np.int64).copy()
    check(problem, copy)
    return copy


@checked
def check(problem: WiringProblem, broker_of: IntArray) -> None:
    """Raise `InvalidPlan` unless every user has a broker and every broker has room."""
    assert broker_of.shape == (problem.user_count,)
    if ((broker_of < 0) | (broker_of >= problem.broker_count)).any():
        user = int(np.argmax((broker_of < 0) | (broker_of >= problem.broker_count)))
        raise InvalidPlan(problem.users[user], "is attached to no broker")
    carried = loads(problem, broker_of)
    over = carried > problem.capacities * (1.0 + ROUNDING)
    if over.any():
        broker = int(np.argmax(carried - np.where(over, problem.capacities, np.inf)))
        raise InvalidPlan(
            problem.brokers[broker],
            f"carries {carried[broker]:.6g}, its capacity is {problem.capacities[broker]:.6g}",
        )
