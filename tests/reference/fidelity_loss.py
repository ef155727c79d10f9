"""The cost model of loss of fidelity, read off the equations one by one.

Zhou, Ooi and Tan, sections 3 and 4. Nodes and objects are names, rates and times are
dictionaries, subtrees are walked anew for every number. The three forms (one object, many
objects in one tree, a tree per object) are written apart and share only equation (7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from distributary.fidelity.forest import Forest
from distributary.fidelity.problem import FidelityProblem

Parents = dict[str, str]


@dataclass(frozen=True)
class Instance:
    """A problem in plain words; `rates` has only what is wanted, the source's own included."""

    source: str
    rates: dict[str, dict[str, float]]
    filter_time: dict[str, float]
    send_time: dict[str, float]
    delay: dict[tuple[str, str], float]
    adaptation: tuple[float, float, float, float] | None

    @property
    def servers(self) -> list[str]:
        """The servers that want something."""
        return [name for name, wanted in self.rates.items() if name != self.source and wanted]


@dataclass(frozen=True)
class Result:
    """The average loss, that of each server, and the load of each node."""

    average: float
    servers: dict[str, float]
    loads: dict[str, float]


def instance(problem: FidelityProblem) -> Instance:
    """Return a problem in plain words."""
    names = problem.names
    adaptation = problem.adaptation
    return Instance(
        source=names[0],
        rates={
            name: {
                thing: float(problem.rates[i, x])
                for x, thing in enumerate(problem.objects)
                if problem.rates[i, x] > 0.0
            }
            for i, name in enumerate(names)
        },
        filter_time=dict(zip(names, problem.filter_times.tolist(), strict=True)),
        send_time=dict(zip(names, problem.send_times.tolist(), strict=True)),
        delay={
            (a, b): float(problem.delays[i, j])
            for i, a in enumerate(names)
            for j, b in enumerate(names)
        },
        adaptation=None
        if adaptation is None
        else (
            adaptation.collect_time,
            adaptation.collect_period,
            adaptation.decide_time,
            adaptation.decide_period,
        ),
    )


def parents_by_name(problem: FidelityProblem, forest: Forest) -> list[Parents]:
    """Return the parent of every server in each tree, by name."""
    return [
        {problem.names[i]: problem.names[p] for i, p in enumerate(tree.tolist()) if p >= 0}
        for tree in forest.parents
    ]


def reference_loss(problem: FidelityProblem, forest: Forest) -> Result:
    """Return the loss of a forest, whichever form it has."""
    trees = parents_by_name(problem, forest)
    if forest.approach == "one-tree":
        return one_tree(instance(problem), trees[0])
    return tree_each(instance(problem), dict(zip(problem.objects, trees, strict=True)))


def children(parents: Parents, k: str) -> list[str]:
    """`C_k`."""
    return [i for i, p in parents.items() if p == k]


def subtree(parents: Parents, k: str) -> list[str]:
    """`T_k`: the node and all below it."""
    return [k, *(below for j in children(parents, k) for below in subtree(parents, j))]


def ancestors(parents: Parents, i: str) -> list[str]:
    """Everything above a server, from its parent to the source."""
    return [parents[i], *ancestors(parents, parents[i])] if i in parents else []


def path_delay(given: Instance, parents: Parents, i: str) -> float:
    """`D(s, n_i)`."""
    return path_delay(given, parents, p) + given.delay[p, i] if (p := parents.get(i)) else 0.0


def peak(given: Instance, parents: Parents, k: str, thing: str) -> float:
    """`r^m_{k,x}`: the largest rate of an object in a subtree, 0 when nobody wants it there."""
    return max(given.rates[i].get(thing, 0.0) for i in subtree(parents, k))


def adaptation_time(given: Instance, parents: Parents, k: str) -> float:
    """`t^a_k`, equation (7), with all the decisions weighted by `t^d / T_d`."""
    if given.adaptation is None:
        return 0.0
    collect_time, collect_period, decide_time, decide_period = given.adaptation
    below = children(parents, k)
    grandchildren = sum(len(children(parents, j)) for j in below)
    promotions = grandchildren
    demotions = len(below) * (len(below) - 1)
    cousin_swaps = sum(
        len(children(parents, j)) * (grandchildren - len(children(parents, j))) for j in below
    )
    adoptions_and_uncle_swaps = 2 * sum(grandchildren - len(children(parents, j)) for j in below)
    decisions = promotions + demotions + cousin_swaps + adoptions_and_uncle_swaps
    return (
        collect_time / collect_period * (len(below) + grandchildren)
        + decide_time / decide_period * decisions
    )


def mean(values: list[float]) -> float:
    """The mean, 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0


def single_object(given: Instance, parents: Parents) -> Result:
    """Equations (2) to (6): the only object there is."""
    (thing,) = {x for wanted in given.rates.values() for x in wanted}
    loads: dict[str, float] = dict.fromkeys(given.rates, 0.0)
    g: dict[str, float] = {}
    for k in [given.source, *parents]:
        if not (C := children(parents, k)):
            continue
        tp, tc = given.filter_time[k], given.send_time[k]
        r_m = peak(given, parents, k, thing)
        t = sum(tp + tc * peak(given, parents, j, thing) / r_m for j in C)
        rho = loads[k] = r_m * t
        g[k] = (
            (1 + rho) / (2 * (1 - rho)) * t + tp + tc - t / (2 * len(C)) if rho < 1 else math.inf
        ) + adaptation_time(given, parents, k)
    servers = {
        i: given.rates[i][thing]
        * (path_delay(given, parents, i) + sum(g[k] for k in ancestors(parents, i)))
        for i in given.servers
    }
    return Result(mean(list(servers.values())), servers, loads)


def one_tree(given: Instance, parents: Parents) -> Result:
    """Equations (9) to (12): one tree for all objects."""
    things = sorted({x for wanted in given.rates.values() for x in wanted})
    loads: dict[str, float] = dict.fromkeys(given.rates, 0.0)
    g: dict[str, float] = {}
    for k in [given.source, *parents]:
        if not (C := children(parents, k)):
            continue
        tp, tc = given.filter_time[k], given.send_time[k]
        r_m = {x: peak(given, parents, k, x) for x in things}
        wanted = [x for x in things if r_m[x] > 0]
        rho = 0.0
        for x in wanted:
            interested = [j for j in C if peak(given, parents, j, x) > 0]
            rho += r_m[x] * sum(tp + tc * peak(given, parents, j, x) / r_m[x] for j in interested)
        loads[k] = rho
        t = rho / sum(r_m[x] for x in wanted)
        g[k] = (
            (1 + rho) / (2 * (1 - rho)) * t + tp + tc - t / (2 * len(C)) if rho < 1 else math.inf
        ) + len(wanted) * adaptation_time(given, parents, k)
    servers = {
        i: mean(list(given.rates[i].values()))
        * (path_delay(given, parents, i) + sum(g[k] for k in ancestors(parents, i)))
        for i in given.servers
    }
    return Result(mean(list(servers.values())), servers, loads)


def tree_each(given: Instance, trees: dict[str, Parents]) -> Result:
    """A tree per object; the trees share the time of the nodes that are in several."""
    loads: dict[str, float] = {}
    mean_time: dict[str, float] = {}
    object_time: dict[str, dict[str, float]] = {}
    for k in given.rates:
        tp, tc = given.filter_time[k], given.send_time[k]
        mine = [x for x, parents in trees.items() if k == given.source or k in parents]
        r_m = {x: peak(given, trees[x], k, x) for x in mine}
        object_time[k] = {
            x: sum(tp + tc * peak(given, trees[x], j, x) / r_m[x] for j in children(trees[x], k))
            for x in mine
        }
        loads[k] = sum(r_m[x] * object_time[k][x] for x in mine)
        mean_time[k] = loads[k] / sum(r_m.values()) if loads[k] > 0 else 0.0

    def g(k: str, x: str) -> float:
        rho, t, t_x = loads[k], mean_time[k], object_time[k][x]
        C = children(trees[x], k)
        if rho >= 1:
            return math.inf
        return (
            rho / (1 - rho) * t
            + t_x / 2 * (1 - 1 / len(C))
            + given.filter_time[k]
            + given.send_time[k]
            + adaptation_time(given, trees[x], k)
        )

    servers = {
        i: mean(
            [
                rate
                * (path_delay(given, trees[x], i) + sum(g(k, x) for k in ancestors(trees[x], i)))
                for x, rate in given.rates[i].items()
            ]
        )
        for i in given.servers
    }
    return Result(mean(list(servers.values())), servers, loads)
