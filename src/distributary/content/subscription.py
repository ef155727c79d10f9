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
from distributary.content.timestamps import parse_timestamp, timestamp_ns
from distributary.content.tolerance import Tolerance
from distributary.errors import BadInput

__all__ = ["FILTERS_BYTES_MAX", "Subscription", "SubscriptionConfig"]

FILTERS_BYTES_MAX = 2**20


# As many seconds since 1970 as 64 bits have nanoseconds, and a little less.
_EXPIRES_S_MAX = 9e9


@checked_fields
@dataclass(frozen=True)
class SubscriptionConfig:
    """How long a subscription lives.

    Attributes
    ----------
    expires_s
        When it ends, in seconds since 1970; without it, when somebody ends it.
    queue_bytes, queue_s
        It also ends when more bytes than this wait for its client, or something has waited for
        longer. Brokers have limits of their own; the smaller ones count.
    """

    expires_s: float | None = None
    queue_bytes: int | None = None
    queue_s: float | None = None

    @classmethod
    @checked
    def from_record(cls, record: Record) -> SubscriptionConfig:
        """Return what one object of a larger document says; fields of others are ignored."""
        expires_s = queue_bytes = queue_s = None
        if record.given("expires"):
            expires_s = _expires_s(record)
        if record.given("queue_bytes"):
            value = record.number("queue_bytes", positive=True)
            if value != int(value):
                raise BadInput(record.place("queue_bytes"), "must be a whole number")
            queue_bytes = int(value)
        if record.given("queue_s"):
            queue_s = record.number("queue_s", positive=True)
        return cls(expires_s, queue_bytes, queue_s)

    def document(self) -> dict[str, object]:
        """Return it as plain data."""
        fields = {
            "expires": self.expires_s,
            "queue_bytes": self.queue_bytes,
            "queue_s": self.queue_s,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _expires_s(record: Record) -> float:
    if isinstance(record.value("expires"), str):
        canonical = parse_timestamp(record.place("expires"), record.value("expires"))
        return timestamp_ns(canonical) / 1e9
    seconds = record.number("expires", positive=True)
    if seconds > _EXPIRES_S_MAX:
        raise BadInput(record.place("expires"), f"must be at most {_EXPIRES_S_MAX:,.0f} seconds")
    return seconds


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
    config
        How long it lives, if it says so.
    """

    id: str
    filters: tuple[object, ...] = ()
    user: str | None = None
    profile: DeviceProfile | None = None
    tolerance: Tolerance | None = None
    config: SubscriptionConfig | None = None

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
        user = profile = tolerance = config = None
        if record.given("user"):
            user = record.name("user")
        if record.given("profile"):
            profile = DeviceProfile.from_record(record.record("profile"))
        if record.given("tolerance"):
            tolerance = Tolerance.from_record(record.record("tolerance"), divergences=divergences)
        if record.given("config"):
            config = SubscriptionConfig.from_record(record.record("config"))
        return cls(identifier, tuple(filters), user, profile, tolerance, config)

    def document(self) -> dict[str, object]:
        """Return the subscription as plain data; `parse` reads it back."""
        document: dict[str, object] = {"id": self.id, "filters": list(self.filters)}
        if self.user is not None:
            document["user"] = self.user
        if self.profile is not None:
            document["profile"] = self.profile.document()
        if self.tolerance is not None:
            document["tolerance"] = self.tolerance.document()
        if self.config is not None:
            document["config"] = self.config.document()
        return document


def _check_filters(place: str, filters: list[object]) -> None:
    try:
        checked_json(filters)
    except BadInput as error:
        raise BadInput(place, error.problem) from None
    size = len(json.dumps(filters, ensure_ascii=False).encode())
    if size > FILTERS_BYTES_MAX:
        raise BadInput(place, f"takes {size:,} bytes; at most {FILTERS_BYTES_MAX:,} are read")
