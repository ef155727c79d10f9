"""The cheapest plan as a mixed-integer program, solved by HiGHS.

The plan is a directed Steiner tree in the multilayer graph: vertex (v, k) is format `k` in
hand at node `v`. Every wish is a commodity of one unit that flows from the formats held at
the root to its vertex; an edge is paid for when any commodity uses it. Flows start at the
root, so conversions cannot feed each other in a circle.
"""

from __future__ import annotations

import highspy
import numpy as np

from distributary.placement.problem import PlacementProblem


def minimum_cost(problem: PlacementProblem) -> float:
    """Return the total cost of a cheapest plan."""
    edges = multilayer_edges(problem)
    vertex_count = problem.node_count * problem.format_count
    source = vertex_count
    wishes = [
        v * problem.format_count + k
        for v, k in np.argwhere(problem.wants).tolist()
        if v > 0 or not problem.held[k]
    ]
    if not wishes:
        return 0.0
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 1e-9)
    for _, _, cost in edges:
        model.addCol(cost, 0.0, 1.0, 0, [], [])
    for e in range(len(edges)):
        model.changeColIntegrality(e, highspy.HighsVarType.kInteger)
    column = len(edges)
    for wish in wishes:
        flow = range(column, column + len(edges))
        for e in range(len(edges)):
            model.addCol(0.0, 0.0, 1.0, 0, [], [])
            model.addRow(-highspy.kHighsInf, 0.0, 2, [flow[e], e], [1.0, -1.0])
        for vertex in range(vertex_count + 1):
            entering = [flow[e] for e, (_, end, _) in enumerate(edges) if end == vertex]
            leaving = [flow[e] for e, (start, _, _) in enumerate(edges) if start == vertex]
            balance = float(vertex == wish) - float(vertex == source)
            model.addRow(
                balance,
                balance,
                len(entering) + len(leaving),
                entering + leaving,
                [1.0] * len(entering) + [-1.0] * len(leaving),
            )
        column += len(edges)
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(model.getInfo().objective_function_value)


def multilayer_edges(problem: PlacementProblem) -> list[tuple[int, int, float]]:
    """Return the edges of the multilayer graph as (start, end, cost), source edges included."""
    graph, tree = problem.graph, problem.tree
    m = problem.format_count
    edges = [(problem.node_count * m, k, 0.0) for k in np.flatnonzero(problem.held).tolist()]
    for v in range(problem.node_count):
        for i, j in np.argwhere(np.isfinite(graph.costs)).tolist():
            conversion = problem.beta * float(tree.node_costs[v] * graph.costs[i, j])
            edges.append((v * m + i, v * m + j, conversion))
        if v > 0:
            for k in range(m):
                transmission = problem.alpha * float(tree.link_costs[v] * graph.sizes[k])
                edges.append((int(tree.parents[v]) * m + k, v * m + k, transmission))
    return edges
