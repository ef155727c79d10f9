"""The fidelity problem: one source, many servers, and how often each needs an update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distributary.arguments import check_names, check_number, check_type, no_such_name
from distributary.arrays import BoolArray, FloatArray, check_amounts, shaped
from distributary.errors import BadInput, quoted

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

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_number(name, value, positive=name.endswith("_period"))

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
        check_names("names", self.names)
        check_names("objects", self.objects)
        names, count = self.names, len(self.names)
        if count == 0:
            raise BadInput("names", "is empty", hint="there is at least the source")

        def node(argument: str) -> Callable[[int], str]:
            return lambda i: f"{argument} of node {quoted(names[i])}"

        check_amounts(
            "rates",
            self.rates,
            (count, len(self.objects)),
            lambda i, x: f"rate of node {quoted(names[i])} for {quoted(self.objects[x])}",
        )
        check_amounts("filter_times", self.filter_times, (count,), node("filter_time"))
        check_amounts("send_times", self.send_times, (count,), node("send_time"))
        check_amounts(
            "delays",
            self.delays,
            (count, count),
            lambda i, j: f"delay from {quoted(names[i])} to {quoted(names[j])}",
        )
        check_type("adaptation", self.adaptation, Adaptation, type(None))

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
        for argument, given in (("names", names), ("objects", objects)):
            check_type(argument, given, Sequence)
            check_names(argument, tuple(given))
        check_type("source", source, str)
        if source not in names:
            raise no_such_name("source", source, names, "a node")
        count = len(names)
        rates = shaped("rates", rates, (count, len(objects)), np.float64)
        delays = shaped("delays", delays, (count, count), np.float64)
        filter_times = shaped("filter_times", filter_times, (count,), np.float64)
        send_times = shaped("send_times", send_times, (count,), np.float64)
        nodes = sorted(range(len(names)), key=lambda i: (names[i] != source, names[i]))
        things = sorted(range(len(objects)), key=lambda x: objects[x])
        # The delays of many servers are large; they are only copied when they must be.
        ordered = nodes == list(range(len(nodes)))
        between = delays.view() if ordered else delays[np.ix_(nodes, nodes)]
        return cls(
            tuple(names[i] for i in nodes),
            tuple(objects[x] for x in things),
            np.ascontiguousarray(rates[np.ix_(nodes, things)]),
            filter_times[nodes],
            send_times[nodes],
            np.ascontiguousarray(between),
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
