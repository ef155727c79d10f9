"""Tolerances: how far a subscriber's copy of a stream may be from its source.

With zero delay no copy is ever outside, for any tree of brokers and any mix of tolerances,
because a parent compares with what it last *sent* to a child, and leaves room for how far
it may itself be from the source. Comparing with what was last received lets a slow drift
through, one small step at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from distributary.arguments import check_entries, checked, checked_fields
from distributary.content.divergence import (
    DIVERGENCES,
    Absolute,
    Divergence,
    Relative,
    Version,
)
from distributary.content.fields import Record, no_such_name
from distributary.content.json_pointer import checked_pointer

__all__ = ["EffectiveTolerance", "ForwardingRule", "Tolerance", "outside"]


@checked_fields
@dataclass(frozen=True)
class Tolerance:
    """What a subscriber allows: a divergence of less than `amount` at one place of the data.

    Attributes
    ----------
    value
        The JSON Pointer of the value.
    divergence
        The name of the divergence.
    amount
        A copy that diverges this much, or more, is outside. Greater than 0; seconds for
        `age`.
    """

    value: str
    divergence: str
    amount: float

    @classmethod
    def parse(
        cls, document: object, *, divergences: Mapping[str, Divergence] = DIVERGENCES
    ) -> Tolerance:
        """Return the tolerance in a document, as in `{"value": "/price", ...}`."""
        return cls.from_record(Record(document, "tolerance"), divergences=divergences)

    @classmethod
    @checked
    def from_record(
        cls, record: Record, *, divergences: Mapping[str, Divergence] = DIVERGENCES
    ) -> Tolerance:
        """Return the tolerance in one object of a larger document."""
        record.check_keys(("value", "divergence", "amount"), "a tolerance")
        pointer = checked_pointer(record.place("value"), record.value("value"))
        name = record.name("divergence")
        if name not in divergences:
            raise no_such_name(record.place("divergence"), name, divergences, "a divergence")
        return cls(pointer, name, record.number("amount", positive=True))

    def document(self) -> dict[str, object]:
        """Return the tolerance as plain data; `parse` reads it back."""
        return {"value": self.value, "divergence": self.divergence, "amount": self.amount}


@checked
def outside(
    tolerance: Tolerance,
    version: Version,
    copy: Version | None,
    *,
    divergences: Mapping[str, Divergence] = DIVERGENCES,
) -> bool:
    """Whether a copy is outside its tolerance of the object's own version.

    No copy at all is outside.
    """
    if copy is None:
        return True
    divergence = divergences[tolerance.divergence]
    if isinstance(divergence, Absolute | Relative):
        return divergence.outside(version, copy, tolerance.amount)
    return divergence.between(version, copy) >= tolerance.amount


@dataclass(frozen=True)
class EffectiveTolerance:
    """What a broker must keep to for one value of one object: the least in its subtree.

    It is the smallest amount of each divergence that somebody below asks for, by name.
    """

    amounts: Mapping[str, float]

    @classmethod
    @checked
    def of(cls, tolerances: Iterable[Tolerance]) -> EffectiveTolerance:
        """Return the smallest amount of each divergence; all must be about one value."""
        tolerances = tuple(tolerances)
        check_entries("tolerances", tolerances, Tolerance)
        amounts: dict[str, float] = {}
        for tolerance in tolerances:
            known = amounts.get(tolerance.divergence, tolerance.amount)
            amounts[tolerance.divergence] = min(known, tolerance.amount)
        return cls(amounts)

    def merged(self, others: Iterable[EffectiveTolerance]) -> EffectiveTolerance:
        """Return what a broker keeps to for itself and for the children with `others`."""
        amounts = dict(self.amounts)
        for other in others:
            for name, amount in other.amounts.items():
                amounts[name] = min(amounts.get(name, amount), amount)
        return EffectiveTolerance(amounts)


class ForwardingRule:
    """When a parent sends its version of a value on to one child, by what both keep to.

    Without a tolerance the parent is the source, which is never off.
    """

    @checked
    def __init__(
        self,
        *,
        parent: EffectiveTolerance | None,
        child: EffectiveTolerance,
        divergences: Mapping[str, Divergence] = DIVERGENCES,
    ) -> None:
        # A parent that promises nothing about a kind may be off by anything, which leaves
        # the child nothing: everything is forwarded. It happens only while tolerances
        # are on their way up the tree.
        self._kinds = tuple(
            (
                divergences[name],
                amount,
                0.0 if parent is None else parent.amounts.get(name, amount),
            )
            for name, amount in sorted(child.amounts.items())
        )

    def forwards(self, version: Version, last_sent: Version | None) -> bool:
        """Whether the child needs `version`, having been sent `last_sent` last.

        Any kind may say so. A child that was sent nothing yet needs whatever there is.
        """
        if last_sent is None:
            return True
        for divergence, child, parent in self._kinds:
            if divergence.forwards(version, last_sent, child=child, parent=parent):
                return True
        return False
