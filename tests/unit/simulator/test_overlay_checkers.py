"""The checkers of trees and roots."""

from __future__ import annotations

from distributary.broker.host import Neighbour, Surroundings
from distributary.broker.settings import Settings, ns
from distributary.broker.telemetry import Refined, TreeLinked
from distributary.simulator.checkers.overlay import RootsCheck, TreesCheck
from distributary.simulator.world import World

MEMBERS = ("1a", "1b", "7c", "e0")


class Near:
    """A network with a delay of a millisecond."""

    def arrivals(self, sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        return (now_ns + 1_000_000,)


def overlay(views: dict[str, tuple[str, ...]]) -> World:
    """Return brokers that were told of different members."""
    world = World(Settings(), Near(), seed=0)
    for member, view in views.items():
        neighbours = tuple(Neighbour(other, 1_000_000) for other in MEMBERS if other != member)
        world.add(member, Surroundings(neighbours, view))
    return world


def test_a_tree_in_which_everybody_hangs_from_the_root_is_all_right() -> None:
    trees = TreesCheck(lambda: {"root"})
    trees.watch("a", TreeLinked("t", "root"), 0)
    trees.watch("b", TreeLinked("t", "a"), 1)
    trees.watch("a", Refined("s", "i"), 2)
    trees.finish(9)
    assert trees.violations == []
    assert trees.links == 2


def test_a_ring_is_seen() -> None:
    trees = TreesCheck(lambda: {"root"})
    trees.watch("a", TreeLinked("t", "b"), 0)
    trees.watch("b", TreeLinked("t", "a"), 0)
    trees.finish(9)
    assert all("ring" in violation.what for violation in trees.violations)
    assert len(trees.violations) == 2


def test_a_broker_below_one_that_has_left_is_seen() -> None:
    trees = TreesCheck(lambda: {"root"})
    trees.watch("a", TreeLinked("t", "root"), 0)
    trees.watch("b", TreeLinked("t", "a"), 1)
    trees.watch("a", TreeLinked("t", None), 2)
    trees.finish(9)
    assert [v.what for v in trees.violations] == ["b hangs from a, no root, in t"]


def test_links_of_brokers_that_are_lost_for_ever_do_not_count() -> None:
    trees = TreesCheck(lambda: {"root"}, {"a"})
    trees.watch("a", TreeLinked("t", "gone"), 0)
    trees.finish(9)
    assert trees.violations == []


def test_brokers_that_know_each_other_agree_on_roots() -> None:
    world = overlay(dict.fromkeys(MEMBERS, MEMBERS))
    world.run_until(ns(1.0))
    checker = RootsCheck(world, [f"{k:02x}" for k in range(256)])
    checker.finish(world.now_ns)
    assert checker.violations == []


def test_a_broker_that_misses_another_one_is_seen() -> None:
    world = overlay({**dict.fromkeys(MEMBERS, MEMBERS), "e0": ("e0",)})
    checker = RootsCheck(world, ["00", "1b"])
    checker.finish(world.now_ns)
    (violation,) = checker.violations
    assert violation.what == "e0 takes 0 to be up that are not, and misses 3 of 4"


def test_a_broker_that_believes_in_a_dead_one_is_seen() -> None:
    world = overlay(dict.fromkeys(MEMBERS, MEMBERS))
    world.crash("7c")
    checker = RootsCheck(world, ["00"])
    checker.finish(world.now_ns)
    assert len(checker.violations) == 3
