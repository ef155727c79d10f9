"""Wiring problems as a folder of Parquet tables, for instances too large for JSON.

======================  ==========================================================
table                   columns
======================  ==========================================================
brokers                 broker, capacity (null or no such column: unlimited)
users                   user, publishes (list), subscribes (list), a channel each
access_costs            user, costs (list over brokers in the order of `brokers`)
core_costs              broker, costs (the same)
rates_published         user, cell, rate or bytes_per_second
interests               user, cell
======================  ==========================================================

The last two stand in for `publishes` and `subscribes`, and keep only what is not zero. A
table is a file `users.parquet` or a folder `users` of files; `access_cost` and `core_cost`
are other names of the tables of prices and of their lists, and so is `cost` of the latter.
Optional columns `x` and `y` of `users` and `brokers` are for pictures. With a network there are no
tables of prices, and `users` has a column `place`; `brokers` may have one. Other columns and tables
are none of our business.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distributary.arguments import checked
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.files import naming
from distributary.topology.sites import Sites
from distributary.wiring.columns import ParquetColumn, arrow
from distributary.wiring.limits import check_size
from distributary.wiring.network_prices import standing
from distributary.wiring.problem import WiringProblem
from distributary.wiring.problem_file import ProblemFile, positions_in_order
from distributary.wiring.tables import ParquetTable, find_table

__all__ = ["read_problem_tables"]

_ACCESS = ("access_costs", "access_cost")
_CORE = ("core_costs", "core_cost")
_ACCESS_LISTS = ("costs", "cost", "access_cost")
_CORE_LISTS = ("costs", "cost", "core_cost")
_RATES = ("rate", "bytes_per_second")

Published = tuple[IntArray, IntArray, FloatArray]
Wanted = tuple[IntArray, IntArray]


@checked
def read_problem_tables(folder: Path | str, *, sites: Sites | None = None) -> ProblemFile:
    """Return the wiring problem in a folder of tables, or raise `BadInput`.

    With sites users and brokers stand there, and tables of prices are not looked at.
    """
    folder = Path(folder)
    pa = arrow("reading a folder of Parquet tables")
    brokers_table = _table(folder, "brokers")
    access_table, core_table = None, None
    if sites is None:
        access_table, core_table = _table(folder, *_ACCESS), _table(folder, *_CORE)
    factored = find_table(folder, "rates_published")
    users_table = find_table(folder, "users")
    if users_table is None:
        # What the pipeline knows of users may be their prices and nothing else.
        users_table = access_table if factored is not None else None
        users_table = _table(folder, "users") if users_table is None else users_table
    _check_size(folder, users_table.row_count, brokers_table.row_count, channels=1)
    brokers, users = _names(brokers_table, "broker"), _names(users_table, "user")
    user_names = pa.array(users, pa.string())
    if {"publishes", "subscribes"} <= users_table.columns or factored is None:
        channels, published, wanted = _dense(users_table)
    else:
        channels, published, wanted = _factored(factored, _table(folder, "interests"), user_names)
    _check_size(folder, len(users), len(brokers), channels=channels)
    at_users: FloatArray | None = None
    at_brokers: FloatArray | None = None
    places: list[str] | None = None
    core_place: Callable[[int, int], str] | None = None
    if access_table is not None and core_table is not None:
        core_list = _column(core_table, _CORE_LISTS)
        access_list = _column(access_table, _ACCESS_LISTS)
        broker_names = pa.array(brokers, pa.string())
        access = _prices(access_table, "user", access_list, user_names, len(brokers))
        core = _prices(core_table, "broker", core_list, broker_names, len(brokers))
        core_place = partial(_core_place, f"{core_table.files[0]}: {core_list}", brokers)
        if {"x", "y"} <= users_table.columns & brokers_table.columns:
            at_users, at_brokers = _points(users_table), _points(brokers_table)
    else:
        assert sites is not None
        places = _texts(users_table, "place")
        named = "place" if "place" in brokers_table.columns else "broker"
        with naming(folder):
            stands = standing(sites, places, _texts(brokers_table, named))
        access, core, drawn = stands.access_prices, stands.core_prices, stands.positions
        at_users, at_brokers = drawn.users, drawn.brokers
    problem = WiringProblem.from_rows(
        users=users,
        brokers=brokers,
        channel_count=channels,
        published=published,
        wanted=wanted,
        access_prices=access,
        core_prices=core,
        capacities=_capacities(brokers_table),
        core_place=core_place,
    )
    positions = None
    if at_users is not None and at_brokers is not None:
        positions = positions_in_order(problem, users, at_users, brokers, at_brokers, places)
    return ProblemFile(problem, tuple(users), positions)


def _core_place(place: str, brokers: list[str], i: int, j: int) -> str:
    return f"{place} of {quoted(brokers[i])} to {quoted(brokers[j])}"


def _texts(table: ParquetTable, column: str) -> list[str]:
    """Return the texts in a column."""
    return [text for _, (block,) in table.blocks(column) for text in block.names()]


def _table(folder: Path, *names: str) -> ParquetTable:
    table = find_table(folder, *names)
    if table is None:
        raise BadInput(
            str(folder),
            f"has no table {quoted(names[0])}",
            hint=f"it is a file {names[0]}.parquet or a folder {names[0]} of such files",
        )
    return table


def _check_size(folder: Path, users: int, brokers: int, *, channels: int) -> None:
    try:
        check_size(users=users, brokers=brokers, channels=channels)
    except BadInput as error:
        raise error.within(str(folder)) from None


def _column(table: ParquetTable, names: tuple[str, ...]) -> str:
    """Return which of the names of one column the table uses; the first if it has none."""
    return next((name for name in names if name in table.columns), names[0])


def _names(table: ParquetTable, column: str) -> list[str]:
    """Return the names in a column; none comes twice."""
    names: dict[str, None] = {}
    for _, (block,) in table.blocks(column):
        for row, name in enumerate(block.names()):
            if name in names:
                raise block.fault(row, f"{column} {quoted(name)} is given twice")
            names[name] = None
    return list(names)


def _capacities(table: ParquetTable) -> FloatArray:
    if "capacity" not in table.columns:
        return np.full(table.row_count, math.inf)
    blocks = [block.numbers(default=math.inf) for _, (block,) in table.blocks("capacity")]
    return np.concatenate(blocks)


def _points(table: ParquetTable) -> FloatArray:
    blocks = [
        np.column_stack([x.coordinates(), y.coordinates()]) for _, (x, y) in table.blocks("x", "y")
    ]
    return np.concatenate(blocks)


def _prices(table: ParquetTable, key: str, column: str, names: Any, brokers: int) -> FloatArray:
    """Return the prices of users or brokers, in the order of `names`.

    Rows are found by name: nobody keeps the order of rows in a folder of files.
    """
    prices = np.empty((len(names), brokers))
    seen: BoolArray = np.zeros(len(names), dtype=np.bool_)
    for _, (who, costs) in table.blocks(key, column, width=brokers):
        at = who.positions_in(names, f"a {key} of the problem")
        _refuse_repeated(who, key, at, seen)
        block = costs.matrix(brokers, "broker")
        if at.size and at[-1] - at[0] + 1 == at.size and (np.diff(at) == 1).all():
            prices[at[0] : at[-1] + 1] = block
        else:
            prices[at] = block
        seen[at] = True
    if not seen.all():
        missing = names[int(np.argmin(seen))].as_py()
        raise BadInput(str(table.files[0]), f"has no row for {key} {quoted(missing)}")
    return prices


def _refuse_repeated(who: ParquetColumn, key: str, at: IntArray, seen: BoolArray) -> None:
    order = np.argsort(at, kind="stable")
    repeated = seen[at]
    repeated[order[1:]] |= at[order[1:]] == at[order[:-1]]
    if repeated.any():
        row = int(np.argmax(repeated))
        raise who.fault(row, f"{key} {quoted(who.values[row].as_py())} is given twice")


def _dense(table: ParquetTable) -> tuple[int, Published, Wanted]:
    """Return how many channels there are, and the lists of rates and interests as rows."""
    table.need("publishes", "subscribes")
    width: int | None = None
    for _, (publishes,) in table.blocks("publishes"):
        width = publishes.width()
        if width == 0:
            raise publishes.fault(0, "is empty")
        break
    channels = 1 if width is None else width
    # The rows come in blocks, so that no table of all users and channels is ever held.
    rows: list[list[Any]] = [[], [], [], [], []]
    for first, (publishes, subscribes) in table.blocks("publishes", "subscribes", width=channels):
        rates = publishes.matrix(channels, "channel")
        flags = subscribes.flags(channels, "channel")
        publisher, channel = np.nonzero(rates)
        reader, wish = np.nonzero(flags)
        for found, block in zip(
            rows,
            (publisher + first, channel, rates[publisher, channel], reader + first, wish),
            strict=True,
        ):
            found.append(block)
    publisher, channel, rate, reader, wish = (np.concatenate(blocks) for blocks in rows)
    return channels, (publisher, channel, rate), (reader, wish)


def _factored(
    rates_table: ParquetTable, interests_table: ParquetTable, user_names: Any
) -> tuple[int, Published, Wanted]:
    """Return how many cells occur, and what is published and wanted in each of them."""
    pa = arrow("reading a folder of Parquet tables")
    column = _column(rates_table, _RATES)
    users: list[list[IntArray]] = [[], []]
    cells: list[list[Any]] = [[], []]
    rates: list[FloatArray] = [np.empty(0)]
    for _, (user, cell, rate) in rates_table.blocks("user", "cell", column):
        users[0].append(user.positions_in(user_names, "a user of the problem"))
        cells[0].append(cell.identifiers())
        rates.append(rate.numbers())
    for _, (user, cell) in interests_table.blocks("user", "cell"):
        users[1].append(user.positions_in(user_names, "a user of the problem"))
        cells[1].append(cell.identifiers())
    kinds = {str(block.type) for side in cells for block in side}
    if len(kinds) > 1:
        raise BadInput(
            str(interests_table.files[0]),
            f"column 'cell' is of another type than in {rates_table.files[0]}",
        )
    found = pa.chunked_array(cells[0] + cells[1], type=None if kinds else pa.int64())
    names = pa.compute.unique(found)
    names = names.take(pa.compute.sort_indices(names))
    channels = max(1, len(names))
    sides: list[tuple[IntArray, IntArray]] = []
    for table, side_users, side_cells in zip(
        (rates_table, interests_table), users, cells, strict=True
    ):
        user_at = np.concatenate([np.empty(0, dtype=np.int64), *side_users])
        cell_at = np.concatenate(
            [
                np.empty(0, dtype=np.int64),
                *(
                    pa.compute.index_in(block, value_set=names).to_numpy(zero_copy_only=False)
                    for block in side_cells
                ),
            ]
        ).astype(np.int64)
        keys = np.sort(user_at * channels + cell_at)
        if (keys[1:] == keys[:-1]).any():
            key = int(keys[1:][keys[1:] == keys[:-1]][0])
            who, where = user_names[key // channels].as_py(), names[key % channels].as_py()
            raise BadInput(
                str(table.files[0]), f"user {quoted(who)} and cell {quoted(where)} are given twice"
            )
        sides.append((user_at, cell_at))
    return channels, (*sides[0], np.concatenate(rates)), sides[1]
