"""The latest delivery as the objective: how early can every wish be served?

Making everything where it is cheapest keeps single links and processors busy for long;
the earliest last delivery spreads the work, and makes some formats more than once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from distributary.arrays import FloatArray
from distributary.placement._haste_kernels import cheapen, hasten, replant, serve
from distributary.placement._quickest_kernels import busy_bound, quickest_ways, used_by_wishes
from distributary.placement._rerouting_kernels import Price, empty_ways
from distributary.placement._schedule_kernels import (
    ABSENT,
    HELD,
    Network,
    Timetable,
    keep,
    settle,
    timetable_of,
)
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.conversions import Converter
from distributary.placement.cost import cost
from distributary.placement.exact import estimate, exact_plan
from distributary.placement.plan import Plan, prune
from distributary.placement.problem import PlacementProblem
from distributary.placement.schedule import (
    Schedule,
    entered_by,
    latest_delivery,
    network_of,
    plan_of,
    schedule,
)

__all__ = [
    "Schedule",
    "fastest_plan",
    "latest_delivery",
    "latest_delivery_bound",
    "schedule",
]

# The cheapest plan is a start as well when it is found about this quickly.
_EXACT_SECONDS_MAX = 1.0
_EXACT_BYTES_MAX = 2**29
# What a second of work weighs against a second of delay when a wish is served. Without
# any weight each wish takes the quickest way and the next one finds it busy.
_WORKS = np.array([0.0, 0.1, 0.3, 1.0, 3.0])
# Sums of other terms than a schedule adds may exceed it by rounding.
_ROUNDING = 1e-12

Observer = Callable[[str, int, int], None]
