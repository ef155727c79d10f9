"""The fidelity problem: one source, many servers, and how often each needs an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distributary.arrays import BoolArray, FloatArray

__all__ = ["Adaptation", "FidelityProblem"]


@dataclass(frozen=True)
class Adaptation:
    """What keeping a tree adapted costs a server at run time.

    Attributes
    ----------
    collect_time, collect_period
        Seconds to collect the statistics of one server, and how often that is done.
    decide_time, decide_period
        Seconds to weigh one possible move, and how often that is done.
    """

    collect_time: float
    collect_period: float
    decide_time: float
    decide_period: float

    @property
    def collecting(self) -> float:
        """Share of time spent per server whose statistics are collected."""
        return self.collect_time / self.collect_period

    @property
    def deciding(self) -> float:
        """Share of time spent per possible move."""
        return self.decide_time / self.decide_period


@dataclass(frozen=True, eq=False)
class FidelityProblem:
    """Which tree, or trees, should a stream of updates follow?

    Attributes
    ----------
    names
        The source first, then the servers in the order of their names.
    objects
        The objects in the order of their names.
    rates
        `rates[i, x]` is how many updates of object `x` node `i` needs per second; 0 when
        it does not want the object. Shape (nodes, objects). At the source it is the rate
        at which the object changes, as far as that is known.
    filter_times, send_times
        Seconds to check a message for one child, and to send it to one, shape (nodes,).
    delays
        `delays[i, j]` is the delay in seconds from node `i` to node `j`.
    adaptation
        The cost of adapting the tree, if it counts.
    """

    names: tuple[str, ...]
    objects: tuple[str, ...]
    rates: FloatArray
    filter_times: FloatArray
    send_times: FloatArray
    delays: FloatArray
    adaptation: Adaptation | None = None

    def __post_init__(self) -> None:
        count = len(self.names)
        assert count >= 1
        assert self.rates.shape == (count, len(self.objects))
        assert self.filter_times.shape == (count,)
        assert self.send_times.shape == (count,)
        assert self.delays.shape == (count, count)
        for array in (self.rates, self.filter_times, self.send_times, self.delays):
            array.flags.writeable = False

    @classmethod
    def in_order(
        cls,
        *,
        names: Sequence[str],
        source: str,
        objects: Sequence[str],
        rates: FloatArray,
        filter_times: FloatArray,
        send_times: FloatArray,
        delays: FloatArray,
        adaptation: Adaptation | None = None,
    ) -> FidelityProblem:
        """Build a problem from arrays in any order of nodes and objects.

        The source is put first and the rest by name, so that no planner's result depends
        on the order of the input.
        """
        nodes = sorted(range(len(names)), key=lambda i: (names[i] != source, names[i]))
        things = sorted(range(len(objects)), key=lambda x: objects[x])
        # The delays of many servers are large; they are only copied when they must be.
        ordered = nodes == list(range(len(nodes)))
        between = delays.view() if ordered else delays[np.ix_(nodes, nodes)]
        return cls(
            tuple(names[i] for i in nodes),
            tuple(objects[x] for x in things),
            np.ascontiguousarray(rates[np.ix_(nodes, things)], dtype=np.float64),
            np.array(filter_times, dtype=np.float64)[nodes],
            np.array(send_times, dtype=np.float64)[nodes],
            np.ascontiguousarray(between, dtype=np.float64),
            adaptation,
        )

    @property
    def node_count(self) -> int:
        """How many nodes there are, the source included."""
        return len(self.names)

    @property
    def object_count(self) -> int:
        """How many objects there are."""
        return len(self.objects)

    @cached_property
    def wanted(self) -> BoolArray:
        """`wanted[i, x]`: does server `i` want object `x`? The source wants nothing."""
        wanted = self.rates > 0.0
        wanted[0] = False
        return np.asarray(wanted)

    @cached_property
    def served(self) -> BoolArray:
        """`served[i]`: does server `i` want anything at all?"""
        return np.asarray(self.wanted.any(axis=1))

    @cached_property
    def weights(self) -> FloatArray:
        """`weights[i, x]`: by how much a second of delay of `x` at `i` raises the average loss.

        The loss of a server is the mean over its objects of rate times delay, and the
        average loss is the mean over the servers that want something.
        """
        wishes = np.maximum(self.wanted.sum(axis=1), 1)
        servers = max(int(self.served.sum()), 1)
        return np.asarray(np.where(self.wanted, self.rates, 0.0) / (wishes[:, None] * servers))
