"""Counting, windows and reporting agree with going through versions one by one."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import pipeline_rates as slow
from tests.strategies_content import AMOUNTS, effective, walks

from distributary.content.tolerance import EffectiveTolerance
from distributary.content.trace import LastSent, Trace, forwarded, forwarded_counts, thresholds_of
from distributary.pipeline.transforms.followers import ObjectFollowers
from distributary.pipeline.transforms.object_tally import ObjectTally
from distributary.pipeline.transforms.reporting import reported
from distributary.pipeline.transforms.windows import Advance, closed_windows

LENGTH_US = 10


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Draw a trace of numbers; some are missing."""
    size = draw(st.integers(1, 30))
    values = np.array(draw(walks(size=size)))
    if draw(st.booleans()):
        values[draw(st.integers(0, size - 1))] = math.nan
    steps = draw(st.lists(st.sampled_from([0, 1, 10**9]), min_size=size, max_size=size))
    return Trace.of_numbers(values, times_ns=np.cumsum(steps))


@given(traces(), st.lists(effective(), max_size=4), st.none() | effective(), st.data())
def test_counts_in_pieces_are_those_of_what_is_forwarded(
    trace: Trace,
    children: list[EffectiveTolerance],
    parent: EffectiveTolerance | None,
    data: st.DataObject,
) -> None:
    """However the trace is cut, portion by portion; children that are alike are there twice."""
    children = [*children, *children]
    sent = forwarded(trace, children, parent=parent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(trace)), max_size=3)))
    bounds = [0, *cuts, len(trace)]
    portions = np.sort(np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(trace)))))
    portions = portions[: len(trace)]
    thresholds = thresholds_of(children, parent=parent)
    last = LastSent.nothing(len(children))
    counts = np.zeros((len(children), 3), dtype=np.int64)
    for begin, end in pairwise(bounds):
        piece = Trace.of_numbers(
            trace.values[begin:end],
            times_ns=trace.times_ns[begin:end],
            change_numbers=trace.change_numbers[begin:end],
        )
        counts += forwarded_counts(
            piece, thresholds, last, portions=portions[begin:end], portion_count=3
        )
    expected = [[int(row[portions == portion].sum()) for portion in range(3)] for row in sent]
    assert counts.tolist() == expected
    for child, row in enumerate(sent):
        place = np.flatnonzero(row)[-1]
        assert last.begun[child]
        assert last.change_numbers[child] == place
        assert last.times_ns[child] == trace.times_ns[place]


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 1.2, 1.25, 2.0, 5.0]), max_size=6), max_size=4),
    st.lists(st.none() | st.sampled_from([0.0, 1.0, 4.0]), min_size=4, max_size=4),
    st.sampled_from([0.0, 0.2, 0.25, 3.0]),
)
def test_reports_are_those_of_looking_at_one_value_after_the_other(
    sequences: list[list[float]], before: list[float | None], tau: float
) -> None:
    previous = np.array(
        [math.nan if value is None else value for value in before[: len(sequences)]]
    )
    values = np.array([value for sequence in sequences for value in sequence], dtype=np.float64)
    begins = np.cumsum([0, *(len(sequence) for sequence in sequences)])
    found = reported(values, begins, previous, tau=tau)
    expected = [
        answer
        for sequence, known in zip(sequences, before, strict=False)
        for answer in slow.reported_one_by_one(sequence, known, tau)
    ]
    assert found.marks.tolist() == [news for news, _ in expected]
    shown = [None if math.isnan(value) else value for value in found.befores.tolist()]
    assert shown == [known for _, known in expected]


@given(st.sets(st.integers(-5, 20)), st.none() | st.integers(-5, 25), st.integers(-60, 300))
def test_windows_that_are_passed_over_are_empty_and_follow_an_empty_one(
    present: set[int], first: int | None, watermark_us: int
) -> None:
    """So that they cannot be news; all that are looked at have closed."""
    starts = {number * LENGTH_US for number in present if first is None or number >= first}
    first_us = None if first is None else first * LENGTH_US
    found = closed_windows(
        np.array(sorted(starts), dtype=np.int64),
        first_us=first_us,
        watermark_us=watermark_us,
        length_us=LENGTH_US,
    ).tolist()
    known = starts if first_us is None else starts | {first_us}
    assert found == sorted(set(found))
    for start in range(min(known, default=0), watermark_us - LENGTH_US + 1, LENGTH_US):
        if start in known:
            assert start in found
        elif start not in found:
            assert start - LENGTH_US not in starts
    assert all(start + LENGTH_US <= watermark_us for start in found)


@given(st.lists(st.integers(0, 200), min_size=1, max_size=25, unique=True), st.data())
def test_news_do_not_depend_on_how_versions_arrive_in_batches(
    times: list[int], data: st.DataObject
) -> None:
    """The rates of windows of each follower are reported as if there was one long history."""
    times = sorted(times)
    values = data.draw(walks(size=len(times)))
    asked = [EffectiveTolerance({"absolute": data.draw(AMOUNTS)}), slow.EVERY_VERSION]
    tally = ObjectTally(ObjectFollowers(np.arange(2), thresholds_of(asked, parent=None)))
    marks = sorted(data.draw(st.sets(st.integers(0, 260), min_size=1, max_size=4)))
    told: list[list[tuple[int, float, float | None]]] = [[], []]
    before: int | None = None
    for mark in marks:
        chosen = [at for at, time in enumerate(times) if (before or 0) <= time < mark]
        news = tally.advance(
            np.array([times[at] for at in chosen], dtype=np.int64),
            np.array([values[at] for at in chosen]),
            Advance(before, mark, LENGTH_US, tau=0.2),
        )
        for follower, window, rate, last in zip(*(part.tolist() for part in news), strict=True):
            told[follower].append((window, rate, None if math.isnan(last) else last))
        before = mark
    versions = [item for item in zip(times, values, strict=True) if item[0] < marks[-1]]
    for follower, wanted in enumerate(asked):
        sent = slow.sent_times(versions, wanted)
        assert tally.sent[follower] == len(sent)
        expected = slow.news_one_by_one(
            sent, times[0], watermark_us=marks[-1], length_us=LENGTH_US, tau=0.2
        )
        assert told[follower] == (expected if versions else [])
