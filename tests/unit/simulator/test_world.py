"""The world: virtual time, disks, processors and converters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from distributary.broker.addresses import Address, Blob
from distributary.broker.core import Handler, Part
from distributary.broker.encoding import encodable, encode
from distributary.broker.host import ConversionRefused, Converted, Turn
from distributary.broker.settings import Settings, ns
from distributary.simulator.conversions import ConversionOutcome
from distributary.simulator.world import World

ONE, TWO = "0000000a", "f000000b"
GRAPH = (
    '{"formats": [{"name": "a/a", "size": {"fixed": 0, "per_mb": 1}},'
    '{"name": "b/b", "size": {"fixed": 0.1, "per_mb": 0}},'
    '{"name": "c/c", "size": {"fixed": 0, "per_mb": 0.5}}],'
    '"conversions": [{"from": "a/a", "to": "b/b", "cost": {"fixed": 1, "per_mb": 1}},'
    '{"from": "b/b", "to": "c/c", "cost": {"fixed": 0, "per_mb": 2}}]}'
)

EVERYTHING = """
size = "small"

[overlay]
brokers = 10
filter_ms = 5
send_ms = 1

[content]
graph = "map"
formats = ["application/pdf", "image/jpeg;width=320", "text/plain;charset=utf-8"]

[workload]
publications = 20
publishers = 3
matching = 0.4
register_prices = true
objects = 3
interest = 0.7
rates = [0.3, 1.0]
stream_publishers = 1
begin_s = 8
duration_s = 34
settle_s = 60

[adaptation]
window_s = 4
round_s = 6
hold_s = 3

[settings.migration]
enabled = true
period_s = 5
clients = 3
threshold = 0.05
redirect_s = 3

[[fault]]
kind = "crash"
count = 1
at_s = 16
until_s = 21

[[fault]]
kind = "skew"
seconds = 0.5
"""


@encodable(60_011)
@dataclass(frozen=True, slots=True)
class Work:
    """Asks the part under test for some effects."""

    name: str


@encodable(60_012)
@dataclass(frozen=True, slots=True)
class Done:
    """What the part under test answers."""

    name: str
    clock_ns: int


class Bench(Part):
    """Turns the names of messages into effects: what a world is to carry out."""

    name = "bench"

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.kept: dict[str, Any] = {}

    def handlers(self) -> Mapping[type, Handler]:
        return {Work: self._work, Done: self._done}

    def load(self, key: str, record: Any) -> None:
        self.kept[key] = record

    def _done(self, message: Done, sender: Address, turn: Turn) -> None:
        pass

    def _work(self, message: Work, sender: Address, turn: Turn) -> None:
        verb, _, rest = message.name.partition(":")
        if verb == "serve":
            self.core.serve(turn, self._served, rest)
        elif verb == "echo":
            turn.send("@c", Done(rest, turn.now_ns))
        elif verb == "keep":
            turn.persist(f"bench/{rest}", message)
            turn.send("@c", Done(rest, turn.now_ns))
        elif verb == "promise":
            turn.send("@c", Done(rest, turn.now_ns))
            turn.persist(f"bench/{rest}", message)
        elif verb == "convert":
            blob = Blob.imagined("a/a", 2_000_000, "x")
            self.core.convert(turn, blob, rest, self._converted, rest)
        elif verb == "chain":
            blob = Blob.imagined("a/a", 2_000_000, "x")
            self.core.convert(turn, blob, "b/b", self._chained)

    def _served(self, turn: Turn, rest: str) -> None:
        turn.spend("filter")
        turn.send("@c", Done(rest, turn.now_ns))

    def _converted(self, turn: Turn, answer: Converted | ConversionRefused, rest: str) -> None:
        words = answer.reason if isinstance(answer, ConversionRefused) else answer.blob.media_type
        size = 0 if isinstance(answer, ConversionRefused) else answer.blob.size_bytes
        turn.send("@c", Done(f"{words} {size}", turn.now_ns))

    def _chained(self, turn: Turn, answer: Converted) -> None:
        self.core.convert(turn, answer.blob, "c/c", self._converted, "")


class Instant:
    """A network on which nothing takes time."""

    def arrivals(self, sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        return (now_ns,)


class Listener:
    """A client that writes down when it hears what."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, str]] = []

    def receive(self, message: object, *, sender: Address, now_ns: int) -> None:
        assert isinstance(message, Done)
        self.heard.append((now_ns / 1e9, message.name))


def bench(seed: int = 0, **options: Any) -> tuple[World, Listener]:
    world = World(Settings(graph=GRAPH), Instant(), seed=seed, parts={"bench": Bench}, **options)
    listener = world.clients["@c"] = Listener()
    world.add(ONE)
    return world, listener


def test_a_processor_takes_one_job_after_the_other_and_takes_its_time() -> None:
    world, listener = bench()
    world.nodes[ONE].service_ns = {"filter": 1e9}
    for name in ("serve:a", "serve:b", "serve:c"):
        world.send("@c", ONE, Work(name))
    world.run_until(ns(60.0))
    times = [at for at, _ in listener.heard]
    assert [name for _, name in listener.heard] == ["a", "b", "c"]
    assert 0.0 < times[0] < times[1] < times[2]


def test_mean_times_are_kept_to_in_the_long_run() -> None:
    world, listener = bench()
    world.nodes[ONE].service_ns = {"filter": 0.5e9}
    for k in range(2000):
        world.send("@c", ONE, Work(f"serve:{k}"))
    world.run_until(ns(2000.0))
    assert len(listener.heard) == 2000
    assert listener.heard[-1][0] / 2000 == pytest.approx(0.5, rel=0.1)


def test_what_a_busy_broker_wants_done_waits_behind_its_work() -> None:
    """Effects are carried out in order, whichever message they came of."""
    world, listener = bench()
    world.nodes[ONE].service_ns = {"filter": 1e9}
    world.send("@c", ONE, Work("serve:slow"))
    world.at(1, world.send, "@c", ONE, Work("echo:quick"))
    world.run_until(ns(60.0))
    (first, slow), (second, quick) = listener.heard
    assert (slow, quick) == ("slow", "quick")
    assert first == second > 0.0


def test_without_times_jobs_are_done_in_the_instant() -> None:
    world, listener = bench()
    world.send("@c", ONE, Work("serve:a"))
    world.run_until(0)
    assert listener.heard == [(0.0, "a")]


def test_taking_a_message_takes_time_where_the_scenario_says_so() -> None:
    world, listener = bench()
    world.nodes[ONE].message_ns = 1e9
    world.send("@c", ONE, Work("echo:a"))
    world.send("@c", ONE, Work("echo:b"))
    world.run_until(ns(60.0))
    (first, a), (second, b) = listener.heard
    assert (a, b) == ("a", "b")
    assert 0.0 < first < second


def test_a_slow_node_takes_longer_by_its_factor() -> None:
    times = []
    for slowness in (1.0, 10.0):
        world, listener = bench()
        world.nodes[ONE].service_ns = {"filter": 1e9}
        world.nodes[ONE].slowness = slowness
        world.send("@c", ONE, Work("serve:a"))
        world.run_until(ns(600.0))
        times.append(listener.heard[0][0])
    assert times[1] == pytest.approx(10.0 * times[0])


def test_conversions_take_the_time_and_have_the_size_of_the_graph_one_after_the_other() -> None:
    world, listener = bench()
    world.nodes[ONE].node_cost = 2.0
    world.send("@c", ONE, Work("convert:b/b"))
    world.send("@c", ONE, Work("convert:b/b"))
    world.run_until(ns(60.0))
    # Two megabytes: 1 + 2 seconds, at a node that takes twice as long.
    assert listener.heard == [(6.0, "b/b 100000"), (12.0, "b/b 100000")]


def test_a_chain_of_conversions_remembers_how_large_the_original_was() -> None:
    world, listener = bench()
    world.send("@c", ONE, Work("chain"))
    world.run_until(ns(60.0))
    assert listener.heard == [(7.0, "c/c 1000000")]


def test_what_the_graph_has_no_conversion_for_is_refused() -> None:
    world, listener = bench()
    world.send("@c", ONE, Work("convert:c/c"))
    world.run_until(ns(1.0))
    assert listener.heard == [(0.0, "a/a cannot be made into c/c 0")]


def test_conversions_can_be_somebody_elses_business() -> None:
    def convert(broker: str, blob: Blob, target: str) -> ConversionOutcome:
        return ConversionOutcome(0.5, Blob.of(target, f"{broker} {blob.digest[:2]}".encode()))

    world, listener = bench(convert=convert)
    world.send("@c", ONE, Work("convert:b/b"))
    world.run_until(ns(1.0))
    assert listener.heard == [(0.5, "b/b 11")]


def test_a_crash_forgets_everything_but_the_disk() -> None:
    world, listener = bench()
    world.nodes[ONE].service_ns = {"filter": 1e9}
    world.send("@c", ONE, Work("keep:one"))
    world.send("@c", ONE, Work("serve:lost"))
    world.send("@c", ONE, Work("convert:b/b"))
    world.run_until(1)
    world.crash(ONE)
    world.restart(ONE)
    world.run_until(ns(60.0))
    assert [name for _, name in listener.heard] == ["one"]
    broker = world.nodes[ONE].broker
    assert broker is not None
    bench_part = broker.core.parts["bench"]
    assert isinstance(bench_part, Bench)
    assert bench_part.kept == {"one": Work("keep:one")}


def test_what_comes_back_from_a_disk_is_not_the_object_that_was_alive() -> None:
    world, _ = bench()
    world.send("@c", ONE, Work("keep:one"))
    world.run_until(1)
    written = Work("keep:one")
    assert world.nodes[ONE].journal["bench/one"] == encode(written)
    world.crash(ONE)
    world.restart(ONE)
    broker = world.nodes[ONE].broker
    assert broker is not None
    part = broker.core.parts["bench"]
    assert isinstance(part, Bench)
    assert part.kept["one"] == written
    assert part.kept["one"] is not written


def torn_world(seed: int, *verbs: str) -> tuple[World, Listener]:
    world, listener = bench(seed)
    gone: list[int] = []
    world.tear(ONE, lambda: gone.append(world.now_ns))
    for verb in verbs:
        world.send("@c", ONE, Work(f"{verb}:x"))
    world.run_until(1)
    assert len(gone) == (world.nodes[ONE].broker is None)
    return world, listener


@pytest.mark.parametrize("verb", ["promise", "keep"])
def test_a_broker_is_torn_away_at_a_commit_and_what_it_sent_is_on_its_disk(verb: str) -> None:
    """Whether it says so before or after: nothing of a turn leaves before its commit."""
    seen = set()
    for seed in range(40):
        world, listener = torn_world(seed, verb)
        assert world.nodes[ONE].broker is None
        seen.add(("bench/x" in world.nodes[ONE].journal, bool(listener.heard)))
    assert seen == {(False, False), (True, False), (True, True)}


def test_a_broker_that_writes_nothing_is_not_torn() -> None:
    world, listener = torn_world(0, "echo")
    assert [name for _, name in listener.heard] == ["x"]
    assert world.nodes[ONE].broker is not None


def test_a_clock_is_as_far_off_as_it_is_set() -> None:
    """That time never goes back is the broker's business."""
    world, _ = bench()
    node = world.nodes[ONE]
    node.skew_ns = 500
    assert node.clock_ns(1000) == 1500
    node.skew_ns = 0
    assert node.clock_ns(1200) == 1200


def test_a_message_to_nobody_goes_nowhere() -> None:
    world, listener = bench()
    world.send("@c", TWO, Work("echo:a"))
    world.send(ONE, "@nobody", Done("a", 0))
    world.run_until(ns(1.0))
    assert listener.heard == []


def test_the_same_seed_gives_the_same_log_and_another_one_another() -> None:
    hashes = []
    for seed in (1, 1, 2):
        world, _ = bench(seed)
        world.nodes[ONE].service_ns = {"filter": 1e9}
        for k in range(20):
            world.send("@c", ONE, Work(f"serve:{k}"))
        world.run_until(ns(100.0))
        hashes.append(world.log_hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_log_does_not_depend_on_how_python_hashes(tmp_path: Path) -> None:
    """Content, streams that adapt, clients that move, and faults."""
    (tmp_path / "all.toml").write_text(EVERYTHING, encoding="utf-8")
    script = (
        "from pathlib import Path;"
        "from distributary.simulator import Simulation, read_scenario;"
        "s = Simulation(read_scenario(Path('all.toml')), seed=5); s.run();"
        "print(s.violations, len(s.adapted) > 0, bool(s.migrated), s.exactly_once.made > 0);"
        "print(s.world.log_hash)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    (printed,) = found
    assert printed.startswith("[] True True True\n")
