"""Many brokers in one process and virtual time, with faults and checkers.

`read_scenario` reads what is to happen, `Simulation` lets it happen, and `report_of` says what
it came to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand

if TYPE_CHECKING:
    from distributary.simulator.deliveries import DeliveryRow, deliveries_of, write_deliveries
    from distributary.simulator.draw import draw_run
    from distributary.simulator.policies import compared_report, comparison_lines
    from distributary.simulator.report import report_of, summary_lines
    from distributary.simulator.scenario import (
        AdaptationTable,
        ContentTable,
        Fault,
        OverlayTable,
        Scenario,
        Shift,
        WorkloadTable,
    )
    from distributary.simulator.scenario_file import read_scenario, scenario_from
    from distributary.simulator.simulation import Simulation

__all__ = [
    "AdaptationTable",
    "ContentTable",
    "DeliveryRow",
    "Fault",
    "OverlayTable",
    "Scenario",
    "Shift",
    "Simulation",
    "WorkloadTable",
    "compared_report",
    "comparison_lines",
    "deliveries_of",
    "draw_run",
    "read_scenario",
    "report_of",
    "scenario_from",
    "summary_lines",
    "write_deliveries",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "deliveries": ("DeliveryRow", "deliveries_of", "write_deliveries"),
        "draw": ("draw_run",),
        "policies": ("compared_report", "comparison_lines"),
        "report": ("report_of", "summary_lines"),
        "scenario": (
            "AdaptationTable",
            "ContentTable",
            "Fault",
            "OverlayTable",
            "Scenario",
            "Shift",
            "WorkloadTable",
        ),
        "scenario_file": ("read_scenario", "scenario_from"),
        "simulation": ("Simulation",),
    },
)
