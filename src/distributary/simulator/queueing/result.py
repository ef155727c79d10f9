"""What a run of the queueing model has measured."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity import FidelityProblem, Forest

__all__ = ["QueueingRun", "Round"]


@dataclass(frozen=True)
class Round:
    """One round of adaptation.

    Attributes
    ----------
    moved
        How many servers have another parent since, counted in every tree.
    reports
        How many reports of changed figures nodes have sent since the round before.
    """

    at_s: float
    moved: int
    weighed: int
    reports: int


@dataclass(frozen=True, eq=False)
class QueueingRun:
    """Delays, losses and loads of a stream, as measured.

    An update counts for the window in which it was published, with all of its delay: the run
    goes on until the last one has arrived everywhere.

    Attributes
    ----------
    problem
        As it was at the start.
    seconds, window_s
        How long the stream ran, and how long a window is; the last one may be shorter.
    received
        Messages received by servers, those that they only pass on included.
    published
        Updates of each object, shape (objects,).
    meant
        Updates that each server needed, shape (nodes, objects).
    delays
        Their mean delay in seconds from the source, shape (nodes, objects); 0 where there
        were none.
    loss
        The loss of each server on each object as rate times delay, shape (nodes, objects).
    outside
        The share of time that the copy was outside its tolerance: from when an update that it
        needed was published until that one, or a later one, arrived. Shape (nodes, objects).
    loss_series, outside_series
        The same two by window, each server's mean over its objects, shape (windows, nodes).
    load_series
        The share of each window that a node worked, shape (windows, nodes).
    handled
        Messages that a node had children to look at for, shape (nodes,).
    waits, services
        How long they waited on average until the node began with them, and how long it took,
        in seconds, shape (nodes,); 0 where there were none.
    forest
        The trees at the end.
    """

    problem: FidelityProblem
    seconds: float
    window_s: float
    received: int
    published: IntArray
    meant: IntArray
    delays: FloatArray = field(repr=False)
    loss: FloatArray = field(repr=False)
    outside: FloatArray = field(repr=False)
    loss_series: FloatArray = field(repr=False)
    outside_series: FloatArray = field(repr=False)
    load_series: FloatArray = field(repr=False)
    handled: IntArray = field(repr=False)
    waits: FloatArray = field(repr=False)
    services: FloatArray = field(repr=False)
    rounds: tuple[Round, ...] = field(repr=False)
    forest: Forest = field(repr=False)

    @property
    def window_lengths(self) -> FloatArray:
        """How long each window is, in seconds."""
        edges = np.minimum(np.arange(len(self.loss_series) + 1) * self.window_s, self.seconds)
        return np.diff(edges)

    @property
    def average_loss_series(self) -> FloatArray:
        """The average loss of fidelity, rate times delay, in each window."""
        return self._average(self.loss_series)

    @property
    def average_outside_series(self) -> FloatArray:
        """The share of time outside, averaged over the servers, in each window."""
        return self._average(self.outside_series)

    @property
    def average_loss(self) -> float:
        """The average loss of fidelity, rate times delay, over the whole run."""
        return float(np.average(self.average_loss_series, weights=self.window_lengths))

    @property
    def average_outside(self) -> float:
        """The share of time outside, averaged over the servers and the whole run."""
        return float(np.average(self.average_outside_series, weights=self.window_lengths))

    @property
    def loads(self) -> FloatArray:
        """The share of time that each node worked, shape (nodes,)."""
        return np.average(self.load_series, axis=0, weights=self.window_lengths)

    def _average(self, series: FloatArray) -> FloatArray:
        """Return the mean over the servers that want something."""
        if not self.problem.served.any():
            return np.zeros(len(series))
        return np.asarray(series[:, self.problem.served].mean(axis=1))
