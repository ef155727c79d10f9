"""The cheapest wiring as an integer program, solved by HiGHS.

Every channel chooses the set of brokers that its subscribers are on, among all of them, so
that the weight of any tree is a number in a table. A share of the channel's rate enters at
each broker together with that set; what it pays is then linear. Only the brokers of the
users have to be whole: when they are, there is a single set that fits.
"""

from __future__ import annotations

import itertools

import highspy
import numpy as np
from tests.reference.wiring import demand, instance, weigher

from distributary.wiring.problem import WiringProblem


def minimum_cost(problem: WiringProblem, core: str) -> float | None:
    """Return the cost of a cheapest wiring; None when none respects the capacities."""
    given, weigh = instance(problem), weigher(problem, core)
    users, brokers = len(given.users), len(given.brokers)
    demands = [demand(given, u) for u in given.users]
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    for option in ("mip_rel_gap", "mip_abs_gap"):
        model.setOptionValue(option, 0.0)
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_feasibility_tolerance", 1e-9)
    model.setOptionValue("primal_feasibility_tolerance", 1e-9)

    columns = 0

    def column(cost: float) -> int:
        nonlocal columns
        model.addCol(cost, 0.0, 1.0, 0, [], [])
        columns += 1
        return columns - 1

    def row(low: float, high: float, entries: dict[int, float]) -> None:
        model.addRow(low, high, len(entries), list(entries), list(entries.values()))

    attached = [
        [column(demands[u] * given.access[u][b]) for b in given.brokers] for u in range(users)
    ]
    for cell in range(columns):
        model.changeColIntegrality(cell, highspy.HighsVarType.kInteger)
    for u in range(users):
        row(1.0, 1.0, dict.fromkeys(attached[u], 1.0))
    for b in given.brokers:
        if np.isfinite(given.capacities[b]):
            shares = {attached[u][b]: demands[u] for u in given.users}
            row(-highspy.kHighsInf, given.capacities[b] * (1.0 + 1e-9), shares)
    sets = [
        frozenset(chosen)
        for count in range(1, brokers + 1)
        for chosen in itertools.combinations(given.brokers, count)
    ]
    for c in range(problem.channel_count):
        readers = [u for u in given.users if c in given.subscribes[u]]
        rates = {u: given.publishes[u][c] for u in given.users if c in given.publishes[u]}
        total = sum(rates.values())
        if not readers or not rates:
            continue
        chosen = {s: column(0.0) for s in sets}
        row(1.0, 1.0, dict.fromkeys(chosen.values(), 1.0))
        for b in given.brokers:
            within = {place: 1.0 for s, place in chosen.items() if b in s}
            for v in readers:
                row(0.0, highspy.kHighsInf, {**within, attached[v][b]: -1.0})
            row(-highspy.kHighsInf, 0.0, {**within, **{attached[v][b]: -1.0 for v in readers}})
        enters = {(s, b): column(total * weigh(s | {b})) for s in sets for b in given.brokers}
        for s in sets:
            row(0.0, 0.0, {chosen[s]: -1.0, **{enters[s, b]: 1.0 for b in given.brokers}})
        for b in given.brokers:
            published = {attached[u][b]: -rate / total for u, rate in rates.items()}
            row(0.0, 0.0, {**published, **{enters[s, b]: 1.0 for s in sets}})
    model.run()
    status = model.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    assert status == highspy.HighsModelStatus.kOptimal
    return float(model.getInfo().objective_function_value)
