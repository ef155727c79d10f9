"""Divergences: how far a copy of an object is from the object, and when to send it on.

A plug-in is anything with the three members of `Divergence`. It supplies its own
forwarding rule, since no rule fits every divergence: the one for `relative` is not the one
for `absolute`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

import numpy as np

from distributary.arrays import IntArray
from distributary.content.attributes import attribute_text
from distributary.content.publication import Publication
from distributary.content.rounding import (
    SLACK,
    SLACK_OUTSIDE,
    apart,
    relative_parts,
    relative_threshold,
    threshold,
)
from distributary.errors import BadInput, quoted

__all__ = ["DIVERGENCES", "EDIT_CHARACTERS_MAX", "Divergence", "Version"]

EDIT_CHARACTERS_MAX = 1024
"""Longer texts are infinitely far from every other, so that a comparison stays short."""

_NS_PER_SECOND = 10**9
_SEQUENCE_DIGITS_MAX = 18
# Thresholds belong to pairs of amounts, and a broker has few of those.
_PAIRS_CACHED = 4096


@dataclass(frozen=True)
class Version:
    """One version of an object.

    Attributes
    ----------
    value
        What stands at the tolerance's pointer: a number, a text, or None for neither.
    change_number
        How often the object had changed at its source.
    time_ns
        When this version came about at its source, in nanoseconds since 1970.
    """

    value: float | str | None
    change_number: int = 0
    time_ns: int = 0

    @property
    def number(self) -> float:
        """The value, or NaN where it is not a number."""
        value = self.value
        return math.nan if value is None or isinstance(value, str) else float(value)

    @classmethod
    def of(cls, publication: Publication, pointer: str) -> Version:
        """Return the version that a publication of a stream carries at `pointer`.

        Its change number is the extension `sequence`.
        """
        sequence = attribute_text(publication.attributes.get("sequence", ""))
        if not (sequence.isascii() and sequence.isdecimal()):
            raise BadInput("sequence", f"must be a whole number, not {quoted(sequence)}")
        if len(sequence) > _SEQUENCE_DIGITS_MAX:
            raise BadInput("sequence", f"has more than {_SEQUENCE_DIGITS_MAX} digits")
        time_ns = publication.time_ns
        if time_ns is None:
            raise BadInput("time", "is missing", hint="every version of a stream has a time")
        value = publication.numbers.get(pointer, publication.texts.get(pointer))
        return cls(value, int(sequence), time_ns)


class Divergence(Protocol):
    """A way to say how far apart two versions are."""

    @property
    def name(self) -> str:
        """What a tolerance calls it."""

    def between(self, version: Version, copy: Version) -> float:
        """Return how far `copy` is from `version`, which is the object's own."""

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether a parent that holds `version` must send it to a child.

        `child` and `parent` are the effective amounts of the two; the parent's is 0 at the source.
        """


class _Counted:
    """A divergence in whole numbers, for which the triangle inequality holds.

    A parent that is less than its own amount off may let a child lag by what is left of the
    child's, and no more.
    """

    def between(self, version: Version, copy: Version) -> float:
        raise NotImplementedError

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether the divergence reaches what the child has left."""
        return self.between(version, last_sent) >= count_left_over(child, parent)


class Absolute:
    """`|value - copy|`, in the value's own unit."""

    name = "absolute"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference of the values."""
        return apart(version.number, copy.number, 0.0)

    def outside(self, version: Version, copy: Version, amount: float) -> bool:
        """Whether the difference as written reaches the amount as written."""
        return apart(version.number, copy.number, SLACK_OUTSIDE) >= left_over(amount, 0.0)

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether the difference reaches what the child has left."""
        value, last, least = version.value, last_sent.value, left_over(child, parent)
        # Nearly always two floats and nothing to send: without a further call.
        if (
            type(value) is float
            and type(last) is float
            and abs(value - last) + SLACK * (abs(value) + abs(last)) < least
        ):
            return False
        return apart(version.number, last_sent.number, SLACK) >= least


class Relative:
    """`|value - copy| / |value|`: infinite when the object is 0 and its copy is not."""

    name = "relative"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference as a share of the object's own value."""
        value, copied = version.number, copy.number
        difference = apart(value, copied, 0.0)
        if difference == 0.0:
            return 0.0
        if value == 0.0 or not (math.isfinite(value) and math.isfinite(copied)):
            return math.inf
        if math.isinf(difference):  # Two huge values of opposite sign; halves are exact there.
            return abs(0.5 * value - 0.5 * copied) / abs(0.5 * value)
        return difference / abs(value)

    def outside(self, version: Version, copy: Version, amount: float) -> bool:
        """Whether the share as written reaches the amount as written."""
        return self._reaches(version, copy, amount, 0.0, SLACK_OUTSIDE)

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether the difference reaches what the child has left.

        The parent does not know the object's value `v`, only that its own is less than
        `(1 + parent) * |v|`. Dividing by that factor makes the share one of `v` at most.
        """
        return self._reaches(version, last_sent, child, parent, SLACK)

    def _reaches(
        self, version: Version, copy: Version, child: float, parent: float, slack: float
    ) -> bool:
        value = version.number
        numerator, divisor = relative_left_over(child, parent)
        least = numerator
        if not math.isnan(value):
            least = relative_threshold(numerator, value, divisor)
        return apart(value, copy.number, slack) >= least


class Changes(_Counted):
    """How many changes the copy has missed."""

    name = "changes"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference of the change numbers."""
        return float(abs(version.change_number - copy.change_number))


class Edit(_Counted):
    """Insertions, deletions and replacements of characters from one text to the other."""

    name = "edit"

    def between(self, version: Version, copy: Version) -> float:
        """Return the Levenshtein distance of the texts; infinite when only one is text."""
        ours, theirs = version.value, copy.value
        if not (isinstance(ours, str) and isinstance(theirs, str)):
            return math.inf if isinstance(ours, str) or isinstance(theirs, str) else 0.0
        from distributary.content._tolerance_kernels import edit_distance

        return edit_distance(code_points(ours), code_points(theirs), EDIT_CHARACTERS_MAX)


class Age:
    """Seconds between the times at which the versions came about at their source."""

    name = "age"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference of the source times in seconds."""
        return abs(version.time_ns - copy.time_ns) / _NS_PER_SECOND

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether the difference reaches what the child has left."""
        return abs(version.time_ns - last_sent.time_ns) >= age_left_over_ns(child, parent)


left_over = lru_cache(maxsize=_PAIRS_CACHED)(threshold)
"""What the child's amount leaves once the parent has used up its own."""
relative_left_over = lru_cache(maxsize=_PAIRS_CACHED)(relative_parts)
"""The two factors of a relative threshold that do not depend on the value."""


@lru_cache(maxsize=_PAIRS_CACHED)
def count_left_over(child: float, parent: float) -> float:
    """Return the least whole number that reaches what the child's amount leaves."""
    return _least_whole(child, parent, 1)


@lru_cache(maxsize=_PAIRS_CACHED)
def age_left_over_ns(child: float, parent: float) -> float:
    """Return what the child's amount of seconds leaves, in whole nanoseconds."""
    return _least_whole(child, parent, _NS_PER_SECOND)


def code_points(text: str) -> IntArray:
    """Return a text as an array of code points, which compiled code can compare."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(
        np.int64
    )


def _least_whole(child: float, parent: float, units: int) -> float:
    """Return the least whole number of units that reaches `child - parent` as written."""
    # The shortest decimal that reads as the double is the one that was written.
    left = Fraction(repr(float(child))) - Fraction(repr(float(parent)))
    whole = max(0, math.ceil(left * units))
    rounded = float(whole)
    return rounded if rounded <= whole else math.nextafter(rounded, 0.0)


DIVERGENCES: Mapping[str, Divergence] = MappingProxyType(
    {d.name: d for d in (Absolute(), Relative(), Changes(), Edit(), Age())}
)
"""The divergences that every broker knows, by name."""
