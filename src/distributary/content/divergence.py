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
    difference,
    relative_difference,
    relative_threshold,
    stepped_down,
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

        Parameters
        ----------
        version, last_sent
            What the parent has now, and what it sent to this child last.
        child, parent
            The effective amounts of the two; the parent's is 0 at the source.
        """


class _Metric:
    """A divergence for which the triangle inequality holds.

    A parent that is less than its own amount off may let a child lag by what is left of the
    child's, and no more.
    """

    def between(self, version: Version, copy: Version) -> float:
        raise NotImplementedError

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether the divergence reaches what the child has left."""
        return self.between(version, last_sent) >= left_over(child, parent)


class Absolute(_Metric):
    """`|value - copy|`, in the value's own unit."""

    name = "absolute"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference of the values."""
        value, copied = version.value, copy.value
        if type(value) is float and type(copied) is float:
            # Nearly always, and many times a second: without a further call.
            apart = abs(value - copied)
            if apart < math.inf:
                return apart
        return difference(version.number, copy.number)


class Relative:
    """`|value - copy| / |value|`: infinite when the object is 0 and its copy is not."""

    name = "relative"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference as a share of the object's own value."""
        return relative_difference(version.number, copy.number)

    def forwards(
        self, version: Version, last_sent: Version, *, child: float, parent: float
    ) -> bool:
        """Whether the difference reaches what the child has left.

        The parent does not know the object's value `v`, only that its own is less than
        `(1 + parent) * |v|`. Dividing by that factor makes the share one of `v` at most.
        """
        value = version.number
        numerator, divisor = relative_parts(child, parent)
        least = numerator
        if not math.isnan(value):
            least = relative_threshold(numerator, value, divisor)
        return difference(value, last_sent.number) >= least


class Changes(_Metric):
    """How many changes the copy has missed."""

    name = "changes"

    def between(self, version: Version, copy: Version) -> float:
        """Return the difference of the change numbers."""
        return float(abs(version.change_number - copy.change_number))


class Edit(_Metric):
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
        apart_ns = float(abs(version.time_ns - last_sent.time_ns))
        return apart_ns >= age_left_over_ns(child, parent)


@lru_cache(maxsize=_PAIRS_CACHED)
def left_over(child: float, parent: float) -> float:
    """Return what the child's amount leaves once the parent has used up its own."""
    return threshold(stepped_down(child, 1), stepped_down(parent, 1))


@lru_cache(maxsize=_PAIRS_CACHED)
def relative_parts(child: float, parent: float) -> tuple[float, float]:
    """Return the two factors of a relative threshold that do not depend on the value."""
    numerator = threshold(stepped_down(child, 4), stepped_down(parent, 4))
    return numerator, 1.0 if parent == 0.0 else math.nextafter(1.0 + parent, math.inf)


@lru_cache(maxsize=_PAIRS_CACHED)
def age_left_over_ns(child: float, parent: float) -> float:
    """Return what the child's amount of seconds leaves, in nanoseconds."""
    return threshold(_nanoseconds(child), _nanoseconds(parent))


def code_points(text: str) -> IntArray:
    """Return a text as an array of code points, which compiled code can compare."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(
        np.int64
    )


def _nanoseconds(seconds: float) -> float:
    exact = Fraction(stepped_down(seconds, 1)) * _NS_PER_SECOND
    rounded = float(exact)
    return rounded if Fraction(rounded) <= exact else math.nextafter(rounded, 0.0)


DIVERGENCES: Mapping[str, Divergence] = MappingProxyType(
    {d.name: d for d in (Absolute(), Relative(), Changes(), Edit(), Age())}
)
"""The divergences that every broker knows, by name."""
