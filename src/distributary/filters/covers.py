"""Whether one filter covers another: every event that matches the second matches the first.

A covers B when nothing matches B and not A. Both filters become formulas over the same atoms
(`formula`, `atoms`), and a search tries to make the one hold and the other not
(`consistency`). If it is certain that it cannot, A covers B. If it can, or if the search
grows too long, the answer is no, which may be a pair missed but never a pair made up.
"""

from __future__ import annotations

from distributary.filters.consistency import GaveUp, Search
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.formula import Conjunction, complement

__all__ = ["covers"]


def covers(a: Filter, b: Filter) -> bool:
    """Return whether every event that `b` matches is matched by `a`.

    Yes is certain. No may be said of a pair that does cover: where CESQL computes with
    attributes or compares them with each other, and in filters whose alternatives multiply.
    """
    if all(part in b.parts for part in a.parts):
        # All parts of a filter must hold. However long a search would take, more of them
        # match less.
        return True
    narrow, wide = filter_formula(b), filter_formula(a)
    # Part by part: an alternative of `b` is often ruled out by one part of `a`, and putting
    # all of them to the search at once would multiply the alternatives first.
    parts = wide.parts if isinstance(wide, Conjunction) else (wide,)
    search = Search()
    try:
        return not any(search.consistent(complement(part), narrow) for part in parts)
    except GaveUp:
        return False
