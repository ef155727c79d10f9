"""Our own search for trees: grow, cool, and descend (the method "auto")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._descent_kernels import cool, descend, nearest_nodes
from distributary.fidelity._state_kernels import (
    BELOW,
    BELOW_TOTAL,
    LOAD,
    LOAD_LINEAR,
    LOCAL,
    PEAK_TOTAL,
    PEAKS,
    QUEUE,
    WEIGHT,
    PackedForest,
)
from distributary.fidelity.baselines import source_tree
from distributary.fidelity.exact import exact_tree
from distributary.fidelity.forest import Forest
from distributary.fidelity.greedy import grown_state
from distributary.fidelity.loss import loss
from distributary.fidelity.model import forest_of, servers_of, state_of
from distributary.fidelity.overload import unservable
from distributary.fidelity.problem import FidelityProblem
from distributary.kernels import clock
from distributary.xorshift import seed_state

__all__ = ["Observer", "near_nodes", "relieved", "repair", "search"]

Observer = Callable[[str, int, int], None]

# Up to this many servers in one tree, all trees are looked at instead.
_SERVERS_ENUMERATED = 8
# The first temperature is higher for few servers, whose moves change more than their share.
_HOT_FEW = 40.0
# The last temperature as a share of the first.
_COLD = 0.05
# Moves weighed while cooling in all. Less with few servers would save no time; more would
# take minutes.
_COOLING_MIN, _COOLING_MAX = 40_000, 20_000_000
_DESCENT_PER_SERVER = 80
# Overload is lowered until no node is busier than this. At a load of 0.99 trees would be valid,
# and messages would wait a hundred times as long as they take.
_BUSY = 0.8
# Sweeps that lower the cost by less than this share do not go on.
_SWEEP_GAIN_MIN = 1e-9
# A node is overloaded from this load; the rest is room for rounding.
_LIMIT = 1.0 - 1e-9
# Beyond so many nodes it takes longer to find those near each server than to make the moves,
# and they are found at every so many temperatures only.
_MANY_NODES, _NEAR_EVERY_MANY = 2_000, 8


@dataclass(frozen=True)
class _Cooling:
    """How a search cools.

    Attributes
    ----------
    moves
        Moves weighed for each server of each tree.
    temperatures
        How many there are.
    hot
        The first of them as a share of the cost, times the number of servers of all trees:
        a move of one server changes about that share.
    near
        Nodes that a server is offered.
    """

    moves: float
    temperatures: int
    hot: float
    near: int


# With growing and the last descent these are less than a tenth of what annealing weighs
# until it is cold: for 256 servers with one object, with many in one tree (whose annealing
# ends earlier), and with hundreds of trees.
# With few moves for each server it pays to offer fewer nodes, and to start hotter.
_THOROUGH = _Cooling(moves=1_480.0, temperatures=40, hot=0.08, near=10)
_THOROUGH_MANY = replace(_THOROUGH, moves=1_400.0)
_BRIEF = _Cooling(moves=90.0, temperatures=20, hot=0.15, near=5)
# A tree for each of several objects is cooled briefly where it would otherwise take more
# moves than this, and is given these moves if that is more for each server.
_MOVES_BRIEF = 1_400_000


def search(
    problem: FidelityProblem,
    approach: str,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    observe: Observer | None = None,
) -> tuple[Forest, int]:
    """Return the best forest found, and how many moves were weighed.

    A handful of servers in one tree is enumerated. Otherwise the search starts from the
    greedy forest, so it is never worse than that. Annealing draws moves
    blindly and starts so hot that it forgets where it began; here most moves offer a server
    the nodes it would be served best by as the tree stands, and the temperature is that of
    single moves. The result depends on the seed only, unless the time runs out.
    """
    began = clock()
    start, servers = servers_of(problem, approach)
    if len(start) == 2 and len(servers) <= _SERVERS_ENUMERATED:
        forest = exact_tree(problem, approach)
        return forest, (len(servers) + 1) ** max(len(servers) - 1, 0)
    state, evaluations = grown_state(problem, approach)
    if len(servers) < 2:
        return forest_of(state, approach), evaluations
    if state.nodes[:, LOAD].max() >= 1.0:
        kept_up = relieved(problem, forest_of(state, approach))
        state = state_of(problem, approach, kept_up.parents)
    best = forest_of(state, approach).parents
    best_cost = state.total.copy()
    numbers = seed_state(seed)
    changed = np.zeros(len(best), dtype=np.bool_)
    cooling = _THOROUGH if problem.object_count == 1 else _THOROUGH_MANY
    wished = int(cooling.moves * len(servers))
    if len(best) > 1 and wished > _MOVES_BRIEF:
        cooling, wished = _BRIEF, max(int(_BRIEF.moves * len(servers)), _MOVES_BRIEF)
    budget = min(max(wished, _COOLING_MIN), _COOLING_MAX) // cooling.temperatures
    hot = cooling.hot * (1.0 + _HOT_FEW / len(servers)) / len(servers)
    every = _NEAR_EVERY_MANY if problem.node_count > _MANY_NODES else 1
    for step in range(cooling.temperatures):
        if time_limit is not None and clock() - began >= time_limit:
            break
        if step % every == 0:
            near = near_nodes(problem, state, approach, count=cooling.near)
        temperature = hot * _COLD ** (step / (cooling.temperatures - 1))
        evaluations += cool(
            numbers, state, start, servers, near, temperature, budget, best, best_cost, changed
        )
        if observe is not None:
            observe("auto", step + 1, cooling.temperatures)
    state = state_of(problem, approach, best)
    near = near_nodes(problem, state, approach, count=cooling.near)
    evaluations += descend(state, start, servers, near, _DESCENT_PER_SERVER * len(servers))
    return relieved(problem, forest_of(state, approach)), evaluations


def repair(problem: FidelityProblem, forest: Forest) -> Forest:
    """Return a forest without overload, if one is found, that starts from the given one.

    It is `relieved`; where that is not enough, and nothing is known that rules it out, the whole
    search looks for another. The largest load never gets worse. A forest without overload is
    returned as it is, and the same forest always gives the same result. Up to eight servers in
    one tree it finds a forest without overload if there is one.
    """
    found = relieved(problem, forest)
    if _largest_load(problem, found) < 1.0 or unservable(problem, forest.approach):
        return found
    searched, _ = search(problem, forest.approach)
    return min(found, searched, key=lambda each: _largest_load(problem, each))


def relieved(problem: FidelityProblem, forest: Forest) -> Forest:
    """Return the forest after a descent out of overload, or another that comes out of it.

    To a move overload is dear but not infinite (see `_state_kernels`), so that sweeps of moves
    lower it like any other cost. The descent starts from the forest, and where some node stays
    overloaded again from other ones; it ends when nobody is even busy.
    """
    best, least = forest, _largest_load(problem, forest)
    if least < 1.0:
        return forest
    # What cannot be had need not be looked for: where every forest overloads a node, the
    # least that its load can be is enough.
    bound = max((reason.load for reason in unservable(problem, forest.approach)), default=0.0)
    start, servers = servers_of(problem, forest.approach)
    for begin in ("given", "greedy", "source"):
        if begin == "greedy":
            state, _ = grown_state(problem, forest.approach)
        else:
            given = forest if begin == "given" else source_tree(problem, forest.approach)
            state = state_of(problem, forest.approach, given.parents)
        before = np.inf
        while state.nodes[:, LOAD].max() >= _BUSY and state.total[0] < before * (
            1.0 - _SWEEP_GAIN_MIN
        ):
            before = float(state.total[0])
            near = near_nodes(problem, state, forest.approach, count=_THOROUGH.near)
            descend(state, start, servers, near, len(servers))
        found = forest_of(state, forest.approach)
        load = _largest_load(problem, found)
        if load < least:
            best, least = found, load
        if least < max(_LIMIT, bound * (2.0 - _LIMIT)):
            break
    return best


def _largest_load(problem: FidelityProblem, forest: Forest) -> float:
    return float(loss(problem, forest).loads.max())


def near_nodes(
    problem: FidelityProblem, state: PackedForest, approach: str, *, count: int
) -> IntArray:
    """Return the nodes that each would best receive from now, shape (trees, nodes, count).

    Judged by the delay to the other node in the tree, what it adds to that, and what one
    more child costs all those below it already, in this tree and by queueing in all.
    """
    start, servers = servers_of(problem, approach)
    serving = problem.filter_times + problem.send_times
    below, below_total = state.sums[:, :, BELOW], state.nodes[:, BELOW_TOTAL]
    adding = np.broadcast_to(serving, below.shape).copy()
    np.divide(state.sums[:, :, LOCAL], below, out=adding, where=below > 0.0)
    adding += _ratio(state.nodes[:, QUEUE], below_total)
    load = np.minimum(state.nodes[:, LOAD], LOAD_LINEAR)
    queueing = (2.0 * load - load**2) / (1.0 - load) ** 2 * below_total
    part = _ratio(state.sums[:, :, PEAKS], np.broadcast_to(state.nodes[:, PEAK_TOTAL], below.shape))
    crowding = serving * (0.5 * below + queueing * part)
    weight = state.sums[:, :, WEIGHT].sum(axis=1) / np.maximum(np.diff(start), 1)
    # Overloaded nodes above make a delay infinite; far away is all that says here.
    delay = np.nan_to_num(loss(problem, forest_of(state, approach)).delays.T, posinf=1e9)
    base = delay + adding + crowding * _ratio(np.ones(len(weight)), weight)[:, None]
    return nearest_nodes(base, problem.delays, start, servers, min(count, problem.node_count - 1))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return the quotient, 0 where nothing is to be divided by."""
    return np.divide(above, below, out=np.zeros(below.shape), where=below > 0.0)
