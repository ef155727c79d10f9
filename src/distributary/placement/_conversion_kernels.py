"""Compiled tables for the cheapest way to make several formats at one node.

Two dynamic programs for the same question, a directed Steiner tree in the adaptation
graph: one over sets of formats in hand, one over sets of formats still to make (Dreyfus
and Wagner 1971). The first does not mind how many formats are needed, the second not how
many exist.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["steiner_by_formats", "steiner_by_terminals"]


@kernel
def steiner_by_formats(base: FloatArray, costs: FloatArray, needed: int) -> tuple[float, IntArray]:
    """Return the cheapest cost of making all needed formats, and what each is made from (u,).

    `base` (u,) is the cheapest conversion of a format in hand into each format to make,
    `costs` (u, u) those between the formats to make; `needed` are the needed formats as
    bits. A format that is not made is made from -1, and from `u` if from one in hand.
    """
    u = base.shape[0]
    set_count = 1 << u
    best = np.full(set_count, np.inf)
    last = np.full(set_count, -1, dtype=np.int8)
    best[0] = 0.0
    winner = -1
    for made in range(set_count):
        if best[made] == np.inf:
            continue
        if made & needed == needed:
            # Making more than this set only costs more, so it is not grown further.
            if winner < 0 or best[made] < best[winner]:
                winner = made
            continue
        for j in range(u):
            if made >> j & 1:
                continue
            step = base[j]
            for i in range(u):
                if made >> i & 1 and costs[i, j] < step:
                    step = costs[i, j]
            grown = made | 1 << j
            if best[made] + step < best[grown]:
                best[grown] = best[made] + step
                last[grown] = j
    origin = np.full(u, -1, dtype=np.int64)
    if winner < 0:
        return np.inf, origin
    total = best[winner]
    made = winner
    while made:
        j = last[made]
        made ^= 1 << j
        step = base[j]
        origin[j] = u
        for i in range(u):
            if made >> i & 1 and costs[i, j] < step:
                step = costs[i, j]
                origin[j] = i
    return total, origin


@kernel
def steiner_by_terminals(
    chain: FloatArray, have: IntArray, entry: FloatArray, terminals: IntArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the tables of Dreyfus and Wagner, for trees that start at a given format.

    A hub that holds every format in hand stands at index `m`, so that one tree can start
    from several formats. `chain` (m, m) are the cheapest chains, `have` (h,) the formats in
    hand, `entry` (h,) what taking each of them costs (nothing, or its transmission), and
    `terminals` (t,) the formats to make.

    Three tables (2**t, m + 1): `best[S, v]` is the cheapest way to make the set `S` of
    terminals from `v`, `via` the format at which that way first ends or divides, and
    `split` where it divides one of the two parts of `S`.
    """
    m = chain.shape[0]
    t_count = terminals.shape[0]
    best = np.full((1 << t_count, m + 1), np.inf)
    via = np.full((1 << t_count, m + 1), -1, dtype=np.int64)
    split = np.zeros((1 << t_count, m + 1), dtype=np.int64)
    for chosen in range(1, 1 << t_count):
        if chosen & (chosen - 1) == 0:
            t = 0
            while chosen >> t > 1:
                t += 1
            for v in range(m):
                best[chosen, v] = chain[v, terminals[t]]
                via[chosen, v] = terminals[t]
        else:
            lowest = chosen & -chosen
            rest = chosen ^ lowest
            merged = np.full(m + 1, np.inf)
            part = rest
            while part:
                part = (part - 1) & rest
                one = lowest | part
                for v in range(m + 1):
                    together = best[one, v] + best[chosen ^ one, v]
                    if together < merged[v]:
                        merged[v] = together
                        split[chosen, v] = one
            for v in range(m):
                for middle in range(m):
                    total = chain[v, middle] + merged[middle]
                    if total < best[chosen, v]:
                        best[chosen, v] = total
                        via[chosen, v] = middle
            best[chosen, m] = merged[m]
            via[chosen, m] = m
        for n in range(have.shape[0]):
            entered = best[chosen, have[n]] + entry[n]
            if entered < best[chosen, m]:
                best[chosen, m] = entered
                via[chosen, m] = have[n]
    return best, via, split
