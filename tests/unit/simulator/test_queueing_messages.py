"""The queueing model against brokers that really pass messages on, on a small overlay."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

import numpy as np
from tests.stream_worlds import SECOND, StreamNetwork, StreamWorld, broker_name

from distributary.arrays import FloatArray, IntArray
from distributary.broker.addresses import Address
from distributary.broker.settings import StreamSettings, ns
from distributary.broker.telemetry import CopyChanged
from distributary.content.divergence import Version
from distributary.content.tolerance import Tolerance
from distributary.fidelity import FidelityProblem, Forest, build_trees, loss
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import simulate

SERVERS = 12
RATE = 2.0
# Brokers pass every version on, and nothing but versions takes a processor's time.
SETTINGS = StreamSettings(conflate=False, pulse_s=2_000.0, silence_s=9_000.0, fanout=SERVERS)


@dataclass
class DelayedNetwork(StreamNetwork):
    """A network with the delays of a problem."""

    delays_ns: IntArray | None = None

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        assert self.delays_ns is not None
        if "@" in (sender[0], to[0]):
            return (now_ns,)
        return (now_ns + int(self.delays_ns[int(sender, 16), int(to, 16)]),)


def small_overlay(*, busiest: float) -> tuple[FidelityProblem, Forest]:
    """Return a problem whose servers need every update, and a tree with some depth.

    Times are such that the busiest node has the given load.
    """
    drawn = generate_problem(seed=2, servers=SERVERS, routers=40)
    rates = np.full((SERVERS + 1, 1), RATE)
    problem = replace(drawn, rates=rates)
    forest = build_trees(problem, method="random", seed=4).forest
    factor = busiest / loss(problem, forest).loads.max()
    return (
        replace(
            problem,
            filter_times=problem.filter_times * factor,
            send_times=problem.send_times * factor,
        ),
        forest,
    )


def message_delays(
    problem: FidelityProblem, forest: Forest, *, seconds: float, seed: int
) -> FloatArray:
    """Return the mean delay of versions at each broker, shape (nodes,)."""
    rng = random.Random(seed)
    delays_ns = np.round(problem.delays * SECOND).astype(np.int64)
    stream = StreamWorld(
        network=DelayedNetwork(rng, delays_ns=delays_ns), settings=SETTINGS, seed=seed
    )
    parents = forest.parents[0].tolist()
    for node in range(problem.node_count):
        above = broker_name(parents[node]) if node else None
        below = [broker_name(child) for child in range(len(parents)) if parents[child] == node]
        stream.add(broker_name(node), [above], below)
        stream.world.nodes[broker_name(node)].service_ns = {
            "filter": float(problem.filter_times[node]) * SECOND,
            "send": float(problem.send_times[node]) * SECOND,
        }
    for node in range(1, problem.node_count):
        stream.subscribe(broker_name(node), "a", Tolerance("/v", "changes", 1.0))
    stream.run(60.0)
    stream.check_trees()
    changed_ns: dict[int, int] = {}
    late: dict[str, list[float]] = {broker_name(node): [] for node in range(problem.node_count)}

    def watch(broker: str, record: object, now_ns: int) -> None:
        if isinstance(record, CopyChanged):
            late[broker].append((now_ns - changed_ns[record.sequence]) / SECOND)

    def change(number: int) -> None:
        changed_ns[number] = stream.world.now_ns
        stream.change("a", Version(float(number), 1, stream.world.now_ns))

    stream.world.watchers.append(watch)
    at_ns, end_ns, number = stream.world.now_ns, stream.world.now_ns + ns(seconds), 0
    while (at_ns := at_ns + ns(rng.expovariate(RATE))) < end_ns:
        number += 1
        stream.world.at(at_ns, change, number)
    stream.run(seconds + 60.0)
    assert {len(found) for broker, found in late.items() if broker != broker_name(0)} == {number}
    return np.array([np.mean(late[broker_name(node)] or [0.0]) for node in range(len(parents))])


def test_brokers_that_pass_messages_on_have_the_delays_of_the_model() -> None:
    """Leaves only: other brokers report a version when their processor is free again."""
    problem, forest = small_overlay(busiest=0.6)
    leaves = np.setdiff1d(np.arange(1, SERVERS + 1), forest.parents[0])
    assert 4 <= len(leaves) <= 9
    model = simulate(problem, forest, seconds=200_000.0, seed=1).delays[leaves, 0]
    found = [message_delays(problem, forest, seconds=250.0, seed=seed)[leaves] for seed in range(6)]
    errors = np.std(found, axis=0, ddof=1) / math.sqrt(len(found))
    means = np.mean(found, axis=0)
    assert (errors <= 0.12 * model).all()
    assert (np.abs(means - model) <= 4.0 * errors).all()
    # The whole of it is told apart from a model without queues, or with other ones.
    idle = replace(problem, filter_times=np.zeros(13), send_times=np.zeros(13))
    assert means.mean() > 2.0 * loss(idle, forest).delays[leaves, 0].mean()
