"""A client that leaves a broker, as that broker knows it and keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.addresses import Address
from distributary.broker.encoding import wire
from distributary.broker.migration.states import LEAVING, Leaving
from distributary.broker.subscriptions.local_subscription import (
    LocalSubscription,
    SubscriptionRecord,
)

__all__ = ["Departure", "DepartureRecord"]


@wire(660)
@dataclass(frozen=True, slots=True)
class DepartureRecord:
    """A client that leaves, as it is kept.

    Attributes
    ----------
    state
        The number of a state of `Leaving`.
    redirected
        How much was redirected.
    since_ns
        When the client accepted.
    arrived
        Whether the target has said that the client has.
    subscriptions
        Those that it had here.
    passed
        The number of the last delivery of each subscription that the target has, or was sent.
    """

    client: str
    target: str
    state: int
    redirected: int
    since_ns: int
    arrived: bool
    prices: tuple[tuple[str, float], ...]
    subscriptions: tuple[SubscriptionRecord, ...]
    passed: tuple[tuple[str, int], ...]


class Departure:
    """A client that leaves.

    Attributes
    ----------
    asked
        How often it, or the target, was asked.
    traffic, rates
        What it sends and is sent, and what it publishes by cell, in bytes per second.
    ghosts
        Subscriptions that are withdrawn, and may still be sent something.
    client, target, state, redirected, since_ns, arrived, prices, subscriptions, passed
        As in `DepartureRecord`.
    """

    def __init__(self, client: Address, target: str) -> None:
        self.client = client
        self.target = target
        self.state = LEAVING.initial
        self.redirected = 0
        self.since_ns = 0
        self.arrived = False
        self.asked = 0
        self.traffic = 0.0
        self.rates: tuple[tuple[int, float], ...] = ()
        self.prices: tuple[tuple[str, float], ...] = ()
        self.subscriptions: tuple[SubscriptionRecord, ...] = ()
        self.passed: dict[str, int] = {}
        self.ghosts: list[LocalSubscription] = []

    def record(self) -> DepartureRecord:
        """Return it as it is kept."""
        return DepartureRecord(
            self.client,
            self.target,
            self.state.value,
            self.redirected,
            self.since_ns,
            self.arrived,
            self.prices,
            self.subscriptions,
            tuple(sorted(self.passed.items())),
        )

    @classmethod
    def from_record(cls, record: DepartureRecord) -> Departure:
        """Return it as it was kept."""
        departure = cls(record.client, record.target)
        departure.state = Leaving(record.state)
        departure.redirected = record.redirected
        departure.since_ns = record.since_ns
        departure.arrived = record.arrived
        departure.prices = record.prices
        departure.subscriptions = record.subscriptions
        departure.passed = dict(record.passed)
        if departure.state is Leaving.DRAINING:
            departure.haunt()
        return departure

    def haunt(self) -> None:
        """Have its subscriptions stay as ghosts; those to streams are not redirected."""
        found = [LocalSubscription.from_record(record) for record in self.subscriptions]
        self.ghosts = [local for local in found if local.subscription.tolerance is None]
