"""Matching events against all groups and pages, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.filters._decision_kernels import Decisions, Events, decide, find_texts
from distributary.filters._group_kernels import groups_of
from distributary.filters._lookup_kernels import Keys, Lookups
from distributary.filters._page_kernels import Pages
from distributary.filters._page_match_kernels import bucket_events, page_candidates
from distributary.filters._text_kernels import TextArrays
from distributary.kernels import inner_kernel, kernel

__all__ = ["Structure", "match_events"]

_CANDIDATES_MAX = 2**16
_EVENT_BITS = 2**32 - 1


class Structure(NamedTuple):
    """Everything that matching reads.

    Beside what has classes of its own: the slots of each list of a group, see `_group_kernels`.
    """

    decisions: Decisions
    texts: TextArrays
    lookups: Lookups
    keys: Keys
    pages: Pages
    list_starts: IntArray
    list_counts: NDArray[np.int32]
    members: NDArray[np.int32]


@kernel
def match_events(structure: Structure, events: Events) -> IntArray:
    """Return the pairs of events and slots that match, or of which Python must find out.

    They come sorted and each once, coded as in `decide`.
    """
    find_texts(events, structure.texts)
    buckets = np.empty(events.numbers.shape, np.uint8)
    bucket_events(events.numbers, structure.pages.edges, structure.pages.edge_places, buckets)
    pairs = np.empty(256, np.int64)
    count = int(np.int64(0))  # A literal would be another signature.
    found_in = np.sort(groups_of(events, structure.lookups, structure.keys, structure.texts))
    begin = 0
    while begin < found_in.shape[0]:
        group = found_in[begin] >> 32
        end = begin + 1
        while end < found_in.shape[0] and found_in[end] >> 32 == group:
            end += 1
        concerned = found_in[begin:end] & _EVENT_BITS
        pairs, count = _match_group(structure, events, buckets, group, concerned, pairs, count)
        begin = end
    found = np.sort(pairs[:count])
    unique = 0
    for i in range(count):
        # A subscription with a choice may have been found through several of its texts.
        if i == 0 or found[i] != found[i - 1]:
            found[unique] = found[i]
            unique += 1
    return found[:unique]


@inner_kernel
def _match_group(
    structure: Structure,
    events: Events,
    buckets: NDArray[np.uint8],
    group: int,
    concerned: IntArray,
    pairs: IntArray,
    count: int,
) -> tuple[IntArray, int]:
    """Match one group's lists and pages against the events that concern it."""
    for chosen in (2 * group, 2 * group + 1):
        start = structure.list_starts[chosen]
        end = start + structure.list_counts[chosen]
        # Some at a time: all events with all members may be more than memory holds.
        at_once = max(1, _CANDIDATES_MAX // concerned.shape[0])
        for begin in range(start, end, at_once):
            members = structure.members[begin : min(end, begin + at_once)]
            candidates = np.empty(members.shape[0] * concerned.shape[0], np.int64)
            place = 0
            for i in range(members.shape[0]):
                for j in range(concerned.shape[0]):
                    candidates[place] = (concerned[j] << 32) | (np.int64(members[i]) << 1)
                    place += 1
            pairs, count = decide(
                structure.decisions, structure.texts, events, candidates, pairs, count
            )
    page = int(np.int64(structure.pages.first[group]))
    while page >= 0:
        candidates, page = page_candidates(
            structure.pages, page, buckets, concerned, _CANDIDATES_MAX
        )
        pairs, count = decide(
            structure.decisions, structure.texts, events, candidates, pairs, count
        )
    return pairs, count
