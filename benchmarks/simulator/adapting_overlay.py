"""One stream through a tree of real brokers, in the environment of the published experiments.

The planners' model knows servers that need a certain number of updates each second, whatever
the tree. A value that wanders does not have such rates: what a broker passes on depends on how
much of the tolerance its parent has used up. So one kind of value here has digits, each of which
flips at random. A change of a digit is more than all lower digits together, and whoever tolerates
less than a digit needs every flip of it and of higher ones, and nothing else. The other kind
wanders as ordinary values do. Its tolerances are such that followers would get the same rates
directly from the source; further down they get more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.broker.addresses import HOST, Address, client_address, is_client
from distributary.broker.client import Changed, Subscribe, Unsubscribe
from distributary.broker.host import Neighbour, PlantTree, ServiceTimes, Surroundings
from distributary.broker.settings import (
    AdaptationSettings,
    MembershipSettings,
    Settings,
    SubscriptionSettings,
    ns,
)
from distributary.broker.telemetry import Adapted, CopyChanged, TreeLinked
from distributary.content import Tolerance, Version
from distributary.content.tolerance import EffectiveTolerance
from distributary.content.trace import Trace, forwarded
from distributary.fidelity import ROOT, FidelityProblem, Forest
from distributary.simulator.checkers.fidelity import Fidelity
from distributary.simulator.world import World

__all__ = ["AdaptingOverlay", "Updates", "with_tolerances"]

_BASE = 8.0
# The shares of all changes that followers need, by how much they tolerate.
_SHARES: FloatArray = np.linspace(1.0, 1.0 / 6.0, 16)
# A value that wanders jumps by about this much, and is drawn back to where it began.
_JUMP = 1.0
_REVERSION = 0.05
_HALVINGS = 40

_OBJECT = ("/stream", "object")
_POINTER = "/value"
_TREE = " ".join(_OBJECT)
_EVENT = json.dumps(
    {
        "specversion": "1.0",
        "id": _OBJECT[1],
        "source": _OBJECT[0],
        "subject": _OBJECT[1],
        "type": "stream",
    }
)
_FOREVER_S = 1e6
_NS_PER_SECOND = 1e9
# Intervals outside are added up at once; nobody looks at them one by one.
_CHUNK_S = 100.0


def with_tolerances(problem: FidelityProblem) -> FidelityProblem:
    """Return the problem with the nearest rates that there are tolerances for."""
    return replace(problem, rates=problem.rates[0] * _SHARES[_levels(problem)][:, None])


def _levels(problem: FidelityProblem) -> IntArray:
    """Return which of `_SHARES` the follower at each broker needs."""
    shares = problem.rates / problem.rates[0]
    return np.asarray(np.abs(shares - _SHARES).argmin(axis=1))


@dataclass(frozen=True, eq=False)
class Updates:
    """How a value changes.

    Attributes
    ----------
    times_s
        When, in order.
    values
        To what; the value is 0 before.
    amounts
        What somebody tolerates who needs each of `_SHARES`.
    """

    times_s: FloatArray
    values: FloatArray
    amounts: FloatArray

    @classmethod
    def draw(cls, rate: float, *, seconds: float, seed: int) -> Updates:
        """Return changes as a Poisson process, each of one digit.

        Whoever tolerates less than a digit gets all flips of it and of higher ones, whatever
        tree they come by.
        """
        rng = np.random.default_rng(seed)
        count = rng.poisson(rate * seconds)
        places = np.arange(len(_SHARES))
        digits = rng.choice(places, size=count, p=-np.diff(_SHARES, append=0.0))
        ones = (digits[:, None] == places).cumsum(axis=0) % 2
        times_s = np.sort(rng.random(count)) * seconds
        powers: FloatArray = _BASE ** places.astype(np.float64)
        return cls(times_s, ones @ powers, 0.5 * powers)

    @classmethod
    def wander(cls, rate: float, *, seconds: float, seed: int) -> Updates:
        """Return changes as a Poisson process, each a jump of a value that wanders.

        Tolerances are such that a child of the source is sent the shares of all changes that
        followers need. A child of anybody else is sent more, as less is left of its tolerance.
        """
        rng = np.random.default_rng(seed)
        count = rng.poisson(rate * seconds)
        jumps = rng.normal(0.0, _JUMP, size=count)
        values = np.empty(count)
        value = 0.0
        for k, jump in enumerate(jumps.tolist()):
            value += jump - _REVERSION * value
            values[k] = value
        times_s = np.sort(rng.random(count)) * seconds
        return cls(times_s, values, _amounts(values))

    def since(self, begin_s: float) -> Updates:
        """Return what is published from a time on, counted from then."""
        first = int(np.searchsorted(self.times_s, begin_s))
        return replace(self, times_s=self.times_s[first:] - begin_s, values=self.values[first:])


def _amounts(values: FloatArray) -> FloatArray:
    """Return what to tolerate so that a child of the source is sent each of `_SHARES`."""
    trace = Trace.of_numbers(values)
    low, high = np.zeros(len(_SHARES)), np.full(len(_SHARES), float(np.ptp(values)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        children = [EffectiveTolerance({"absolute": amount}) for amount in middle.tolist()]
        sent = forwarded(trace, children, parent=None).mean(axis=1)
        low, high = np.where(sent >= _SHARES, middle, low), np.where(sent >= _SHARES, high, middle)
    # Those who need everything tolerate less than any jump.
    return np.maximum(low, np.finfo(np.float64).tiny)


class _DelayNetwork:
    """Delays between brokers and nothing else; what clients are sent is not carried."""

    def __init__(self, names: Sequence[str], delays: FloatArray) -> None:
        self._index = {name: k for k, name in enumerate(names)}
        self.use(delays)

    def use(self, delays: FloatArray) -> None:
        """Have messages take these times from now on."""
        self._delays_ns = np.rint(delays * _NS_PER_SECOND).astype(np.int64).tolist()

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        """Return when a message arrives."""
        if is_client(to):
            return ()
        return (now_ns + self._delays_ns[self._index[sender]][self._index[to]],)


class AdaptingOverlay:
    """Brokers that carry one stream, each with one follower, and how far copies are off.

    Parameters
    ----------
    problem
        Delays, times and rates; rates are as `with_tolerances` makes them.
    forest
        The tree to begin with.
    updates
        What happens to the value.
    adaptation
        Whether and how brokers adapt the tree.
    ping_s
        How often a broker measures the delay to one of the others.
    window_s
        The width of the windows of the loss.
    seed
        Of every random choice.

    Attributes
    ----------
    world
        The brokers.
    received
        How many versions brokers below the root have got.
    adapted
        When moves were made, in seconds, and which.
    parents
        The parent of each broker now.
    """

    def __init__(
        self,
        problem: FidelityProblem,
        forest: Forest,
        updates: Updates,
        *,
        adaptation: AdaptationSettings,
        ping_s: float,
        window_s: float,
        seed: int,
    ) -> None:
        self._problem = problem
        self._names = tuple(f"{k:04x}" for k in range(problem.node_count))
        settings = Settings(
            membership=MembershipSettings(period_s=ping_s),
            # Nobody comes or goes, and what is renewed all the same costs only time.
            subscriptions=SubscriptionSettings(registration_s=_FOREVER_S),
            adaptation=adaptation,
        )
        self._network = _DelayNetwork(self._names, problem.delays)
        self.world = World(settings, self._network, seed=seed, recorded=False)
        self.world.watchers.append(self._watch)
        self._fidelity = Fidelity(ns(window_s))
        self._following: dict[str, str] = {}
        self._copies: dict[str, int] = {}
        self._sequence = 0
        self._times_ns = np.rint(updates.times_s * _NS_PER_SECOND).astype(np.int64).tolist()
        self._values = updates.values.tolist()
        self._amounts = updates.amounts.tolist()
        self.received = 0
        self.adapted: list[tuple[float, Adapted]] = []
        self.parents: dict[str, str | None] = {}
        self._start(forest)

    @property
    def forest(self) -> Forest:
        """The tree as it is now."""
        index = {name: k for k, name in enumerate(self._names)}
        parents = [ROOT, *(index[self.parents[name] or ""] for name in self._names[1:])]
        return Forest("one-tree", np.array([parents]))

    def run_until(self, seconds: float) -> None:
        """Let happen what happens up to a time."""
        while self.world.now_ns < ns(seconds):
            self.world.run_until(min(self.world.now_ns + ns(_CHUNK_S), ns(seconds)))
            self._fidelity.intervals.clear()

    def change(self, problem: FidelityProblem) -> None:
        """Have times, delays and rates be others from now on."""
        before, self._problem = self._problem, problem
        self._network.use(problem.delays)
        levels = _levels(problem)
        for k in np.flatnonzero(levels != _levels(before)).tolist():
            self._follow(k, int(levels[k]))
        self._set_times()

    def losses(self) -> list[tuple[float, float]]:
        """Return (time in seconds, average loss) for each window; ends the run."""
        self._fidelity.finish(self.world.now_ns)
        return self._fidelity.series()

    def _start(self, forest: Forest) -> None:
        parents = forest.parents[0].tolist()
        below: list[list[str]] = [[] for _ in parents]
        for name, parent in zip(self._names, parents, strict=True):
            if parent != ROOT:
                below[parent].append(name)
        for k, (name, parent) in enumerate(zip(self._names, parents, strict=True)):
            above = None if parent == ROOT else self._names[parent]
            place = PlantTree(_TREE, (_EVENT,), self._names[0], above, tuple(below[k]))
            self.world.add(name, self._surroundings(k), place)
        self._set_times()
        for k, level in enumerate(_levels(self._problem).tolist()):
            if k:
                self._follow(k, level)
        self._publish(0.0)
        self._publish_later()

    def _surroundings(self, broker: int) -> Surroundings:
        delays_ns = np.rint(self._problem.delays[broker] * _NS_PER_SECOND).astype(np.int64)
        neighbours = tuple(
            Neighbour(name, delay_ns)
            for name, delay_ns in zip(self._names, delays_ns.tolist(), strict=True)
            if name != self._names[broker]
        )
        return Surroundings(neighbours, self._names)

    def _set_times(self) -> None:
        times = zip(
            self._names,
            self._problem.filter_times.tolist(),
            self._problem.send_times.tolist(),
            strict=True,
        )
        for name, filter_s, send_s in times:
            node = self.world.nodes[name]
            node.service_ns = {"filter": filter_s * _NS_PER_SECOND, "send": send_s * _NS_PER_SECOND}
            self.world.tell(name, ServiceTimes(filter_s, send_s), sender=HOST)

    def _follow(self, broker: int, level: int) -> None:
        """Have the follower at a broker need one of `_SHARES`."""
        name = self._names[broker]
        client = client_address(name)
        tolerance = Tolerance(_POINTER, "absolute", self._amounts[level])
        old = self._following.get(name)
        identity = f"{name}-{level}"
        document = {
            "id": identity,
            "filters": [{"exact": {"type": "stream", "subject": _OBJECT[1]}}],
            "tolerance": tolerance.document(),
        }
        self.world.tell(name, Subscribe(json.dumps(document)), sender=client)
        self._fidelity.follow(identity, _OBJECT, tolerance, server=name)
        self._following[name] = identity
        if old is not None:
            self.world.tell(name, Unsubscribe(old), sender=client)
            self._fidelity.unfollow(old, self.world.now_ns)
            self._fidelity.copied(identity, _OBJECT, self._copies[name], self.world.now_ns)

    def _publish_later(self) -> None:
        if self._sequence <= len(self._times_ns):
            at_ns = self._times_ns[self._sequence - 1]
            self.world.at(at_ns, self._publish_next)

    def _publish_next(self) -> None:
        self._publish(self._values[self._sequence - 1])
        self._publish_later()

    def _publish(self, value: float) -> None:
        self._sequence += 1
        now_ns = self.world.now_ns
        versions = {_POINTER: Version(value, self._sequence, now_ns)}
        self._fidelity.changed(_OBJECT, self._sequence, versions, now_ns)
        changed = Changed(*_OBJECT, self._sequence, now_ns, ((_POINTER, value),))
        self.world.tell(self._names[0], changed, sender=client_address("source"))

    def _watch(self, broker: str, record: object, now_ns: int) -> None:
        if type(record) is CopyChanged:
            self._copies[broker] = record.sequence
            self.received += broker != self._names[0]
            following = self._following.get(broker)
            if following is not None:
                self._fidelity.copied(following, _OBJECT, record.sequence, now_ns)
        elif type(record) is TreeLinked:
            self.parents[broker] = record.parent
        elif type(record) is Adapted:
            self.adapted.append((now_ns / _NS_PER_SECOND, record))
