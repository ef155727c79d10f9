"""Brokers that adapt a tree after a change, at a size that takes seconds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simulator.adaptation_256 import PARAMETERS
from benchmarks.simulator.adaptation_runs import LOAD, measure
from benchmarks.simulator.adapting_overlay import AdaptingOverlay, Updates, with_tolerances

from distributary.arrays import FloatArray
from distributary.broker.client import Subscribe
from distributary.broker.host import Surroundings
from distributary.broker.settings import AdaptationSettings, Settings
from distributary.content.tolerance import EffectiveTolerance
from distributary.content.trace import Trace, forwarded
from distributary.fidelity import Forest
from distributary.fidelity.generate import generate_problem
from distributary.simulator.world import World

SECONDS = 2_000.0
RATE = 6.0
DIGITS = 16


def tolerance(digit: int) -> EffectiveTolerance:
    """Return what somebody asks for who tolerates less than a digit."""
    return EffectiveTolerance({"absolute": 0.5 * 8.0**digit})


def counts(values: FloatArray, *, parent: int | None) -> list[int]:
    """Return how many versions followers of each digit get, from the source or from a parent."""
    above = None
    if parent is not None:
        above = tolerance(parent)
        values = values[forwarded(Trace.of_numbers(values), [above], parent=None)[0]]
    digits = range(0 if parent is None else parent, DIGITS)
    children = [tolerance(digit) for digit in digits]
    marked = forwarded(Trace.of_numbers(values), children, parent=above)
    return [int(count) for count in marked.sum(axis=1)]


def test_what_a_follower_needs_does_not_depend_on_its_parent() -> None:
    """Otherwise planners and brokers would not have the same rates."""
    updates = Updates.draw(RATE, seconds=SECONDS, seed=1)
    from_source = counts(updates.values, parent=None)
    for parent in (0, 7, DIGITS - 1):
        assert counts(updates.values, parent=parent) == from_source[parent:]
    rates = np.array(from_source) / SECONDS
    assert rates == pytest.approx(RATE * np.linspace(1.0, 1.0 / 6.0, DIGITS), rel=0.06)


def test_what_a_follower_is_sent_of_a_value_that_wanders_depends_on_its_parent() -> None:
    """As the source's child it gets what planners assume, and elsewhere more."""
    updates = Updates.wander(RATE, seconds=SECONDS, seed=1)
    trace = Trace.of_numbers(updates.values)
    children = [EffectiveTolerance({"absolute": amount}) for amount in updates.amounts.tolist()]
    direct = forwarded(trace, children, parent=None)
    assert direct.mean(axis=1) == pytest.approx(np.linspace(1.0, 1.0 / 6.0, DIGITS), abs=0.01)
    passed = Trace.of_numbers(updates.values[direct[6]])
    below = forwarded(passed, children[7:], parent=children[6])
    assert (below.sum(axis=1) > 1.1 * direct.sum(axis=1)[7:]).any()
    assert (below.sum(axis=1) >= direct.sum(axis=1)[7:]).all()


def test_updates_of_the_last_stretch_are_the_same_from_its_beginning_on() -> None:
    updates = Updates.draw(RATE, seconds=100.0, seed=1)
    rest = updates.since(40.0)
    assert rest.values.tolist() == updates.values[-len(rest.values) :].tolist()
    assert rest.times_s.tolist() == (updates.times_s[updates.times_s >= 40.0] - 40.0).tolist()


def test_the_loss_in_a_star_is_rate_times_delay() -> None:
    """Copies at brokers count as soon as they are there, however busy the broker is."""
    problem = with_tolerances(generate_problem(seed=1, servers=8, routers=100))
    forest = Forest("one-tree", np.array([[-1, *([0] * 8)]]))
    updates = Updates.draw(1.5, seconds=800.0, seed=1)
    overlay = AdaptingOverlay(
        problem,
        forest,
        updates,
        adaptation=AdaptationSettings(enabled=False),
        ping_s=20.0,
        window_s=100.0,
        seed=1,
    )
    overlay.run_until(800.0)
    assert overlay.forest.parents.tolist() == forest.parents.tolist()
    # Half of the other children come first, on average, and then it is the child's turn.
    checked_s = 4.5 * problem.filter_times[0]
    sent_s = (1.0 + 3.5 * problem.rates[1:, 0].mean() / 1.5) * problem.send_times[0]
    late_s = problem.delays[0, 1:] + checked_s + sent_s
    expected = float((problem.rates[1:, 0] * late_s).mean())
    measured = float(np.mean([share for _, share in overlay.losses()[1:]]))
    assert measured == pytest.approx(expected, rel=0.1)


def test_brokers_adapt_to_servers_that_become_slow() -> None:
    parameters = PARAMETERS["small"]
    measured = measure(parameters, LOAD, 2)
    assert measured.unchanged >= parameters.static_min
    assert measured.last(parameters.last_windows) <= 1.10
    assert measured.moves[1] >= 4


class Answers:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.heard.append((type(message).__name__, now_ns))


class Steady:
    """A network in which everything takes a millisecond, however large it is."""

    def arrivals(self, sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        return (now_ns + 1_000_000,)


def test_without_a_record_a_world_goes_the_same_way() -> None:
    """Only the log and the counts stay empty."""
    heard, records = [], []
    for recorded in (True, False):
        world = World(Settings(), Steady(), seed=1, recorded=recorded)
        client = world.clients["@a"] = Answers()
        nothing = world.log_hash
        world.add("00", Surroundings((), ("00",)))
        world.send("@a", "00", Subscribe('{"id": "s", "filters": [{"exact": {"type": "t"}}]}'))
        world.run_until(5_000_000_000)
        heard.append((client.heard, world.events))
        records.append((world.log_hash != nothing, bool(world.message_counts)))
    assert heard[0] == heard[1]
    assert heard[0][0][0][0] == "Subscribed"
    assert records == [(True, True), (False, False)]
