"""Three simple rules: an example of planner methods that plug in to distributary."""

from __future__ import annotations

from distributary_simple_rules.nearest_parent import nearest_parent
from distributary_simple_rules.on_demand import on_demand
from distributary_simple_rules.two_homes import two_homes

__all__ = ["nearest_parent", "on_demand", "two_homes"]
