"""Compiled: clusters of users with much traffic between them.

What users publish and want comes as in `WiringProblem`: `publish_start` (users + 1,),
`publish_channel` and `publish_rate`, `interest_start` and `interest_channel`. Sums go channel
by channel in ascending order, first one way and then the other, so that a pair has the same
traffic to the last bit from either side. As all terms are at least 0 and rounding keeps
order, the bounds here, sums of larger terms in the same order, hold to the last bit as well.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["bounds", "join", "seed_pairs"]

NOBODY = -1


@inner_kernel
def bounds(
    publish_start: IntArray,
    publish_channel: IntArray,
    publish_rate: FloatArray,
    interest_start: IntArray,
    interest_channel: IntArray,
    channel_count: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what each user sends at most to one other, hears at most from one, and both.

    Three arrays (users,). Sent is all that a user publishes; heard is the largest rate of any
    user on each of its channels, added up.
    """
    users = len(publish_start) - 1
    largest = np.zeros(channel_count)
    for k in range(len(publish_channel)):
        largest[publish_channel[k]] = max(largest[publish_channel[k]], publish_rate[k])
    sent, heard = np.zeros(users), np.zeros(users)
    most_sent, most_heard = 0.0, 0.0
    for u in range(users):
        for k in range(publish_start[u], publish_start[u + 1]):
            sent[u] += publish_rate[k]
        for k in range(interest_start[u], interest_start[u + 1]):
            heard[u] += largest[interest_channel[k]]
        most_sent, most_heard = max(most_sent, sent[u]), max(most_heard, heard[u])
    most = np.empty(users)
    for u in range(users):
        most[u] = min(sent[u], most_heard) + min(most_sent, heard[u])
    return sent, heard, most


@inner_kernel
def _find_pair(
    prices: FloatArray,
    candidate: BoolArray,
    free: IntArray,
    demands: FloatArray,
    limit: float,
    publish_start: IntArray,
    publish_channel: IntArray,
    publish_rate: FloatArray,
    interest_start: IntArray,
    interest_channel: IntArray,
    sent: FloatArray,
    heard: FloatArray,
    most: FloatArray,
    row_rates: FloatArray,
    row_wants: FloatArray,
) -> tuple[int, int]:
    """Return the pair of candidates with the largest traffic over the sum of their prices.

    Of equal pairs the first; (-1, -1) when no pair with traffic fits within `limit`. Users
    are looked at in the order of what a pair with them can reach at best, until that is less
    than what has been found: nearly always after a few of them.

    `prices` and `candidate` (users,) are those of this broker; `free` are the users without a
    broker, ascending, among them all candidates. `most` is at least the traffic of each user with
    any free user, lowered to what is seen. `row_rates` and `row_wants` (channels,) are zeros, and
    zeros again in the end.
    """
    if len(free) == 0:
        return NOBODY, NOBODY
    least = np.inf
    for i in free:
        if candidate[i]:
            least = min(least, prices[i])
    reach = np.full(len(free), -1.0)
    for k in range(len(free)):
        i = free[k]
        if candidate[i]:
            price = prices[i] + least
            reach[k] = most[i] / price if price > 0.0 else np.inf
    done = np.zeros(len(prices), np.bool_)
    first, second = NOBODY, NOBODY
    best = 0.0
    while True:
        # The next is found by looking at all: no more work than its pairs are.
        k = int(np.argmax(reach))
        i = free[k]
        if reach[k] <= 0.0 or reach[k] < best or (reach[k] == best and i > first):
            # Equal ones come in ascending order: a pair of two of those left is no better,
            # and a later one.
            break
        reach[k] = -1.0
        for e in range(publish_start[i], publish_start[i + 1]):
            row_rates[publish_channel[e]] = publish_rate[e]
        for e in range(interest_start[i], interest_start[i + 1]):
            row_wants[interest_channel[e]] = 1.0
        seen = 0.0
        for j in free:
            if j == i:
                continue
            traffic = min(most[i], most[j], min(sent[i], heard[j]) + min(sent[j], heard[i]))
            price = prices[i] + prices[j]
            if (
                traffic > 0.0
                and candidate[j]
                and not done[j]
                and price > 0.0
                and demands[i] + demands[j] <= limit
            ):
                low, high = min(i, j), max(i, j)
                earlier = first < 0 or low < first or (low == first and high < second)
                ratio = traffic / price
                if ratio > best or (ratio == best and earlier):
                    there, back = 0.0, 0.0
                    for e in range(interest_start[j], interest_start[j + 1]):
                        there += row_rates[interest_channel[e]]
                    for e in range(publish_start[j], publish_start[j + 1]):
                        back += publish_rate[e] * row_wants[publish_channel[e]]
                    traffic = there + back
                    ratio = traffic / price
                    if traffic > 0.0 and (ratio > best or (ratio == best and earlier)):
                        best = ratio
                        first, second = low, high
            seen = max(seen, traffic)
        most[i] = seen
        done[i] = True
        for e in range(publish_start[i], publish_start[i + 1]):
            row_rates[publish_channel[e]] = 0.0
        for e in range(interest_start[i], interest_start[i + 1]):
            row_wants[interest_channel[e]] = 0.0
    return first, second


@kernel
def seed_pairs(
    prices: FloatArray,
    demands: FloatArray,
    limits: FloatArray,
    publish_start: IntArray,
    publish_channel: IntArray,
    publish_rate: FloatArray,
    interest_start: IntArray,
    interest_channel: IntArray,
    channel_count: int,
    broker_of: IntArray,
) -> None:
    """Attach to each broker in turn the free pair with the largest traffic over its prices.

    `prices` (users, brokers), `demands` (users,), `limits` (brokers,); `broker_of` is all -1 at
    first, and written at the users of the pairs.
    """
    users = len(demands)
    if users < 2:
        return
    sent, heard, most = bounds(
        publish_start,
        publish_channel,
        publish_rate,
        interest_start,
        interest_channel,
        channel_count,
    )
    row_rates, row_wants = np.zeros(channel_count), np.zeros(channel_count)
    free = np.arange(users)
    column, same = np.empty(users), np.full(users, 0.5)
    candidate = np.empty(users, np.bool_)
    for b in range(len(limits)):
        # Two users without a price come before all others: their ratio is their traffic.
        # Then those of whom only one may be without.
        smallest, next_smallest = np.inf, np.inf
        for u in free:
            column[u] = prices[u, b]
            candidate[u] = column[u] == 0.0
            if demands[u] < smallest:
                smallest, next_smallest = demands[u], smallest
            else:
                next_smallest = min(next_smallest, demands[u])
        if smallest + next_smallest > limits[b]:
            continue
        first, second = NOBODY, NOBODY
        for free_of_charge in (True, False):
            if first >= 0:
                break
            if not free_of_charge:
                for u in free:
                    candidate[u] = demands[u] + smallest <= limits[b]
            first, second = _find_pair(
                same if free_of_charge else column,
                candidate,
                free,
                demands,
                limits[b],
                publish_start,
                publish_channel,
                publish_rate,
                interest_start,
                interest_channel,
                sent,
                heard,
                most,
                row_rates,
                row_wants,
            )
        if first >= 0:
            broker_of[first] = b
            broker_of[second] = b
            left = 0
            for u in free:
                if u != first and u != second:
                    free[left] = u
                    left += 1
            free = free[:left]


@kernel
def join(
    users: IntArray,
    prices: FloatArray,
    demands: FloatArray,
    limits: FloatArray,
    publish_start: IntArray,
    publish_channel: IntArray,
    publish_rate: FloatArray,
    interest_start: IntArray,
    interest_channel: IntArray,
    entering: FloatArray,
    readers: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
) -> None:
    """Attach each user in turn to the cluster with the largest traffic over its price.

    Only brokers with room count. No price is the best ratio, and then the larger traffic
    wins; of equal ratios the cheaper broker, and of those the first.

    `users` are those without a broker, in the order in which they join. `entering` and `readers`
    (channels, brokers), what the users of each broker publish on each channel and how many of them
    want it, are kept up to date, as are `loads` (brokers,).
    """
    brokers = len(limits)
    traffic = np.empty(brokers)
    for u in users:
        traffic[:] = 0.0
        for e in range(publish_start[u], publish_start[u + 1]):
            rate, row = publish_rate[e], readers[publish_channel[e]]
            for b in range(brokers):
                traffic[b] += rate * row[b]
        for e in range(interest_start[u], interest_start[u + 1]):
            row = entering[interest_channel[e]]
            for b in range(brokers):
                traffic[b] += row[b]
        best = NOBODY
        best_ratio, best_price = 0.0, 0.0
        for b in range(brokers):
            if loads[b] + demands[u] > limits[b]:
                continue
            price = prices[u, b]
            ratio = traffic[b] / price if price > 0.0 else traffic[b]
            better = best < 0
            if not better:
                if (price == 0.0) != (best_price == 0.0):
                    better = price == 0.0
                else:
                    better = ratio > best_ratio or (ratio == best_ratio and price < best_price)
            if better:
                best, best_ratio, best_price = b, ratio, price
        if best >= 0:
            broker_of[u] = best
            loads[best] += demands[u]
            for e in range(publish_start[u], publish_start[u + 1]):
                entering[publish_channel[e], best] += publish_rate[e]
            for e in range(interest_start[u], interest_start[u + 1]):
                readers[interest_channel[e], best] += 1.0
