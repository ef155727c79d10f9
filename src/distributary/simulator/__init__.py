"""Many brokers in one process and virtual time, with faults and checkers.

`read_scenario` reads what is to happen, `Simulation` lets it happen, and `report_of` says what
it came to.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributary.simulator.policies import compared_report, comparison_lines
    from distributary.simulator.report import report_of, summary_lines
    from distributary.simulator.scenario_file import read_scenario
    from distributary.simulator.simulation import Simulation

__all__ = [
    "Simulation",
    "compared_report",
    "comparison_lines",
    "read_scenario",
    "report_of",
    "summary_lines",
]

_HOMES = {
    "Simulation": "simulation",
    "compared_report": "policies",
    "comparison_lines": "policies",
    "read_scenario": "scenario_file",
    "report_of": "report",
    "summary_lines": "report",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
