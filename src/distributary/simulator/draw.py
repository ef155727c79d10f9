"""Pictures of runs: deliveries, traffic, cost and loss of fidelity in one view."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from distributary.drawing.svg import element, number, shortened, text
from distributary.errors import BadInput, counted, quoted
from distributary.simulator.charts import PANEL_WIDTH, Bars, Lines
from distributary.simulator.report import COST_SHOWN_MIN

__all__ = ["draw_run", "run_svg"]

_MARGIN = 24.0
_GAP = 28.0
_HEAD = 64.0
_KINDS_MAX = 12
_NAME_CHARACTERS_MAX = 60
_RULES = files("distributary.drawing").joinpath("picture.css")


def run_svg(report: dict[str, Any]) -> str:
    """Return the picture of a report as a standalone SVG document."""
    panels = _panels(report)
    columns: list[list[Bars | Lines]] = [[], []]
    heights = [0.0, 0.0]
    for panel in panels:
        column = heights.index(min(heights))
        columns[column].append(panel)
        heights[column] += panel.height + _GAP
    parts = []
    for k, column_panels in enumerate(columns):
        top = _HEAD + _MARGIN
        left = _MARGIN + k * (PANEL_WIDTH + _GAP)
        for panel in column_panels:
            at = f"translate({number(left)} {number(top)})"
            parts.append(element("g", panel.markup(), transform=at))
            top += panel.height + _GAP
    width = 2.0 * _MARGIN + 2.0 * PANEL_WIDTH + _GAP
    height = _HEAD + max(heights) + _MARGIN
    title = f"{shortened(report['scenario'], _NAME_CHARACTERS_MAX)}, seed {report['seed']}"
    wrong = len(report["violations"])
    subtitle = (
        f"{counted(report['brokers'], 'broker')}, {report['virtual_s']:.0f} s, "
        f"{counted(report['events'], 'event')}, {counted(wrong, 'violation')}"
    )
    content = [
        element("title", text(f"{title}. {subtitle}")),
        element("style", _RULES.read_text(encoding="utf-8")),
        element("rect", class_="paper", width=width, height=height),
        element("text", text(title), class_="title", x=_MARGIN, y=40.0, font_size=20.0),
        element("text", text(subtitle), class_="quiet", x=_MARGIN, y=62.0, font_size=13.0),
        *parts,
    ]
    return element(
        "svg",
        "\n".join(content),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
    )


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
        content = f'<?xml version="1.0" encoding="UTF-8"?>\n{svg}\n'
    target = Path(path).resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            part.write_text(content, encoding="utf-8", newline="\n")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput("--draw", f"{quoted(path)} cannot be written: {reason}") from None


def _panels(report: dict[str, Any]) -> list[Bars | Lines]:
    deliveries, cost = report["deliveries"], report["cost"]
    panels: list[Bars | Lines] = []
    # A run of streams has no deliveries, and one of content no loss of fidelity.
    if any(deliveries.values()):
        panels.append(
            Bars(
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
            Bars(
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
        panels.append(Lines("loss of fidelity, percent of the time", points))
    return panels


def _by_kind(title: str, amounts: dict[str, float], unit: float, form: str) -> Bars:
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))[:_KINDS_MAX]
    rows = [(name, (amount / unit,), format(amount / unit, form)) for name, amount in ranked]
    return Bars(title, ("amount",), rows)
