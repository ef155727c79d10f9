"""The optimum of a problem with one broker, by a program that shares nothing with ours.

With one broker the cheapest plan is a cheapest directed Steiner tree in the adaptation
graph. HiGHS solves it as a mixed-integer program with one variable per conversion and one
row per cut: every set of formats that contains a wish and not the source is entered by some
chosen conversion. There are far too many such rows, so those that the last solution
violates are added, first to the linear relaxation and then to the whole-number program.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import highspy
import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.placement.problem import PlacementProblem

__all__ = ["steiner_optimum"]

# What the solver calls zero, and by how much a row must be violated to be worth adding.
_ZERO = 1e-7
_VIOLATION_MIN = 1e-4
# Cuts for one wish in one round; each is found with the arcs of those before it paid for.
_CUTS_PER_WISH = 8
# Rounding in the solver's objective; costs are whole numbers, so this decides nothing.
_OBJECTIVE_ROUNDING = 1e-4


def steiner_optimum(
    problem: PlacementProblem, *, plan_cost: float, seconds_max: float
) -> float | None:
    """Return the cost of a cheapest plan, or None when the time does not suffice.

    Parameters
    ----------
    problem
        One broker that holds one format, with whole-number costs.
    plan_cost
        What a valid plan costs. The program only has to find something cheaper, or to prove
        that there is nothing: conversions that no cheaper tree can use are left out.
    seconds_max
        After this many seconds it gives up.
    """
    deadline = time.perf_counter() + seconds_max
    program = _CutProgram(problem)
    if len(program.wishes) == 0:
        return 0.0
    # Costs are whole: a tree that costs less costs less by one at least.
    target = plan_cost - 1.0 + _OBJECTIVE_ROUNDING
    while True:
        if not program.solve(deadline):
            return None
        if program.bound > target:
            return plan_cost
        if not program.add_cuts():
            break
    program.leave_out_beyond(target)
    program.ask_for_whole_numbers()
    while True:
        if not program.solve(deadline):
            return None
        if program.infeasible or program.bound > target:
            return plan_cost
        if not program.add_cuts():
            return float(round(program.bound))


class _CutProgram:
    """The program with the rows added so far, and its last solution."""

    def __init__(self, problem: PlacementProblem) -> None:
        assert problem.node_count == 1
        costs = problem.graph.costs
        (self.source,) = np.flatnonzero(problem.held).tolist()
        self.vertex_count = problem.format_count
        self.wishes = [k for k in np.flatnonzero(problem.wants[0]).tolist() if k != self.source]
        possible = np.isfinite(costs)
        possible[:, self.source] = False
        self.starts, self.ends = (part.astype(np.int64) for part in np.nonzero(possible))
        self.costs: FloatArray = problem.node_weights[0] * costs[self.starts, self.ends]
        assert bool(np.all(self.costs == np.round(self.costs)))
        self.values = np.zeros(len(self.costs))
        self.bound = 0.0
        self.infeasible = False
        self.known: set[bytes] = set()
        self.model = highspy.Highs()  # type: ignore[no-untyped-call]
        self.model.setOptionValue("output_flag", False)
        self.model.setOptionValue("mip_rel_gap", 0.0)
        self.model.setOptionValue("mip_abs_gap", 0.5)
        for cost in self.costs.tolist():
            self.model.addCol(cost, 0.0, 1.0, 0, [], [])
        self._add_degrees()

    def _add_degrees(self) -> None:
        """Add what a tree without useless parts fulfils at every format."""
        for vertex in range(self.vertex_count):
            if vertex == self.source:
                continue
            entering = np.flatnonzero(self.ends == vertex)
            leaving = np.flatnonzero(self.starts == vertex)
            if vertex in self.wishes:
                self._add_row(1.0, 1.0, entering, [])
                continue
            # Made at most once, and only to be used; used only if made, but not to go back.
            self._add_row(-highspy.kHighsInf, 1.0, entering, [])
            self._add_row(-highspy.kHighsInf, 0.0, entering, leaving)
            for arc in leaving.tolist():
                others = entering[self.starts[entering] != self.ends[arc]]
                self._add_row(0.0, highspy.kHighsInf, others, [arc])

    def _add_row(
        self, lower: float, upper: float, plus: IntArray, minus: IntArray | list[int]
    ) -> None:
        indices = [*np.asarray(plus).tolist(), *np.asarray(minus).tolist()]
        values = [1.0] * len(plus) + [-1.0] * len(minus)
        self.model.addRow(lower, upper, len(indices), indices, values)

    def solve(self, deadline: float) -> bool:
        """Solve the program as it stands; False when the time is up."""
        left = deadline - time.perf_counter()
        if left <= 0.0:
            return False
        self.model.setOptionValue("time_limit", self.model.getRunTime() + left)
        self.model.run()
        status = self.model.getModelStatus()
        self.infeasible = status == highspy.HighsModelStatus.kInfeasible
        if self.infeasible:
            return True
        if status != highspy.HighsModelStatus.kOptimal:
            return False
        self.values = np.array(self.model.getSolution().col_value)
        self.bound = float(self.model.getInfo().objective_function_value)
        return True

    def add_cuts(self) -> int:
        """Add rows that the last solution violates; return how many."""
        added = 0
        for wish in self.wishes:
            for side in self._violated_cuts(wish):
                key = np.packbits(side).tobytes()
                if key in self.known:
                    continue
                self.known.add(key)
                crossing = np.flatnonzero(~side[self.starts] & side[self.ends])
                self._add_row(1.0, highspy.kHighsInf, crossing, [])
                added += 1
        return added

    def _violated_cuts(self, wish: int) -> Iterator[BoolArray]:
        """Yield sets that contain the wish and are entered by less than one conversion."""
        flow = _Flow(self.vertex_count)
        for arc in np.flatnonzero(self.values > _ZERO).tolist():
            flow.add(int(self.starts[arc]), int(self.ends[arc]), float(self.values[arc]))
        for _ in range(_CUTS_PER_WISH):
            flow.push(self.source, wish)
            if flow.value >= 1.0 - _VIOLATION_MIN:
                return
            side = flow.side_of(wish)
            yield side
            for arc in np.flatnonzero(~side[self.starts] & side[self.ends]).tolist():
                flow.add(int(self.starts[arc]), int(self.ends[arc]), 1.0)

    def leave_out_beyond(self, target: float) -> None:
        """Forbid the conversions whose reduced cost takes any tree above the target."""
        reduced = np.array(self.model.getSolution().col_dual)
        for arc in np.flatnonzero(self.bound + reduced > target + _OBJECTIVE_ROUNDING).tolist():
            self.model.changeColBounds(arc, 0.0, 0.0)

    def ask_for_whole_numbers(self) -> None:
        """From here on a conversion is run or not."""
        for arc in range(len(self.costs)):
            self.model.changeColIntegrality(arc, highspy.HighsVarType.kInteger)


class _Flow:
    """A flow of at most one unit, by shortest augmenting paths."""

    def __init__(self, vertex_count: int) -> None:
        self.vertex_count = vertex_count
        self.value = 0.0
        # Arc `a` and its reverse `a ^ 1` stand side by side.
        self.heads: list[int] = []
        self.left: list[float] = []
        self.arcs: list[list[int]] = [[] for _ in range(vertex_count)]

    def add(self, start: int, end: int, capacity: float) -> None:
        """Add an arc."""
        self.arcs[start].append(len(self.heads))
        self.arcs[end].append(len(self.heads) + 1)
        self.heads += [end, start]
        self.left += [capacity, 0.0]

    def push(self, source: int, sink: int) -> None:
        """Push flow until one unit arrives or no more can."""
        while self.value < 1.0 - _ZERO:
            entered = self._path(source, sink)
            if entered[sink] < 0:
                return
            path = []
            vertex = sink
            while vertex != source:
                path.append(entered[vertex])
                vertex = self.heads[entered[vertex] ^ 1]
            amount = min(self.left[arc] for arc in path)
            for arc in path:
                self.left[arc] -= amount
                self.left[arc ^ 1] += amount
            self.value += amount

    def _path(self, source: int, sink: int) -> list[int]:
        """Return by which arc each vertex is reached on a shortest path, -1 where it is not."""
        entered = [-1] * self.vertex_count
        seen = [False] * self.vertex_count
        seen[source] = True
        queue = deque([source])
        while queue and not seen[sink]:
            vertex = queue.popleft()
            for arc in self.arcs[vertex]:
                head = self.heads[arc]
                if not seen[head] and self.left[arc] > _ZERO:
                    seen[head] = True
                    entered[head] = arc
                    queue.append(head)
        return entered

    def side_of(self, sink: int) -> BoolArray:
        """Return the vertices from which the sink can still be reached: the smallest cut."""
        side = np.zeros(self.vertex_count, dtype=np.bool_)
        side[sink] = True
        queue = deque([sink])
        while queue:
            vertex = queue.popleft()
            for arc in self.arcs[vertex]:
                tail = self.heads[arc]
                if not side[tail] and self.left[arc ^ 1] > _ZERO:
                    side[tail] = True
                    queue.append(tail)
        return side
