"""Charts of tables: rates, traffic, savings and what else there is to look at, without Spark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributary.drawing.chart import BARS_MAX, LINES_MAX, Bars, Charts, Lines
from distributary.errors import BadInput, counted, quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.store import Store

__all__ = ["CHARTED", "table_charts"]

# Where lines and bars over time have so many points, more would fall on the same pixel.
_POINTS_MAX = 240
_WIDTHS = (1 / 12, 1 / 6, 1 / 4, 1 / 2, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_INTERVALS_MAX = 48
_UNITS_S = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0))
_SIMPLE = {
    "all_in_root": "all in the root",
    "all_in_leaves": "all in the leaves",
    "single_format": "one format a link",
}


@dataclass(frozen=True)
class _Charted:
    """What is drawn of a table: its title, the columns that are read, and the panels of them."""

    title: str
    columns: tuple[str, ...]
    panels: Callable[[pa.Table], list[Bars | Lines]]


def table_charts(
    store: Store, name: str, *, where: Any = None, version: int | None = None
) -> Charts:
    """Return the charts of a table in a folder, of those rows that meet an expression of Arrow.

    Raises
    ------
    BadInput
        When the table is not there, has no rows, or is none of `CHARTED`.
    """
    if name not in CHARTED:
        raise BadInput(
            "table",
            f"{quoted(name)} is not drawn",
            hint=f"tables that are: {', '.join(CHARTED)}",
        )
    charted = CHARTED[name]
    rows = store.read(name, charted.columns, where=where, version=version)
    panels = charted.panels(rows) if rows.num_rows else []
    if not panels:
        raise BadInput(store.path(name), "has no rows to draw")
    subtitle = f"table {name} · {counted(rows.num_rows, 'row')}"
    return Charts(charted.title, subtitle, tuple(panels))


def _bars(
    rows: pa.Table, title: str, axis: str, by: str, values: dict[str, str] | None = None
) -> Bars:
    """Return the largest sums of some columns by another one; without columns, how many rows.

    `values` says what each column is called.
    """
    wanted = values or {}
    chosen: list[tuple[object, str]] = [(column, "sum") for column in wanted]
    chosen = chosen or [([], "count_all")]
    sums = rows.group_by(by).aggregate(chosen)
    names = [str(name) if name is not None else "(none)" for name in sums[by].to_pylist()]
    columns = [f"{column}_sum" for column in wanted] or ["count_all"]
    sizes = [[_length(value) for value in sums[column].to_pylist()] for column in columns]
    found = sorted(
        zip(names, zip(*sizes, strict=True), strict=True), key=lambda row: (-sum(row[1]), row[0])
    )
    more = len(found) - BARS_MAX
    shown = f"{title} (the first {BARS_MAX} of {len(found):,})" if more > 0 else title
    return Bars(shown, axis, tuple(wanted.values()) or ("rows",), found[:BARS_MAX])


def _length(value: float | None) -> float:
    """Return how long a bar is: nothing for what is no number, or less than nothing."""
    return float(value) if value is not None and math.isfinite(value) and value > 0.0 else 0.0


def _pairs(rows: pa.Table) -> pa.Table:
    """Return traffic between brokers with both in one column, whoever sends."""
    names = [
        f"{min(one, other)} \u2013 {max(one, other)}"
        for one, other in zip(rows["broker"].to_pylist(), rows["other"].to_pylist(), strict=True)
    ]
    return rows.append_column("link", [names])


def _times(rows: pa.Table, column: str) -> tuple[list[float], str]:
    """Return times since the first as a number of some unit, and what the axis is called."""
    import pyarrow as pa

    stamps = [value / 1e6 for value in rows[column].cast(pa.int64()).to_pylist()]
    begin = min(stamps)
    span = max(stamps) - begin
    unit, size = next((item for item in _UNITS_S if span >= 3.0 * item[1]), _UNITS_S[-1])
    first = rows[column][stamps.index(begin)].as_py()
    label = f"{unit} since {first:%Y-%m-%d %H:%M:%S} UTC"
    return [(stamp - begin) / size for stamp in stamps], label


def _quotes(rows: pa.Table) -> list[Bars | Lines]:
    times, label = _times(rows, "time")
    points: dict[str, list[tuple[float, float]]] = {}
    for name, time, value in zip(
        rows["object"].to_pylist(), times, rows["value"].to_pylist(), strict=True
    ):
        if math.isfinite(value):
            points.setdefault(name, []).append((time, value))
    if not points:
        return []
    most = sorted(points, key=lambda name: (-len(points[name]), name))
    lines = [(name, _thinned(sorted(points[name]))) for name in sorted(most[:LINES_MAX])]
    some = f" ({LINES_MAX} of {len(points):,} objects)" if len(points) > LINES_MAX else ""
    title = f"Values over time{some}"
    axis = "value"
    if len(lines) > 1 and all(points[0][1] != 0.0 for _, points in lines):
        # Of a penny and of a thousand, one would otherwise be a flat line.
        title, axis = title.replace("Values", "Change of values"), "change since the first (%)"
        lines = [(name, _changes(points)) for name, points in lines]
    return [
        Lines(title, axis, label, lines),
        _bars(rows, "Quotes by object", "quotes", "object"),
    ]


def _changes(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    first = points[0][1]
    return [(time, 100.0 * (value - first) / abs(first)) for time, value in points]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that are drawn of many: the ends, and some between them."""
    step = -(-len(points) // _POINTS_MAX)
    return points if step <= 1 else [*points[:-1:step], points[-1]]


def _publications(rows: pa.Table) -> list[Bars | Lines]:
    timed = rows.filter(rows["time"].is_valid())
    panels: list[Bars | Lines] = []
    if timed.num_rows:
        times, label = _times(timed, "time")
        # Round widths, so that what comes every half hour is as much in each.
        span = max(times)
        width = next((width for width in _WIDTHS if span / width <= _INTERVALS_MAX), span)
        tally = [0] * (int(span / width) + 1)
        for time in times:
            tally[int(time / width)] += 1
        unit = label.partition(" ")[0]
        line = [((at + 0.5) * width, number / width) for at, number in enumerate(tally)]
        per = f"publications per {unit.removesuffix('s')}"
        panels.append(Lines("Publications over time", per, label, [("all", line)]))
    panels.append(_bars(rows, "Bytes by format", "bytes", "media_type", {"bytes": "bytes"}))
    panels.append(_bars(rows, "Bytes by publisher", "bytes", "publisher", {"bytes": "bytes"}))
    return panels


def _plans(rows: pa.Table) -> list[Bars | Lines]:
    import pyarrow.compute as pc

    made = rows.filter(rows["total_cost"].is_valid())
    if not made.num_rows:
        return []
    sums = {column: _length(pc.sum(made[column]).as_py()) for column in _SIMPLE}
    parts = ("transmission_cost", "conversion_cost")
    planned = _length(pc.sum(made["total_cost"]).as_py())
    costs = [("planned", (planned,)), *((_SIMPLE[name], (sums[name],)) for name in _SIMPLE)]
    shares = [(name, (_length(pc.sum(made[name]).as_py()),)) for name in parts]
    return [
        Bars("What all plans cost together", "total cost", ("total cost",), costs),
        Bars(
            "What planning saves",
            "share of the cost of the simple way that is saved (%)",
            ("saved",),
            [
                (_SIMPLE[name], (max(0.0, 100.0 * (1.0 - planned / total)),))
                for name, total in sums.items()
                if total > 0.0
            ],
        ),
        Bars(
            "Where the cost of the plans arises",
            "cost before weighting",
            ("cost",),
            [(name.removesuffix("_cost"), size) for name, size in shares],
        ),
        _bars(made, "Plans by method", "publications", "method"),
    ]


def _by(
    columns: Sequence[tuple[str, str, str, dict[str, str] | None]],
) -> Callable[[pa.Table], list[Bars | Lines]]:
    """Return how to draw a panel of bars for each (title, axis, by, values)."""
    return lambda rows: [_bars(rows, *panel) for panel in columns]


_UPDATES = {"updates_per_second": "updates"}
_RATE = {"bytes_per_second": "bytes"}

CHARTED: dict[str, _Charted] = {
    "rates": _Charted(
        "How many updates servers need",
        ("server", "object", "updates_per_second"),
        _by(
            (
                ("Updates by server", "updates per second", "server", _UPDATES),
                ("Updates by object", "updates per second, all servers", "object", _UPDATES),
            )
        ),
    ),
    "rates_published": _Charted(
        "How much is published",
        ("user", "cell", "bytes_per_second"),
        _by(
            (
                ("Published by user", "bytes per second", "user", _RATE),
                ("Published by cell", "bytes per second", "cell", _RATE),
            )
        ),
    ),
    "traffic": _Charted(
        "What users send and receive",
        ("user", "bytes_in", "bytes_out", "bytes_in_by_cells"),
        _by(
            (
                (
                    "Traffic by user",
                    "bytes per second",
                    "user",
                    {"bytes_in": "received", "bytes_out": "sent"},
                ),
                (
                    "What plans expect users to receive",
                    "bytes per second, by cells",
                    "user",
                    {"bytes_in_by_cells": "received"},
                ),
            )
        ),
    ),
    "broker_traffic": _Charted(
        "What travels between brokers",
        ("broker", "other", "bytes_per_second"),
        lambda rows: [
            _bars(_pairs(rows), "Traffic by pair", "bytes per second, both ways", "link", _RATE),
            _bars(rows, "Traffic by sending broker", "bytes per second", "broker", _RATE),
        ],
    ),
    "plans": _Charted(
        "What planning saves",
        ("method", "transmission_cost", "conversion_cost", "total_cost", *_SIMPLE),
        _plans,
    ),
    "deliveries": _Charted(
        "What is delivered",
        ("user", "broker", "media_type", "bytes"),
        _by(
            (
                ("Deliveries by broker", "deliveries", "broker", None),
                ("Deliveries by format", "deliveries", "media_type", None),
                ("Bytes by user", "bytes before conversion", "user", {"bytes": "bytes"}),
            )
        ),
    ),
    "wiring": _Charted(
        "Who is at which broker",
        ("user", "broker"),
        _by((("Users by broker", "users", "broker", None),)),
    ),
    "publications": _Charted(
        "What was published", ("time", "publisher", "media_type", "bytes"), _publications
    ),
    "quotes": _Charted("What was quoted", ("object", "time", "value"), _quotes),
    "quarantine": _Charted(
        "What could not be read",
        ("table", "reason"),
        _by(
            (
                ("Rows by table", "rows", "table", None),
                ("Rows by reason", "rows", "reason", None),
            )
        ),
    ),
}
"""The tables that can be drawn, by name."""
