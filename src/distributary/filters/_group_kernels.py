"""Groups: subscriptions by the text that an event must have for them to match.

A group has the number of the lookup through which its subscriptions are found. Group 0
is of those that every event may match. Members are in two lists for each group: list `2 g`
has those without a required interval, list `2 g + 1` those with one, until they fill a page.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.content._hash_kernels import finished, with_byte
from distributary.filters._decision_kernels import DEAD, Decisions, Events, with_room
from distributary.filters._lookup_kernels import Keys, Lookups, code_of, code_of_step, find_lookup
from distributary.filters._text_kernels import TextArrays, find_hashed
from distributary.filters.decision import ENDS, EQUALS, NEVER, REJECT, STARTS, WITHIN
from distributary.kernels import inner_kernel, kernel

__all__ = ["append_members", "choose_groups", "groups_of", "move_lists"]

_LENGTH_BITS = np.uint64(63)
# What a lookup costs for each subscription that has it: the more events pass, the more.
_STARTS_WEIGHT = 4
_PRESENT_WEIGHT = 64


@kernel
def choose_groups(
    decisions: Decisions,
    first: int,
    end: int,
    lookups: Lookups,
    texts: TextArrays,
    groups: NDArray[np.int32],
    slots: NDArray[np.int32],
) -> int:
    """Choose for each slot the clause that fewest subscriptions share, and note its lookups.

    Fills `groups` and `slots` with pairs, the list of a group and the slot that is to join it, and
    returns how many there are. There must be room for one for each lookup and for each slot.
    """
    count = 0
    for slot in range(first, end):
        start = decisions.starts[slot]
        required = decisions.required[slot]
        best_cost = -1
        best_begin = 0
        best_end = 0
        cost = 0
        begin = 0
        ranged = 0
        usable = True
        never = False
        for place in range(required):
            step = decisions.steps[start + place]
            if step.op <= ENDS:
                weight = 1
                if step.op != EQUALS:
                    empty = texts.starts[step.text + 1] == texts.starts[step.text]
                    weight = _PRESENT_WEIGHT if empty else _STARTS_WEIGHT
                lookup = find_lookup(lookups, code_of_step(step))
                cost += weight * int(lookups.users[lookup])
            else:
                usable = False
                if step.op == NEVER:
                    never = True
                elif step.op == WITHIN and begin == place and step.on_false == REJECT:
                    ranged = 1
            if step.on_false == REJECT:
                if usable and (best_cost < 0 or cost < best_cost):
                    best_cost = cost
                    best_begin = begin
                    best_end = place + 1
                cost = 0
                begin = place + 1
                usable = True
        if never or decisions.counts[slot] == DEAD:
            continue
        if best_cost < 0:
            groups[count] = ranged
            slots[count] = slot
            count += 1
        for place in range(best_begin, best_end):
            step = decisions.steps[start + place]
            lookup = find_lookup(lookups, code_of_step(step))
            groups[count] = 2 * lookup + ranged
            slots[count] = slot
            count += 1
    return count


@kernel
def move_lists(
    lists: NDArray[np.int32],
    count: int,
    list_starts: IntArray,
    list_counts: NDArray[np.int32],
    list_rooms: NDArray[np.int32],
    added: NDArray[np.int32],
    members: NDArray[np.int32],
    used: int,
    move: bool,
) -> int:
    """Move lists that become too small to the end of `members`; return where that ends then.

    With `move` unset, nothing happens but the counting. `added` is room for a counter for
    each list, all zero before and after.
    """
    for i in range(count):
        added[lists[i]] += 1
    for i in range(count):
        chosen = lists[i]
        more = added[chosen]
        if more == 0:
            continue
        added[chosen] = 0
        needed = list_counts[chosen] + more
        if needed > list_rooms[chosen]:
            room = max(needed, 2 * list_rooms[chosen])
            if move:
                start = list_starts[chosen]
                for j in range(list_counts[chosen]):
                    members[used + j] = members[start + j]
                list_starts[chosen] = used
                list_rooms[chosen] = room
            used += room
    return used


@kernel
def append_members(
    lists: NDArray[np.int32],
    slots: NDArray[np.int32],
    count: int,
    list_starts: IntArray,
    list_counts: NDArray[np.int32],
    members: NDArray[np.int32],
) -> None:
    """Add each slot to its list; there must be room."""
    for i in range(count):
        chosen = lists[i]
        members[list_starts[chosen] + list_counts[chosen]] = slots[i]
        list_counts[chosen] += 1


@inner_kernel
def groups_of(events: Events, lookups: Lookups, keys: Keys, texts: TextArrays) -> IntArray:
    """Return pairs of a group and an event that may match in it: `group << 32 | event`.

    Every event may match in group 0, and in those whose text it has. One pass over each
    text, from its start and from its end, hashes all the parts that filters look for; so the
    time is linear in the length of the texts.
    """
    count = int(np.int64(events.lengths.shape[0]))
    pairs = np.empty(2 * count + 256, np.int64)
    for event in range(count):
        pairs[event] = event
    seed = texts.seed[0]
    one = np.uint64(1)
    for event in range(events.lengths.shape[0]):
        for key in range(events.lengths.shape[1]):
            length = events.lengths[event, key]
            if length < 0:
                continue
            if keys.equals[key] and events.texts[event, key] >= 0:
                text = int(np.int64(events.texts[event, key]))
                group = find_lookup(lookups, code_of(int(np.int64(EQUALS)), key, text))
                if group > 0:
                    pairs = with_room(pairs, count)
                    pairs[count] = (group << 32) | event
                    count += 1
            for way in (1, -1):
                op = STARTS if way == 1 else ENDS
                longest = keys.starts_max[key] if way == 1 else keys.ends_max[key]
                lengths = keys.starts[key] if way == 1 else keys.ends[key]
                begin = events.begins[event, key]
                if way == -1:
                    begin += length - 1
                state = seed
                for size in range(min(longest, length) + 1):
                    if size > 0:
                        state = with_byte(state, events.data[begin + way * (size - 1)])
                    if (lengths >> (np.uint64(size) & _LENGTH_BITS)) & one == 0:
                        continue
                    text = find_hashed(texts, finished(state), events.data, begin, size, way)
                    if text < 0:
                        continue
                    group = find_lookup(lookups, code_of(op, key, text))
                    if group > 0:
                        pairs = with_room(pairs, count)
                        pairs[count] = (group << 32) | event
                        count += 1
    return pairs[:count]
