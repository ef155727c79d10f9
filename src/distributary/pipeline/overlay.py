"""The table `overlay` as what planners need: brokers, their identifiers and delays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray
from distributary.errors import BadInput, quoted
from distributary.topology import Overlay

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.store import Store

__all__ = ["BrokerOverlay", "read_overlay"]


@dataclass(frozen=True, eq=False)
class BrokerOverlay:
    """The overlay, and what its brokers are called in other tables.

    Names are in the order of the table, which is that of every list of delays. Delays are in
    milliseconds.
    """

    brokers: tuple[str, ...]
    overlay: Overlay


def read_overlay(store: Store) -> BrokerOverlay:
    """Return the table `overlay`, or raise `BadInput` naming its folder."""
    rows = store.read("overlay")
    try:
        brokers = _names(rows)
        overlay = Overlay(tuple(rows["identifier"].to_pylist()), _delays(rows, brokers))
        # Routing tables are built here, so that what is wrong with identifiers is said now.
        _ = overlay.tables
    except BadInput as error:
        raise error.within(store.path("overlay")) from None
    return BrokerOverlay(brokers, overlay)


def _names(rows: pa.Table) -> tuple[str, ...]:
    names = tuple(rows["broker"].to_pylist())
    if not names:
        raise BadInput("broker", "there is none")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput("broker", f"{quoted(name)} is given twice")
        seen.add(name)
    return names


def _delays(rows: pa.Table, brokers: tuple[str, ...]) -> FloatArray:
    import pyarrow.compute as pc

    column = rows["delays"].combine_chunks()
    lengths = np.asarray(pc.list_value_length(column).fill_null(0))
    wrong = np.flatnonzero(lengths != len(brokers))
    if wrong.size:
        raise BadInput(
            f"delays of {quoted(brokers[wrong[0]])}",
            f"are {lengths[wrong[0]]:,} for {len(brokers):,} brokers",
            hint="there is one to every broker, in the order of the rows",
        )
    values = column.flatten().fill_null(np.nan)
    delays: FloatArray = np.array(values, dtype=np.float64).reshape(len(brokers), len(brokers))
    return delays
