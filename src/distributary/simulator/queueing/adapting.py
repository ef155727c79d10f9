"""Adapting trees while they run, by what the nodes have measured.

Zhou, Ooi and Tan, sections 3.2.2 and 3.2.3. At the end of a window every node looks at what it
has measured: its times to filter and send, the rates of what it needs, and the delays of links.
A figure that has changed by more than the threshold is reported, and everybody who decides
goes by the last report. Every round the token goes through the trees from the top, and each
node that gets it makes the best of the six moves among its children and grandchildren.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from distributary.arrays import BoolArray, FloatArray
from distributary.errors import BadInput
from distributary.fidelity import FidelityProblem, Forest
from distributary.fidelity.planner import adapt
from distributary.simulator.queueing import _event_kernels as kernels
from distributary.simulator.queueing.result import Round

__all__ = ["Adapting", "Observer"]


@dataclass(frozen=True)
class Adapting:
    """How trees are adapted at run time; by default as in the published experiments.

    Attributes
    ----------
    round_s
        The time between two rounds, in whole windows.
    threshold
        A figure is reported when it has grown to 1 + `threshold` times the figure reported
        before, or shrunk by as much; the paper's tau.
    samples_min
        How many observations a figure takes. Where a window has fewer, the figure is of as
        many windows as it takes: a rate that is told from two updates says nothing.
    """

    window_s: float = 50.0
    round_s: float = 200.0
    threshold: float = 0.2
    samples_min: int = 50

    def __post_init__(self) -> None:
        for name, value in (("window_s", self.window_s), ("threshold", self.threshold)):
            if not (math.isfinite(value) and value > 0.0):
                raise BadInput(name, f"is {value:g}, and must be above 0 and finite")
        windows = self.round_s / self.window_s
        if not (math.isfinite(windows) and windows >= 1.0 and windows == int(windows)):
            raise BadInput("round_s", f"is {self.round_s:g}, which is not whole windows")
        if self.samples_min < 1:
            raise BadInput("samples_min", f"is {self.samples_min}, and must be at least 1")


class Observer:
    """What nodes have measured and reported, and the moves that follow from it.

    Parameters
    ----------
    problem
        What is believed at the start. A node that has no children has nothing to measure its
        times by, and they stay what they were believed to be.

    Attributes
    ----------
    believed
        The problem as reported so far.
    """

    def __init__(self, problem: FidelityProblem, settings: Adapting) -> None:
        self.believed = problem
        self._settings = settings
        self._reports = 0
        self._windows = 0
        self._meant = np.zeros(problem.rates.shape)
        self._since = np.zeros(problem.rates.shape)
        self._steps = np.zeros((problem.node_count, 4))

    def close_window(self, now_s: float, tally: kernels.Tally, delays: FloatArray) -> None:
        """Look at what has been measured in a window that ends now, and report changes."""
        believed = self.believed
        self._steps += tally.steps[:, self._windows]
        self._windows += 1
        filter_times, filter_news = self._times(
            believed.filter_times, kernels.FILTERED, kernels.FILTERING
        )
        send_times, send_news = self._times(believed.send_times, kernels.SENT, kernels.SENDING)
        rates, rate_news = self._rates(now_s, tally.copies[:, :, kernels.MEANT])
        delay_news = self._changed(believed.delays, delays)
        news = filter_news | send_news | rate_news.any(axis=1) | delay_news.any(axis=1)
        self._reports += int(news.sum())
        if news.any():
            self.believed = replace(
                believed,
                rates=rates,
                filter_times=filter_times,
                send_times=send_times,
                delays=np.where(delay_news, delays, believed.delays)
                if delay_news.any()
                else believed.delays,
            )

    def round(self, now_s: float, forest: Forest) -> tuple[Forest, Round]:
        """Pass the token once through all trees; return them and what was done."""
        adapted, weighed = adapt(self.believed, forest, rounds=1)
        moved = int((adapted.parents != forest.parents).sum())
        report = Round(now_s, moved, weighed, self._reports)
        self._reports = 0
        return adapted, report

    def _changed(self, before: FloatArray, measured: FloatArray) -> BoolArray:
        """Return where a figure has changed by more than the threshold."""
        factor = 1.0 + self._settings.threshold
        return np.asarray(
            (measured != before) & ((measured >= before * factor) | (measured <= before / factor))
        )

    def _times(self, before: FloatArray, count: int, total: int) -> tuple[FloatArray, BoolArray]:
        """Return the times of nodes as reported now, and whose have changed."""
        ready = self._steps[:, count] >= self._settings.samples_min
        measured = before.copy()
        measured[ready] = self._steps[ready, total] / self._steps[ready, count]
        for column in (count, total):
            self._steps[ready, column] = 0.0
        news = self._changed(before, measured)
        return np.where(news, measured, before), news

    def _rates(self, now_s: float, meant: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the rates as reported now, and which have changed."""
        before = self.believed.rates
        counted = meant - self._meant
        elapsed = now_s - self._since
        # When fewer come than were expected, that is known as soon as enough were expected.
        ready = (before > 0.0) & (
            np.maximum(counted, before * elapsed) >= self._settings.samples_min
        )
        measured = before.copy()
        # A server goes on wanting what it wants, also when nothing has come for a while.
        measured[ready] = np.maximum(counted[ready], 0.5) / elapsed[ready]
        self._meant[ready] = meant[ready]
        self._since[ready] = now_s
        news = self._changed(before, measured)
        return np.where(news, measured, before), news
