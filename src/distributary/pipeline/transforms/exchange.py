"""Who publishes what and who wants it, factored: no table of users by users is ever made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.pipeline.transforms._partner_kernels import Exchange
from distributary.pipeline.transforms.columns import codes_by_name, home_brokers, texts
from distributary.wiring.problem import WiringProblem

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Population", "exchange_of", "population"]

_NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Population:
    """All users, with what they publish and want.

    Attributes
    ----------
    problem
        The same as the wiring code has it. It has one broker, which does not matter: in and
        out do not depend on brokers.
    brokers
        The brokers at which somebody is at home, sorted.
    homes
        Where in `brokers` each user is at home, in the order of `problem.users`; -1 for
        those who have no home.
    counted
        The bytes per second that deliveries say each of them receives; None when nobody
        has counted.
    """

    problem: WiringProblem
    brokers: tuple[str, ...]
    homes: IntArray
    counted: FloatArray | None = None

    @property
    def received(self) -> FloatArray:
        """What every user receives: counted, or else what wiring expects from their cells."""
        return self.problem.received if self.counted is None else self.counted

    @property
    def by_cells(self) -> FloatArray:
        """All that is published in the cells that each user wants, by the user too.

        Never less than what is counted, but for publications that are nobody's: cells are
        coarser than filters. Wiring leaves out what users publish themselves.
        """
        problem = self.problem
        totals = np.bincount(
            problem.publish_channel, weights=problem.publish_rate, minlength=problem.channel_count
        )
        wanted = totals[problem.interest_channel]
        found: FloatArray = np.bincount(
            problem.reader, weights=wanted, minlength=problem.user_count
        ).astype(np.float64)
        return found

    def at_brokers(self, brokers: tuple[str, ...]) -> tuple[FloatArray, IntArray]:
        """Return what enters each channel at each broker, and how many want it there.

        The users who have no home are left out.

        Parameters
        ----------
        brokers
            All brokers, sorted; those of `self.brokers` among them.

        Returns
        -------
            Rates and counts, both of shape (channels, brokers).
        """
        place = {name: index for index, name in enumerate(brokers)}
        at = np.array([place[name] for name in self.brokers] + [_NOWHERE], np.int64)[self.homes]
        shape = (self.problem.channel_count, len(brokers))
        publisher, reader = at[self.problem.publisher], at[self.problem.reader]
        sends, reads = publisher >= 0, reader >= 0
        entering = np.bincount(
            self.problem.publish_channel[sends] * shape[1] + publisher[sends],
            weights=self.problem.publish_rate[sends],
            minlength=shape[0] * shape[1],
        )
        wanting = np.bincount(
            self.problem.interest_channel[reads] * shape[1] + reader[reads],
            minlength=shape[0] * shape[1],
        )
        return entering.reshape(shape).astype(np.float64), wanting.reshape(shape)


def population(
    rates: pa.Table, interests: pa.Table, users: pa.Table | None, received: pa.Table | None = None
) -> Population:
    """Return the population that tables describe, or raise `BadInput`.

    Whoever is in one of the tables belongs to it. The order of rows does not matter.

    Without the table `users`, nobody is at home anywhere. `received` has what was counted:
    `user` and `bytes_per_second`, each user once.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = (rates, interests, users, received)
    sides = [texts(part, "user") for part in parts if part is not None]
    names = pc.unique(pa.chunked_array(sides, pa.string()))
    names = names.take(pc.sort_indices(names))
    cells = pc.unique(pa.chunked_array([_cells(rates), _cells(interests)], pa.int64()))
    cells = cells.take(pc.sort_indices(cells))
    found = [
        (_positions(texts(part, "user"), names), _positions(_cells(part), cells))
        for part in (rates, interests)
    ]
    for name, (user_at, cell_at) in zip(("rates_published", "interests"), found, strict=True):
        keys = np.sort(user_at * len(cells) + cell_at)
        twice = keys[1:][keys[1:] == keys[:-1]]
        if len(twice):
            user, cell = (int(part) for part in divmod(twice[0], len(cells)))
            raise BadInput(
                name, f"has user {quoted(names[user].as_py())} and cell {cells[cell]} twice"
            )
    amounts = np.asarray(rates.column("bytes_per_second").to_numpy(), np.float64)
    if not (np.isfinite(amounts) & (amounts >= 0.0)).all():
        raise BadInput("rates_published", "has a rate that is not a number of at least 0")
    problem = WiringProblem.from_rows(
        users=names.to_pylist(),
        brokers=[""],
        channel_count=max(1, len(cells)),
        published=(*found[0], amounts),
        wanted=found[1],
        access_prices=np.zeros((len(names), 1)),
        core_prices=np.zeros((1, 1)),
    )
    counted = None
    if received is not None:
        counted = np.zeros(len(names))
        at = _positions(texts(received, "user"), names)
        counted[at] = np.asarray(received.column("bytes_per_second").to_numpy(), np.float64)
    return Population(problem, *codes_by_name(home_brokers(users, names)), counted)


def exchange_of(problem: WiringProblem) -> Exchange:
    """Return a population as `_partner_kernels` reads it."""
    sets: dict[bytes, int] = {}
    set_of_user = np.empty(problem.user_count, np.int64)
    lists: list[IntArray] = []
    for user in range(problem.user_count):
        begin, end = problem.interest_start[user : user + 2]
        wanted = problem.interest_channel[begin:end]
        number = sets.setdefault(wanted.tobytes(), len(sets))
        if number == len(lists):
            lists.append(wanted)
        set_of_user[user] = number
    set_start = np.cumsum([0, *(len(wanted) for wanted in lists)])
    set_cell = np.concatenate([np.empty(0, np.int64), *lists])
    member = np.argsort(set_of_user, kind="stable")
    by_cell = np.argsort(problem.publish_channel, kind="stable")
    within = np.argsort(set_cell, kind="stable")
    # Copies, as the problem's own arrays cannot be written to, which is another type to a
    # compiler: what comes out of a pickle can be.
    return Exchange(
        problem.publish_start.copy(),
        problem.publish_channel.copy(),
        problem.publish_rate.copy(),
        _starts(problem.publish_channel, problem.channel_count),
        problem.publisher[by_cell],
        problem.publish_rate[by_cell],
        set_of_user,
        set_start,
        set_cell,
        _starts(set_cell, problem.channel_count),
        np.repeat(np.arange(len(lists)), np.diff(set_start))[within],
        _starts(set_of_user, len(lists)),
        member,
    )


def _starts(owner: IntArray, count: int) -> IntArray:
    """Return where the entries of each owner start, once they are sorted by owner."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]).astype(np.int64)


def _positions(values: pa.Array, known: pa.Array) -> IntArray:
    import pyarrow.compute as pc

    return np.asarray(pc.index_in(values, value_set=known).to_numpy(), np.int64)


def _cells(table: pa.Table) -> pa.Array:
    import pyarrow as pa

    return pa.chunked_array(table.column("cell").chunks, pa.int64()).combine_chunks()
