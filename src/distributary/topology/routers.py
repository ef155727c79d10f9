"""Networks like the Internet's routers, and servers that stand in them.

A few routers have very many links and most have few: a power law, which follows when
every new router links to old ones in proportion to the links that they have already. It
stands in for the topology generator Inet that published experiments used.
"""

from __future__ import annotations

import numpy as np

from distributary.arguments import check_within
from distributary.arrays import FloatArray, IntArray
from distributary.topology.network import Network

__all__ = ["DELAY_MEAN", "ROUTERS", "ROUTERS_MAX", "power_law_network", "server_delays"]

ROUTERS = 3_500
ROUTERS_MAX = 50_000
DELAY_MEAN = 0.020

_LINKS_PER_ROUTER = 2
# How long the link between a server and a router that it shares may be, in sides of the
# square in which the routers stand.
_ACCESS_MAX = 0.05


def power_law_network(router_count: int, rng: np.random.Generator) -> Network:
    """Return a connected network of routers whose numbers of links follow a power law.

    Every router beyond the first two links to two others, chosen in proportion to the
    links that they have. Routers stand at random in the unit square, and the delay of a
    link is its length there.

    There are from 2 to `ROUTERS_MAX` routers.
    """
    check_within("routers", router_count, 2, ROUTERS_MAX)
    coordinates = rng.random((router_count, 2))
    # A router stands in `ends` once for every link it has, so that a random entry is a
    # router in proportion to its links.
    ends = [0, 1]
    for router, chances in enumerate(rng.random((router_count - 2, _LINKS_PER_ROUTER)), start=2):
        chosen: list[int] = []
        for chance in chances.tolist():
            at = int(chance * len(ends))
            while ends[at] in chosen:
                at = (at + 1) % len(ends)
            chosen.append(ends[at])
        for neighbour in chosen:
            ends += (router, neighbour)
    links = np.array(ends, dtype=np.int64).reshape(-1, 2)
    apart = coordinates[links[:, 0]] - coordinates[links[:, 1]]
    width = len(str(router_count - 1))
    names = tuple(f"r{router:0{width}d}" for router in range(router_count))
    return Network(names, links, np.hypot(apart[:, 0], apart[:, 1]))


def server_delays(
    server_count: int,
    rng: np.random.Generator,
    *,
    router_count: int = ROUTERS,
    delay_mean: float = DELAY_MEAN,
) -> FloatArray:
    """Return the delays between servers that stand in a network of routers.

    Servers stand on routers of their own as long as there are enough; a delay is then
    that of the quickest path between the two routers. More servers than that spread
    evenly over all routers, each behind an access link that adds to all of its delays:
    a path from every router takes seconds even where a path from every server would
    take minutes.

    Returns seconds from each server to each other, 0 on the diagonal, the same in both directions,
    scaled so that their mean over all pairs is `delay_mean`, shape (servers, servers). A source, if
    there is one, is among the servers.
    """
    assert server_count >= 1
    network = power_law_network(router_count, rng)
    if server_count <= router_count:
        homes = rng.choice(router_count, size=server_count, replace=False)
        delays = network.delays_between(homes)
    else:
        homes = _spread(server_count, router_count, rng)
        access = rng.uniform(0.0, _ACCESS_MAX, server_count)
        delays = network.delays_between(np.arange(router_count))[np.ix_(homes, homes)]
        for row, own in zip(delays, access, strict=True):
            row += own + access
        np.fill_diagonal(delays, 0.0)
    if server_count > 1:
        delays *= delay_mean / (float(delays.sum()) / (server_count * (server_count - 1)))
    return delays


def _spread(server_count: int, router_count: int, rng: np.random.Generator) -> IntArray:
    """Return a router for every server, no router with two more servers than another."""
    rounds = -(-server_count // router_count)
    homes = np.concatenate([rng.permutation(router_count) for _ in range(rounds)])
    return homes[:server_count]
