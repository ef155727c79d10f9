"""Wirings by name: who is at which broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.arguments import check_type, no_such_name

if TYPE_CHECKING:
    from distributary.wiring.wiring import Wiring

__all__ = ["broker_named", "user_columns", "users_at"]


def users_at(wiring: Wiring, broker: str) -> tuple[str, ...]:
    """Return the users of the broker of this name."""
    problem = wiring.problem
    check_type("broker", broker, str)
    if broker not in problem.brokers:
        raise no_such_name("broker", broker, problem.brokers, "a broker of the problem")
    users = np.flatnonzero(wiring.broker_of == problem.brokers.index(broker))
    return tuple(problem.users[u] for u in users.tolist())


def broker_named(wiring: Wiring, user: str) -> str:
    """Return the broker of the user of this name."""
    problem = wiring.problem
    check_type("user", user, str)
    if user not in problem.users:
        raise no_such_name("user", user, problem.users, "a user of the problem")
    return problem.brokers[int(wiring.broker_of[problem.users.index(user)])]


def user_columns(wiring: Wiring) -> dict[str, list[object]]:
    """Return a row per user: its broker, what it sends and gets, and what its access costs."""
    problem = wiring.problem
    prices = problem.access_prices[np.arange(problem.user_count), wiring.broker_of]
    return {
        "user": list(problem.users),
        "broker": [problem.brokers[b] for b in wiring.broker_of.tolist()],
        "sent": problem.sent.tolist(),
        "received": problem.received.tolist(),
        "access_price": prices.tolist(),
        "access_cost": (prices * problem.demands).tolist(),
    }
