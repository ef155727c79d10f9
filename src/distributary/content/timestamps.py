"""Timestamps of events: RFC 3339 in, UTC out.

Python's own reader takes times without an offset and many other forms of ISO 8601. An
event's time has one form, because two brokers must never read it differently.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from distributary.errors import BadInput, quoted

__all__ = ["parse_timestamp", "timestamp_ns", "timestamp_text"]

_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)
_FRACTION_DIGITS_MAX = 9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(place: str, text: object) -> str:
    """Return a timestamp in its canonical form: in UTC, with no zeros at its end.

    Equal instants have equal texts then. Up to nine digits of a second are kept. A leap
    second, 23:59:60 in UTC at the end of a month, is read as the start of the second after
    it, whatever its fraction: no clock of ours has it, and times keep their order so.
    """
    match = _TIMESTAMP.fullmatch(text) if isinstance(text, str) and len(text) < 64 else None
    if match is None:
        raise BadInput(
            place,
            f"{quoted(text)} is not an RFC 3339 timestamp",
            hint="write it as in '2026-01-31T12:00:00Z'",
        )
    date, clock, fraction, offset = match.groups()
    if offset is None:
        raise BadInput(
            place,
            f"{quoted(text)} has no offset from UTC",
            hint="end it with 'Z', or with an offset such as '+02:00'",
        )
    digits = (fraction or "").rstrip("0")
    if len(digits) > _FRACTION_DIGITS_MAX:
        raise BadInput(place, f"{quoted(text)} is finer than a nanosecond")
    try:
        leap = clock.endswith(":60")
        if leap:
            clock, digits = clock.removesuffix("60") + "59", ""
        moment = datetime.fromisoformat(f"{date}T{clock}+00:00") - _shift(offset)
        if leap:
            moment = _after_leap_second(moment)
    except (ValueError, OverflowError):
        raise BadInput(place, f"{quoted(text)} is not a time that exists") from None
    # strftime leaves out the zeros before a year of three digits; isoformat does not.
    return moment.isoformat()[: len("2026-01-31T12:00:00")] + (f".{digits}" if digits else "") + "Z"


def timestamp_ns(canonical: str) -> int:
    """Return a canonical timestamp as nanoseconds since 1970, exactly."""
    seconds, _, fraction = canonical.removesuffix("Z").partition(".")
    since = datetime.fromisoformat(f"{seconds}+00:00") - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + int(fraction.ljust(9, "0"))


def timestamp_text(time_ns: int) -> str:
    """Return nanoseconds since 1970 as a canonical timestamp."""
    seconds, rest = divmod(time_ns, 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    digits = f"{rest:09d}".rstrip("0")
    return moment.isoformat()[: len("2026-01-31T12:00:00")] + (f".{digits}" if digits else "") + "Z"


def _after_leap_second(before: datetime) -> datetime:
    after = before + timedelta(seconds=1)
    if (after.day, after.hour, after.minute, after.second) != (1, 0, 0, 0):
        raise ValueError(before)
    return after


def _shift(offset: str) -> timedelta:
    if offset in "Zz":
        return timedelta()
    hours, minutes = int(offset[1:3]), int(offset[4:])
    if hours > 23 or minutes > 59:
        raise ValueError(offset)
    shift = timedelta(hours=hours, minutes=minutes)
    return -shift if offset[0] == "-" else shift
