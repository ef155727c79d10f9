"""What clients gain who are moved: their wiring, by the cost that planners have for one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.scenario.keeping import check_kept

from distributary.filters import Filter, cells
from distributary.simulator import Simulation, read_scenario
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem

SCENARIOS = Path(__file__).parents[2] / "scenarios"


class Wired:
    """The clients of a run as users of a wiring problem, by what was really published."""

    def __init__(self, simulation: Simulation) -> None:
        self.brokers = sorted(simulation.places.identifiers)
        self._column = {broker: k for k, broker in enumerate(self.brokers)}
        content = simulation.content
        self.subscribers, self.publishers = content.subscribers, content.publishers
        published: Counter[tuple[str, int]] = Counter()
        for entry in simulation.ledger.published.values():
            published[entry.identity.source, entry.cell] += entry.size_bytes
        places = sorted({cell for _, cell in published})
        users = [*self.subscribers, *self.publishers]
        access = np.zeros((len(users), len(self.brokers)))
        subscribes = np.zeros((len(users), len(places)), dtype=np.bool_)
        for row, subscriber in enumerate(self.subscribers):
            prices = dict(subscriber.prices)
            access[row] = [prices[broker] for broker in self.brokers]
            for wanted in subscriber._wanted.values():
                asked = Filter.parse(list(wanted.filters))
                inside = cells(asked, simulation.scenario.settings.space)
                subscribes[row] |= np.isin(places, inside)
        rows: list[list[int]] = [[0] * len(places) for _ in self.subscribers]
        rows += [[published[p.source, cell] for cell in places] for p in self.publishers]
        order = [simulation.places.identifiers.index(broker) for broker in self.brokers]
        core = simulation.places.link_costs[np.ix_(order, order)] * (1.0 - np.eye(len(order)))
        self._problem = WiringProblem.in_order(
            users=[f"{row:05d}" for row in range(len(users))],
            brokers=self.brokers,
            publishes=np.array(rows, dtype=np.float64),
            subscribes=subscribes,
            access_prices=access,
            core_prices=core,
        )

    def nearest(self) -> list[str]:
        """Where access is cheapest for each subscriber."""
        return [
            min(subscriber.prices, key=lambda one: (one[1], one[0]))[0]
            for subscriber in self.subscribers
        ]

    def cost(self, homes: list[str]) -> float:
        """What it costs to have the subscribers at these brokers."""
        everybody = [*homes, *(publisher.home for publisher in self.publishers)]
        return cost(self._problem, np.array([self._column[home] for home in everybody])).total


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_clients_move_to_where_their_content_is_and_not_only_to_the_nearest_broker(
    seed: int,
) -> None:
    simulation = Simulation(read_scenario(SCENARIOS / "mass-migration.toml"), seed=seed)
    before = [subscriber.home for subscriber in simulation.content.subscribers]
    simulation.run()
    report = check_kept(simulation)
    assert 0 < report["migrations_to_nearest"] < report["migrations"]
    wired = Wired(simulation)
    homes = [subscriber.home for subscriber in wired.subscribers]
    total, nearest = wired.cost(homes), wired.nearest()
    assert total < 0.5 * wired.cost(before)
    assert total < 1.02 * wired.cost(nearest)
    cheaper = [
        k
        for k, near in enumerate(nearest)
        if homes[k] != near and wired.cost([*homes[:k], near, *homes[k + 1 :]]) > total
    ]
    assert len(cheaper) >= 2, "clients that would cost more at their nearest broker"


def test_brokers_refuse_clients_for_want_of_room_and_of_bandwidth() -> None:
    scenario = read_scenario(SCENARIOS / "narrow-brokers.toml")
    simulation = Simulation(scenario, seed=1)
    content = simulation.content
    before = Counter(client.home for client in (*content.subscribers, *content.publishers))
    simulation.run()
    report = check_kept(simulation)
    assert report["migrations"] > 0
    assert report["migrations_refused"].keys() == {"clients", "traffic"}
    assert min(report["migrations_refused"].values()) > 0
    capacity = scenario.settings.migration.capacity
    after = Counter(client.home for client in (*content.subscribers, *content.publishers))
    assert all(count <= max(capacity, before[home]) for home, count in after.items())
