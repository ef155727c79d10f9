"""Known plans: what a root has planned, used again as long as it would plan the same.

Most publications go to those to whom the one before went. To plan anew for each of them would
take a root most of its time, and give the same plan. A plan follows from the formats of an item,
from who is to get it, from routes, and from what brokers have to convert already. The last of
these changes all the time, so a plan with conversions is made anew while a broker on its tree is
busy.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping
from functools import cached_property, lru_cache

from distributary.broker.plan_part import NOTHING_BEFORE, After, PlanPart
from distributary.broker.planning import Planning, PlanningProblem, longest_work

__all__ = ["KnownPlans", "Prepared", "TypicalSizes", "order_of_sizes"]

# A plan takes as much memory as its tree has brokers.
_PLANS_MAX = 256
_KINDS_MAX = 1_000


class TypicalSizes:
    """Sizes that stand for all those within a tenth of them.

    A broker's own, not shared by those of a process: which sizes are typical depends on which
    came first.

    Parameters
    ----------
    kinds_max
        Of how many kinds sizes are known; the oldest is forgotten first.
    """

    def __init__(self, *, kinds_max: int = _KINDS_MAX) -> None:
        self._kinds_max = kinds_max
        self._sizes: dict[Hashable, list[int]] = {}

    def of(self, kind: Hashable, size: int) -> int:
        """Return the size that stands for one; from now on the same, if there was none."""
        sizes = self._sizes.get(kind)
        if sizes is None:
            if len(self._sizes) == self._kinds_max:
                del self._sizes[next(iter(self._sizes))]
            sizes = self._sizes[kind] = []
        at = bisect_left(sizes, size)
        for near in sizes[max(at - 1, 0) : at + 1]:
            if abs(size - near) * 10 <= near:
                return near
        insort(sizes, size)
        return size


@lru_cache(maxsize=16)
def _lines(graph: str) -> tuple[tuple[float, float], ...]:
    formats = sorted(json.loads(graph)["formats"], key=lambda entry: str(entry["name"]))
    return tuple((entry["size"]["fixed"], entry["size"]["per_mb"]) for entry in formats)


def order_of_sizes(graph: str, size_bytes: int) -> tuple[int, ...]:
    """Return the formats of a calibrated graph, the largest first, for content of some size.

    A device gets the largest format that it can show. So no size stands for another at which
    that would be another format.
    """
    lines = _lines(graph)
    if not lines:
        return ()
    megabytes = size_bytes / 1e6
    sizes = [fixed + per_mb * megabytes for fixed, per_mb in lines]
    return tuple(sorted(range(len(sizes)), key=lambda k: -sizes[k]))


class Prepared:
    """A problem, its plan once it is made, and what follows from that.

    Attributes
    ----------
    key
        What it follows from, apart from routes and load.
    problem
        What is planned.
    above
        By home, the brokers between the root and it.
    planning
        The plan; None before it is made.
    """

    def __init__(
        self, key: Hashable, problem: PlanningProblem, above: Mapping[str, frozenset[str]]
    ) -> None:
        self.key = key
        self.problem = problem
        self.above = above
        self.planning: Planning | None = None

    @cached_property
    def plan(self) -> Planning:
        """The plan, which is made."""
        assert self.planning is not None
        return self.planning

    @cached_property
    def part(self) -> PlanPart:
        """The plan as brokers carry it out, when nothing must be done before."""
        return self.plan.part.following(dict.fromkeys(self.problem.homes, NOTHING_BEFORE))

    @cached_property
    def work_s(self) -> float:
        """How long conversions and links should take on the way to any home."""
        # Links may take longer than conversions, and brokers longer than predicted.
        longest_s = longest_work(self.plan, self.problem.waits_s)
        return max(longest_s, self.plan.objective.latest_s)

    @cached_property
    def converts(self) -> bool:
        """Whether there is anything to convert, so that it matters who is busy."""
        return self.plan.problem.format_count > 1

    def following(self, after: Mapping[str, After]) -> PlanPart:
        """Return the plan for an item before which, by home, others must be done."""
        return self.part.following(after)


class KnownPlans:
    """The plans of one root, for as long as routes stay as they are.

    Attributes
    ----------
    made, reused
        How many were made, and how often one was used again.
    """

    def __init__(self) -> None:
        self.made = 0
        self.reused = 0
        self._plans: dict[Hashable, Prepared] = {}
        self._routes: object = None

    def get(self, key: Hashable, routes: object) -> Prepared | None:
        """Return a plan, if it was made with the routes that there are now."""
        if routes is not self._routes:
            self._plans.clear()
            self._routes = routes
        return self._plans.get(key)

    def clear(self) -> None:
        """Forget all plans, as the next ones would be others."""
        self._plans.clear()

    def add(self, prepared: Prepared, routes: object) -> None:
        """Note a plan that was made."""
        self.made += 1
        if routes is not self._routes or any(prepared.problem.waits_s.values()):
            return
        if len(self._plans) == _PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        self._plans[prepared.key] = prepared
