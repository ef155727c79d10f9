"""Tables as frames and as charts: what is drawn is what the table says, with units."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.commands import check_one_line, run

from distributary.drawing.chart import BARS_MAX, Bars, Charts, Lines
from distributary.errors import BadInput, MissingPackage
from distributary.pipeline import Store, plot_table, read_table
from distributary.pipeline.charts import CHARTED
from distributary.pipeline.schemas import TABLES

BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
TIMES = [BEGIN + timedelta(minutes=minute) for minute in range(40)]

ROWS: dict[str, dict[str, list[Any]]] = {
    "rates": {
        "server": ["b1", "b1", "b2"],
        "object": ["ACME", "INIT", "ACME"],
        "updates_per_second": [0.5, 0.25, 2.0],
    },
    "rates_published": {"user": ["ann"], "cell": [7], "bytes_per_second": [12.5]},
    "traffic": {
        "user": [f"u{number:02}" for number in range(40)],
        "bytes_in": [float(number) for number in range(40)],
        "bytes_out": [1.0] * 40,
        "bytes_in_by_cells": [2.0 * number for number in range(40)],
    },
    "broker_traffic": {
        "broker": ["b1", "b2", "b1"],
        "other": ["b2", "b1", "b3"],
        "bytes_per_second": [1.0, 2.0, 5.0],
    },
    "plans": {
        "source": ["/a"] * 3,
        "event_id": ["1", "2", "3"],
        "method": ["exact", "search", None],
        "transmission_cost": [2.0, 3.0, None],
        "conversion_cost": [3.0, 2.0, None],
        "total_cost": [5.0, 5.0, None],
        "all_in_root": [10.0, 10.0, None],
        "all_in_leaves": [5.0, 5.0, None],
        "single_format": [20.0, 20.0, None],
        "failure": [None, None, "no way"],
    },
    "deliveries": {
        "source": ["/a"] * 2,
        "event_id": ["1", "2"],
        "subscription_id": ["s", "s"],
        "user": ["<ann> & co", "bob"],
        "broker": ["b1", None],
        "media_type": ["image/jpeg", None],
        "bytes": [100, 200],
    },
    "wiring": {"user": ["ann", "bob"], "broker": ["b1", "b1"]},
    "publications": {
        "source": ["/a"] * 40,
        "event_id": [str(number) for number in range(40)],
        "publisher": ["ann"] * 40,
        "time": [None, *TIMES[1:]],
        "attributes": [[]] * 40,
        "numbers": [[("/price", 1.5)]] * 40,
        "texts": [[]] * 40,
        "media_type": ["application/json"] * 40,
        "bytes": [10] * 40,
    },
    "quotes": {
        "object": ["ACME", "INIT"] * 20,
        "time": TIMES,
        "value": [100.0 + number for number in range(40)],
    },
    "quarantine": {"table": ["users"], "file": ["a.csv"], "reason": ["repeated"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with a few rows in every table that is drawn."""
    path = str(tmp_path_factory.mktemp("tables"))
    store = Store(path)
    for name, columns in ROWS.items():
        schema = TABLES[name].arrow
        count = len(next(iter(columns.values())))
        filled = {field.name: columns.get(field.name, [None] * count) for field in schema}
        store.write(name, pa.table(filled, schema=schema))
    return path


def bars(charts: Charts, title: str) -> dict[str, tuple[float, ...]]:
    (panel,) = [panel for panel in charts.panels if panel.title.startswith(title)]
    assert isinstance(panel, Bars)
    assert panel.axis
    return dict(panel.rows)


def test_every_table_that_is_drawn_is_one_and_has_rows_here() -> None:
    assert CHARTED.keys() == ROWS.keys()
    assert CHARTED.keys() <= TABLES.keys()


@pytest.mark.parametrize("name", ROWS)
def test_every_chart_is_sound_and_says_what_its_axes_are(
    name: str, folder: str, tmp_path: Path
) -> None:
    charts = plot_table(folder, name)
    for suffix in ("svg", "html"):
        path = tmp_path / f"{name}.{suffix}"
        charts.write(path, option="-o")
        text = path.read_text("utf-8")
        assert "nan" not in text.lower().replace("nano", "")
        assert "http://www.w3.org/2000/svg" in text or suffix == "html"
        for panel in charts.panels:
            assert panel.axis in text
    root = ElementTree.fromstring((tmp_path / f"{name}.svg").read_text("utf-8"))  # noqa: S314
    width = float(root.attrib["width"])
    height = float(root.attrib["height"])
    for item in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert 0.0 <= float(item.attrib["width"]) <= width
        assert 0.0 <= float(item.attrib["height"]) <= height
    assert charts._repr_html_().startswith("<img ")


def test_bars_add_up_to_the_table(folder: str) -> None:
    rates = plot_table(folder, "rates")
    assert bars(rates, "Updates by server") == {"b2": (2.0,), "b1": (0.75,)}
    assert bars(rates, "Updates by object") == {"ACME": (2.5,), "INIT": (0.25,)}
    traffic = bars(plot_table(folder, "traffic"), "Traffic by user (the first 30 of 40)")
    assert len(traffic) == BARS_MAX
    assert traffic["u39"] == (39.0, 1.0)
    links = bars(plot_table(folder, "broker_traffic"), "Traffic by pair")
    assert links == {"b1 \u2013 b3": (5.0,), "b1 \u2013 b2": (3.0,)}
    some = plot_table(folder, "rates", where=["server=b1"])
    assert bars(some, "Updates by object") == {"ACME": (0.5,), "INIT": (0.25,)}
    with pytest.raises(BadInput, match="has no rows to draw"):
        plot_table(folder, "rates", where=["server=b9"])
    deliveries = plot_table(folder, "deliveries")
    assert bars(deliveries, "Deliveries by broker") == {"(none)": (1.0,), "b1": (1.0,)}


def test_savings_are_of_the_plans_that_were_made(folder: str) -> None:
    plans = plot_table(folder, "plans")
    assert bars(plans, "What all plans cost") == {
        "planned": (10.0,),
        "all in the root": (20.0,),
        "all in the leaves": (10.0,),
        "one format a link": (40.0,),
    }
    assert bars(plans, "What planning saves") == {
        "all in the root": (50.0,),
        "all in the leaves": (0.0,),
        "one format a link": (75.0,),
    }


def test_lines_are_over_the_time_that_the_axis_names(folder: str) -> None:
    (lines, _) = plot_table(folder, "quotes").panels
    assert isinstance(lines, Lines)
    assert lines.time_axis == "minutes since 2026-01-05 09:00:00 UTC"
    assert [name for name, _ in lines.lines] == ["ACME", "INIT"]
    assert lines.axis == "change since the first (%)"
    assert lines.lines[1][1][0] == (1.0, 0.0)
    assert lines.lines[1][1][-1] == pytest.approx((39.0, 100.0 * 38.0 / 101.0))
    published = plot_table(folder, "publications").panels[0]
    assert isinstance(published, Lines)
    assert published.axis == "publications per minute"
    # One a minute: 39 with a time, and as many in every interval of a minute.
    assert [value for _, value in published.lines[0][1]] == [1.0] * 39


@pytest.mark.parametrize(
    ("value", "axis"),
    [(0.0, r">0<.*>1<"), (-3.0, r">-6<|>-4<|>-3<"), (1e12, r">1,000 G<"), (1e-7, r"e-0[78]<")],
)
def test_whatever_the_numbers_are_an_axis_spans_them(value: float, axis: str) -> None:
    points = [(0.0, value), (1.0, value)]
    lines = Lines("t", "value", "seconds", [("a", points)])
    assert re.search(axis, lines.markup())
    assert "nan" not in lines.markup()


def test_a_command_draws_it_and_refuses_what_it_cannot(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "rates.svg"
    done = run("pipeline", "plot", "rates", "--data", folder, "-o", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    said = f"How many updates servers need: table rates · 3 rows; written to {path}\n"
    assert done.stderr == said
    assert path.read_text("utf-8") == plot_table(folder, "rates").svg()
    for arguments, place in (
        (("trees",), "'trees' is not drawn"),
        (("nothing",), "'nothing' is not a table"),
        (("rates", "-o", "rates.png"), "ends in neither .svg nor .html"),
        (("rates", "-o", "nowhere/rates.svg"), "does not exist"),
        (("rates", "--version", "9"), "9"),
    ):
        command = ("pipeline", "plot", *arguments, "--data", folder)
        output = () if "-o" in arguments else ("-o", str(path))
        failed = run(*command, *output, cwd=tmp_path)
        check_one_line(failed.returncode, failed.stdout, failed.stderr, place)


def test_what_is_no_number_is_drawn_as_nothing(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    rates: dict[str, list[Any]] = {
        "server": ["b1", "b2", "b3", "b" * 500],
        "object": ["o", "o", "o", "\u202e\x00"],
        "updates_per_second": [float("nan"), float("inf"), -1.0, 2.0],
    }
    store.write("rates", pa.table(rates, schema=TABLES["rates"].arrow))
    quotes: dict[str, list[Any]] = {
        "object": [f"o{number}" for number in range(12)],
        "time": [BEGIN] * 12,
        "value": [float("nan"), *range(11)],
    }
    store.write("quotes", pa.table(quotes, schema=TABLES["quotes"].arrow))
    assert (
        sum(size for (size,) in bars(plot_table(tmp_path, "rates"), "Updates by s").values()) == 2
    )
    for name in ("rates", "quotes"):
        svg = plot_table(tmp_path, name).svg()
        ElementTree.fromstring(svg)  # noqa: S314
        assert not re.search(r'"(nan|inf|-inf)"', svg)
    (lines, _) = plot_table(tmp_path, "quotes").panels
    assert lines.title == "Values over time (8 of 11 objects)"


def test_a_table_without_rows_is_not_drawn(tmp_path: Path) -> None:
    Store(str(tmp_path)).write("rates", TABLES["rates"].arrow.empty_table())
    with pytest.raises(BadInput, match="has no rows to draw"):
        plot_table(tmp_path, "rates")


def test_a_table_is_a_frame_of_either_library(folder: str) -> None:
    as_pandas = read_table(folder, "rates", where=["server=b1"])
    assert as_pandas["updates_per_second"].sum() == 0.75
    as_polars = read_table(folder, "rates", where=["server=b1"], library="polars")
    assert as_polars["object"].to_list() == ["ACME", "INIT"]
    as_arrow = read_table(folder, "rates", library="arrow", limit=2)
    assert as_arrow.num_rows == 2
    publications = read_table(folder, "publications", limit=1)
    assert publications["numbers"][0] == {"/price": 1.5}
    with pytest.raises(BadInput, match="library: 'dask' is not one of"):
        read_table(folder, "rates", library="dask")


def test_a_missing_library_says_how_to_install_it(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(MissingPackage, match=r'pip install "distributary\[polars\]"'):
        read_table(folder, "rates", library="polars")
