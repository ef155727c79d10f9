"""Capacities: whether everybody can fit, and how to make room for those left over."""

from __future__ import annotations

import importlib.util

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.errors import InfeasiblePlan, quoted
from distributary.wiring._capacity_kernels import fill_tightly, relieve, try_all
from distributary.wiring._packing_kernels import pack
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import ROUNDING

__all__ = ["check_feasible", "make_room", "room_limits"]

# How much is spent on each attempt to relieve brokers: comparisons of two users, and random
# swaps between the attempts of one start.
_COMPARISONS_MAX = 200_000_000
_KICKS = 200
# Up to so many users all ways are tried, as far as the steps go; beyond, hardly any instance
# is decided by that.
_TRIED_USERS_MAX = 40
_TRIED_STEPS_MAX = 10_000_000
# The largest integer program (users times brokers) that is tried, and how far. A limit on
# time would let the same seed end differently.
_PROGRAM_CELLS_MAX = 4_000
_PROGRAM_NODES_MAX = 20_000


def room_limits(problem: WiringProblem) -> FloatArray:
    """Return how much each broker may be filled.

    Half of what rounding is allowed to add: loads are added up in another order later.
    """
    return np.asarray(problem.capacities * (1.0 + 0.5 * ROUNDING))


def check_feasible(problem: WiringProblem) -> None:
    """Raise `InfeasiblePlan` when it is plain that not everybody can fit.

    The users of at least some size must fit into the brokers of at least that size. For the
    smallest user, that is all demand and all capacity; for the largest, the largest broker.
    Passing does not mean that everybody fits: that question is bin packing.
    """
    demands, capacities = problem.demands, problem.capacities
    if not len(demands):
        return
    offered = float(capacities.sum())
    total = float(demands.sum())
    if total > offered * (1.0 + ROUNDING):
        raise InfeasiblePlan(
            f"all users together have {total:.6g} of traffic, all brokers together a capacity "
            f"of {offered:.6g}: short by {total - offered:.6g}",
            shortfall=total - offered,
        )
    largest = int(np.argmax(demands))
    most = float(capacities.max())
    if demands[largest] > most * (1.0 + ROUNDING):
        raise InfeasiblePlan(
            f"user {quoted(problem.users[largest])} has {demands[largest]:.6g} of traffic, the "
            f"largest broker a capacity of {most:.6g}: short by {demands[largest] - most:.6g}",
            shortfall=float(demands[largest] - most),
        )
    order = np.sort(demands)[::-1]
    together = np.cumsum(order)
    sizes = np.sort(capacities * (1.0 + ROUNDING))[::-1]
    # How many brokers are as large as each user, and what those hold together.
    enough = np.searchsorted(-sizes, -order, side="right")
    holds = np.concatenate([[0.0], np.cumsum(sizes)])[enough]
    short = together - holds
    if (short > ROUNDING * together).any():
        count = int(np.argmax(short)) + 1
        large = int(enough[count - 1])
        roomy = "only broker" if large == 1 else f"{large:,} brokers"
        raise InfeasiblePlan(
            f"the {count:,} largest users have {together[count - 1]:.6g} of traffic, the {roomy} "
            f"large enough for the smallest of them a capacity of {holds[count - 1]:.6g}: "
            f"short by {short[count - 1]:.6g}",
            shortfall=float(short[count - 1]),
        )


def make_room(problem: WiringProblem, broker_of: IntArray, *, seed: int = 0) -> IntArray:
    """Return a wiring in which users without a broker have one, too.

    First others make room: of all moves of one user and swaps of two that relieve an
    overloaded broker, the one that costs least access. When that does not suffice, the
    same is tried from two other starts: the heaviest users first, each at the cheapest
    broker with room, and best-fit decreasing, which looks at room alone. Small instances
    are then decided by trying all ways, and by an integer program when HiGHS is installed.

    `broker_of` is -1 for users without a broker; the others respect the capacities. `seed` decides
    which users swap when nothing helps directly. Raises `InfeasiblePlan` when no wiring is found;
    the message says whether it is proven that there is none.
    """
    if (broker_of >= 0).all():
        return broker_of
    check_feasible(problem)
    limits = room_limits(problem)
    demands, prices = problem.demands, problem.access_prices
    heaviest = np.argsort(-demands, kind="stable")
    rng = np.random.default_rng(seed)
    shortfall = np.inf
    for start in ("given", "cheapest", "tightest"):
        settled = np.full(problem.user_count, -1, dtype=np.int64)
        loads = np.zeros(problem.broker_count)
        if start == "given":
            settled[:] = broker_of
            placed = settled >= 0
            loads += np.bincount(
                settled[placed], weights=demands[placed], minlength=problem.broker_count
            )
        if start != "tightest":
            pack(heaviest[settled[heaviest] < 0], prices, demands, limits, loads, settled)
        fill_tightly(heaviest[settled[heaviest] < 0], demands, limits, loads, settled)
        numbers = rng.random((_KICKS, problem.broker_count, 2))
        over = relieve(demands, limits, prices, loads, settled, numbers, _COMPARISONS_MAX)
        if over == 0.0:
            return settled
        shortfall = min(shortfall, over)
    settled = np.full(problem.user_count, -1, dtype=np.int64)
    verdict = -1
    if problem.user_count <= _TRIED_USERS_MAX:
        verdict = try_all(heaviest, demands, limits, settled, _TRIED_STEPS_MAX)
    if verdict < 0 and demands.size * limits.size <= _PROGRAM_CELLS_MAX:
        verdict = _try_program(problem, settled)
    if verdict == 1:
        return settled
    raise InfeasiblePlan(
        "no wiring found that respects the capacities: the best attempt is short by "
        f"{shortfall:.6g}; that there is none is {'proven' if verdict == 0 else 'not proven'}",
        shortfall=shortfall,
    )


def _try_program(problem: WiringProblem, broker_of: IntArray) -> int:
    """Let HiGHS decide, if it is installed; the result is that of `try_all`."""
    if importlib.util.find_spec("highspy") is None:
        return -1
    import highspy

    users, brokers = problem.user_count, problem.broker_count
    limits = room_limits(problem)
    # In units of the largest user, for the tolerances of the solver are absolute.
    unit = float(problem.demands.max())
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("mip_max_nodes", _PROGRAM_NODES_MAX)
    model.setOptionValue("primal_feasibility_tolerance", 1e-10)
    model.setOptionValue("mip_feasibility_tolerance", 1e-10)
    cells = np.arange(users * brokers, dtype=np.int32)
    for _ in cells:
        model.addCol(0.0, 0.0, 1.0, 0, [], [])
    for cell in cells:
        model.changeColIntegrality(int(cell), highspy.HighsVarType.kInteger)
    for u in range(users):
        model.addRow(1.0, 1.0, brokers, cells[u * brokers : (u + 1) * brokers], np.ones(brokers))
    for b in np.flatnonzero(np.isfinite(limits)).tolist():
        model.addRow(
            -highspy.kHighsInf, limits[b] / unit, users, cells[b::brokers], problem.demands / unit
        )
    model.run()
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return 0
    values = np.array(model.getSolution().col_value).reshape(-1, brokers)
    if len(values) != users:
        return -1
    broker_of[:] = values.argmax(axis=1)
    carried = np.bincount(broker_of, weights=problem.demands, minlength=brokers)
    return 1 if bool((carried <= limits).all()) else -1
