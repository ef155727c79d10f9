"""The clients of a run that publish content and ask for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from distributary.broker.blob import Blob
from distributary.broker.settings import ns
from distributary.content import Subscription
from distributary.content.subscription import SubscriptionConfig
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.network import SimulatedNetwork
from distributary.simulator.places import Places
from distributary.simulator.scenario import PERIOD_S_MIN, Scenario
from distributary.simulator.workload.interests import Interests, profile
from distributary.simulator.workload.publisher import Publisher
from distributary.simulator.workload.subscriber import Subscriber
from distributary.simulator.world import World

__all__ = ["ContentClients", "source_format"]

# Clients do not all come in the same instant.
_ARRIVAL_SHARE = 0.4
# By how much later the same is published again, at most.
_TWIN_LATE_S = 2.0
_MEGABYTE = 1e6
# Nothing ends while it is being registered.
_EXPIRES_S_MIN = 5.0


class ContentClients:
    """Subscribers and publishers, and all that they do."""

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        ledger: Ledger,
        places: Places,
        network: SimulatedNetwork,
        rng: random.Random,
    ) -> None:
        brokers = places.identifiers
        self._world = world
        self._scenario = scenario
        self._rng = rng
        self._ledger = ledger
        workload = scenario.workload
        self._interests = Interests(
            matching=workload.matching, types=workload.types, skew=workload.skew, rng=rng
        )
        self._source = source_format(scenario)
        homes = rng.sample(list(brokers), len(brokers))
        count = len(brokers) if workload.subscriptions is None else workload.subscriptions
        if not (workload.publications or workload.storm_publications):
            count = 0 if workload.subscriptions is None else count
        self.subscribers = [
            Subscriber(world, f"s{k:05d}", homes[k % len(homes)], ledger) for k in range(count)
        ]
        if workload.register_prices:
            for subscriber in self.subscribers:
                ends = rng.randrange(len(brokers)), rng.randrange(len(brokers))
                access = places.access(*ends, rng.random())
                network.place(subscriber.address, access)
                prices = zip(brokers, access.prices.tolist(), strict=True)
                subscriber.prices = tuple(sorted(prices))
        self.publishers = [
            Publisher(world, f"p{k:05d}", rng.choice(brokers), f"/publisher/{k}", ledger)
            for k in range(workload.publishers)
        ]

    def schedule(self) -> None:
        """Have everybody do everything at its time."""
        self._schedule_subscriptions()
        workload = self._scenario.workload
        if workload.advertise and self.publishers:
            seconds = max(workload.duration_s - workload.begin_s, PERIOD_S_MIN)
            per_s = workload.publications / seconds / len(self.publishers)
            rates = self._interests.rates(self._scenario.settings.space, per_s)
            for publisher in self.publishers:
                self._world.at(0, publisher.advertise, rates)
        self._schedule_publications()

    def _schedule_subscriptions(self) -> None:
        rng, workload = self._rng, self._scenario.workload
        formats = self._scenario.settings.graph_for(round(_MEGABYTE)).names
        begin, end = ns(workload.begin_s), ns(workload.duration_s)
        for subscriber in self.subscribers:
            document: dict[str, object] = {
                # Everybody's own: ids are not shared by clients.
                "id": "reports",
                "filters": self._interests.filters(),
            }
            if formats and rng.random() >= workload.originals:
                document["profile"] = profile(formats, rng)
            subscription = Subscription.parse(document)
            at_ns = round(rng.random() * begin * _ARRIVAL_SHARE)
            if rng.random() < workload.late:
                at_ns = round(rng.uniform(begin, begin + 0.7 * (end - begin)))
            chance, middle = rng.random(), (begin + end) / 2
            if chance < workload.unsubscribing:
                later_ns = round(rng.uniform(max(at_ns, middle), end))
                self._world.at(later_ns, subscriber.unsubscribe, subscription.id)
            elif chance < workload.unsubscribing + workload.expiring:
                # Early enough for something to be published after that.
                expires_s = rng.uniform(at_ns, max(at_ns, middle)) / 1e9 + _EXPIRES_S_MIN
                config = SubscriptionConfig(expires_s=expires_s)
                subscription = replace(subscription, config=config)
            elif chance < workload.unsubscribing + workload.expiring + workload.stuck:
                later_ns = round(rng.uniform(at_ns, max(at_ns, middle))) + ns(_EXPIRES_S_MIN)
                self._world.at(later_ns, subscriber.get_stuck)
            self._world.at(at_ns, subscriber.subscribe, subscription)
            if workload.changing and rng.random() < workload.changing:
                for _ in range(workload.changes):
                    change = self._changed(subscription, formats)
                    later_ns = round(rng.uniform(max(at_ns, begin), end))
                    self._world.at(later_ns, subscriber.change, change)

    def _changed(self, subscription: Subscription, formats: Sequence[str]) -> Subscription:
        """Return a subscription to something else, and sometimes for another device."""
        rng = self._rng
        document = subscription.document()
        document["filters"] = self._interests.filters()
        if formats and rng.random() < 0.5:
            document["profile"] = profile(formats, rng)
        return Subscription.parse(document)

    def _schedule_publications(self) -> None:
        rng, workload = self._rng, self._scenario.workload
        times = sorted(
            ns(rng.uniform(workload.begin_s, workload.duration_s))
            for _ in range(workload.publications)
        )
        times += [ns(workload.storm_at_s)] * workload.storm_publications
        for number, at_ns in enumerate(sorted(times)):
            publisher = rng.choice(self.publishers)
            has_content = self._source is not None and rng.random() < self._scenario.content.share
            identifier = f"event-{number:07d}"
            publication = self._interests.event(
                source=publisher.source,
                identifier=identifier,
                now_ns=at_ns,
                media_type=self._source if has_content else None,
            )
            blob = None
            if has_content:
                assert self._source is not None
                low, high = self._scenario.content.megabytes
                # Few sizes, so that graphs for them are made once.
                steps = round(rng.random() * 16.0) / 16.0
                size_bytes = round((low + (high - low) * steps) * _MEGABYTE)
                blob = Blob.imagined(self._source, size_bytes, identifier)
            self._world.at(at_ns, publisher.publish, publication, blob)
            if workload.twins and rng.random() < workload.twins:
                self._ledger.has_twin(publication.identity)
                twin = rng.choice([one for one in self.publishers if one is not publisher])
                later_ns = at_ns + ns(rng.random() * _TWIN_LATE_S)
                self._world.at(later_ns, twin.publish, publication, blob)


def source_format(scenario: Scenario) -> str | None:
    """Return the format in which content is published; None when there is no content.

    Unless the scenario says, it is the one from which most others can be made, and the
    largest of these.
    """
    if scenario.content.source is not None:
        return scenario.content.source
    graph = scenario.settings.graph_for(round(_MEGABYTE))
    if not graph.names:
        return None
    counts = graph.makeable.sum(axis=1).tolist()
    best = max(range(len(counts)), key=lambda k: (counts[k], float(graph.sizes[k]), -k))
    return graph.names[best]
