"""Rates, windows and reporting one by one: slow, and in the words of the specification."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from distributary.content.divergence import Version
from distributary.content.publication import Publication
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule, Tolerance
from distributary.filters import Filter

Quote = tuple[str, int, float]
"""An object, a time in microseconds, and a value."""

EVERY_VERSION = EffectiveTolerance({"changes": 1.0})


def sent_times(versions: Sequence[tuple[int, float]], wanted: EffectiveTolerance) -> list[int]:
    """The times of the versions that the source sends, asking about one after the other."""
    rule = ForwardingRule(parent=None, child=wanted)
    last: Version | None = None
    times = []
    for number, (time_us, value) in enumerate(versions):
        version = Version(value, number, time_us * 1000)
        if rule.forwards(version, last):
            last = version
            times.append(time_us)
    return times


def wanted_by(
    name: str,
    subscriptions: Iterable[Mapping[str, str | None]],
    homes: Mapping[str, str | None],
    *,
    source: str = "/exchange",
    kind: str = "quote",
) -> dict[str, EffectiveTolerance]:
    """What each server must keep to for one object: the least of its users' tolerances."""
    event = Publication.parse(
        {"specversion": "1.0", "id": "0", "source": source, "type": kind, "subject": name}
    )
    asked: dict[str, EffectiveTolerance] = {}
    for row in subscriptions:
        home = homes.get(str(row["user"]))
        if home is None or not Filter.parse(json.loads(str(row["filters"]))).matches(event):
            continue
        text = row["tolerance"]
        own = EVERY_VERSION
        if text is not None:
            own = EffectiveTolerance.of([Tolerance.parse(json.loads(text))])
        asked[home] = own if home not in asked else asked[home].merged([own])
    return asked


def rates_one_by_one(
    quotes: Iterable[Quote],
    subscriptions: Sequence[Mapping[str, str | None]],
    homes: Mapping[str, str | None],
) -> dict[tuple[str, str], float]:
    """Updates per second by server and object; of values of one time the largest counts."""
    histories: dict[str, dict[int, float]] = {}
    for name, time_us, value in quotes:
        history = histories.setdefault(name, {})
        history[time_us] = max(value, history.get(time_us, -math.inf))
    rates = {}
    for name, history in histories.items():
        versions = sorted(history.items())
        seconds = (versions[-1][0] - versions[0][0]) / 1e6
        for server, wanted in wanted_by(name, subscriptions, homes).items():
            sent = len(sent_times(versions, wanted))
            rates[server, name] = sent / seconds if seconds else 0.0
    return rates


def reported_one_by_one(
    values: Iterable[float], previous: float | None, tau: float
) -> list[tuple[bool, float | None]]:
    """Whether each value is reported, and what had been reported last before it."""
    answers = []
    for value in values:
        if previous is None:
            news = value > 0
        else:
            news = not previous / (1 + tau) <= value <= previous * (1 + tau)
        answers.append((news, previous))
        if news:
            previous = value
    return answers


def news_one_by_one(
    sent: Sequence[int], first_us: int, *, watermark_us: int, length_us: int, tau: float
) -> list[tuple[int, float, float | None]]:
    """What is reported of one follower: window, rate and the rate reported before.

    Every window from that of the first version on is looked at, empty or not.
    """
    start = first_us // length_us * length_us
    starts = range(start, watermark_us - length_us + 1, length_us)
    rates = [
        sum(window <= time < window + length_us for time in sent) / (length_us / 1e6)
        for window in starts
    ]
    told = reported_one_by_one(rates, None, tau)
    return [
        (window, rate, before)
        for window, rate, (news, before) in zip(starts, rates, told, strict=True)
        if news
    ]
