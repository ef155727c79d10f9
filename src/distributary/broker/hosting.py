"""Hosting: what a driver needs of whoever runs a broker, and loads before a broker's first turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from distributary.broker.addresses import Address
from distributary.broker.blob import Blob
from distributary.broker.broker import Broker
from distributary.broker.formats import Formats
from distributary.broker.migration.choice import Summary, best_home
from distributary.broker.plan_part import NOTHING_BEFORE, Grant, Home
from distributary.broker.planning import PlanningProblem, plan_tree, tree_along
from distributary.broker.settings import ContentSettings, Settings
from distributary.content import AdaptationGraph, Publication
from distributary.fidelity.local import LocalView, best_move
from distributary.filters import Filter, Index

__all__ = ["Host", "load_compiled"]


class Host(Protocol):
    """What a driver needs of whoever runs a broker.

    A host calls `Driver.start` once, then `receive` for every message, `wake` when it is time,
    `serve` for every ticket, one after the other. Nothing here calls the driver back before it
    returns; what is to be answered is answered later.
    """

    def now_ns(self) -> int:
        """Return the time by the host's clock.

        It may be set back: a broker goes by a time of its own that never does.
        """

    def restore(self) -> Broker:
        """Return a broker as its journal has it, by `Broker.restore`, that is not started.

        It is called again after a failure. What an earlier broker asked for may
        be forgotten with it; who answers all the same does no harm.
        """

    def first(self) -> Sequence[object]:
        """Return what a broker is told before it starts: where it stands, and what it must know.

        Nothing that the host has said stays with a broker that is restored. It is told
        here what its content store has (`ContentHeld`), as no journal says it.
        """

    def commit(self, writes: Mapping[str, bytes | None]) -> bool:
        """Make records durable, all or none: bytes by key; None erases what is there.

        Return whether it is done. If not, the host calls `Driver.committed` once it is, or
        `Driver.commit_failed`. There is never more than one commit under way. One that fails
        at once raises. A host that still has hope tries again before it says so, because
        a broker whose commit has failed loses a message.
        """

    def send(self, to: Address, message: object) -> None:
        """Send a message, which may get lost, behind those that were sent before.

        To another broker it is encoded in `Broker.version`.
        """

    def convert(self, ticket: int, blob: Blob, target: str, data: bytes | None) -> None:
        """Convert content; `receive` the answer, `Converted` or `ConversionRefused`.

        The same ticket comes again while there is no answer, and is not begun a second time.
        The bytes are in the host's content store, or in `data`; those of the result are durable
        in the store before the answer is given.
        """

    def fetch(self, ticket: int, blob: Blob, holder: str) -> None:
        """Get bytes from the host of another broker; `receive` `Fetched` or `FetchFailed`.

        Likewise. They are durable in the store before `Fetched` is given. A host that is asked
        for bytes which it does not have says so for good, unless its own broker is still to get
        them (`Broker.awaits`). It tells its broker of those that it has given away
        (`ContentUsed`).
        """

    def free(self, digest: str) -> None:
        """Delete bytes from the content store, if they are there."""

    def make_plan(self, ticket: int, problem: PlanningProblem) -> None:
        """Solve a problem beside the broker; `receive` the answer, `PlanMade`, likewise."""

    def serve(self, ticket: int) -> None:
        """Call `Driver.serve` with the ticket when the processor gets round to it."""

    def spend(self, works: Sequence[str]) -> None:
        """Take the time that kinds of work need before carrying out what follows.

        Where work takes its time by itself there is nothing to do.
        """

    def report(self, record: object) -> None:
        """Tell whoever watches."""

    def wake_at(self, at_ns: int) -> None:
        """Call `Driver.wake` when the host's clock shows this; it replaces a later one.

        A time that has passed asks for another turn at once, behind what has arrived meanwhile.
        """

    def failed(self, error: Exception, message: object | None) -> None:
        """Write down that a turn failed, with the message that it was about, if it was about one.

        The broker is restored afterwards. A host that is there to find faults raises.
        """

    def left(self) -> None:
        """Hear that the broker has left the overlay in good order, and may be stopped."""

    def stopped(self, reason: str) -> None:
        """Hear that the broker is stopped for good because it fails again and again."""


_EVENT = Publication.parse({"specversion": "1.0", "id": "-", "source": "-", "type": "-"})


def load_compiled(settings: Settings) -> None:
    """Load all that brokers with these settings need, once in a process.

    What plans, matches, finds cells and weighs moves is compiled, and kept on disk from one
    process to the next. To load it takes a tenth of a second, in which a broker that has begun
    would be deaf to everybody.
    """
    settings.space.cell_of(_EVENT)
    _load_planner(settings.content.method)
    _load_index()
    _load_moves()


@cache
def _load_planner(method: str) -> None:
    """Plan for a home that wants something converted, while the root is busy."""
    graph = AdaptationGraph(
        ("a", "b"), np.array([1.0, 0.5]), np.array([[np.inf, 1.0], [np.inf, np.inf]])
    )
    plan_tree(
        Formats(graph, graph, 0, universal=False),
        tree_along("root", 1.0, {"home": (("home", 1.0, 1.0),)}),
        held=(0,),
        homes={"home": Home(NOTHING_BEFORE, (Grant("", "b"),))},
        waits_s={"root": 1.0},
        settings=ContentSettings(method=method),
    )


@cache
def _load_index() -> None:
    """Match one event with an index of one filter."""
    index = Index()
    index.add_all([("-", Filter.parse([{"exact": {"type": "-"}}]))])
    assert index.match(_EVENT) == ["-"]


@cache
def _load_moves() -> None:
    """Weigh the moves in a tree of three brokers, and those of a client between two."""
    ones, zeros = np.ones(3), np.zeros(3)
    none = np.zeros(3, dtype=np.int64)
    best_move(
        LocalView(
            names=("a", "b", "c"),
            parents=np.array([-1, 0, 1]),
            rates=ones[:, None],
            weights=ones,
            filter_times=1e-3 * ones,
            send_times=1e-3 * ones,
            delays=np.ones((3, 3)),
            elsewhere=np.zeros((3, 3)),
            below_count=none,
            below_receivers=none[:, None],
            below_passed=zeros[:, None],
            below_weight=zeros,
        )
    )
    client = Summary({0: 1.0}, frozenset({0}), {"a": 1.0, "b": 1.0})
    best_home(client, "a", {"a": client, "b": client}, ("a", "b"))
