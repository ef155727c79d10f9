"""Random fidelity problems like those of the published experiments.

Zhou, Ooi and Tan, sections 5.1 and 5.3: 256 servers in a network of 3,500 routers with a
mean delay of 20 ms, filtering and sending times drawn evenly around 5 ms and 1 ms, and an
enterprise-class source with the least of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distributary.arguments import check_count, check_within, checked
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput
from distributary.fidelity.problem import Adaptation, FidelityProblem
from distributary.fidelity.problem_file import CELLS_MAX, NODES_MAX, OBJECTS_MAX
from distributary.topology.routers import ROUTERS, server_delays

__all__ = ["LOAD_MIN", "PAPER_ADAPTATION", "SERVERS", "generate_problem"]

SERVERS = 256
SOURCE = "source"
FILTER_TIME_MIN, FILTER_TIME_MEAN = 0.001, 0.005
SEND_TIME_MIN, SEND_TIME_MEAN = 0.000125, 0.001
LOAD_MIN = FILTER_TIME_MIN / FILTER_TIME_MEAN
"""Below this, the mean filtering time would be less than the least one."""
PAPER_ADAPTATION = Adaptation(
    collect_time=1e-6, collect_period=50.0, decide_time=1e-6, decide_period=200.0
)
"""What adapting costs in the published experiments: sections 5.1 and 5.2."""

_LOAD_MAX = 1e6
_RATE_MIN, _RATE_MAX = 1e-9, 1e9
_ONE_OBJECT_RATES = (0.5, 1.5)
_MANY_OBJECTS_RATES = (0.01, 0.03)
# Delays are rounded to nanoseconds: a matrix of them in a file is then half as long.
_DELAY_DIGITS = 9


@checked
def generate_problem(
    *,
    seed: int,
    servers: int | None = None,
    routers: int | None = None,
    objects: int = 1,
    load: float = 1.0,
    interest: float = 1.0,
    rates: tuple[float, float] | None = None,
    delays: FloatArray | None = None,
    places: Sequence[str] | None = None,
    chosen: IntArray | None = None,
    adaptation: Adaptation | None = None,
) -> FidelityProblem:
    """Return a random problem; the same arguments give the same problem.

    Problems of one seed that differ only in load have the same network, and the same
    servers are slow in all of them.

    Parameters
    ----------
    seed
        Not negative.
    servers
        How many servers there are beside the source: 256, or with `delays` as many as
        there are places for.
    routers
        How many routers the network has, 3,500 unless given; not with `delays`.
    objects
        How many objects there are.
    load
        Multiplies the mean of the filtering and sending times of the servers, but not
        the least of them, and not those of the source; at least `LOAD_MIN`.
    interest
        The probability that a server wants an object; it always wants at least one.
    rates
        The least and the largest rate of updates per second; 0.5 to 1.5 for one object
        and 0.01 to 0.03 for several. The source has the largest for every object.
    delays
        Seconds between the places where servers can stand, of which as many as needed
        are chosen at random; shape (places, places). Without it they stand in a network
        of routers, see `distributary.topology.routers.server_delays`.
    places
        The names of the places, which the servers then have; with `delays` only.
    chosen
        Which of the places have a server, the source's first, instead of random ones.
    adaptation
        What keeping the tree adapted costs, if that counts.
    """
    check_count("seed", seed)
    if delays is not None:
        if routers is not None:
            raise BadInput("routers", "cannot be combined with given delays")
        assert delays.shape == (len(delays), len(delays))
        assert places is None or len(places) == len(delays)
        if len(delays) < 2:
            raise BadInput("delays", "has fewer than two places: a source and one server")
        if chosen is not None:
            if servers is not None:
                raise BadInput("servers", "cannot be combined with places that are chosen")
            servers = len(chosen) - 1
        servers = min(len(delays), NODES_MAX) - 1 if servers is None else servers
        if servers > len(delays) - 1:
            raise BadInput(
                "servers",
                f"is {servers:,}, and there are {len(delays):,} places for them and the source",
            )
    servers = SERVERS if servers is None else servers
    _check(servers, objects, load, interest)
    least, largest = _rate_range(rates, objects)
    network_rng, time_rng, rate_rng, interest_rng = np.random.default_rng(seed).spawn(4)

    # Which of the places is the source is as random as the rest: it comes first here.
    names: list[str]
    width = len(str(servers))
    if delays is None:
        between = server_delays(
            servers + 1,
            network_rng,
            router_count=ROUTERS if routers is None else routers,
        ).round(_DELAY_DIGITS)
        names = [SOURCE, *(f"n{server:0{width}d}" for server in range(1, servers + 1))]
    else:
        width = len(str(len(delays) - 1))
        if chosen is None:
            chosen = network_rng.permutation(len(delays))[: servers + 1]
        between = delays[np.ix_(chosen, chosen)].round(_DELAY_DIGITS)
        names = [f"n{at:0{width}d}" if places is None else places[at] for at in chosen.tolist()]
    filter_times = _times(FILTER_TIME_MIN, FILTER_TIME_MEAN * load, servers, time_rng)
    send_times = _times(SEND_TIME_MIN, SEND_TIME_MEAN * load, servers, time_rng)
    shape = (servers + 1, objects)
    wanted = _wishes(shape, interest, interest_rng)
    return FidelityProblem.in_order(
        names=names,
        source=names[0],
        objects=_object_names(objects),
        rates=_rates(wanted, least, largest, rate_rng),
        filter_times=filter_times,
        send_times=send_times,
        delays=between,
        adaptation=adaptation,
    )


def _check(servers: int, objects: int, load: float, interest: float) -> None:
    """Raise `BadInput` for whatever is out of range."""
    check_within("servers", servers, 1, NODES_MAX - 1)
    check_within("objects", objects, 1, min(OBJECTS_MAX, CELLS_MAX // (servers + 1)))
    check_within("load", load, LOAD_MIN, _LOAD_MAX)
    check_within("interest", interest, 0.0, 1.0)


def _rate_range(rates: tuple[float, float] | None, objects: int) -> tuple[float, float]:
    """Return the least and the largest rate."""
    if rates is None:
        return _ONE_OBJECT_RATES if objects == 1 else _MANY_OBJECTS_RATES
    least, largest = rates
    if not _RATE_MIN <= least <= largest <= _RATE_MAX:
        raise BadInput(
            "rates",
            f"are from {least:g} to {largest:g}, and must rise within "
            f"{_RATE_MIN:g} to {_RATE_MAX:g}",
        )
    return float(least), float(largest)


def _times(least: float, mean: float, servers: int, rng: np.random.Generator) -> FloatArray:
    """Return even draws around a mean for the servers, and the least for the source."""
    return np.concatenate(([least], least + 2.0 * (mean - least) * rng.random(servers)))


def _wishes(shape: tuple[int, int], interest: float, rng: np.random.Generator) -> BoolArray:
    """Return which node wants which object; the source is the first and wants nothing."""
    wanted: BoolArray = rng.random(shape) < interest
    # Whoever would want nothing wants one object all the same.
    fallback = rng.integers(shape[1], size=shape[0])
    idle = np.flatnonzero(~wanted.any(axis=1))
    wanted[idle, fallback[idle]] = True
    return wanted


def _rates(wanted: BoolArray, least: float, largest: float, rng: np.random.Generator) -> FloatArray:
    """Return the rate of every object at every node, 0 where it is not wanted."""
    drawn = least + (largest - least) * rng.random(wanted.shape)
    rates: FloatArray = np.where(wanted, drawn, 0.0)
    rates[0] = largest
    return rates


def _object_names(objects: int) -> list[str]:
    width = len(str(objects))
    return [f"o{x:0{width}d}" for x in range(1, objects + 1)]
