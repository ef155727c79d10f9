"""Days: tables that grow are laid out by them, and jobs do some of them.

A day is one of UTC. Rows that do not say when they happened have none, which is written as
None and is as good as a day, but lies in no range.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from distributary.errors import BadInput, quoted

__all__ = [
    "ALL",
    "NONE",
    "Day",
    "Days",
    "day_list",
    "in_order",
    "parse_day",
    "parse_days",
    "read_day_list",
    "shown_days",
]

Day = date | None


@dataclass(frozen=True)
class Days:
    """Some days: all, those from one until before another, or chosen ones."""

    since: date | None = None
    until: date | None = None
    chosen: frozenset[Day] | None = None

    @property
    def is_all(self) -> bool:
        """Whether no day is left out; then rows without one are taken, too."""
        return self == ALL

    def __contains__(self, day: Day) -> bool:
        if self.chosen is not None:
            return day in self.chosen
        if self.is_all:
            return True
        return (
            day is not None
            and (self.since is None or day >= self.since)
            and (self.until is None or day < self.until)
        )

    def among(self, days: Iterable[Day]) -> frozenset[Day]:
        """Return those of some days that are meant."""
        return frozenset(day for day in days if day in self)

    @property
    def bounds(self) -> tuple[date | None, date | None]:
        """The first day, and the one after the last; None where there is no bound."""
        known = [day for day in self.chosen or () if day is not None]
        if not known:
            return self.since, self.until
        return min(known), max(known) + timedelta(days=1)


ALL = Days()
NONE = Days(chosen=frozenset())


def parse_day(option: str, text: str) -> date:
    """Return a day such as 2026-01-31, or raise `BadInput` naming the option."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    # Other ways to write a day are days of other calendars to some readers.
    if found is None or found.isoformat() != text:
        raise BadInput(option, f"{quoted(text)} is not a day", hint="write it as in 2026-01-31")
    return found


def parse_days(since: str | None, until: str | None) -> Days:
    """Return the days that `--since` and `--until` name, or raise `BadInput`."""
    first = None if since is None else parse_day("--since", since)
    end = None if until is None else parse_day("--until", until)
    if first is not None and end is not None and end <= first:
        raise BadInput("--until", f"must be after --since, {first}: it is the first day left out")
    return Days(first, end)


def day_list(days: Collection[Day]) -> list[str | None]:
    """Return days in their order as JSON has them, rows without one last."""
    return [None if day is None else day.isoformat() for day in in_order(days)]


def in_order(days: Iterable[Day]) -> list[Day]:
    """Return days by date, what has none at the end."""
    return sorted(days, key=lambda day: date.max if day is None else day)


def shown_days(days: Collection[Day]) -> str:
    """Return days as people read them: those that follow one another as a range."""
    parts: list[str] = []
    first = last = None
    for day in sorted(day for day in days if day is not None):
        if last is not None and day == last + timedelta(days=1):
            parts[-1] = f"{first} to {day}"
        else:
            first = day
            parts.append(day.isoformat())
        last = day
    return ", ".join([*parts, *(["without a time"] if None in days else [])]) or "none"


def read_day_list(text: str) -> frozenset[Day]:
    """Return the days that `day_list` has written, as JSON."""
    return frozenset(None if day is None else date.fromisoformat(day) for day in json.loads(text))
