"""Pictures of runs: deliveries, traffic, cost and loss of fidelity in one view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distributary.drawing.picture import MARGIN, svg_file, titled_svg, write_picture
from distributary.drawing.svg import element, number, shortened, text
from distributary.errors import counted
from distributary.simulator.charts import PANEL_WIDTH, BarChart, LineChart
from distributary.simulator.report import COST_SHOWN_MIN

__all__ = ["draw_run", "run_svg"]

_GAP = 28.0
_HEAD = 64.0
_KINDS_MAX = 12
_NAME_CHARACTERS_MAX = 60


def run_svg(report: dict[str, Any]) -> str:
    """Return the picture of a report as an SVG element."""
    panels = _panels(report)
    columns: list[list[BarChart | LineChart]] = [[], []]
    heights = [0.0, 0.0]
    for panel in panels:
        column = heights.index(min(heights))
        columns[column].append(panel)
        heights[column] += panel.height + _GAP
    parts = []
    for k, column_panels in enumerate(columns):
        top = _HEAD + MARGIN
        left = MARGIN + k * (PANEL_WIDTH + _GAP)
        for panel in column_panels:
            at = f"translate({number(left)} {number(top)})"
            parts.append(element("g", panel.markup(), transform=at))
            top += panel.height + _GAP
    width = 2.0 * MARGIN + 2.0 * PANEL_WIDTH + _GAP
    height = _HEAD + max(heights) + MARGIN
    title = f"{shortened(report['scenario'], _NAME_CHARACTERS_MAX)}, seed {report['seed']}"
    wrong = len(report["violations"])
    subtitle = (
        f"{counted(report['brokers'], 'broker')}, {report['virtual_s']:.0f} s, "
        f"{counted(report['events'], 'event')}, {counted(wrong, 'violation')}"
    )
    return titled_svg(title, subtitle, parts, width=width, height=height)


def draw_run(report: dict[str, Any], path: Path | str) -> None:
    """Write the picture of a report to a file, as its suffix says, whole or not at all."""
    svg = run_svg(report)
    if Path(path).suffix == ".html":
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        head = (
            '<meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            f"<title>{text(str(report['scenario']))}</title>"
        )
        content = (
            f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{svg}</body></html>\n'
        )
    else:
        content = svg_file(svg)
    write_picture(content, path, option="--draw")


def _panels(report: dict[str, Any]) -> list[BarChart | LineChart]:
    deliveries, cost = report["deliveries"], report["cost"]
    panels: list[BarChart | LineChart] = []
    # A run of streams has no deliveries, and one of content no loss of fidelity.
    if any(deliveries.values()):
        panels.append(
            BarChart(
                "deliveries",
                ("deliveries",),
                [
                    (name, (float(deliveries[name]),), f"{deliveries[name]:,}")
                    for name in ("owed", "made", "extra", "repeated", "duplicates")
                ],
            )
        )
    panels += [
        _by_kind("messages by kind", report["messages"], 1.0, ",.0f"),
        _by_kind("megabytes by kind", report["bytes"], 1e6, ",.2f"),
    ]
    if cost["total"] >= COST_SHOWN_MIN:
        named = (
            ("as planned", cost),
            ("all in the root", cost["all_in_root"]),
            ("all in the leaves", cost["all_in_leaves"]),
        )
        panels.append(
            BarChart(
                "cost",
                ("transmission", "conversion"),
                [
                    (name, (one["transmission"], one["conversion"]), f"{one['total']:,.1f}")
                    for name, one in named
                    if one["total"]
                ],
            )
        )
    if len(report["loss_of_fidelity"]) > 1:
        points = [(point["at_s"], 100.0 * point["loss"]) for point in report["loss_of_fidelity"]]
        panels.append(LineChart("loss of fidelity, percent of the time", points))
    return panels


def _by_kind(title: str, amounts: dict[str, float], unit: float, form: str) -> BarChart:
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))[:_KINDS_MAX]
    rows = [(name, (amount / unit,), format(amount / unit, form)) for name, amount in ranked]
    return BarChart(title, ("amount",), rows)
