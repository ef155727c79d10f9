"""The clients of a run that publish streams and follow them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from distributary.broker.settings import ns
from distributary.broker.telemetry import CopyChanged
from distributary.content import Subscription
from distributary.content.divergence import DIVERGENCES
from distributary.filters import Filter
from distributary.simulator.checkers.fidelity import Fidelity
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.scenario import Scenario, WorkloadTable
from distributary.simulator.workload.streams import (
    NUMBER,
    TEXT,
    StreamFollower,
    StreamObject,
    StreamPublisher,
    Walk,
)
from distributary.simulator.world import World

__all__ = ["StreamClients"]

_VALUE_MEAN = 10.0
# A jump is about as large as the tolerances, so that some versions matter and some do not.
_JUMP_SHARE = 0.5
_ARRIVAL_SHARE = 0.4


class StreamClients:
    """Publishers of objects, their followers, and how far the copies of these are off.

    Parameters
    ----------
    window_ns
        The width of the windows of the loss of fidelity.

    Attributes
    ----------
    at_brokers, at_clients
        How far copies are off at the homes of followers, and at the followers.
    """

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        ledger: Ledger,
        brokers: Sequence[str],
        window_ns: int,
        rng: random.Random,
    ) -> None:
        self._world = world
        self._workload = workload = scenario.workload
        self._rng = rng
        self._copies: dict[tuple[str, tuple[str, str]], int] = {}
        self.at_brokers = Fidelity(window_ns)
        self.at_clients = Fidelity(window_ns)
        self.publishers: list[StreamPublisher] = []
        self.followers: list[StreamFollower] = []
        self.objects: list[StreamObject] = []
        self._subscriptions: list[tuple[StreamFollower, Subscription]] = []
        if not workload.objects:
            return
        self.publishers = [
            StreamPublisher(
                world,
                f"q{k:05d}",
                rng.choice(brokers),
                f"/quotes/{k}",
                fidelities=(self.at_brokers, self.at_clients),
                rng=random.Random(rng.random()),
            )
            for k in range(min(workload.stream_publishers, workload.objects))
        ]
        self._make_objects()
        self._make_followers(brokers, ledger)

    @property
    def homes(self) -> set[str]:
        """The brokers at the roots of the trees."""
        return {publisher.home for publisher in self.publishers}

    def schedule(self) -> None:
        """Have everybody do everything at its time."""
        begin, end = ns(self._workload.begin_s), ns(self._workload.duration_s)
        for k, publisher in enumerate(self.publishers):
            own = self.objects[k :: len(self.publishers)]
            self._world.at(round(begin * _ARRIVAL_SHARE), publisher.begin, own, end)
        for follower, subscription in self._subscriptions:
            at_ns = round(self._rng.random() * begin * _ARRIVAL_SHARE)
            self._world.at(at_ns, self._subscribe, follower, subscription)

    def watch(self, broker: str, record: object, now_ns: int) -> None:
        """Take note of a broker's copy."""
        if isinstance(record, CopyChanged):
            thing = (record.source, record.subject)
            self._copies[broker, thing] = record.sequence
            for follower, subscription in self._subscriptions:
                if follower.home == broker:
                    self.at_brokers.copied(subscription.id, thing, record.sequence, now_ns)

    def change_tolerances(self, factor: float) -> None:
        """Have every follower tolerate more or less: a new subscription, then the old one ends."""
        for follower, old in list(self._subscriptions):
            assert old.tolerance is not None
            tolerance = replace(old.tolerance, amount=old.tolerance.amount * factor)
            new = replace(old, id=f"{old.id}-2", tolerance=tolerance)
            self._subscriptions.append((follower, new))
            self._subscribe(follower, new)
            self._subscriptions.remove((follower, old))
            follower.unsubscribe(old.id)
            for fidelity in (self.at_brokers, self.at_clients):
                fidelity.unfollow(old.id, self._world.now_ns)

    def change_rates(self, factor: float) -> None:
        """Have all objects change more or less often."""
        for publisher in self.publishers:
            publisher.rate_factor *= factor

    def _make_objects(self) -> None:
        workload, rng = self._workload, self._rng
        jump = _JUMP_SHARE * sum(workload.tolerances) / 2.0
        for k in range(workload.objects):
            self.objects.append(
                StreamObject(
                    source=self.publishers[k % len(self.publishers)].source,
                    subject=f"object-{k:04d}",
                    type=f"quote.{k % workload.types}",
                    rate=rng.uniform(*workload.rates),
                    walk=Walk(_VALUE_MEAN, jump, random.Random(rng.random())),
                )
            )

    def _make_followers(self, brokers: Sequence[str], ledger: Ledger) -> None:
        workload, rng = self._workload, self._rng
        for k, broker in enumerate(brokers):
            wanted = [thing for thing in self.objects if rng.random() < workload.interest]
            if not wanted:
                continue
            follower = StreamFollower(self._world, f"f{k:05d}", broker, ledger, self.at_clients)
            self.followers.append(follower)
            kinds = workload.divergences
            for index, divergence in enumerate(kinds):
                share = wanted[index :: len(kinds)]
                if share:
                    document = _subscription(follower, index, divergence, share, workload, rng)
                    self._subscriptions.append((follower, Subscription.parse(document)))

    def _subscribe(self, follower: StreamFollower, subscription: Subscription) -> None:
        follower.subscribe(subscription)
        now_ns = self._world.now_ns
        asked = Filter.parse(list(subscription.filters))
        assert subscription.tolerance is not None
        for thing in self.objects:
            if asked.matches(thing.event()):
                for fidelity in (self.at_brokers, self.at_clients):
                    fidelity.follow(
                        subscription.id,
                        thing.identity,
                        subscription.tolerance,
                        server=follower.address,
                    )
                held = self._copies.get((follower.home, thing.identity))
                if held is not None:
                    self.at_brokers.copied(subscription.id, thing.identity, held, now_ns)


def _subscription(
    follower: StreamFollower,
    index: int,
    divergence: str,
    things: Sequence[StreamObject],
    workload: WorkloadTable,
    rng: random.Random,
) -> dict[str, object]:
    """Return a subscription to some objects, with a tolerance that suits the divergence."""
    assert divergence in DIVERGENCES
    amount = rng.uniform(*workload.tolerances)
    if divergence == "relative":
        amount /= _VALUE_MEAN
    elif divergence == "changes":
        amount = float(rng.randint(1, 4))
    elif divergence == "edit":
        amount = float(rng.randint(1, 8))
    elif divergence == "age":
        amount = rng.uniform(0.5, 4.0) / max(max(workload.rates), 1e-3)
    exact: list[object] = [{"exact": {"type": t.type, "subject": t.subject}} for t in things]
    return {
        "id": f"follow-{follower.address[1:]}-{index}",
        "filters": [exact[0] if len(exact) == 1 else {"any": exact}],
        "tolerance": {
            "value": TEXT if divergence == "edit" else NUMBER,
            "divergence": divergence,
            "amount": amount,
        },
    }
