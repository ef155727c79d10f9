"""The wiring problem: users, what they publish and want, and brokers to attach them to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.topology.prices import shortest_prices

__all__ = ["WiringProblem", "row_starts"]


@dataclass(frozen=True, eq=False)
class WiringProblem:
    """Which broker should each user attach to?

    What users publish and want is kept by user, the channels of one user in a row: a
    hundred thousand users and thousands of channels make a table too large to hold.

    Attributes
    ----------
    users, brokers
        Their names, sorted.
    channel_count
        How many channels (cells of the content space) there are.
    publish_start, publish_channel, publish_rate
        User `u` publishes on `publish_channel[k]` at `publish_rate[k] > 0` for every `k`
        from `publish_start[u]` up to `publish_start[u + 1]`, channels ascending.
    interest_start, interest_channel
        The channels that each user subscribes to, in the same way.
    access_prices
        `access_prices[u, b]` is the price of a unit of traffic between user and broker.
    core_prices
        `core_prices[b, b']` between brokers: symmetric, zero on the diagonal, and a metric.
    capacities
        The most traffic that the users of a broker may have together; infinite when it is
        not limited.
    shortened
        Whether shortest paths replaced some of the core prices given.
    """

    users: tuple[str, ...]
    brokers: tuple[str, ...]
    channel_count: int
    publish_start: IntArray
    publish_channel: IntArray
    publish_rate: FloatArray
    interest_start: IntArray
    interest_channel: IntArray
    access_prices: FloatArray
    core_prices: FloatArray
    capacities: FloatArray
    shortened: bool = False

    def __post_init__(self) -> None:
        users, brokers = len(self.users), len(self.brokers)
        assert brokers >= 1
        assert self.publish_start.shape == self.interest_start.shape == (users + 1,)
        assert self.publish_channel.shape == self.publish_rate.shape
        assert self.access_prices.shape == (users, brokers)
        assert self.core_prices.shape == (brokers, brokers)
        assert self.capacities.shape == (brokers,)
        for array in (
            self.publish_start,
            self.publish_channel,
            self.publish_rate,
            self.interest_start,
            self.interest_channel,
            self.access_prices,
            self.core_prices,
            self.capacities,
        ):
            array.flags.writeable = False

    @classmethod
    def in_order(
        cls,
        *,
        users: Sequence[str],
        brokers: Sequence[str],
        publishes: FloatArray,
        subscribes: BoolArray,
        access_prices: FloatArray,
        core_prices: FloatArray,
        capacities: FloatArray | None = None,
    ) -> WiringProblem:
        """Build a problem from tables with users and brokers in any order.

        Users and brokers are put in the order of their names, so that no planner's result
        depends on the order of the input; shortest paths replace core prices that break
        the triangle inequality.

        Parameters
        ----------
        users, brokers
            Their names, without repetition.
        publishes
            Rates, shape (users, channels).
        subscribes
            Interests, shape (users, channels).
        access_prices
            Shape (users, brokers).
        core_prices
            Shape (brokers, brokers), symmetric with a zero diagonal.
        capacities
            Shape (brokers,); infinite when not given.
        """
        publishing = np.nonzero(publishes)
        wanting = np.nonzero(subscribes)
        return cls.from_rows(
            users=users,
            brokers=brokers,
            channel_count=publishes.shape[1],
            published=(publishing[0], publishing[1], publishes[publishing]),
            wanted=(wanting[0], wanting[1]),
            access_prices=access_prices,
            core_prices=core_prices,
            capacities=capacities,
        )

    @classmethod
    def from_rows(
        cls,
        *,
        users: Sequence[str],
        brokers: Sequence[str],
        channel_count: int,
        published: tuple[IntArray, IntArray, FloatArray],
        wanted: tuple[IntArray, IntArray],
        access_prices: FloatArray,
        core_prices: FloatArray,
        capacities: FloatArray | None = None,
    ) -> WiringProblem:
        """Build a problem from rows (user, channel, rate) and (user, channel) in any order.

        Each pair of user and channel occurs at most once; rates of zero are left out.
        The other parameters are those of `in_order`.
        """
        user_order = sorted(range(len(users)), key=users.__getitem__)
        broker_order = sorted(range(len(brokers)), key=brokers.__getitem__)
        place = np.empty(len(users), dtype=np.int64)
        place[user_order] = np.arange(len(users))
        positive = published[2] > 0.0
        publisher = place[published[0][positive]]
        rows = np.lexsort((published[1][positive], publisher))
        reader = place[wanted[0]]
        wishes = np.lexsort((wanted[1], reader))
        if capacities is None:
            capacities = np.full(len(brokers), np.inf)
        # The access prices of many users are large; they are only copied when they must be.
        access = np.ascontiguousarray(access_prices, dtype=np.float64)
        if broker_order != list(range(len(brokers))):
            access = access[:, broker_order]
        if user_order != list(range(len(users))):
            access = access[user_order]
        given = np.ascontiguousarray(core_prices[np.ix_(broker_order, broker_order)], np.float64)
        core = shortest_prices(given)
        return cls(
            users=tuple(users[u] for u in user_order),
            brokers=tuple(brokers[b] for b in broker_order),
            channel_count=channel_count,
            publish_start=row_starts(publisher, len(users)),
            publish_channel=np.ascontiguousarray(published[1][positive][rows], dtype=np.int64),
            publish_rate=np.ascontiguousarray(published[2][positive][rows], dtype=np.float64),
            interest_start=row_starts(reader, len(users)),
            interest_channel=np.ascontiguousarray(wanted[1][wishes], dtype=np.int64),
            access_prices=np.ascontiguousarray(access).view(),
            core_prices=core,
            capacities=np.array(capacities, dtype=np.float64)[broker_order],
            shortened=bool((core < given).any()),
        )

    @property
    def user_count(self) -> int:
        """How many users there are."""
        return len(self.users)

    @property
    def broker_count(self) -> int:
        """How many brokers there are."""
        return len(self.brokers)

    @cached_property
    def publisher(self) -> IntArray:
        """The user of every entry of `publish_channel`."""
        return np.repeat(np.arange(self.user_count), np.diff(self.publish_start))

    @cached_property
    def reader(self) -> IntArray:
        """The user of every entry of `interest_channel`."""
        return np.repeat(np.arange(self.user_count), np.diff(self.interest_start))

    @cached_property
    def channel_rates(self) -> FloatArray:
        """What is published on each channel by all users together."""
        rates = np.bincount(
            self.publish_channel, weights=self.publish_rate, minlength=self.channel_count
        )
        return np.asarray(rates, dtype=np.float64)

    @cached_property
    def sent(self) -> FloatArray:
        """What each user publishes."""
        rates = np.bincount(self.publisher, weights=self.publish_rate, minlength=self.user_count)
        return np.asarray(rates, dtype=np.float64)

    @cached_property
    def received(self) -> FloatArray:
        """What each user receives from others."""
        users, channels = self.user_count, self.channel_count
        received = np.bincount(
            self.reader, weights=self.channel_rates[self.interest_channel], minlength=users
        )
        # Nobody is sent what it published itself.
        wanted = self.reader * channels + self.interest_channel
        own = np.isin(self.publisher * channels + self.publish_channel, wanted)
        returned = np.bincount(self.publisher, weights=self.publish_rate * own, minlength=users)
        return np.asarray(np.maximum(received - returned, 0.0))

    @cached_property
    def demands(self) -> FloatArray:
        """The traffic of each user: what it publishes and what it receives from others."""
        return np.asarray(self.sent + self.received)

    @cached_property
    def publishes(self) -> FloatArray:
        """`publishes[u, c]`: the rates as a table, for instances that are small enough."""
        table = np.zeros((self.user_count, self.channel_count))
        table[self.publisher, self.publish_channel] = self.publish_rate
        return table

    @cached_property
    def subscribes(self) -> BoolArray:
        """`subscribes[u, c]`: the interests as a table, for instances that are small enough."""
        table = np.zeros((self.user_count, self.channel_count), dtype=np.bool_)
        table[self.reader, self.interest_channel] = True
        return table


def row_starts(owner: IntArray, count: int) -> IntArray:
    """Return where the entries of each owner start, once they are sorted by owner."""
    counts = np.bincount(owner, minlength=count)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]).astype(np.int64)
