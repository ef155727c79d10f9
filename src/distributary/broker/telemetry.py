"""Telemetry: what a broker counts, times and tells whoever watches it.

The protocol does not need any of it; planning goes by some of the times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "Adapted",
    "ConversionTime",
    "CopyChanged",
    "Delivered",
    "HopTime",
    "Measured",
    "Measurements",
    "Migrated",
    "Misbehaved",
    "MoveRefused",
    "Planned",
    "PublishedShare",
    "Refined",
    "SetAsideMessage",
    "SettingsDiffer",
    "StreamRate",
    "TransferTime",
    "TreeLinked",
    "TreeOrdered",
    "Worth",
]


class Worth(NamedTuple):
    """What a plan costs before weighting, and the predicted delays of its deliveries together."""

    transmission: float
    conversion: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A rendezvous broker planned a publication.

    Attributes
    ----------
    broker_count
        How many brokers the tree has that it planned on.
    chosen
        Which of the plans it compared was the best: a simple one by its name, or `planned`
        or `planned under load`.
    worth
        What it costs on that tree, and how late its deliveries should be.
    all_in_root, all_in_leaves
        The same for these plans in the same state; None when not compared.
    """

    source: str
    id: str
    broker_count: int
    chosen: str
    worth: Worth
    all_in_root: Worth | None
    all_in_leaves: Worth | None
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Refined:
    """A broker found other next hops than the plan had, and planned its subtree anew."""

    source: str
    id: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A home broker gave a publication its number in a subscription of a client."""

    client: str
    subscription: str
    number: int
    source: str
    id: str
    media_type: str


@dataclass(frozen=True, slots=True)
class CopyChanged:
    """A broker's copy of a stream object changed; `sequence` is the source's change number."""

    source: str
    subject: str
    sequence: int


@dataclass(frozen=True, slots=True)
class TreeLinked:
    """A broker's parent in a stream tree changed; None when it has left or is the root."""

    tree: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class Adapted:
    """A broker made a move in a stream tree."""

    tree: str
    move: str
    gain: float


@dataclass(frozen=True, slots=True)
class Migrated:
    """A client's new home broker has taken over."""

    client: str
    home: str


@dataclass(frozen=True, slots=True)
class MoveRefused:
    """A broker had no room for a client, which stays where it is; `reason` says for what."""

    client: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class SettingsDiffer:
    """A peer has other settings than this broker, or another adaptation graph.

    Attributes
    ----------
    what
        `settings` or `graph`.
    digest
        Of what the peer has; it is reported once.
    """

    peer: str
    what: str
    digest: int


@dataclass(frozen=True, slots=True)
class Misbehaved:
    """A peer sent a message that breaks the protocol; it was dropped."""

    peer: str
    problem: str


@dataclass(frozen=True, slots=True)
class SetAsideMessage:
    """The broker failed over a message, which counts as handled now.

    Attributes
    ----------
    kind
        The message's, or that of the message that it carried.
    problem
        How the broker failed.
    """

    peer: str
    kind: str
    problem: str


@dataclass(frozen=True, slots=True)
class TreeOrdered:
    """What became of an order to bring a tree into a shape.

    Attributes
    ----------
    moved
        How many brokers have the parent that was wanted.
    refused
        (broker, parent): those that have not, and could not go there or did not answer.
    reason
        Why nothing was tried at all; empty when it was.
    """

    tree: str
    moved: int
    refused: tuple[tuple[str, str], ...]
    reason: str = ""


class HopTime(NamedTuple):
    """How long a peer took on average to acknowledge messages that were sent once."""

    peer: str
    messages: int
    mean_s: float


class ConversionTime(NamedTuple):
    """How long conversions took altogether, and what came of it.

    Attributes
    ----------
    seconds
        From when they were asked for.
    bytes
        Of what was made.
    origin_bytes
        Of what it was made from.
    work_s
        How long converters were at it, as the host has measured.
    """

    origin: str
    target: str
    conversions: int
    seconds: float
    bytes: int
    origin_bytes: int
    work_s: float


class TransferTime(NamedTuple):
    """How much content has come from a peer, and how long it was on its way, by the host."""

    peer: str
    transfers: int
    seconds: float
    bytes: int


class StreamRate(NamedTuple):
    """How many versions of an object a child was sent in a second, in the last window of rates."""

    tenant: str
    source: str
    subject: str
    child: str
    rate: float


class PublishedShare(NamedTuple):
    """What a client has published in a cell."""

    client: str
    cell: int
    publications: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What a broker has measured in a window.

    Attributes
    ----------
    window_s
        How long that was.
    delivered
        (format, count) of what was queued for clients.
    members
        (`came`, `down` or `gone`, count) of brokers.
    service
        (`filter` or `send`, seconds): how long the processor takes over a version for one
        child, as its host has measured; none before that.
    """

    window_s: float
    hops: tuple[HopTime, ...]
    conversions: tuple[ConversionTime, ...]
    published: tuple[PublishedShare, ...]
    delivered: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, int], ...]
    transfers: tuple[TransferTime, ...]
    rates: tuple[StreamRate, ...]
    service: tuple[tuple[str, float], ...]


_NS_PER_SECOND = 1e9


class Measurements:
    """What one broker has measured in the present window, and in the last.

    They are collected in windows. At the end of one the broker reports it as telemetry and
    begins the next, so that counting costs an addition and nothing grows.
    """

    def __init__(self) -> None:
        self._last: Measured | None = None
        self.start(0)

    def start(self, now_ns: int) -> None:
        """Begin a window."""
        self._since_ns = now_ns
        self._hops: dict[str, tuple[int, int]] = {}
        self._conversions: dict[tuple[str, str], ConversionTime] = {}
        self._transfers: dict[str, TransferTime] = {}
        self._published: dict[tuple[str, int], tuple[int, int]] = {}
        self._delivered: Counter[str] = Counter()
        self._members: Counter[str] = Counter()

    def hop(self, peer: str, took_ns: int) -> None:
        """Note how long a peer took to acknowledge a message that was sent once."""
        count, sum_ns = self._hops.get(peer, (0, 0))
        self._hops[peer] = (count + 1, sum_ns + took_ns)

    def conversion(self, one: ConversionTime) -> None:
        """Add a conversion to those between the same formats."""
        sums = self._conversions.get((one.origin, one.target))
        self._conversions[one.origin, one.target] = one if sums is None else _added(sums, one)

    def transfer(self, peer: str, seconds: float, size_bytes: int) -> None:
        """Note that content has come from a peer."""
        sums = self._transfers.get(peer, TransferTime(peer, 0, 0.0, 0))
        self._transfers[peer] = TransferTime(
            peer, sums.transfers + 1, sums.seconds + seconds, sums.bytes + size_bytes
        )

    def published(self, client: str, cell: int, size_bytes: int) -> None:
        """Note that a client has published something."""
        count, sum_bytes = self._published.get((client, cell), (0, 0))
        self._published[client, cell] = (count + 1, sum_bytes + size_bytes)

    def delivered(self, media_type: str) -> None:
        """Note that something got its number in a subscription."""
        self._delivered[media_type] += 1

    def members(self, *, came: int, down: int, gone: int) -> None:
        """Note that brokers have come or gone."""
        self._members.update(came=came, down=down, gone=gone)

    def end_window(
        self,
        now_ns: int,
        *,
        rates: tuple[StreamRate, ...] = (),
        service: tuple[tuple[str, float], ...] = (),
    ) -> Measured:
        """Return what was measured since the last time.

        Parameters
        ----------
        rates, service
            As in `Measured`; others measure these.
        """
        measured = Measured(
            (now_ns - self._since_ns) / _NS_PER_SECOND,
            tuple(
                HopTime(peer, count, sum_ns / count / _NS_PER_SECOND)
                for peer, (count, sum_ns) in sorted(self._hops.items())
            ),
            tuple(one for _, one in sorted(self._conversions.items())),
            tuple(
                PublishedShare(*place, count, sum_bytes)
                for place, (count, sum_bytes) in sorted(self._published.items())
            ),
            tuple(sorted(self._delivered.items())),
            tuple(sorted((what, n) for what, n in self._members.items() if n)),
            tuple(one for _, one in sorted(self._transfers.items())),
            rates,
            service,
        )
        self.start(now_ns)
        self._last = measured
        return measured

    def snapshot(self) -> dict[str, Any]:
        """Return the last window, as plain data."""
        last = self._last
        if last is None:
            return {}
        return {
            "window_s": last.window_s,
            "hops": [one._asdict() for one in last.hops],
            "conversions": [one._asdict() for one in last.conversions],
            "published": [one._asdict() for one in last.published],
            "delivered": dict(last.delivered),
            "members": dict(last.members),
            "transfers": [one._asdict() for one in last.transfers],
            "rates": [one._asdict() for one in last.rates],
            "service": dict(last.service),
        }


def _added(one: ConversionTime, other: ConversionTime) -> ConversionTime:
    return ConversionTime(
        one.origin,
        one.target,
        one.conversions + other.conversions,
        one.seconds + other.seconds,
        one.bytes + other.bytes,
        one.origin_bytes + other.origin_bytes,
        one.work_s + other.work_s,
    )
