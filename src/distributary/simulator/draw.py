"""Pictures of runs: the network, deliveries, traffic, cost and loss of fidelity in one view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from distributary.drawing.chart import CHART_WIDTH, Bars, Lines, Panel, Window, panels_page
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.picture import MARGIN, is_svg, svg_file, titled_svg, write_picture
from distributary.drawing.plane import Plane, draw_plane
from distributary.drawing.svg import element, number, shortened, text
from distributary.errors import counted
from distributary.simulator.network_picture import network_plane
from distributary.simulator.report import COST_SHOWN_MIN, report_of
from distributary.simulator.simulation import Simulation

__all__ = ["draw_run", "run_svg"]

_GAP = 28.0
_HEAD = 64.0
_KINDS_MAX = 12
_NAME_CHARACTERS_MAX = 60
_WINDOWS = 60
_NS_PER_SECOND = 1e9
_COLUMNS = 3
_WIDE = _COLUMNS * CHART_WIDTH + (_COLUMNS - 1) * _GAP
_KEY_WIDTH = 310.0
_NETWORK_SIZE = (_WIDE - _KEY_WIDTH - 120.0, 560.0)
_KEY_ROW = 22.0


@dataclass(frozen=True, eq=False)
class NetworkPanel:
    """The network of a run, as wide as the view, with what its symbols mean beside it."""

    plane: Plane

    @cached_property
    def _drawn(self) -> DrawnTree:
        return draw_plane(self.plane, size=_NETWORK_SIZE)

    @property
    def title(self) -> str:
        """What is shown."""
        return self.plane.title

    @property
    def width(self) -> float:
        """How wide it is."""
        return self._drawn.width + _GAP + _KEY_WIDTH

    @property
    def height(self) -> float:
        """How high it is."""
        return max(self._drawn.height, _KEY_ROW * (len(self._drawn.key) + 3)) + 10.0

    def markup(self) -> str:
        """Return title, key and network as the contents of a `g` element."""
        drawn = self._drawn
        at = f"translate({number(-drawn.left)} {number(-drawn.top)})"
        rows = [
            element("text", text(self.plane.title), class_="title", y=18.0, font_size=15.0),
            element("text", text(self.plane.subtitle), class_="quiet", y=38.0, font_size=12.0),
        ]
        for k, (symbol, words) in enumerate(drawn.key):
            y = 52.0 + k * _KEY_ROW
            rows.append(element("g", symbol, transform=f"translate(0 {number(y)})"))
            rows.append(element("text", text(words), x=32.0, y=y + 12.0, font_size=12.0))
        beside = f"translate({number(self.width - _KEY_WIDTH)} 0)"
        return element("g", drawn.markup, transform=at) + element(
            "g", "".join(rows), transform=beside
        )


def run_svg(report: dict[str, Any], simulation: Simulation | None = None) -> str:
    """Return the picture of a report as an SVG element; with the run itself, of its network too."""
    wide, panels = _wide_panels(simulation), _panels(report, simulation)
    parts, below = [], _HEAD + MARGIN
    for network in wide:
        parts.append(_at(network, MARGIN, below))
        below += network.height + _GAP
    columns: list[list[Panel]] = [[] for _ in range(_COLUMNS)]
    heights = [0.0] * _COLUMNS
    for chart in panels:
        column = heights.index(min(heights))
        columns[column].append(chart)
        heights[column] += chart.height + _GAP
    for k, column_panels in enumerate(columns):
        top = below
        for panel in column_panels:
            parts.append(_at(panel, MARGIN + k * (CHART_WIDTH + _GAP), top))
            top += panel.height + _GAP
    title, subtitle = _titles(report)
    return titled_svg(
        title,
        subtitle,
        parts,
        width=2.0 * MARGIN + _WIDE,
        height=below + max(heights) + MARGIN,
    )


def draw_run(simulation: Simulation, path: Path | str) -> None:
    """Write the picture of a run that is over to a file, as its suffix says."""
    report = report_of(simulation)
    if is_svg(path, option="--draw", stem="run"):
        content = svg_file(run_svg(report, simulation))
    else:
        panels = [*_wide_panels(simulation), *_panels(report, simulation)]
        content = panels_page(*_titles(report), panels)
    write_picture(content, path, option="--draw")


def _at(panel: Panel, left: float, top: float) -> str:
    return element("g", panel.markup(), transform=f"translate({number(left)} {number(top)})")


def _titles(report: dict[str, Any]) -> tuple[str, str]:
    wrong = len(report["violations"])
    return (
        f"{shortened(report['scenario'], _NAME_CHARACTERS_MAX)}, seed {report['seed']}",
        f"{counted(report['brokers'], 'broker')}, {report['virtual_s']:.0f} s, "
        f"{counted(report['events'], 'event')}, {counted(wrong, 'violation')}",
    )


def _wide_panels(simulation: Simulation | None) -> list[NetworkPanel]:
    return [] if simulation is None else [NetworkPanel(network_plane(simulation))]


def _panels(report: dict[str, Any], simulation: Simulation | None) -> list[Panel]:
    deliveries, cost = report["deliveries"], report["cost"]
    faults = [Window(fault["at_s"], fault["until_s"], fault["kind"]) for fault in report["faults"]]
    panels: list[Panel] = []
    # A run of streams has no deliveries, and one of content no loss of fidelity.
    if any(deliveries.values()):
        if simulation is not None:
            panels += _over_time(simulation, faults)
        panels.append(
            _bars(
                "deliveries",
                "deliveries",
                {
                    name: float(deliveries[name])
                    for name in ("owed", "made", "extra", "repeated", "duplicates")
                },
                ",.0f",
            )
        )
    if len(report["loss_of_fidelity"]) > 1:
        points = [(point["at_s"], 100.0 * point["loss"]) for point in report["loss_of_fidelity"]]
        panels.append(_line("loss of fidelity", "percent of the time", points, faults))
    megabytes = {kind: size / 1e6 for kind, size in report["bytes"].items()}
    panels += [
        _by_kind("messages by kind", "messages", report["messages"], ",.0f"),
        _by_kind("traffic by kind", "megabytes", megabytes, ",.2f"),
    ]
    if cost["total"] >= COST_SHOWN_MIN:
        named = {
            "as planned": cost,
            "all in the root": cost["all_in_root"],
            "all in the leaves": cost["all_in_leaves"],
        }
        rows = [
            (name, (one["transmission"], one["conversion"]))
            for name, one in named.items()
            if one["total"]
        ]
        figures = [f"{named[name]['total']:,.1f}" for name, _ in rows]
        panels.append(
            Bars(
                "cost", "transmission and conversion", ("transmission", "conversion"), rows, figures
            )
        )
    return panels


def _over_time(simulation: Simulation, faults: Sequence[Window]) -> list[Panel]:
    """Return how many deliveries there were when, and how late the latest was of each time."""
    end_ns = max(simulation.world.now_ns, 1)
    counts, latest = [0] * _WINDOWS, [0.0] * _WINDOWS
    for receipt in simulation.ledger.got.values():
        window = min(receipt.at_ns * _WINDOWS // end_ns, _WINDOWS - 1)
        counts[window] += 1
        delay_s = (receipt.at_ns - receipt.published.sent_ns) / _NS_PER_SECOND
        latest[window] = max(latest[window], delay_s)
    width_s = end_ns / _NS_PER_SECOND / _WINDOWS
    middles = [(k + 0.5) * width_s for k in range(_WINDOWS)]
    rates = [count / width_s for count in counts]
    return [
        _line("deliveries over time", "per second", list(zip(middles, rates, strict=True)), faults),
        _line("longest delay", "seconds", list(zip(middles, latest, strict=True)), faults),
    ]


def _line(
    title: str, axis: str, points: Sequence[tuple[float, float]], faults: Sequence[Window]
) -> Lines:
    return Lines(title, axis, "seconds", [(title, points)], faults)


def _by_kind(title: str, axis: str, amounts: Mapping[str, float], form: str) -> Bars:
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))[:_KINDS_MAX]
    return _bars(title, axis, dict(ranked), form)


def _bars(title: str, axis: str, amounts: Mapping[str, float], form: str) -> Bars:
    rows = [(name, (amount,)) for name, amount in amounts.items()]
    return Bars(title, axis, (title,), rows, [format(amount, form) for amount in amounts.values()])
