"""Subscriptions: who wants what, in which form, how fresh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from distributary.arguments import checked, checked_fields
from distributary.content.divergence import DIVERGENCES, Divergence
from distributary.content.fields import Record
from distributary.content.payload import checked_json
from distributary.content.profile import DeviceProfile
from distributary.content.tolerance import Tolerance
from distributary.errors import BadInput

__all__ = ["FILTERS_BYTES_MAX", "Subscription"]

FILTERS_BYTES_MAX = 2**20


@checked_fields
@dataclass(frozen=True)
class Subscription:
    """What one user asked for.

    Attributes
    ----------
    id
        Its identifier; whoever keeps subscriptions sees to it that no two are alike.
    filters
        The filters as plain data, all of which must hold; compiling them is the business
        of `distributary.filters`.
    user
        Whose it is, if it says so.
    profile
        What the device can use; without one it takes the original.
    tolerance
        How far a copy of a stream may be off; without one every version is sent.
    """

    id: str
    filters: tuple[object, ...] = ()
    user: str | None = None
    profile: DeviceProfile | None = None
    tolerance: Tolerance | None = None

    @classmethod
    def parse(
        cls, document: object, *, divergences: Mapping[str, Divergence] = DIVERGENCES
    ) -> Subscription:
        """Return the subscription in a document, as in `{"id": "s1", "filters": [...]}`.

        Fields that are not read here are ignored, as those of the CloudEvents
        Subscriptions API (`sink`, `protocol`) are. Whether the filters mean something is
        for `Filter.parse` to say.
        """
        record = Record(document)
        return cls.from_record(record, divergences=divergences)

    @classmethod
    @checked
    def from_record(
        cls, record: Record, *, divergences: Mapping[str, Divergence] = DIVERGENCES
    ) -> Subscription:
        """Return the subscription in one object of a larger document."""
        identifier = record.name("id")
        # A subscription to everything says so, with an empty list: forgetting the filters
        # would otherwise be the most expensive of mistakes.
        filters = record.entries("filters", count_max=FILTERS_BYTES_MAX)
        _check_filters(record.place("filters"), filters)
        user = profile = tolerance = None
        if record.given("user"):
            user = record.name("user")
        if record.given("profile"):
            profile = DeviceProfile.from_record(record.record("profile"))
        if record.given("tolerance"):
            tolerance = Tolerance.from_record(record.record("tolerance"), divergences=divergences)
        return cls(identifier, tuple(filters), user, profile, tolerance)

    def document(self) -> dict[str, object]:
        """Return the subscription as plain data; `parse` reads it back."""
        document: dict[str, object] = {"id": self.id, "filters": list(self.filters)}
        if self.user is not None:
            document["user"] = self.user
        if self.profile is not None:
            document["profile"] = self.profile.document()
        if self.tolerance is not None:
            document["tolerance"] = self.tolerance.document()
        return document


def _check_filters(place: str, filters: list[object]) -> None:
    try:
        checked_json(filters)
    except BadInput as error:
        raise BadInput(place, error.problem) from None
    size = len(json.dumps(filters, ensure_ascii=False).encode())
    if size > FILTERS_BYTES_MAX:
        raise BadInput(place, f"takes {size:,} bytes; at most {FILTERS_BYTES_MAX:,} are read")
