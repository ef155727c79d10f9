"""The cheapest way to make a set of formats at one node from the formats in hand there.

This is a directed Steiner tree in the adaptation graph (CCD, section 2.2), and thus
hard in general; but few formats or few wishes make it quick, and then it is solved exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput
from distributary.placement._conversion_kernels import steiner_by_formats, steiner_by_terminals
from distributary.placement.chains import Chains, cheapest_chains
from distributary.placement.charikar import LayeredGraph, best_steiner_tree
from distributary.placement.plan import NOT_MADE

__all__ = [
    "ConversionCost",
    "ConversionPlanner",
    "exact_steps",
]

# Steps of a dynamic program that count as quick: some tens of milliseconds.
_STEPS_MAX = 3e7
# Far beyond what is quick, and still a number that fits.
_BITS_MAX = 64


def exact_steps(*, formats: int, missing: int, to_make: int) -> tuple[float, float]:
    """Return the steps of the two exact methods: by sets of formats, by sets of wishes.

    So many formats can help, of which `to_make` are not in hand; `missing` are needed.
    """
    missing, to_make = min(missing, _BITS_MAX), min(to_make, _BITS_MAX)
    return (
        to_make**2 * 2.0**to_make,
        3.0**missing * formats + 2.0**missing * formats**2,
    )


class ConversionCost(NamedTuple):
    """What a set of conversions costs, and whether nothing cheaper exists."""

    cost: float
    exact: bool


class ConversionPlanner:
    """Finds the cheapest conversions at a node, and remembers what it has found.

    Exactly while that takes some tens of milliseconds, otherwise by the approximation of
    Charikar et al., the better of levels 1 and 2. Brokers ask the same question again and
    again, because many want the same formats.

    Parameters
    ----------
    direct
        Cost of each conversion, infinite when impossible, shape (formats, formats).
    steps_max
        Steps that an exact answer may take; beyond that the answer is approximate.
    """

    def __init__(self, direct: FloatArray, *, steps_max: float = _STEPS_MAX) -> None:
        self.chains: Chains = cheapest_chains(direct)
        self.steps_max = steps_max
        self._found: dict[tuple[bytes, bytes], tuple[IntArray, bool]] = {}

    def conversions(self, have: BoolArray, need: BoolArray) -> IntArray:
        """Return `made_from` for one node: from what each format is made, or `NOT_MADE`.

        `have` and `need` (formats,) are the formats in hand and the formats needed.
        """
        return self._find(have, need)[0].copy()

    def deliveries(
        self, offered: BoolArray, entry: FloatArray, need: BoolArray
    ) -> tuple[BoolArray, IntArray]:
        """Return what to take of what is offered, and what to make from it, exactly.

        Takes time exponential in the number of formats needed. `entry` (formats,) is what
        taking each format costs, in the unit of the conversions.
        """
        wishes = np.flatnonzero(need)
        if len(wishes) == 1:
            return self._single_delivery(offered, entry, int(wishes[0]))
        useful = self.chains.makeable_from(offered) & self.chains.leading_to(need)
        return self._by_terminals(offered, entry, need, np.flatnonzero(useful))

    def _single_delivery(
        self, offered: BoolArray, entry: FloatArray, wish: int
    ) -> tuple[BoolArray, IntArray]:
        """Return the same for one format needed, which most brokers need: a cheapest chain."""
        chains = self.chains
        price = np.where(offered, entry + chains.costs[:, wish], np.inf)
        start = int(price.argmin())
        entered = np.zeros(len(offered), dtype=np.bool_)
        entered[start] = True
        made_from = np.full(len(offered), NOT_MADE, dtype=np.int64)
        while wish != start:
            made_from[wish] = chains.before[start, wish]
            wish = int(made_from[wish])
        return entered, made_from

    def cost(self, have: BoolArray, need: BoolArray) -> ConversionCost:
        """Return what those conversions cost at a node of weight 1."""
        made_from, exact = self._find(have, need)
        return ConversionCost(self._cost_of(made_from), exact)

    def _find(self, have: BoolArray, need: BoolArray) -> tuple[IntArray, bool]:
        key = (have.tobytes(), need.tobytes())
        if key not in self._found:
            self._found[key] = self._search(have, need & ~have)
        return self._found[key]

    def _search(self, have: BoolArray, missing: BoolArray) -> tuple[IntArray, bool]:
        chains = self.chains
        makeable = chains.makeable_from(have)
        if (missing & ~makeable).any():
            raise BadInput("conversions", "do not lead from what is in hand to everything needed")
        nothing = np.full(len(have), NOT_MADE, dtype=np.int64)
        if not missing.any():
            return nothing, True
        useful = makeable & chains.leading_to(missing)
        formats = np.flatnonzero(useful)
        steps_by_formats, steps_by_terminals = exact_steps(
            formats=len(formats),
            missing=int(missing.sum()),
            to_make=int((useful & ~have).sum()),
        )
        if min(steps_by_formats, steps_by_terminals) > self.steps_max:
            return self._approximate(have, missing), False
        if steps_by_formats <= steps_by_terminals:
            return self._by_formats(have, missing, np.flatnonzero(useful & ~have)), True
        free = np.zeros(len(have))
        return self._by_terminals(have, free, missing, formats)[1], True

    def _approximate(self, have: BoolArray, missing: BoolArray) -> IntArray:
        alone = LayeredGraph(
            self.chains, np.array([-1], dtype=np.int64), np.zeros((1, len(have))), np.ones(1)
        )
        tree = best_steiner_tree(alone, sources=have, terminals=missing[None, :])
        return np.asarray(tree.made_from[0])

    def _cost_of(self, made_from: IntArray) -> float:
        made = np.flatnonzero(made_from != NOT_MADE)
        return float(self.chains.direct[made_from[made], made].sum())

    def _by_formats(self, have: BoolArray, missing: BoolArray, formats: IntArray) -> IntArray:
        direct = self.chains.direct
        held = np.flatnonzero(have)
        from_held = direct[np.ix_(held, formats)]
        needed = sum(1 << bit for bit, k in enumerate(formats) if missing[k])
        _, origin = steiner_by_formats(
            from_held.min(axis=0), np.ascontiguousarray(direct[np.ix_(formats, formats)]), needed
        )
        made_from = np.full(len(have), NOT_MADE, dtype=np.int64)
        for bit, k in enumerate(formats):
            if origin[bit] == len(formats):
                made_from[k] = held[from_held[:, bit].argmin()]
            elif origin[bit] >= 0:
                made_from[k] = formats[origin[bit]]
        return made_from

    def _by_terminals(
        self, have: BoolArray, entry: FloatArray, missing: BoolArray, formats: IntArray
    ) -> tuple[BoolArray, IntArray]:
        local = {int(k): v for v, k in enumerate(formats)}
        held = np.array([local[int(k)] for k in formats if have[k]], dtype=np.int64)
        terminals = np.array([local[int(k)] for k in formats if missing[k]], dtype=np.int64)
        chain = np.ascontiguousarray(self.chains.costs[np.ix_(formats, formats)])
        _, via, split = steiner_by_terminals(chain, held, entry[formats[held]], terminals)
        hub = len(formats)
        used: dict[int, list[int]] = {}
        entered = np.zeros(len(have), dtype=np.bool_)
        waiting = [((1 << len(terminals)) - 1, hub)]
        while waiting:
            chosen, start = waiting.pop()
            end = int(via[chosen, start])
            if start == hub and end != hub:
                entered[formats[end]] = True
                waiting.append((chosen, end))
                continue
            if start != hub:
                self._walk(int(formats[start]), int(formats[end]), used)
            if chosen & (chosen - 1):
                part = int(split[chosen, end])
                waiting += [(part, end), (chosen ^ part, end)]
        return entered, _tree_of(used, entered, missing)

    def _walk(self, start: int, end: int, used: dict[int, list[int]]) -> None:
        """Add the conversions of the cheapest chain to `used`, which maps input to outputs."""
        while end != start:
            before = int(self.chains.before[start, end])
            used.setdefault(before, []).append(end)
            end = before


def _tree_of(used: dict[int, list[int]], have: BoolArray, missing: BoolArray) -> IntArray:
    """Return a tree within the used conversions, cut back to what the needed formats need.

    Where two optimal parts meet in one format, that format keeps one of its two inputs.
    """
    origin = {int(k): NOT_MADE for k in np.flatnonzero(have)}
    queue = list(origin)
    for source in queue:
        for target in used.get(source, []):
            if target not in origin:
                origin[target] = source
                queue.append(target)
    made_from = np.full(len(have), NOT_MADE, dtype=np.int64)
    for terminal in np.flatnonzero(missing):
        k = int(terminal)
        while origin[k] != NOT_MADE and made_from[k] == NOT_MADE:
            made_from[k] = origin[k]
            k = origin[k]
    return made_from
