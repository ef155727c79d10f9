"""The clients of a run that publish content and ask for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from distributary.broker.addresses import Address, Blob, tenant_of
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.settings import PERIOD_S_MIN, ns
from distributary.content import Publication, Subscription
from distributary.content.subscription import SubscriptionConfig
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.network import SimulatedNetwork
from distributary.simulator.places import Places
from distributary.simulator.scenario import Scenario
from distributary.simulator.workload.interests import Interests, profile
from distributary.simulator.workload.publisher import Publisher
from distributary.simulator.workload.subscriber import Subscriber
from distributary.simulator.world import World

__all__ = ["ContentClients", "source_format"]

# Clients do not all come in the same instant.
_ARRIVAL_SHARE = 0.4
# By how much earlier somebody else tries to publish it.
_FOREIGN_EARLY_S = 0.05
# By how much later the same is published again, at most.
_TWIN_LATE_S = 2.0
_MEGABYTE = 1e6
# Nothing ends while it is being registered.
_EXPIRES_S_MIN = 5.0
# How often a host notices that a client is back before the client says something.
_NOTICED = 0.5


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
        publisher_class: type[Publisher] = Publisher,
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
        self.tenants = _tenants(workload.tenants)
        count_of = len(self.tenants)
        # Each home has clients of several tenants.
        self.subscribers = [
            Subscriber(
                world,
                f"s{k:05d}",
                homes[k % len(homes)],
                ledger,
                tenant=self.tenants[(k + k // len(homes)) % count_of],
            )
            for k in range(count)
        ]
        if workload.register_prices:
            for subscriber in self.subscribers:
                subscriber.prices = _prices(subscriber.address, places, network, rng)
        # What tenants publish goes by the same sources and ids, so that nobody may mistake it;
        # but where sources have owners these are different.
        self.publishers = [
            publisher_class(
                world,
                f"p{k:05d}",
                rng.choice(brokers),
                f"{self._prefix(k)}publisher/{k if workload.foreign else k // count_of}",
                ledger,
                pipeline=workload.pipeline,
                tenant=self.tenants[k % count_of],
            )
            for k in range(workload.publishers)
        ]
        self._published: Counter[Publisher] = Counter()
        if workload.publisher_prices:
            for publisher in self.publishers:
                publisher.prices = _prices(publisher.address, places, network, rng)

    def _prefix(self, index: int) -> str:
        """Return what the sources of a tenant begin with."""
        if not self._scenario.workload.foreign:
            return "/"
        return f"/{self.tenants[index % len(self.tenants)]}/"

    @property
    def owners(self) -> tuple[tuple[str, str], ...]:
        """Whose sources are whose, if somebody tries to publish what is another's."""
        if not self._scenario.workload.foreign:
            return ()
        return tuple((self._prefix(k), tenant) for k, tenant in enumerate(self.tenants))

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
        if workload.publisher_prices:
            for publisher in self.publishers:
                self._world.at(0, publisher.tell_prices)
        self._schedule_publications()
        for _ in range(workload.restarts):
            at_ns = ns(self._rng.uniform(workload.begin_s, workload.duration_s))
            self._world.at(at_ns, self._rng.choice(self.publishers).restart)

    def _schedule_subscriptions(self) -> None:
        rng, workload = self._rng, self._scenario.workload
        formats = self._scenario.settings.graph_for(round(_MEGABYTE)).names
        if self._scenario.newer is not None:
            newer = self._scenario.newer.graph_for(round(_MEGABYTE)).names
            formats = tuple(sorted({*formats, *newer}))
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
            # Not those that expire: who asks for one again that is over is refused.
            stays = subscription.config is not None or not workload.away
            if not stays and rng.random() < workload.away:
                length_ns = ns(rng.uniform(*workload.away_s))
                leaves_ns = round(rng.uniform(begin, end - length_ns))
                self._world.at(leaves_ns, subscriber.go_away)
                back = partial(subscriber.come_back, noticed=rng.random() < _NOTICED)
                self._world.at(leaves_ns + length_ns, back)

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
        once = len(self.publishers) >= len(times)
        for number, at_ns in enumerate(sorted(times)):
            publisher = self.publishers[number] if once else rng.choice(self.publishers)
            has_content = self._source is not None and rng.random() < self._scenario.content.share
            identifier = self._identifier(publisher, number)
            source = publisher.source
            if workload.sources > 1:
                source = f"{source}/{number % workload.sources}"
            publication = self._interests.event(
                source=source,
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
                name = f"{identifier}{publisher.tenant}"
                blob = Blob.imagined(self._source, size_bytes, name)
            self._world.at(at_ns, publisher.publish, publication, blob)
            if workload.twins and rng.random() < workload.twins:
                self._ledger.has_twin(ItemId(publisher.tenant, *publication.identity))
                twin = rng.choice(self._others(publisher))
                later_ns = at_ns + ns(rng.random() * _TWIN_LATE_S)
                self._world.at(later_ns, twin.publish, publication, blob)
            if workload.foreign and rng.random() < workload.foreign:
                tenant = tenant_of(publisher.address)
                others = [one for one in self.publishers if tenant_of(one.address) != tenant]
                # Before the owner does, as a thief would.
                self._world.at(
                    at_ns - ns(_FOREIGN_EARLY_S), _steal, rng.choice(others), publication
                )

    def _identifier(self, publisher: Publisher, number: int) -> str:
        """Return the id of the next event; what other tenants publish has the same ids."""
        count = len(self.tenants)
        if count == 1 or self._scenario.workload.foreign:
            return f"event-{number:07d}"
        self._published[publisher] += 1
        index = self.publishers.index(publisher) // count
        return f"event-{index}-{self._published[publisher]:07d}"

    def _others(self, publisher: Publisher) -> list[Publisher]:
        return [
            one
            for one in self.publishers
            if one is not publisher and one.tenant == publisher.tenant
        ]


def _steal(thief: Publisher, publication: Publication) -> None:
    event = {k: v for k, v in publication.document().items() if k != "datacontenttype"}
    thief.publish(Publication.parse(event), None, foreign=True)


def _prices(
    client: Address, places: Places, network: SimulatedNetwork, rng: random.Random
) -> tuple[tuple[str, float], ...]:
    """Put a client somewhere in the network, and return what each broker costs it there."""
    brokers = places.identifiers
    ends = rng.randrange(len(brokers)), rng.randrange(len(brokers))
    access = places.access(*ends, rng.random())
    network.place(client, access)
    return tuple(sorted(zip(brokers, access.prices.tolist(), strict=True)))


def _tenants(count: int) -> tuple[str, ...]:
    return ("",) if count == 1 else tuple(f"tenant-{k}" for k in range(count))


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
