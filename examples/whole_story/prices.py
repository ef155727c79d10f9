"""Prices: a stream over the real overlay, whose trees adapt while it flows."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from examples.whole_story.running import happens

from distributary.broker.client import Changed, Updated
from distributary.network.client import ClientGate
from distributary.network.transfers import TransferFailed
from distributary.network.views import look

__all__ = ["Followed", "Prices"]

_SOURCE, _TYPE = "/exchange", "price"
_OBJECTS = ("ACME", "GLOBEX", "INITECH")
# From somebody who trades to somebody who prints a newspaper.
_AMOUNTS = (0.05, 0.2, 1.0)
_CHANGE_S = 0.02
_WINDOW_S = 5.0
_ADAPTED = "Adapted"


@dataclass
class Followed:
    """What became of the prices.

    Attributes
    ----------
    followers
        How many there were, each of all objects.
    changes, updates
        How often prices changed, and how many of these changes followers were told.
    loss
        (second, share of time outside of the tolerance) by window.
    moves
        How often brokers changed a tree.
    within
        Whether every copy was within its tolerance in the end.
    """

    followers: int = 0
    changes: int = 0
    updates: int = 0
    loss: list[tuple[float, float]] = field(default_factory=list)
    moves: int = 0
    within: bool = False


@dataclass
class _Copy:
    """What a follower has of an object, and since when that is too far off, if it is."""

    amount: float
    value: float = math.nan
    outside_since: float | None = None
    outside_s: float = 0.0

    def compare(self, price: float, now: float) -> None:
        """Note that the price or the copy has changed."""
        is_outside = not abs(price - self.value) < self.amount
        if self.outside_since is not None:
            self.outside_s += now - self.outside_since
        self.outside_since = now if is_outside else None


class Prices:
    """One who publishes prices, and followers at every broker."""

    def __init__(self, gate: ClientGate, homes: Sequence[str], *, seed: int) -> None:
        self.followed = Followed()
        self._gate = gate
        self._homes = homes
        self._rng = random.Random(seed)
        self._publisher = gate.client("exchange", homes[0])
        self._prices = dict.fromkeys(_OBJECTS, 100.0)
        self._copies: dict[tuple[str, str], _Copy] = {}

    async def begin(self) -> None:
        """Announce the objects, and have everybody follow them."""
        followers = []
        for number, home in enumerate(self._homes):
            name, amount = f"follower-{number}", _AMOUNTS[number % len(_AMOUNTS)]
            for subject in _OBJECTS:
                self._copies[name, subject] = _Copy(amount)
            client = self._gate.client(name, home, update=partial(self._updated, name))
            wish = {
                "id": "prices",
                "filters": [{"exact": {"type": _TYPE}}],
                "tolerance": {"value": "/price", "divergence": "absolute", "amount": amount},
            }
            followers.append(client.subscribe(wish))
        await asyncio.gather(*followers)
        self.followed.followers = len(followers)
        for subject in _OBJECTS:
            event = {"specversion": "1.0", "id": "0", "source": _SOURCE, "type": _TYPE}
            text = json.dumps({**event, "subject": subject})
            await self._publisher.announce(_SOURCE, subject, text)

    async def change_until(self, ending: asyncio.Event) -> None:
        """Have prices change, then wait until every copy is as close as it should be."""
        loop = asyncio.get_running_loop()
        began = window = loop.time()
        spent = self._outside_s()
        while not ending.is_set():
            self._change(loop.time())
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), _CHANGE_S)
            if loop.time() >= window + _WINDOW_S:
                now = self._outside_s()
                share = (now - spent) / ((loop.time() - window) * len(self._copies))
                self.followed.loss.append((loop.time() - began, share))
                window, spent = loop.time(), now
        self.followed.within = await happens(self._is_within, lambda: self.followed.updates)
        self.followed.moves = sum([await self._moves(home) for home in self._homes])

    def _change(self, now: float) -> None:
        number = self.followed.changes
        subject = _OBJECTS[number % len(_OBJECTS)]
        price = self._prices[subject] * math.exp(self._rng.gauss(0.0, 0.001))
        self._prices[subject] = price
        values = (("/price", price),)
        self._publisher.change(Changed(_SOURCE, subject, number + 1, time.time_ns(), values))
        self.followed.changes += 1
        for (_, other), copy in self._copies.items():
            if other == subject:
                copy.compare(price, now)

    def _updated(self, name: str, message: Updated) -> None:
        copy = self._copies[name, message.subject]
        value = dict(message.values)["/price"]
        assert isinstance(value, float)
        copy.value = value
        copy.compare(self._prices[message.subject], asyncio.get_running_loop().time())
        self.followed.updates += 1

    def _outside_s(self) -> float:
        now = asyncio.get_running_loop().time()
        for (_, subject), copy in self._copies.items():
            copy.compare(self._prices[subject], now)
        return sum(copy.outside_s for copy in self._copies.values())

    def _is_within(self) -> bool:
        return not any(
            abs(self._prices[subject] - copy.value) >= copy.amount or math.isnan(copy.value)
            for (_, subject), copy in self._copies.items()
        )

    async def _moves(self, broker: str) -> int:
        """Return how many moves a broker has made since it was started."""
        try:
            subject = self._gate.subjects.to_host(broker, self._gate.name)
            (row,) = await look(self._gate.connection, subject, "broker")
        except TransferFailed:
            return 0
        return int(row["reports"].get(_ADAPTED, 0))
