"""Fidelity problems from the tables `rates` and `overlay`, and their trees as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest
from distributary.fidelity.generate import (
    FILTER_TIME_MEAN,
    FILTER_TIME_MIN,
    SEND_TIME_MEAN,
    SEND_TIME_MIN,
)
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.problem_file import CELLS_MAX
from distributary.pipeline.overlay import BrokerOverlay

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.store import Store

__all__ = [
    "RateTable",
    "ServerTimes",
    "rate_table",
    "stream_problem",
    "tree_rows",
]

_MILLISECOND = 1e-3


@dataclass(frozen=True)
class ServerTimes:
    """How long brokers take with an update for one child, in seconds.

    The defaults are the means of the published experiments, and for the source the least.
    """

    filter_time: float = FILTER_TIME_MEAN
    send_time: float = SEND_TIME_MEAN
    source_filter_time: float = FILTER_TIME_MIN
    source_send_time: float = SEND_TIME_MIN

    def __post_init__(self) -> None:
        for name in ("filter_time", "send_time", "source_filter_time", "source_send_time"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                option = f"--{name.replace('_', '-')}"
                raise BadInput(option, f"must be a finite number of at least 0, not {value:g}")


@dataclass(frozen=True, eq=False)
class RateTable:
    """The table `rates`.

    Row by row: the index of a broker, that of an object, and updates per second.
    """

    objects: tuple[str, ...]
    server: IntArray
    thing: IntArray
    rate: FloatArray

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self.rate)


def rate_table(store: Store, brokers: BrokerOverlay) -> RateTable:
    """Return the table `rates`, or raise `BadInput` naming its folder."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = store.read("rates")
    place = store.path("rates")
    if rows.num_rows == 0:
        raise BadInput(place, "is empty")
    at = pc.index_in(rows["server"], value_set=pa.array(brokers.brokers))
    if at.null_count:
        lost = rows["server"].filter(pc.is_null(at))[0].as_py()
        raise BadInput(place, f"server {quoted(lost)} is not in the overlay")
    objects = pc.unique(rows["object"])
    objects = objects.take(pc.sort_indices(objects))
    thing = np.asarray(pc.index_in(rows["object"], value_set=objects)).astype(np.int64)
    server = np.asarray(at).astype(np.int64)
    rate = np.asarray(rows["updates_per_second"]).astype(np.float64)
    names = tuple(objects.to_pylist())
    wrong = np.flatnonzero(~(np.isfinite(rate) & (rate >= 0.0)))
    if wrong.size:
        raise BadInput(
            place,
            f"updates_per_second of {quoted(names[thing[wrong[0]]])} at "
            f"{quoted(brokers.brokers[server[wrong[0]]])} must be a finite number of at least 0",
        )
    keys = np.sort(server * len(names) + thing)
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if twice.size:
        broker, x = divmod(int(keys[twice[0]]), len(names))
        raise BadInput(
            place, f"{quoted(names[x])} is given twice at {quoted(brokers.brokers[broker])}"
        )
    return RateTable(names, server, thing, rate)


def stream_problem(
    rates: RateTable,
    brokers: BrokerOverlay,
    source: str,
    objects: Sequence[int],
    times: ServerTimes,
) -> FidelityProblem:
    """Return the problem of the objects that come from one broker."""
    things = np.asarray(objects, dtype=np.int64)
    column = np.full(len(rates.objects), -1, dtype=np.int64)
    column[things] = np.arange(len(things))
    chosen = column[rates.thing] >= 0
    root = brokers.brokers.index(source)
    nodes = np.union1d(rates.server[chosen & (rates.rate > 0.0)], [root])
    if len(nodes) * len(things) > CELLS_MAX:
        raise BadInput(
            "rates",
            f"of {len(things):,} objects at {len(nodes):,} servers are too many to plan at once; "
            f"objects times servers is at most {CELLS_MAX:,}",
        )
    row = np.full(len(brokers.brokers), -1, dtype=np.int64)
    row[nodes] = np.arange(len(nodes))
    chosen &= row[rates.server] >= 0
    matrix = np.zeros((len(nodes), len(things)))
    matrix[row[rates.server[chosen]], column[rates.thing[chosen]]] = rates.rate[chosen]
    is_source = nodes == root
    return FidelityProblem.in_order(
        names=[brokers.brokers[node] for node in nodes.tolist()],
        source=source,
        objects=[rates.objects[x] for x in things.tolist()],
        rates=matrix,
        filter_times=np.where(is_source, times.source_filter_time, times.filter_time),
        send_times=np.where(is_source, times.source_send_time, times.send_time),
        delays=brokers.overlay.delays[np.ix_(nodes, nodes)] * _MILLISECOND,
    )


def tree_rows(problem: FidelityProblem, forest: Forest) -> pa.Table:
    """Return the trees as the table `trees`: the parent of a server for an object.

    In one tree for all objects, an object has the servers that it passes: those that want
    it, and those above them.
    """
    import pyarrow as pa

    if forest.approach == "one-tree":
        parents = np.where(
            _passed(problem.wanted, forest.parents[0]), forest.parents[0][:, None], OUTSIDE
        ).T
    else:
        parents = forest.parents
    thing, server = np.nonzero(parents != OUTSIDE)
    above = parents[thing, server]
    names = pa.array(problem.names, pa.string())
    return pa.table(
        {
            "object": pa.array(problem.objects, pa.string()).take(pa.array(thing)),
            "server": names.take(pa.array(server)),
            "parent": names.take(pa.array(above, mask=above == ROOT)),
        }
    )


def _passed(wanted: BoolArray, parents: IntArray) -> BoolArray:
    """Return which nodes each object passes on its way down one tree, shape (nodes, objects)."""
    passed = wanted.copy()
    passed[0] = True
    below = np.flatnonzero(parents >= 0)
    # What a node passes on, its parent passes on: one level of the tree at a time.
    while True:
        before = passed.copy()
        np.logical_or.at(passed, parents[below], before[below])
        if np.array_equal(before, passed):
            return passed
