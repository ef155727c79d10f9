"""Our own search for trees: grow, cool, and descend (the method "auto")."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from distributary.arrays import IntArray
from distributary.fidelity._descent_kernels import cool, descend, nearest_nodes
from distributary.fidelity._state_kernels import (
    BELOW,
    BELOW_TOTAL,
    CHILDREN,
    LOAD,
    LOAD_LINEAR,
    LOCAL,
    QUEUE,
    State,
)
from distributary.fidelity.exact import exact_tree
from distributary.fidelity.forest import Forest
from distributary.fidelity.greedy import grown_state
from distributary.fidelity.loss import loss
from distributary.fidelity.model import forest_of, servers_of, state_of
from distributary.fidelity.overload import repair
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.seeds import seed_state

__all__ = ["near_nodes", "search"]

Observer = Callable[[str, int, int], None]

# Nodes that a server is offered.
_NEAR = 10
# The first temperature as a share of the cost, times the number of servers, since a move of
# one server changes about that share; hotter for few servers, whose moves change more than
# their share. The last temperature is this much lower.
_HOT, _HOT_FEW, _COLD = 0.08, 40.0, 0.05
# Up to this many servers in one tree, all trees are looked at instead.
_SERVERS_ENUMERATED = 8
# Moves weighed per server while cooling, and at least and at most this many in all.
# Together with growing and the last descent that is less than a tenth of what annealing
# weighs; hundreds of trees would otherwise take minutes.
_COOLING_PER_SERVER, _COOLING_MIN, _COOLING_MAX = 1_480, 40_000, 20_000_000
_DESCENT_PER_SERVER = 80
# Temperatures, and how often the nodes near each server are found anew: beyond so many
# nodes that takes longer than the moves.
_TEMPERATURES, _NEAR_EVERY_MANY, _MANY_NODES = 40, 8, 2_000


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
    began = time.monotonic()
    start, servers = servers_of(problem, approach)
    if len(start) == 2 and len(servers) <= _SERVERS_ENUMERATED:
        forest = exact_tree(problem, approach)
        return forest, (len(servers) + 1) ** max(len(servers) - 1, 0)
    state, evaluations = grown_state(problem, approach)
    if len(servers) < 2:
        return forest_of(state, approach), evaluations
    if state.nodes[:, LOAD].max() >= 1.0:
        kept_up = repair(problem, forest_of(state, approach))
        state = state_of(problem, approach, kept_up.parents)
    best = forest_of(state, approach).parents
    best_cost = state.total.copy()
    numbers = seed_state(seed)
    wished = _COOLING_PER_SERVER * len(servers)
    budget = min(max(wished, _COOLING_MIN), _COOLING_MAX) // _TEMPERATURES
    hot = _HOT * (1.0 + _HOT_FEW / len(servers)) / len(servers)
    every = _NEAR_EVERY_MANY if problem.node_count > _MANY_NODES else 1
    for step in range(_TEMPERATURES):
        if time_limit is not None and time.monotonic() - began >= time_limit:
            break
        if step % every == 0:
            near = near_nodes(problem, state, approach)
        temperature = hot * _COLD ** (step / (_TEMPERATURES - 1))
        evaluations += cool(
            numbers, state, start, servers, near, temperature, budget, best, best_cost
        )
        if observe is not None:
            observe("auto", step + 1, _TEMPERATURES)
    state = state_of(problem, approach, best)
    near = near_nodes(problem, state, approach)
    evaluations += descend(state, start, servers, near, _DESCENT_PER_SERVER * len(servers))
    return forest_of(state, approach), evaluations


def near_nodes(problem: FidelityProblem, state: State, approach: str) -> IntArray:
    """Return the nodes that each node would best receive from now, shape (nodes, count).

    Judged by the delay to the other node, what it adds to that, and what one more child
    costs all those below it already.
    """
    serving = problem.filter_times + problem.send_times
    below, below_total = state.sums[:, :, BELOW].sum(axis=0), state.nodes[:, BELOW_TOTAL]
    busy = state.sums[:, :, CHILDREN].any(axis=0)
    adding = serving.copy()
    adding[busy] = (
        state.sums[:, :, LOCAL].sum(axis=0)[busy] / below[busy]
        + state.nodes[busy, QUEUE] / below_total[busy]
    )
    load = np.minimum(state.nodes[:, LOAD], LOAD_LINEAR)
    crowding = serving * (0.5 + (2.0 * load - load**2) / (1.0 - load) ** 2) * below_total
    weight = problem.weights[problem.wanted].sum() / max(int(problem.served.sum()), 1)
    delays = loss(problem, forest_of(state, approach)).delays
    trees = np.maximum((delays > 0.0).sum(axis=1), 1)
    # Overloaded nodes above make a delay infinite; far away is all that says here.
    delay = np.nan_to_num(delays.sum(axis=1) / trees, posinf=1e9)
    base = delay + adding + crowding / (weight * trees)
    return nearest_nodes(base, problem.delays, max(1, min(_NEAR, problem.node_count - 1)))
