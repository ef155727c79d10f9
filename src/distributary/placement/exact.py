"""The exact method: a dynamic program over the sets of formats at each broker.

`h_v[X]` is the cheapest way to serve node `v` and all below it when the set `X` is in
hand at `v`. Children are independent once `X` is chosen, a conversion adds one format
to `X`, and a child receives the best subset of what its parent has in hand:

    h_v[X] = min( sum of g_c[X] over the children c, if W[v] is inside X;
                  cheapest conversion of a member of X into j, plus h_v[X + j], for j outside X )
    g_v[X] = min over S inside X of h_v[S] + what sending S to v costs

The paper's optimal algorithm computes the same with 2**(3m) steps per node; this one
needs m * 2**m. One table per inner broker is kept; the plan is read back from the
tables without any stored choice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.cores import available_cores
from distributary.errors import TooLarge
from distributary.placement import _exact_kernels as kernels
from distributary.placement._conversion_kernels import steiner_by_terminals
from distributary.placement.compact import compact_plan, is_compact, needs_table
from distributary.placement.conversions import ConversionPlanner, exact_steps
from distributary.placement.plan import Plan, prune
from distributary.placement.problem import PlacementProblem
from distributary.placement.useful import useful_formats

__all__ = [
    "Estimate",
    "estimate",
    "exact_plan",
    "require_within",
    "table_estimate",
    "table_plan",
]

# A leaf with at most this many wishes is served without a table of its own.
_FEW_WISHES = 4
# Children whose tables one task adds up; fixed, so that sums do not depend on threads.
_CHILDREN_PER_TASK = 32
# Seconds per table entry and format, and per table entry of a parent and leaf, on one
# thread of the machine in docs/benchmarks.md. They only have to be about right.
_SECONDS_PER_STEP = 1.2e-9
_SECONDS_PER_LEAF_ENTRY = 6e-9
# Smaller tables take less time than handing them to another thread.
_ENTRIES_FOR_THREADS = 4096
_NOTHING = (np.empty(0, dtype=np.int64), np.empty(0))

Observer = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Estimate:
    """What the exact method would need for one problem."""

    seconds: float
    memory_bytes: float
    format_count_max: int


@dataclass(frozen=True, eq=False)
class _Space:
    """The sets of formats one or more brokers have to consider, with shared tables.

    Attributes
    ----------
    formats
        Global index of each bit; -1 for bits that only pad the table.
    costs
        Conversion costs between them.
    high, low
        Cheapest inputs of a set, as `cheapest_inputs` gives them.
    sizes
        Total size of every set.
    """

    formats: IntArray
    costs: FloatArray
    high: FloatArray
    low: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, problem: PlacementProblem, usable: BoolArray, *, free: bool) -> _Space:
        """Return the space of the usable formats; `free` when conversions cost nothing."""
        formats = np.flatnonzero(usable).astype(np.int64)
        count = max(kernels.LANE_BITS, len(formats))
        costs = np.full((count, count), np.inf)
        real = problem.graph.costs[np.ix_(formats, formats)]
        # A factor of zero must not meet an infinite cost: zero times infinity is not a number.
        costs[: len(formats), : len(formats)] = np.where(
            np.isfinite(real), 0.0 if free else real, np.inf
        )
        sizes = np.zeros(count)
        sizes[: len(formats)] = problem.graph.sizes[formats]
        padded = np.full(count, -1, dtype=np.int64)
        padded[: len(formats)] = formats
        high, low = kernels.cheapest_inputs(costs)
        return cls(padded, costs, high, low, kernels.set_sizes(sizes))

    def mask(self, chosen: BoolArray) -> int:
        """Return the set of the chosen formats as bits."""
        return sum(1 << bit for bit, k in enumerate(self.formats) if k >= 0 and chosen[k])


def estimate(problem: PlacementProblem, *, usable: BoolArray | None = None) -> Estimate:
    """Return about how long the exact method would take and how much memory it would use."""
    if usable is None:
        usable = useful_formats(problem)
    if _alone(problem):
        return _estimate_alone(problem, usable)
    tabled, leaves = _split(problem)
    counts = np.maximum(usable.sum(axis=1), kernels.LANE_BITS).astype(np.float64)
    entries = np.exp2(counts)
    steps = float((counts * entries)[tabled].sum())
    leaf_entries = float(entries[problem.tree.parents[leaves]].sum())
    tree_threads = min(available_cores(), 2 if len(tabled) > 1 else 1)
    seconds = (steps * _SECONDS_PER_STEP + leaf_entries * _SECONDS_PER_LEAF_ENTRY) / tree_threads
    largest = float(entries.max(initial=0.0, where=problem.served))
    memory = 8.0 * (float(entries[tabled].sum()) + largest * 8.0)
    return Estimate(seconds, memory, int(counts.max(initial=0.0, where=problem.served)))


def table_estimate(format_count: int, *, tables: int) -> Estimate:
    """Return what some tables over sets of so many formats need, on one thread."""
    entries = 2.0**format_count
    return Estimate(
        tables * format_count * entries * _SECONDS_PER_STEP, 8.0 * tables * entries, format_count
    )


def require_within(
    need: Estimate,
    *,
    seconds_max: float,
    memory_bytes_max: float,
    instead: str,
    what: str = "method 'exact'",
) -> None:
    """Raise `TooLarge` when the estimate exceeds what is allowed."""
    if need.seconds <= seconds_max and need.memory_bytes <= memory_bytes_max:
        return
    raise TooLarge(
        f"{what} would take about {_duration(need.seconds)} and "
        f"{need.memory_bytes / 2**30:.3g} GiB with {need.format_count_max} useful formats at one "
        f"broker; it may take {_duration(seconds_max)} and {memory_bytes_max / 2**30:.3g} GiB; "
        f"hint: use {instead}",
        seconds=need.seconds,
        memory_bytes=need.memory_bytes,
    )


def _duration(seconds: float) -> str:
    """Return a duration in words a person can weigh."""
    for unit, length in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def _split(problem: PlacementProblem) -> tuple[IntArray, IntArray]:
    """Return the served nodes that need a table, and the leaves that do not."""
    tabled = needs_table(problem, wishes_max=_FEW_WISHES)
    return np.flatnonzero(tabled), np.flatnonzero(problem.served & ~tabled)


def exact_plan(
    problem: PlacementProblem,
    *,
    usable: BoolArray | None = None,
    observe: Observer | None = None,
) -> Plan:
    """Return a plan of least cost.

    Minimises `cost(problem, plan).total`; no valid plan that keeps to the usable formats
    costs less. Takes O(n m 2**m) time and 8 * 2**m bytes per inner broker, where m is
    the number of formats useful at a broker.

    `usable[v, k]` says whether `v` may have `k` at all, by default whatever can help in an optimal
    plan. A smaller choice gives the best plan within that choice, which is how the large-graph
    heuristics recombine plans.
    """
    if not problem.served[0]:
        return Plan.empty(problem)
    usable = useful_formats(problem) if usable is None else usable.copy()
    # What the root holds is there whether or not it helps anybody.
    usable[0] |= problem.held
    if _alone(problem):
        return _plan_alone(problem, usable)
    if is_compact(problem, usable):
        return prune(problem, compact_plan(problem, usable))
    return prune(problem, table_plan(problem, usable, observe=observe))


def table_plan(
    problem: PlacementProblem,
    usable: BoolArray,
    *,
    threads: int | None = None,
    observe: Observer | None = None,
) -> Plan:
    """Return a plan of least cost by a table for each inner broker, not pruned yet.

    The way of problems that are too large for `compact_plan`; parameters as in `exact_plan`.
    All processors are used unless a number of threads is given; the plan is the same.
    """
    program = _Program(problem, usable)
    program.fill(threads or available_cores(), observe)
    return program.read_plan()


def _alone(problem: PlacementProblem) -> bool:
    """Is the root the only broker that anything is done at?"""
    return not problem.served[1:].any()


def _estimate_alone(problem: PlacementProblem, usable: BoolArray) -> Estimate:
    """Return what conversions at the root alone need: sets of formats, or sets of wishes."""
    formats = int((usable[0] | problem.held).sum())
    missing = int((problem.wants[0] & ~problem.held).sum())
    to_make = int((usable[0] & ~problem.held).sum())
    by_formats, by_wishes = exact_steps(formats=formats, missing=missing, to_make=to_make)
    if by_formats <= by_wishes:
        return Estimate(by_formats * _SECONDS_PER_STEP, 9.0 * 2.0**to_make, formats)
    return Estimate(by_wishes * _SECONDS_PER_STEP, 24.0 * 2.0**missing * formats, formats)


def _plan_alone(problem: PlacementProblem, usable: BoolArray) -> Plan:
    """Return the cheapest conversions at the root."""
    plan = Plan.empty(problem)
    costs = np.where(usable[0][:, None] & usable[0], problem.graph.costs, np.inf)
    plan.made_from[0] = ConversionPlanner(costs, steps_max=np.inf).conversions(
        problem.held, problem.wants[0]
    )
    return plan


class _Program:
    """The tables of one exact computation."""

    def __init__(self, problem: PlacementProblem, usable: BoolArray) -> None:
        self.problem = problem
        self.usable = usable
        tabled, leaves = _split(problem)
        self.tabled = [int(v) for v in tabled]
        self.is_tabled = np.zeros(problem.node_count, dtype=np.bool_)
        self.is_tabled[tabled] = True
        self.local = threading.local()
        self.tables: dict[int, FloatArray] = {}
        self.spaces: dict[int, _Space] = {}
        self.conversion_planners: dict[int, ConversionPlanner] = {}
        # Brokers that are alike share what is known about their formats.
        spaces: dict[bytes, _Space] = {}
        conversion_planners: dict[bytes, ConversionPlanner] = {}
        for v in self.tabled:
            key = self._key(v)
            if key not in spaces:
                spaces[key] = _Space.of(problem, usable[v], free=self._is_free(v))
            self.spaces[v] = spaces[key]
            self.tables[v] = np.empty(len(spaces[key].sizes))
        for v in leaves.tolist():
            key = self._key(v)
            if key not in conversion_planners:
                conversion_planners[key] = ConversionPlanner(self._leaf_conversions(v))
            self.conversion_planners[v] = conversion_planners[key]

    def fill(self, threads: int, observe: Observer | None) -> None:
        """Compute the tables, children before parents, level by level."""
        levels = self._levels()
        done = 0
        largest = max(len(space.sizes) for space in self.spaces.values())
        if largest < _ENTRIES_FOR_THREADS:
            threads = 1
        with ThreadPoolExecutor(threads) as pool:
            run = map if threads == 1 else pool.map
            for level in levels:
                tasks: list[tuple[int, list[int], FloatArray]] = []
                rest: dict[int, list[FloatArray]] = {v: [] for v, _ in level}
                for v, children in level:
                    self.tables[v].fill(0.0)
                    for chunk in _chunks(children, _CHILDREN_PER_TASK):
                        into = self.tables[v]
                        if chunk[0] != children[0]:
                            into = np.zeros(len(into))
                            rest[v].append(into)
                        tasks.append((v, chunk, into))
                for _ in run(lambda task: self._sum_children(*task), tasks):
                    pass
                for _ in run(self._finish, rest.keys(), rest.values()):
                    pass
                done += len(level)
                if observe is not None:
                    observe("exact", done, len(self.tabled))

    def _levels(self) -> list[list[tuple[int, list[int]]]]:
        """Return the tabled nodes by height, each with its served children."""
        problem = self.problem
        heights = np.zeros(problem.node_count, dtype=np.int64)
        children: dict[int, list[int]] = {v: [] for v in self.tabled}
        for v in range(problem.node_count - 1, 0, -1):
            if problem.served[v]:
                parent = int(problem.tree.parents[v])
                heights[parent] = max(heights[parent], heights[v] + 1)
                children[parent].append(v)
        levels: list[list[tuple[int, list[int]]]] = [[] for _ in range(int(heights.max()) + 1)]
        for v in self.tabled:
            levels[heights[v]].append((v, children[v][::-1]))
        return [level for level in levels if level]

    def _sum_children(self, v: int, children: Sequence[int], total: FloatArray) -> None:
        """Add `g_c` of some children of `v` to a table."""
        space = self.spaces[v]
        for c in children:
            if not self.is_tabled[c]:
                reached, received = self._leaf_costs(c, space.formats)
                kernels.accumulate_leaf(total, reached, received)
                continue
            other = self.spaces[c]
            buffer = self._scratch(len(other.sizes))
            kernels.receive(self.tables[c], other.sizes, self.problem.link_weights[c], buffer)
            if np.array_equal(space.formats, other.formats):
                total += buffer
            else:
                kernels.accumulate_projected(
                    total, buffer, _positions(space.formats, other.formats)
                )

    def _leaf_costs(self, leaf: int, formats: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what the leaf's wishes cost from each of the parent's formats there."""
        problem = self.problem
        chains = self.conversion_planners[leaf].chains.costs
        wishes = np.flatnonzero(problem.wants[leaf])
        everywhere = steiner_by_terminals(chains, *_NOTHING, wishes)[0]
        reached = np.full((len(everywhere), len(formats)), np.inf)
        received = np.full(len(formats), np.inf)
        known = (formats >= 0) & self.usable[leaf][formats]
        reached[:, known] = everywhere[:, formats[known]]
        # With a factor of zero the chains are free already.
        reached *= problem.node_weights[leaf] or 1.0
        received[known] = problem.graph.sizes[formats[known]] * problem.link_weights[leaf]
        return reached, received

    def _is_free(self, v: int) -> bool:
        """Do conversions cost nothing at this broker?"""
        return bool(self.problem.node_weights[v] == 0.0)

    def _key(self, v: int) -> bytes:
        """Return what is the same for brokers with equal formats and conversion costs."""
        key: bytes = self.usable[v].tobytes()
        return key + bytes([self._is_free(v)])

    def _leaf_conversions(self, leaf: int) -> FloatArray:
        """Return the cost of every conversion between usable formats before weighting."""
        usable = self.usable[leaf]
        possible = np.isfinite(self.problem.graph.costs) & usable & usable[:, None]
        costs = 0.0 if self._is_free(leaf) else self.problem.graph.costs
        return np.where(possible, costs, np.inf)

    def _scratch(self, length: int) -> FloatArray:
        """Return room for one table, the same for all the work of a thread."""
        if len(getattr(self.local, "room", ())) < length:
            self.local.room = np.empty(length)
        room: FloatArray = self.local.room[:length]
        return room

    def _finish(self, v: int, rest: list[FloatArray]) -> None:
        """Turn the sums over the children of `v` into `h_v`."""
        space, table = self.spaces[v], self.tables[v]
        for part in rest:
            table += part
        kernels.require(table, space.mask(self.problem.wants[v]))
        kernels.relax(table, space.high, space.low, self._weight(v))

    def _weight(self, v: int) -> float:
        """Return the factor on the conversions of the space of `v`."""
        return float(self.problem.node_weights[v]) or 1.0

    def read_plan(self) -> Plan:
        """Follow the tables from the root down and write out what they chose."""
        problem = self.problem
        plan = Plan.empty(problem)
        in_hand = np.zeros((problem.node_count, problem.format_count), dtype=np.bool_)
        for v in range(problem.node_count):
            if not problem.served[v]:
                continue
            offered = problem.held if v == 0 else in_hand[problem.tree.parents[v]] & self.usable[v]
            if not self.is_tabled[v]:
                self._read_leaf(plan, v, offered)
                continue
            space, table = self.spaces[v], self.tables[v]
            held = space.mask(offered)
            if v > 0:
                held = kernels.best_received(table, space.sizes, problem.link_weights[v], held)
                plan.receives[v, space.formats[_bits(held)]] = True
            wanted = space.mask(problem.wants[v])
            while True:
                origin, made = kernels.next_conversion(
                    table, space.costs, self._weight(v), held, wanted
                )
                if made < 0:
                    break
                plan.made_from[v, space.formats[made]] = space.formats[origin]
                held |= 1 << made
            in_hand[v, space.formats[_bits(held)]] = True
        return plan

    def _read_leaf(self, plan: Plan, leaf: int, offered: BoolArray) -> None:
        """Choose what a leaf without a table receives and makes.

        Where conversions are free only the received sizes count.
        """
        problem = self.problem
        weight = problem.node_weights[leaf]
        received, made_from = self.conversion_planners[leaf].deliveries(
            offered,
            problem.graph.sizes * problem.link_weights[leaf] / (weight or 1.0),
            problem.wants[leaf],
        )
        plan.receives[leaf] = received
        plan.made_from[leaf] = made_from


def _chunks(items: list[int], size: int) -> list[list[int]]:
    """Return the items in runs of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _positions(formats: IntArray, others: IntArray) -> IntArray:
    """Return where each format stands among the others, -1 where it does not."""
    where = {int(k): bit for bit, k in enumerate(others) if k >= 0}
    return np.array([where.get(int(k), -1) for k in formats], dtype=np.int64)


def _bits(mask: int) -> list[int]:
    """Return the positions of the bits that are set."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
