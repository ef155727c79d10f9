"""The wiring problem: users, what they publish and want, and brokers to attach them to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distributary.arguments import check_count, check_entries, check_names, check_type
from distributary.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_amounts,
    check_array,
    check_indices,
    check_range,
    shaped,
)
from distributary.errors import BadInput, quoted
from distributary.topology.prices import shortest_prices
from distributary.wiring.core_prices import symmetric_prices

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
        check_names("users", self.users)
        check_names("brokers", self.brokers)
        check_count("channel_count", self.channel_count)
        users, brokers = len(self.users), len(self.brokers)
        if brokers == 0:
            raise BadInput("brokers", "is empty", hint="users attach to at least one broker")
        self._check_rows("publish", self.publish_start, self.publish_channel)
        self._check_rows("interest", self.interest_start, self.interest_channel)
        check_amounts("publish_rate", self.publish_rate, self.publish_channel.shape)
        if not self.publish_rate.all():
            raise BadInput(
                "publish_rate", "has a rate of 0", hint="leave out what is not published"
            )
        check_amounts(
            "access_prices",
            self.access_prices,
            (users, brokers),
            lambda u, b: f"access price of {quoted(self.users[u])} at {quoted(self.brokers[b])}",
        )
        check_amounts("core_prices", self.core_prices, (brokers, brokers), self._core_place)
        check_amounts(
            "capacities",
            self.capacities,
            (brokers,),
            lambda b: f"capacity of broker {quoted(self.brokers[b])}",
            unlimited=True,
        )
        symmetric_prices(self.core_prices, self._core_place)

    def _core_place(self, i: int, j: int) -> str:
        return f"core price of {quoted(self.brokers[i])} to {quoted(self.brokers[j])}"

    def _check_rows(self, what: str, start: IntArray, channel: IntArray) -> None:
        """Raise `BadInput` unless every user has a row of channels that ascend."""
        check_array(f"{what}_start", start, (self.user_count + 1,), np.int64)
        check_array(f"{what}_channel", channel, (channel.size,), np.int64)
        if start[0] != 0 or start[-1] != channel.size or (start[1:] < start[:-1]).any():
            raise BadInput(f"{what}_start", f"must ascend from 0 to {channel.size}")
        check_indices(f"{what}_channel", channel, self.channel_count)
        falling = channel[1:] <= channel[:-1]
        if not falling.any():
            return
        # Where a row ends, the next begins anew.
        falling[start[(start > 0) & (start < channel.size)] - 1] = False
        if falling.any():
            user = self.users[int(np.searchsorted(start, falling.argmax(), side="right")) - 1]
            raise BadInput(
                f"{what}_channel",
                f"of user {quoted(user)} must ascend, and none comes twice",
            )

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
        core_place: Callable[[int, int], str] | None = None,
    ) -> WiringProblem:
        """Build a problem from tables with users and brokers in any order.

        Users and brokers are put in the order of their names, so that no planner's result
        depends on the order of the input; shortest paths replace core prices that break
        the triangle inequality.

        Rates and interests have a column per channel, prices one per broker. Capacities are
        infinite unless given. `core_place` is what a message calls the core price of one broker
        to another, by their places in the order given; a reader knows where in a file it is.
        """
        check_type("users", users, Sequence)
        publishes = shaped("publishes", publishes, (len(users), None), np.float64)
        subscribes = shaped("subscribes", subscribes, publishes.shape, np.bool_)
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
            core_place=core_place,
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
        core_place: Callable[[int, int], str] | None = None,
    ) -> WiringProblem:
        """Build a problem from rows (user, channel, rate) and (user, channel) in any order.

        Each pair of user and channel occurs at most once; rates of zero are left out.
        The other parameters are those of `in_order`.
        """
        for argument, names in (("users", users), ("brokers", brokers)):
            check_type(argument, names, Sequence)
            check_entries(argument, names, str)
        publisher, published_channel, rate = _rows("published", published, len(users))
        reader, wanted_channel = _rows("wanted", wanted, len(users))
        check_range(
            "published",
            rate,
            lambda k: (
                f"rate of {quoted(users[int(publisher[k])])} on channel {published_channel[k]}"
            ),
        )
        access = shaped("access_prices", access_prices, (len(users), len(brokers)), np.float64)
        core = shaped("core_prices", core_prices, (len(brokers), len(brokers)), np.float64)
        if core_place is None:

            def core_place(i: int, j: int) -> str:
                return f"core price of {quoted(brokers[i])} to {quoted(brokers[j])}"

        check_range("core_prices", core, core_place)
        core = symmetric_prices(core, core_place)
        user_order = sorted(range(len(users)), key=users.__getitem__)
        broker_order = sorted(range(len(brokers)), key=brokers.__getitem__)
        place = np.empty(len(users), dtype=np.int64)
        place[user_order] = np.arange(len(users))
        positive = rate > 0.0
        publisher = place[publisher[positive]]
        rows = np.lexsort((published_channel[positive], publisher))
        reader = place[reader]
        wishes = np.lexsort((wanted_channel, reader))
        if capacities is None:
            capacities = np.full(len(brokers), np.inf)
        capacities = shaped("capacities", capacities, (len(brokers),), np.float64)
        # The access prices of many users are large; they are only copied when they must be.
        access = np.ascontiguousarray(access)
        if broker_order != list(range(len(brokers))):
            access = access[:, broker_order]
        if user_order != list(range(len(users))):
            access = access[user_order]
        given = np.ascontiguousarray(core[np.ix_(broker_order, broker_order)])
        core = shortest_prices(given)
        return cls(
            users=tuple(users[u] for u in user_order),
            brokers=tuple(brokers[b] for b in broker_order),
            channel_count=channel_count,
            publish_start=row_starts(publisher, len(users)),
            publish_channel=np.ascontiguousarray(published_channel[positive][rows]),
            publish_rate=np.ascontiguousarray(rate[positive][rows]),
            interest_start=row_starts(reader, len(users)),
            interest_channel=np.ascontiguousarray(wanted_channel[wishes]),
            access_prices=np.ascontiguousarray(access).view(),
            core_prices=core,
            capacities=capacities[broker_order],
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


def _rows(argument: str, columns: Any, users: int) -> list[NDArray[Any]]:
    """Return rows (user, channel) or (user, channel, rate) as arrays of one length."""
    kinds = (np.int64, np.int64, np.float64)
    found = [
        shaped(f"{argument}[{at}]", column, (len(columns[0]),), kind)
        for at, (column, kind) in enumerate(zip(columns, kinds, strict=False))
    ]
    check_indices(f"{argument}[0]", found[0], users)
    return found
