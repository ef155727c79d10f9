"""Scenarios: an overlay, what is published and wanted in it, and what goes wrong.

A class whose name ends in `Table` is a table of the file, as are `Shift` and `Fault`. What their
fields mean stands in `docs/simulator.md`, which has every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from distributary.arguments import checked_fields
from distributary.broker.settings import PERIOD_S_MIN, Settings
from distributary.content.tables import bounded, fraction, one_of, pair
from distributary.placement.dissemination import BANDWIDTH_BASELINE

__all__ = [
    "FAULT_KINDS",
    "REPEAT_S_MAX",
    "SMALL_BROKERS_MAX",
    "AdaptationTable",
    "ContentTable",
    "Fault",
    "OverlayTable",
    "Scenario",
    "Shift",
    "WorkloadTable",
]

SMALL_BROKERS_MAX = 64
_BROKERS_MAX = 4096
_COUNT_MAX = 1_000_000
_SECONDS_MAX = 1e6
_MILLISECONDS_MAX = 1e6
# Factors that something is divided by.
_FACTOR_MIN = 1e-6
# The longest that a client waits for an answer before it asks again.
REPEAT_S_MAX = 8.0

FAULT_KINDS = (
    "drop",
    "duplicate",
    "reorder",
    "delay",
    "partition",
    "crash",
    "lost",
    "leave",
    "slow",
    "skew",
    "slew",
    "detached",
    "torn",
    "commit",
    "full",
    "handler",
    "conversion",
    "converters",
    "oversize",
    "fetch",
    "content",
    "upgrade",
    "mix",
)


@dataclass(frozen=True)
class OverlayTable:
    """`[overlay]`: brokers, the network between them, and how fast they are."""

    brokers: int = bounded(32, 1, _BROKERS_MAX)
    topology: str = one_of("unit-square", "unit-square", "power-law", "gml", "delays")
    file: str | None = None
    at: tuple[str, ...] = ()
    unit: str = one_of("ms", "s", "ms", "us")
    round_trip: bool = False
    routers: int = bounded(3_500, 2, 50_000)
    delay_ms_mean: float | None = bounded(None, 0.0, _MILLISECONDS_MAX)
    bandwidth_mbps: float | None = bounded(None, 0.0, 1e6)
    loss: float = fraction(0.0)
    heterogeneity: str = one_of("none", "none", "weak", "strong")
    access_delay_ms: float = bounded(2.0, 0.0, _MILLISECONDS_MAX)
    access_mbps: float = bounded(0.0, 0.0, 1e6)
    access_loss: float = fraction(0.0)
    message_ms: float = bounded(0.0, 0.0, _MILLISECONDS_MAX)
    filter_ms: float = bounded(0.0, 0.0, _MILLISECONDS_MAX)
    send_ms: float = bounded(0.0, 0.0, _MILLISECONDS_MAX)
    plan_ms: float = bounded(0.0, 0.0, _MILLISECONDS_MAX)
    commit_ms: float = bounded(0.0, 0.0, _MILLISECONDS_MAX)
    join: str = one_of("together", "together", "one-by-one")

    @property
    def link_mbps(self) -> float:
        """The bandwidth of a link that costs 1; 0 when it is unlimited.

        Where links differ they differ in bandwidth, which cannot be without limit then
        unless the scenario says so.
        """
        if self.bandwidth_mbps is not None:
            return self.bandwidth_mbps
        return 0.0 if self.heterogeneity == "none" else BANDWIDTH_BASELINE


@dataclass(frozen=True)
class ContentTable:
    """`[content]`: what is published, and how it is planned."""

    graph: str = "none"
    formats: tuple[str, ...] = ()
    newer_formats: tuple[str, ...] = ()
    newer_share: float = fraction(0.0)
    source: str | None = None
    megabytes: tuple[float, float] = pair((0.6, 2.0), 1e-6, 1e4)
    share: float = fraction(1.0)
    tree: str = one_of("estimated", "estimated", "discovered")
    method: str = "auto"
    alpha: float = bounded(1.0, 0.0, 1e6)
    beta: float = bounded(1.0, 0.0, 1e6)
    delay_weight: float = bounded(0.3, 0.0, 1e6)
    load_growth: float = bounded(5.0, 0.0, 1e6)
    compare: bool = True


@dataclass(frozen=True)
class Shift:
    """`[workload.shift]`: what changes at some time; factors on what was before."""

    at_s: float = bounded(0.0, 0.0, _SECONDS_MAX)
    load: float = bounded(1.0, _FACTOR_MIN, 1e6)
    delays: float = bounded(1.0, 0.0, 1e6)
    tolerances: float = bounded(1.0, _FACTOR_MIN, 1e6)
    rates: float = bounded(1.0, 0.0, 1e6)


@dataclass(frozen=True)
class WorkloadTable:
    """`[workload]`: clients, and what they do."""

    begin_s: float = bounded(10.0, 0.0, _SECONDS_MAX)
    duration_s: float = bounded(60.0, 0.0, _SECONDS_MAX)
    settle_s: float = bounded(60.0, 0.0, _SECONDS_MAX)
    tenants: int = bounded(1, 1, 1000)
    subscriptions: int | None = bounded(None, 0, _COUNT_MAX)
    publishers: int = bounded(4, 0, _COUNT_MAX)
    pipeline: int = bounded(1, 1, 1_000)
    sources: int = bounded(1, 1, 1_000)
    restarts: int = bounded(0, 0, _COUNT_MAX)
    foreign: float = fraction(0.0)
    publications: int = bounded(0, 0, _COUNT_MAX)
    matching: float = fraction(0.1)
    types: int = bounded(12, 1, 4096)
    skew: float = bounded(1.0, 0.0, 10.0)
    originals: float = fraction(0.2)
    advertise: bool = False
    late: float = fraction(0.0)
    unsubscribing: float = fraction(0.0)
    expiring: float = fraction(0.0)
    stuck: float = fraction(0.0)
    away: float = fraction(0.0)
    away_s: tuple[float, float] = pair((5.0, 20.0), 0.0, _SECONDS_MAX)
    delay_s_max: float = bounded(0.0, 0.0, _SECONDS_MAX)
    changing: float = fraction(0.0)
    changes: int = bounded(2, 1, 100)
    twins: float = fraction(0.0)
    storm_at_s: float = bounded(0.0, 0.0, _SECONDS_MAX)
    storm_publications: int = bounded(0, 0, _COUNT_MAX)
    register_prices: bool = False
    publisher_prices: bool = False
    reattach_s: float = bounded(10.0, 0.0, _SECONDS_MAX)
    objects: int = bounded(0, 0, 100_000)
    interest: float = fraction(0.6)
    rates: tuple[float, float] = pair((0.01, 0.03), 0.0, 1e4)
    tolerances: tuple[float, float] = pair((0.02, 0.4), 1e-9, 1e9)
    divergences: tuple[str, ...] = ("absolute",)
    stream_publishers: int = bounded(1, 1, _COUNT_MAX)
    shift: Shift | None = None


@dataclass(frozen=True)
class AdaptationTable:
    """`[adaptation]`: how stream trees adapt; what is not given is as the settings have it."""

    enabled: bool = True
    window_s: float = bounded(50.0, PERIOD_S_MIN, _SECONDS_MAX)
    round_s: float = bounded(200.0, PERIOD_S_MIN, _SECONDS_MAX)
    tau: float = bounded(0.2, 0.0, 1e3)
    hold_s: float = bounded(20.0, PERIOD_S_MIN, _SECONDS_MAX)
    approach: str = one_of("tree-each", "tree-each", "one-tree")
    conflate: bool = True


@dataclass(frozen=True)
class Fault:
    """One of `[[fault]]`."""

    kind: str = one_of(None, *FAULT_KINDS)
    at_s: float = bounded(0.0, 0.0, _SECONDS_MAX)
    until_s: float | None = bounded(None, 0.0, _SECONDS_MAX)
    after: str | None = None
    message: str | None = None
    brokers: tuple[int, ...] = bounded((), 0, _BROKERS_MAX)
    count: int | None = bounded(None, 1, _COUNT_MAX)
    share: float | None = fraction(None)
    rate: float = fraction(0.1)
    extra_ms: float = bounded(500.0, 0.0, _MILLISECONDS_MAX)
    factor: float = bounded(20.0, _FACTOR_MIN, 1e6)
    seconds: float = bounded(0.5, 0.0, 3600.0)
    kilobytes: float = bounded(100.0, 0.0, 1e9)


@checked_fields
@dataclass(frozen=True)
class Scenario:
    """All that a run follows from, with a seed.

    Attributes
    ----------
    path
        The file; other files that it names stand beside it.
    size
        `small`: at most 64 brokers and a few seconds. `large`: anything.
    settings
        What its brokers agree on.
    newer
        The settings of some brokers that are ahead of the others, with another graph.
    """

    name: str
    path: Path
    size: str
    settings: Settings
    overlay: OverlayTable = field(default_factory=OverlayTable)
    content: ContentTable = field(default_factory=ContentTable)
    workload: WorkloadTable = field(default_factory=WorkloadTable)
    faults: tuple[Fault, ...] = ()
    newer: Settings | None = None
