"""Compiled: with whom each user has most traffic, without a table of all pairs.

What two users exchange is what one says to the other and the other way round. What `u` says
to `v` depends only on the cells that `v` wants, and what `u` hears from `v` only on those
that `u` wants. Users who want the same cells, a *set* of cells, are therefore alike but for
what they publish: for each set, only those of it that are heard most matter.

Sums go cell by cell in ascending order, so that a pair has the same traffic to the last bit
from either side and however users are divided among tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["Exchange", "heaviest"]


class Exchange(NamedTuple):
    """Who publishes what and who wants what.

    Attributes
    ----------
    publish_start, publish_cell, publish_rate
        User `u` publishes `publish_rate[k]` in `publish_cell[k]` for every `k` from
        `publish_start[u]` up to `publish_start[u + 1]`, cells ascending.
    cell_start, cell_user, cell_rate
        The same by cell, users ascending.
    set_of_user
        The set of cells that each user wants.
    set_start, set_cell
        The cells of each set, ascending.
    within_start, within_set
        The sets that each cell is in, ascending.
    member_start, member
        The users of each set, ascending.
    """

    publish_start: IntArray
    publish_cell: IntArray
    publish_rate: FloatArray
    cell_start: IntArray
    cell_user: IntArray
    cell_rate: FloatArray
    set_of_user: IntArray
    set_start: IntArray
    set_cell: IntArray
    within_start: IntArray
    within_set: IntArray
    member_start: IntArray
    member: IntArray


@kernel
def heaviest(
    exchange: Exchange, first: int, end: int, most: int
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the partners with most traffic of the users at some places of `member`.

    Parameters
    ----------
    exchange
        Everybody.
    first, end
        The places in `exchange.member`: users of one set follow one another there.
    most
        How many partners are wanted; fewer are found where there is no more traffic.

    Returns
    -------
    partners, rates
        Heaviest first, of equal ones the smaller; shape (end - first, most).
    counts
        How many partners each user has.
    """
    users, sets = len(exchange.set_of_user), len(exchange.set_start) - 1
    heard, said = np.empty(users), np.empty(sets)
    tops = np.empty(sets + 1, np.int64)
    tops[0] = 0
    for s in range(sets):
        size = exchange.member_start[s + 1] - exchange.member_start[s]
        # One more than is wanted, as a user is not its own partner.
        tops[s + 1] = tops[s] + min(size, most + 1)
    top_user, top_rate = np.empty(tops[sets], np.int64), np.empty(tops[sets])
    partners = np.zeros((end - first, most), np.int64)
    rates = np.zeros((end - first, most))
    counts = np.zeros(end - first, np.int64)
    current = -1
    for place in range(first, end):
        u = exchange.member[place]
        if exchange.set_of_user[u] != current:
            current = exchange.set_of_user[u]
            _hear(exchange, current, heard)
            _rank(exchange, heard, tops, top_user, top_rate)
        _say(exchange, u, said)
        row = place - first
        for s in range(sets):
            for k in range(tops[s], tops[s + 1]):
                rate = said[s] + top_rate[k]
                if rate <= 0.0 or (counts[row] == most and rate < rates[row, most - 1]):
                    break
                if top_user[k] != u:
                    counts[row] = _insert(
                        partners[row], rates[row], counts[row], most, top_user[k], rate
                    )
    return partners, rates, counts


@inner_kernel
def _hear(exchange: Exchange, wanted: int, heard: FloatArray) -> None:
    """Fill `heard[v]`, what `v` publishes in the cells of a set."""
    heard[:] = 0.0
    for i in range(exchange.set_start[wanted], exchange.set_start[wanted + 1]):
        cell = exchange.set_cell[i]
        for k in range(exchange.cell_start[cell], exchange.cell_start[cell + 1]):
            heard[exchange.cell_user[k]] += exchange.cell_rate[k]


@kernel
def _say(exchange: Exchange, user: int, said: FloatArray) -> None:
    """Fill `said[s]`, what a user publishes in the cells of set `s`."""
    said[:] = 0.0
    for k in range(exchange.publish_start[user], exchange.publish_start[user + 1]):
        cell = exchange.publish_cell[k]
        for i in range(exchange.within_start[cell], exchange.within_start[cell + 1]):
            said[exchange.within_set[i]] += exchange.publish_rate[k]


@inner_kernel
def _rank(
    exchange: Exchange,
    heard: FloatArray,
    tops: IntArray,
    top_user: IntArray,
    top_rate: FloatArray,
) -> None:
    """Fill in who of each set is heard most, at the places from `tops[s]` to `tops[s + 1]`."""
    for s in range(len(tops) - 1):
        begin, room = tops[s], tops[s + 1] - tops[s]
        if room == 1:
            # Most sets have one user where everybody wants something else: no list to sort.
            top_user[begin] = exchange.member[exchange.member_start[s]]
            top_rate[begin] = heard[top_user[begin]]
            continue
        count = 0
        for i in range(exchange.member_start[s], exchange.member_start[s + 1]):
            v = exchange.member[i]
            count = _insert(
                top_user[begin : begin + room],
                top_rate[begin : begin + room],
                count,
                room,
                v,
                heard[v],
            )


@kernel
def _insert(
    users: IntArray, rates: FloatArray, count: int, most: int, user: int, rate: float
) -> int:
    """Insert a user into a list that is kept sorted and short; return its new length."""
    place = count
    if count == most:
        place = most - 1
        if rate < rates[place] or (rate == rates[place] and user > users[place]):
            return count
    while place > 0 and (
        rate > rates[place - 1] or (rate == rates[place - 1] and user < users[place - 1])
    ):
        users[place] = users[place - 1]
        rates[place] = rates[place - 1]
        place -= 1
    users[place] = user
    rates[place] = rate
    return min(count + 1, most)
