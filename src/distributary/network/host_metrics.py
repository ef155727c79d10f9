"""Metrics of a host: what it counts of its broker's work, for whoever plots it.

Counting is on the way of every message, so it is sums in plain dictionaries, since the process
began; names and labels come when somebody asks.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from distributary.broker.addresses import Address, Blob
from distributary.broker.broker import Broker
from distributary.broker.links.messages import Hop
from distributary.broker.telemetry import Adapted, Delivered

__all__ = ["METRICS", "HostMetrics", "Metric"]

# Publishers choose the names of formats, and each is a line of its own for whoever plots them.
_FORMATS_MAX = 200
_OTHER = "other"
# So many plans are remembered, and so many new ones looked at whenever somebody asks.
_PLANS_MAX = 200
_PLANS_AT_ONCE = 10
_CHOSEN, _BASELINES = "chosen", ("all-in-root", "all-in-leaves")


class Metric(NamedTuple):
    """What a metric says, and by what it is told apart at one broker.

    Attributes
    ----------
    is_sum
        Whether it only grows, from nothing when the process begins.
    """

    meaning: str
    labels: tuple[str, ...] = ()
    is_sum: bool = True


METRICS: Mapping[str, Metric] = {
    "reports": Metric("What the broker has reported: plans, moves, misbehaviour", ("kind",)),
    "deliveries": Metric("Publications that got their number in a subscription", ("format",)),
    "plan_cost": Metric(
        "What recent plans cost, and would if all was converted at the root or at the leaves",
        ("plan",),
        is_sum=False,
    ),
    "plans_compared": Metric("How many plans these are", is_sum=False),
    "moves": Metric("Moves of adaptation in trees of streams", ("move",)),
    "messages": Metric("Messages that were sent to another broker", ("peer",)),
    "message_bytes": Metric("Their bytes", ("peer",)),
    "resends": Metric("Messages that were sent again, as nobody had acknowledged them", ("peer",)),
    "content_bytes": Metric("Bytes of content that came from another broker", ("peer", "format")),
    "conversions": Metric("Conversions that have ended", ("from", "to", "outcome")),
    "conversion_seconds": Metric("How long they took", ("from", "to", "outcome")),
    "commits": Metric("Commits to the disk"),
    "commit_seconds": Metric("How long they took"),
}
"""All metrics by name; on the wire they are figures."""


class _Peer:
    """What was sent to another broker."""

    __slots__ = ("bytes", "highest", "messages", "resends")

    def __init__(self) -> None:
        self.messages = self.bytes = self.resends = self.highest = 0


class HostMetrics:
    """What one host counts."""

    def __init__(self) -> None:
        self._commits = 0
        self._commit_s = 0.0
        self._peers: defaultdict[Address, _Peer] = defaultdict(_Peer)
        self._delivered: Counter[str] = Counter()
        self._moves: Counter[str] = Counter()
        self._content: Counter[tuple[str, str]] = Counter()
        self._conversions: dict[tuple[str, str, str], tuple[int, float]] = {}
        self._formats: set[str] = set()
        self._plans: deque[Mapping[str, float]] = deque(maxlen=_PLANS_MAX)
        self._compared_ns = 0

    def sent(self, peer: Address, message: object, size_bytes: int) -> None:
        """Count a message to another broker."""
        one = self._peers[peer]
        one.messages += 1
        one.bytes += size_bytes
        if type(message) is Hop:
            # Later ones have larger numbers.
            if message.number > one.highest:
                one.highest = message.number
            else:
                one.resends += 1

    def committed(self, seconds: float) -> None:
        """Count a commit."""
        self._commits += 1
        self._commit_s += seconds

    def fetched(self, peer: Address, blob: Blob, size_bytes: int) -> None:
        """Count content that has come."""
        self._content[peer, self._format(blob.media_type)] += size_bytes

    def converted(self, origin: str, target: str, seconds: float, *, failed: bool) -> None:
        """Count a conversion."""
        outcome = "failed" if failed else "done"
        key = (self._format(origin), self._format(target), outcome)
        count, sum_s = self._conversions.get(key, (0, 0.0))
        self._conversions[key] = (count + 1, sum_s + seconds)

    def reported(self, record: object) -> None:
        """Count what the broker reports."""
        if type(record) is Delivered:
            self._delivered[self._format(record.media_type)] += 1
        elif type(record) is Adapted:
            self._moves[record.move] += 1

    def compare(self, broker: Broker) -> None:
        """Set some plans that are new beside the simple ones.

        Brokers do not: it takes as long as to plan, and is for whoever looks.
        """
        new = [one for one in broker.plans() if one["at_ns"] > self._compared_ns][:_PLANS_AT_ONCE]
        for one in reversed(new):
            self._compared_ns = one["at_ns"]
            cost = _cost(one["cost"])
            costs = dict.fromkeys((_CHOSEN, *_BASELINES), cost)
            # Where there is nothing to convert, all plans are this one.
            if one["formats"] not in ([], [one["media_type"]]):
                found = broker.plan(one["tenant"], one["source"], one["id"])
                if found is None:
                    continue
                costs |= {name: _cost(found["baselines"][name]) for name in _BASELINES}
            self._plans.append(costs)

    def _format(self, name: str) -> str:
        if name not in self._formats:
            if len(self._formats) >= _FORMATS_MAX:
                return _OTHER
            self._formats.add(name)
        return name

    def rows(self, reports: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        """Yield each metric with its labels, in the order of `METRICS`, and its value."""

        def row(name: str, value: float, *labels: str) -> dict[str, Any]:
            return {"figure": name, "labels": list(labels), "value": value}

        for name, counts in (
            ("reports", reports),
            ("deliveries", self._delivered),
            ("moves", self._moves),
        ):
            for label, value in sorted(counts.items()):
                yield row(name, value, label)
        for peer, one in sorted(self._peers.items()):
            yield row("messages", one.messages, peer)
            yield row("message_bytes", one.bytes, peer)
            yield row("resends", one.resends, peer)
        for (peer, name), size in sorted(self._content.items()):
            yield row("content_bytes", size, peer, name)
        for labels, (count, seconds) in sorted(self._conversions.items()):
            yield row("conversions", count, *labels)
            yield row("conversion_seconds", seconds, *labels)
        for name in (_CHOSEN, *_BASELINES):
            yield row("plan_cost", sum(costs[name] for costs in self._plans), name)
        yield row("plans_compared", len(self._plans))
        yield row("commits", self._commits)
        yield row("commit_seconds", self._commit_s)


def _cost(worth: Mapping[str, float]) -> float:
    return worth["transmission"] + worth["conversion"]
