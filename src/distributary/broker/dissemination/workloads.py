"""Workloads: how much there is to convert at other brokers, as far as a root has caused it."""

from __future__ import annotations

from distributary.broker.planning import Planning
from distributary.broker.settings import ns

__all__ = ["Workloads"]

_NS_PER_SECOND = 1e9


class Workloads:
    """What a root thinks is still to be done by whom.

    Nobody reports that a conversion is done. A broker is taken to work without a break
    on what it was given, so that what the root has given it shrinks as time passes.
    """

    def __init__(self) -> None:
        self._busy_until_ns: dict[str, int] = {}

    def left_s(self, broker: str, now_ns: int) -> float:
        """Return the seconds of work that a broker should have left."""
        left_ns = self._busy_until_ns.get(broker, now_ns) - now_ns
        return left_ns / _NS_PER_SECOND if left_ns > 0 else 0.0

    def add(self, planning: Planning, now_ns: int) -> None:
        """Count the work that a plan gives to brokers other than its root.

        Parameters
        ----------
        planning
            The plan.
        now_ns
            The time.
        """
        until = self._busy_until_ns
        for broker in [broker for broker, end_ns in until.items() if end_ns <= now_ns]:
            del until[broker]
        for broker, work_s in planning.work_s().items():
            if broker != planning.part.first.broker:
                until[broker] = until.get(broker, now_ns) + ns(work_s)
