"""The pulse of an overlay: what happens now, summed up for those who watch all of it.

Brokers count; a gateway asks them every few seconds while somebody watches, and takes differences.
All who watch share one look, so that ten of them cost brokers no more than one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from distributary.errors import DistributaryError
from distributary.network.transfers import TransferFailed
from distributary.network.views import look

if TYPE_CHECKING:
    from distributary.network.gateway.gateway import Gateway

__all__ = ["OverlayPulse"]

_PERIOD_S = 2.0
# Delays hardly change, and everybody knows everybody.
_LINKS_PERIOD_S = 10.0
_ROWS_MAX = 10_000
_PLANS = {"cost": "chosen", "all-in-root": "all-in-root", "all-in-leaves": "all-in-leaves"}

_Row: TypeAlias = dict[str, Any]


class OverlayPulse:
    """Looks at all brokers for as long as somebody watches.

    Attributes
    ----------
    state
        What happens, as it was a few seconds ago at most; None until it is known.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self.state: _Row | None = None
        self._before: dict[str, tuple[float, _Row]] = {}
        self._links: list[_Row] = []
        self._links_at_s = float("-inf")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have `state` be kept up to date."""
        self._watchers += 1
        if self._task is None:
            self._task = asyncio.ensure_future(self._watch())
        try:
            yield
        finally:
            self._watchers -= 1

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        try:
            while self._watchers:
                # Without NATS nobody answers; they will again.
                with suppress(OSError, DistributaryError):
                    self.state = await self._look()
                await asyncio.sleep(_PERIOD_S)
        finally:
            self._task = None
            self.state = None

    async def _look(self) -> _Row:
        names = list(self._gateway.members.status)
        found = await self._all("broker", names)
        rows = {name: rows[0] if rows else None for name, rows in found.items()}
        measured = await self._all("measured", names)
        if time.monotonic() - self._links_at_s > _LINKS_PERIOD_S:
            self._links_at_s = time.monotonic()
            self._links = _links(await self._all("members", names))
        figures = await self._all("figures", names)
        rates, loads = self._differences(rows)
        converted = [one for rows in measured.values() for one in _per_s(rows, "conversions")]
        rates["conversions"] = sum(one["conversions"] for one in converted)
        alive = [row for row in rows.values() if row is not None]
        return {
            "at_ns": time.time_ns(),
            "brokers": [_told(name, row, loads.get(name, 0.0)) for name, row in rows.items()],
            "links": _with_traffic(self._links, measured),
            "rates": {what: round(rate, 3) for what, rate in rates.items()},
            "owed": sum(row.get("owed", 0) for row in alive),
            "queued": sum(row.get("queued", 0) for row in alive),
            "subscriptions": sum(row.get("subscriptions", 0) for row in alive),
            "saved": {
                "plans": _total(figures, "plans_compared"),
                **{name: _total(figures, "plan_cost", plan) for name, plan in _PLANS.items()},
            },
        }

    async def _all(self, view: str, names: Sequence[str]) -> dict[str, list[_Row]]:
        """Return the rows of a view by broker; none of those who do not answer."""
        gate = self._gateway.gate

        async def of_one(name: str) -> list[_Row]:
            try:
                subject = gate.subjects.to_host(name, gate.name)
                return await look(gate.connection, subject, view, count_max=_ROWS_MAX)
            except TransferFailed:
                return []

        alive = [name for name in names if self._gateway.members.status[name] is not None]
        answers = await asyncio.gather(*(of_one(name) for name in alive))
        return {**{name: [] for name in names}, **dict(zip(alive, answers, strict=True))}

    def _differences(
        self, rows: Mapping[str, _Row | None]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return rates of the overlay and the load of each broker since the last look."""
        rates = {"publications": 0.0, "deliveries": 0.0, "versions": 0.0, "conversions": 0.0}
        reports = {
            "publications": "Planned",
            "deliveries": "Delivered",
            "versions": "CopyChanged",
        }
        loads: dict[str, float] = {}
        now_s = time.monotonic()
        for name, row in rows.items():
            at_s, before = self._before.get(name, (0.0, None))
            if row is None:
                continue
            self._before[name] = (now_s, row)
            # One that has begun anew counts from nothing.
            if before is None or before["pid"] != row["pid"]:
                continue
            loads[name] = max(0.0, row["cpu_s"] - before["cpu_s"]) / (now_s - at_s)
            for what, report in reports.items():
                count = row["reports"].get(report, 0) - before["reports"].get(report, 0)
                rates[what] += max(0, count) / (now_s - at_s)
        return rates, loads


def _told(name: str, row: _Row | None, load: float) -> _Row:
    if row is None:
        return {"broker": name, "state": "away"}
    state = "draining" if row["draining"] else "up"
    return {**row, "broker": name, "state": state, "load": round(load, 4)}


def _total(figures: Mapping[str, Sequence[_Row]], figure: str, *labels: str) -> float:
    """Return a figure of all brokers together."""
    return sum(
        float(row["value"])
        for rows in figures.values()
        for row in rows
        if row["figure"] == figure and row["labels"] == [*labels]
    )


def _per_s(rows: Sequence[_Row], what: str) -> list[_Row]:
    """Return some figures of a window, with counts for one second."""
    window_s = next((row["value"] for row in rows if row["what"] == "window_s"), 0.0)
    if window_s <= 0:
        return []
    counts = ("messages", "bytes", "conversions")
    return [
        {name: value / window_s if name in counts else value for name, value in row.items()}
        for row in rows
        if row["what"] == what
    ]


def _links(members: Mapping[str, Sequence[_Row]]) -> list[_Row]:
    """Return every pair of brokers of which one knows the other, once, with the delay."""
    links: dict[tuple[str, str], _Row] = {}
    for name, rows in members.items():
        for row in rows:
            one, other = sorted((name, row["broker"]))
            if row["status"] == "alive" and (one, other) not in links:
                links[one, other] = {"from": one, "to": other, "delay_ms": row["delay_ms"]}
    return list(links.values())


def _with_traffic(links: Sequence[_Row], measured: Mapping[str, Sequence[_Row]]) -> list[_Row]:
    """Return links with what went over them in both directions in the last window."""
    traffic: dict[tuple[str, str], dict[str, float]] = {}
    for name, rows in measured.items():
        for what in ("hops", "transfers"):
            for row in _per_s(rows, what):
                one, other = sorted((name, row["peer"]))
                sums = traffic.setdefault((one, other), {"messages_per_s": 0.0, "bytes_per_s": 0.0})
                sums["messages_per_s"] += row.get("messages", 0.0)
                sums["bytes_per_s"] += row.get("bytes", 0.0)
                if what == "hops":
                    sums["hop_ms"] = 1000 * row["mean_s"]
    return [{**link, **traffic.get((link["from"], link["to"]), {})} for link in links]
