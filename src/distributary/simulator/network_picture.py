"""The network of a run as a picture: where brokers stand, what they carried and converted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from distributary.arrays import IntArray
from distributary.drawing.plane import Plane, heaviest_links
from distributary.errors import counted
from distributary.simulator.simulation import Simulation
from distributary.wiring.layout import around_places, metric_places
from distributary.wiring.positions import Positions

__all__ = ["network_plane"]

_LINKS_DRAWN_MAX = 200
# How far clients stand from their home, as a share of the picture.
_APART = 0.062
_BYTES_PER_MEGABYTE = 1e6
_NS_PER_SECOND = 1e9


def network_plane(simulation: Simulation) -> Plane:
    """Return what a picture of the network of a run that is over shows.

    A broker is larger the more bytes it has sent and received. Its ring is the share of the run for
    which it was converting, its number how many conversions it ran. Clients stand at their homes,
    and lines are what brokers have sent each other.
    """
    places, world = simulation.places, simulation.world
    count = len(places.identifiers)
    index = {name: k for k, name in enumerate(places.identifiers)}
    points = places.points
    if points is None:
        delays = places.delays_ns.astype(np.float64)
        points = metric_places(0.5 * (delays + delays.T))
    carried, between = np.zeros(count), np.zeros((count, count))
    for (sender, to), size in simulation.network.sent_bytes():
        ends = [index[end] for end in (sender, to) if end in index]
        carried[ends] += size / _BYTES_PER_MEGABYTE
        if len(ends) == 2 and sender != to:
            between[min(ends), max(ends)] += size / _BYTES_PER_MEGABYTE
    runs = Counter(index[one.broker] for one in world.conversions)
    busy_s = np.zeros(count)
    for one in world.conversions:
        busy_s[index[one.broker]] += one.seconds
    shares = busy_s * _NS_PER_SECOND / max(world.now_ns, 1)
    clients = _clients(simulation, index)
    homes, together = np.flatnonzero(clients), clients[clients > 0]
    stand = around_places(Positions(points[homes], points), homes, together, apart=_APART)
    links = heaviest_links(between, _LINKS_DRAWN_MAX)
    rates = between[links[:, 0], links[:, 1]]
    ranks = homes[np.lexsort((homes, -carried[homes]))]
    faults = _faults(simulation, index)
    return Plane(
        title="Network",
        subtitle=f"{counted(count, 'broker')}, {counted(int(clients.sum()), 'client')}",
        hub_noun="broker",
        point_noun="client",
        full_noun="share of the time spent converting",
        hubs=places.names,
        points=tuple(counted(int(clients[b]), "client") for b in homes.tolist()),
        hub_places=points,
        point_places=stand.users,
        hub_of=homes,
        counts=together,
        sizes=carried / max(float(carried.max(initial=0.0)), np.finfo(np.float64).tiny),
        fills=np.clip(shares, 0.0, 1.0) if runs else np.full(count, np.nan),
        ranks=ranks,
        hub_details=tuple(
            (
                *(() if places.names is places.identifiers else (places.identifiers[b],)),
                counted(int(clients[b]), "client"),
                f"{carried[b]:,.1f} MB",
                f"{counted(runs[b], 'conversion')} in {busy_s[b]:,.1f} s",
                *faults.get(b, ()),
            )
            for b in range(count)
        ),
        point_details=tuple((f"at {places.names[b]}",) for b in homes.tolist()),
        links=links,
        link_sizes=rates / max(float(rates.max(initial=0.0)), np.finfo(np.float64).tiny),
        link_details=tuple((f"{rate:,.1f} MB",) for rate in rates.tolist()),
        legend_columns=(),
        legend_cells=tuple(() for _ in ranks),
        badges=tuple(f"{runs[b]:,}" if runs[b] else "" for b in range(count)),
        badge_noun="so many conversions ran there",
    )


def _clients(simulation: Simulation, index: dict[str, int]) -> IntArray:
    """Return how many clients each broker is the home of at the end."""
    homes = [
        index[client.home]
        for client in (*simulation.content.subscribers, *simulation.streams.followers)
    ]
    return np.bincount(np.array(homes, dtype=np.int64), minlength=len(index)).astype(np.int64)


def _faults(simulation: Simulation, index: dict[str, int]) -> dict[int, list[str]]:
    """Return what went wrong at which broker, and when."""
    found: dict[int, list[str]] = {}
    for planned in simulation.faults.planned:
        fault = planned.fault
        for broker in planned.brokers if fault.after is None else ():
            said = f"{fault.kind} from {fault.at_s:g} to {planned.until_s:g} s"
            found.setdefault(index[broker], []).append(said)
    return found
