"""Overload: three times as much to publish as brokers can do, for a minute of virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.broker.metered import metered
from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    result_hash,
)
from distributary.broker.client import Accepted
from distributary.broker.dissemination.messages import Offer, Portion
from distributary.broker.encoding import decode
from distributary.broker.links.messages import Hop, Routed
from distributary.simulator import Simulation, read_scenario

__all__ = ["STUDY", "Repeats"]

_SCENARIO = Path(__file__).parents[2] / "scenarios" / "overload.toml"
_SEED = 1
_KINDS = ("Hop", "Offer", "Portion", "Accepted")


@dataclass(frozen=True)
class _Parameters:
    """How long brokers take over a message, and how much is published in how many seconds."""

    message_ms: float
    publications: int
    seconds: float


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(20.0, 160, 10.0),
    "large": _Parameters(5.0, 3_840, 60.0),
}


class Repeats:
    """Counts what brokers send, and what they send again."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        self._seen: set[object] = set()

    def listen(self, sender: str, to: str, message: object, now_ns: int) -> None:
        """Take note of a message."""
        if isinstance(message, Hop):
            if self._count("Hop", (sender, to, message.number)):
                self._carried(sender, decode(message.message))
        elif isinstance(message, Accepted):
            # A client that is answered twice has published something twice.
            self._count("Accepted", (to, message.session, message.number))

    def _carried(self, sender: str, message: object) -> None:
        if isinstance(message, Routed) and message.origin == sender:
            carried = decode(message.message)
            if isinstance(carried, Offer):
                self._count("Offer", (carried.item.identity, carried.root))
        elif isinstance(message, Portion) and message.root == sender:
            self._count("Portion", (message.item.identity, tuple(sorted(message.plan.homes()))))

    def _count(self, kind: str, what: object) -> bool:
        new = what not in self._seen
        self.sent[kind] += 1
        self.again[kind] += not new
        self._seen.add(what)
        return new


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    scenario = read_scenario(_SCENARIO)
    begin_s = scenario.workload.begin_s
    scenario = replace(
        scenario,
        overlay=replace(scenario.overlay, message_ms=parameters.message_ms),
        workload=replace(
            scenario.workload,
            publications=parameters.publications,
            duration_s=begin_s + parameters.seconds,
        ),
        # Processors are the limit here, and not what homes keep for a while.
        settings=replace(
            scenario.settings,
            publishing=replace(scenario.settings.publishing, items_max=parameters.publications),
        ),
    )
    progress(f"{parameters.publications:,} publications in {parameters.seconds:g} s")
    simulation, repeats = Simulation(scenario, seed=_SEED), Repeats()
    simulation.world.listeners.append(repeats.listen)
    with metered() as meter:
        simulation.run()
    accepted_ns = [entry.accepted_ns for entry in simulation.ledger.published.values()]
    last_s = max(at_ns or 0 for at_ns in accepted_ns) / 1e9
    capacity = parameters.publications / (last_s - begin_s)
    offered = parameters.publications / parameters.seconds
    again = sum(repeats.again[kind] for kind in _KINDS)
    share = 100.0 * again / sum(repeats.sent[kind] for kind in _KINDS)
    longest_ms = meter.counts.longest_ns / 1e6
    once = simulation.exactly_once
    row = (
        offered,
        capacity,
        simulation.pressure.busy / parameters.publications,
        share,
        longest_ms,
        once.owed - once.made,
    )
    return Findings(
        tables=(
            Table(
                "More to publish than brokers can do",
                "speed",
                (
                    Column("offered per s", 1),
                    Column("accepted per s", 1),
                    Column("told to wait, per publication", 1),
                    Column("sent again, %", 2),
                    Column("longest turn, ms", 1),
                    Column("lost"),
                ),
                (row,),
                notes=f"`scenarios/overload.toml`, {parameters.message_ms:g} ms for each message; "
                "sent again are messages on links, offers, portions and publications.",
            ),
        ),
        claims=(
            Claim("publishers are told to wait", simulation.pressure.busy, ">=", 1, "times"),
            Claim("sent again", share, "<=", 2.0, "% of all"),
            Claim("the longest turn", longest_ms, "<=", 100.0, "ms"),
            Claim("accepted and not delivered", once.owed - once.made, "<=", 0, "deliveries"),
            Claim("violations", len(simulation.violations), "<=", 0, "in the run"),
        ),
        result_hash=result_hash([simulation.world.log_hash, once.made]),
    )


STUDY = Study(
    "broker-overload",
    "Publishers have about three times as much as six brokers can do, whose processors take some "
    "milliseconds over each message. They are told to wait; how much is sent again, and how long "
    "does the longest turn take?",
    2.0,
    _run,
)
