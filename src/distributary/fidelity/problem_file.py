"""Fidelity problems in files.

A problem file is one JSON object::

    {"source": "s", "objects": ["o1"],
     "nodes": [{"node": "s", "filter_time": 0.001, "send_time": 0.000125, "rates": {"o1": 1.5}},
               {"node": "n1", "filter_time": 0.005, "send_time": 0.001, "rates": {"o1": 1.0}}],
     "delays": [[0.0, 0.02], [0.02, 0.0]]}

Times are in seconds and rates per second; an object that is missing from `rates` is not
wanted. `delays[i][j]` is from the i-th to the j-th entry of `nodes`. Instead of the numbers
it may be the name of a `.npy` file beside the problem: ten thousand servers have a hundred
million delays, which do not go through JSON. An optional `adaptation` with `collect_time`,
`collect_period`, `decide_time` and `decide_period` says what keeping the tree adapted costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray
from distributary.content.documents import read_document
from distributary.content.fields import Record, UnknownKeys, no_such_name
from distributary.errors import BadInput, quoted
from distributary.fidelity.delays_file import delays_from
from distributary.fidelity.problem import Adaptation, FidelityProblem
from distributary.topology.delay_matrix import HOSTS_MAX
from distributary.topology.sites import Sites

__all__ = [
    "CELLS_MAX",
    "NODES_MAX",
    "OBJECTS_MAX",
    "ProblemFile",
    "parse_problem",
    "problem_document",
    "read_problem",
]

NODES_MAX = HOSTS_MAX
OBJECTS_MAX = 100_000
# A planner keeps a handful of numbers for every object at every node.
CELLS_MAX = 20_000_000

_TOP_KEYS = frozenset({"source", "objects", "nodes", "delays", "adaptation"})
_NODE_KEYS = frozenset({"node", "filter_time", "send_time", "rates"})
_ADAPTATION_KEYS = frozenset({"collect_time", "collect_period", "decide_time", "decide_period"})


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """A problem, and what the file says beyond it.

    The order of the problem does not depend on the file; trees keep `node_order`, which is that of
    the file. Each thing in it that is ignored has a sentence in `warnings`.
    """

    problem: FidelityProblem
    node_order: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Nodes:
    """The nodes in the order of the file; `rates` as (node, object, rate)."""

    index_of: dict[str, int]
    filter_times: list[float]
    send_times: list[float]
    rates: list[tuple[int, int, float]]


@checked
def read_problem(
    path: Path | str, *, alone: bool = False, sites: Sites | None = None
) -> ProblemFile:
    """Return the fidelity problem in a file; see `parse_problem`.

    `alone` says that it is a stream, such as standard input, which has no files beside it.
    """
    folder = None if alone else Path(path).parent
    return read_document(path, lambda document: parse_problem(document, folder=folder, sites=sites))


def parse_problem(
    document: object, *, folder: Path | None = None, sites: Sites | None = None
) -> ProblemFile:
    """Return the fidelity problem in a JSON document, or raise `BadInput`.

    A file of delays that the document names is looked for in `folder`; without one, the document
    must hold the delays itself. With sites it has none: nodes have the names of sites, and the
    delays are those between them.
    """
    top = Record(document)
    unknown = UnknownKeys()
    unknown.note(top, _TOP_KEYS)
    source = top.name("source")
    objects = top.names("objects", count_max=OBJECTS_MAX)
    if not objects:
        raise BadInput("objects", "is empty", hint="a stream has at least one object")
    nodes = _nodes(top, {name: x for x, name in enumerate(objects)}, unknown)
    names = tuple(nodes.index_of)
    rates = np.zeros((len(names), len(objects)))
    if nodes.rates:
        rows, columns, values = zip(*nodes.rates, strict=True)
        rates[rows, columns] = values
    adaptation = None
    if "adaptation" in top:
        entry = top.record("adaptation")
        unknown.note(entry, _ADAPTATION_KEYS)
        adaptation = Adaptation(
            collect_time=entry.number("collect_time"),
            collect_period=entry.number("collect_period", positive=True),
            decide_time=entry.number("decide_time"),
            decide_period=entry.number("decide_period", positive=True),
        )
    problem = FidelityProblem.in_order(
        names=names,
        source=source,
        objects=objects,
        rates=rates,
        filter_times=np.array(nodes.filter_times),
        send_times=np.array(nodes.send_times),
        delays=_delays(top, names, folder, sites),
        adaptation=adaptation,
    )
    return ProblemFile(problem, names, unknown.warnings())


def _delays(
    top: Record, names: tuple[str, ...], folder: Path | None, sites: Sites | None
) -> FloatArray:
    if sites is None:
        return delays_from(top, len(names), folder)
    if "delays" in top:
        raise BadInput("delays", "is given both here and by the network", hint="leave it out")
    return sites.delays_between(sites.indices(names, "nodes[].node"))


@checked
def problem_document(
    problem: FidelityProblem, *, delays_file: str | None = None
) -> dict[str, object]:
    """Return `problem` as the document that `parse_problem` reads back.

    `delays_file` is the name of the file beside the document that has the delays (see
    `distributary.fidelity.delays_file`); without it, they are in the document.
    """
    wanted = problem.rates > 0.0
    nodes: list[dict[str, object]] = [
        {
            "node": problem.names[i],
            "filter_time": float(problem.filter_times[i]),
            "send_time": float(problem.send_times[i]),
            "rates": {
                problem.objects[x]: float(problem.rates[i, x]) for x in np.flatnonzero(wanted[i])
            },
        }
        for i in range(problem.node_count)
    ]
    document: dict[str, object] = {
        "source": problem.names[0],
        "objects": list(problem.objects),
        "nodes": nodes,
        "delays": problem.delays.tolist() if delays_file is None else delays_file,
    }
    if problem.adaptation is not None:
        document["adaptation"] = {
            "collect_time": problem.adaptation.collect_time,
            "collect_period": problem.adaptation.collect_period,
            "decide_time": problem.adaptation.decide_time,
            "decide_period": problem.adaptation.decide_period,
        }
    return document


def _nodes(top: Record, objects: dict[str, int], unknown: UnknownKeys) -> _Nodes:
    """Return the nodes, checked one by one."""
    nodes = _Nodes({}, [], [], [])
    for index, entry in enumerate(top.records("nodes", count_max=NODES_MAX)):
        name = entry.name("node")
        if name in nodes.index_of:
            raise BadInput(
                entry.place("node"),
                f"node {quoted(name)} is given twice, first at nodes[{nodes.index_of[name]}]",
            )
        nodes.index_of[name] = index
        nodes.filter_times.append(entry.number("filter_time"))
        nodes.send_times.append(entry.number("send_time"))
        rates = entry.record("rates")
        for wanted in rates.keys:
            if wanted not in objects:
                raise no_such_name(rates.place(wanted), wanted, objects, "an object")
            nodes.rates.append((index, objects[wanted], _rate(rates, wanted)))
        unknown.note(entry, _NODE_KEYS)
    if not nodes.index_of:
        raise BadInput("nodes", "is empty", hint="there is at least the source")
    if len(nodes.index_of) * len(objects) > CELLS_MAX:
        raise BadInput(
            "nodes",
            f"has {len(nodes.index_of):,} nodes for {len(objects):,} objects; "
            f"nodes times objects is at most {CELLS_MAX:,}",
        )
    return nodes


def _rate(rates: Record, wanted: str) -> float:
    try:
        return rates.number(wanted, positive=True)
    except BadInput as error:
        hint = "leave the object out where it is not wanted"
        raise BadInput(error.place, error.problem, hint=hint) from None
