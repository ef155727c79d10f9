"""Are two wiring problems the same, number for number?"""

from __future__ import annotations

import numpy as np

from distributary.wiring.problem import WiringProblem

__all__ = ["same_wiring_problem"]


def same_wiring_problem(one: WiringProblem, other: WiringProblem) -> bool:
    return (
        one.users == other.users
        and one.brokers == other.brokers
        and one.channel_count == other.channel_count
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in (
                "publish_start",
                "publish_channel",
                "publish_rate",
                "interest_start",
                "interest_channel",
                "access_prices",
                "core_prices",
                "capacities",
            )
        )
    )
