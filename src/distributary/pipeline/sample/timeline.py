"""When things are published: more by day than by night, roughly one after the other."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.sample.events import START_US
from distributary.pipeline.sample.sizes import SampleSizes

__all__ = ["publication_times"]

_DAY_US = 86_400_000_000
# Nothing arrives later than this, nor than this share of the whole time.
_LATE_US = 30_000_000.0
_LATE_SHARE = 0.01
# What is published in each hour of a day, four times as much in the afternoon as at night.
_HOURS = 1.0 + 0.6 * np.cos(2.0 * np.pi * (np.arange(24) - 14) / 24.0)
_EDGES = np.arange(25) / 24.0
_PUBLISHED = np.concatenate([[0.0], np.cumsum(_HOURS / _HOURS.sum())])


def publication_times(sizes: SampleSizes, rows: IntArray, lateness: FloatArray) -> IntArray:
    """Return times in microseconds since 1970, within the span of the sample.

    Publications arrive in the order of their numbers. `lateness`, from 0 to 1, says how much
    earlier than it arrived each was published.
    """
    whole_days, rest = divmod(sizes.span_us / _DAY_US, 1.0)
    # In days of activity: as much as is published in one day.
    activity = whole_days + float(np.interp(rest, _EDGES, _PUBLISHED))
    reached = (rows + 0.5) / sizes.publications * activity
    days = np.floor(reached)
    moments = days + np.interp(reached - days, _PUBLISHED, _EDGES)
    arrivals = np.minimum(moments * _DAY_US, sizes.span_us - 1.0)
    late = lateness * np.minimum(arrivals, min(_LATE_US, _LATE_SHARE * sizes.span_us))
    return START_US + np.floor(arrivals - late).astype(np.int64)
