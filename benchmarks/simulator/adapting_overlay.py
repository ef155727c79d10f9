"""One stream through a tree of real brokers, in the environment of the published experiments.

The planners' model knows servers that need a certain number of updates each second, whatever
the tree. A value that wanders does not have such rates: what a broker passes on depends on how
much of the tolerance its parent has used up. So the value here has digits, each of which flips
at random. A change of a digit is more than all lower digits together, and whoever tolerates less
than a digit needs every flip of it and of higher ones, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.broker.addresses import HOST, Address, client_address, is_client
from distributary.broker.messages.client import Changed, Subscribe, Unsubscribe
from distributary.broker.messages.host import (
    Neighbour,
    PlantTree,
    ServiceTimes,
    Surroundings,
)
from distributary.broker.settings import (
    AdaptationSettings,
    MembershipSettings,
    Settings,
    SubscriptionSettings,
    ns,
)
from distributary.broker.telemetry import Adapted, CopyChanged, TreeLinked
from distributary.content import Tolerance, Version
from distributary.fidelity import ROOT, FidelityProblem, Forest
from distributary.simulator.checkers.fidelity import Fidelity
from distributary.simulator.world import World

__all__ = ["AdaptingOverlay", "Updates", "with_tolerances"]

_BASE = 8.0
# The shares of all changes that somebody needs who tolerates less than each digit.
_SHARES: FloatArray = np.linspace(1.0, 1.0 / 6.0, 16)

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
    return replace(problem, rates=problem.rates[0] * _SHARES[_digits(problem)][:, None])


def _digits(problem: FidelityProblem) -> IntArray:
    """Return the digit that the follower at each broker tolerates less than."""
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
    """

    times_s: FloatArray
    values: FloatArray

    @classmethod
    def draw(cls, rate: float, *, seconds: float, seed: int) -> Updates:
        """Return changes as a Poisson process, each of one digit."""
        rng = np.random.default_rng(seed)
        count = rng.poisson(rate * seconds)
        places = np.arange(len(_SHARES))
        digits = rng.choice(places, size=count, p=-np.diff(_SHARES, append=0.0))
        ones = (digits[:, None] == places).cumsum(axis=0) % 2
        return cls(np.sort(rng.random(count)) * seconds, ones @ _BASE**places)

    def since(self, begin_s: float) -> Updates:
        """Return what is published from a time on, counted from then."""
        first = int(np.searchsorted(self.times_s, begin_s))
        return Updates(self.times_s[first:] - begin_s, self.values[first:])


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
            subscriptions=SubscriptionSettings(lease_s=_FOREVER_S, registration_s=_FOREVER_S),
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
        digits = _digits(problem)
        for k in np.flatnonzero(digits != _digits(before)).tolist():
            self._follow(k, digits[k])
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
        for k, digit in enumerate(_digits(self._problem).tolist()):
            if k:
                self._follow(k, digit)
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

    def _follow(self, broker: int, digit: int) -> None:
        """Have the follower at a broker tolerate less than a digit."""
        name = self._names[broker]
        client = client_address(name)
        tolerance = Tolerance(_POINTER, "absolute", 0.5 * _BASE**digit)
        old = self._following.get(name)
        identity = f"{name}-{digit}"
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
            following = self._following.get(broker)
            if following is not None:
                self._fidelity.copied(following, _OBJECT, record.sequence, now_ns)
        elif type(record) is TreeLinked:
            self.parents[broker] = record.parent
        elif type(record) is Adapted:
            self.adapted.append((now_ns / _NS_PER_SECOND, record))
