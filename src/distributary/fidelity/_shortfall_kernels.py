"""Lower bounds on the load of the busiest node, over all forests.

Shapes: `n` nodes, the source at 0; `x` objects; `t` trees, 1 or `x`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["least_parent_loads", "packing_load"]

# Of how many sets of the largest rates it is asked whether they fit.
_COUNTS_TRIED = 512


@kernel
def least_parent_loads(
    rates: FloatArray, filter_times: FloatArray, send_times: FloatArray, inside: BoolArray
) -> FloatArray:
    """Return for every server (n,) the least load that it alone makes for any parent.

    `rates` (n, x); `inside` (t, n) says who is in each tree. With several trees, the
    largest over those that the server is in. What it needs less than 1 is not told apart:
    the first such parent ends the search.
    """
    n, objects = rates.shape
    count = inside.shape[0]
    loads = np.zeros(n)
    for tree in range(count):
        low = 0 if count == 1 else tree
        high = objects if count == 1 else tree + 1
        for i in range(1, n):
            if not inside[tree, i]:
                continue
            least = np.inf
            for k in range(n):
                if k == i or not inside[tree, k]:
                    continue
                load = 0.0
                for x in range(low, high):
                    if rates[i, x] > 0.0:
                        load += filter_times[k] * max(rates[k, x], rates[i, x])
                        load += send_times[k] * rates[i, x]
                least = min(least, load)
                if least < 1.0:
                    break
            loads[i] = max(loads[i], least)
    return loads


@kernel
def packing_load(rates: FloatArray, times: FloatArray) -> tuple[float, int]:
    """Return a load that some node has at least, and how many of the largest rates make it.

    `rates` (e,), descending, are what each server needs from the node that it is below;
    `times` (k,), all above zero, the seconds that the nodes take per message and child. A
    child makes a load of at least `time * rate`, so that all rates together are at most
    the largest load times the sum of 1 / time; and the largest `c` of them, each at least
    `rates[c - 1]`, need as many whole places.
    """
    capacity = 0.0
    least_time = np.inf
    for k in range(times.shape[0]):
        capacity += 1.0 / times[k]
        least_time = min(least_time, times[k])
    load = 0.0
    for index in range(rates.shape[0]):
        load += rates[index]
    load /= capacity
    size = rates.shape[0]
    shortage = 1.0
    tightest = 0
    step = max(1, rates.shape[0] // _COUNTS_TRIED)
    for count in range(step, rates.shape[0] + 1, step):
        places = _places(times, rates[count - 1], 1.0)
        if count > shortage * places:
            shortage = count / max(places, 1.0)
            tightest = count
    if tightest > 0:
        low = 1.0
        high = rates[tightest - 1] * least_time * tightest
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            if _places(times, rates[tightest - 1], middle) < tightest:
                low = middle
            else:
                high = middle
        if low > load:
            load = low
            size = tightest
    return load, size


@inner_kernel
def _places(times: FloatArray, rate: float, load: float) -> float:
    """Return how many children of one rate the nodes can have without exceeding a load."""
    places = 0.0
    for k in range(times.shape[0]):
        places += np.floor(load / (times[k] * rate) * (1.0 + 1e-9))
    return places
