"""Reports: what a run came to, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from distributary.arguments import checked
from distributary.broker.telemetry import Worth
from distributary.simulator.simulation import Simulation

__all__ = ["COST_SHOWN_MIN", "report_of", "summary_lines"]

_PERCENTILES = (50, 90, 95, 99, 100)
_NS_PER_SECOND = 1e9
_BYTES_PER_SIZE = 1e6
_SHOWN_MAX = 5
# Events without content cost next to nothing to send.
COST_SHOWN_MIN = 0.05


@checked
def report_of(simulation: Simulation) -> dict[str, Any]:
    """Return the report of a run that is over.

    Nothing in it depends on how long the run took, so that the same seed and commit give the
    same report.
    """
    once, world = simulation.exactly_once, simulation.world
    cost = _costs(simulation)
    delays_s = _delays_s(simulation)
    return {
        "scenario": simulation.scenario.name,
        "seed": simulation.seed,
        "log_hash": world.log_hash,
        "violations": [violation.document() for violation in simulation.violations],
        "notes": list(simulation.places.notes),
        "deliveries": {
            "owed": once.owed,
            "made": once.made,
            "duplicates": once.duplicates,
            "extra": once.extra,
            "excused": simulation.ledger.excused,
            "undeliverable": once.undeliverable,
            "repeated": sum(s.repeats for s in simulation.content.subscribers),
        },
        "messages": dict(sorted(world.message_counts.items())),
        "bytes": dict(sorted(world.message_bytes.items())),
        "refused_messages": world.refused,
        "cost": cost,
        "content": _content(simulation),
        "objective": _objective(simulation, cost["total"], delays_s),
        "loss_of_fidelity": [
            {"at_s": at_s, "loss": loss} for at_s, loss in simulation.streams.at_brokers.series()
        ],
        "loss_of_fidelity_mean": simulation.streams.at_brokers.average(),
        "delays_s": _delays(delays_s),
        "matching": _matching(simulation),
        "plans": len(simulation.planned),
        "chosen": dict(sorted(Counter(plan.chosen for plan in simulation.planned).items())),
        "refinements": simulation.refined,
        "adaptations": {
            "count": len(simulation.adapted),
            "moves": _counted(adapted.move for adapted in simulation.adapted),
        },
        "tree_links": simulation.trees.links,
        "migrations": len(simulation.migrated),
        "migrations_to_nearest": _to_nearest(simulation),
        "migrations_refused": _counted(record.reason for record in simulation.moves_refused),
        "missed": simulation.ledger.missed,
        "busy": simulation.pressure.busy,
        "failed_commits": simulation.faults.failed_commits,
        "set_aside": _counted(record.kind for record in simulation.set_aside),
        "faults": [
            {
                "kind": planned.fault.kind,
                "at_s": planned.fault.at_s,
                "until_s": planned.until_s,
                "brokers": list(planned.brokers),
            }
            for planned in simulation.faults.planned
        ],
        "brokers": simulation.scenario.overlay.brokers,
        "events": world.events,
        "virtual_s": world.now_ns / _NS_PER_SECOND,
    }


@checked
def summary_lines(report: dict[str, Any]) -> list[str]:
    """Return what a person wants to know of a report first."""
    deliveries, cost = report["deliveries"], report["cost"]
    messages, sizes, delays = report["messages"], report["bytes"], report["delays_s"]
    rows = [
        (
            "deliveries",
            f"{deliveries['made']:,} of {deliveries['owed']:,} owed, "
            f"{deliveries['duplicates']:,} twice, {deliveries['extra']:,} more",
        ),
        ("messages", f"{sum(messages.values()):,} with {sum(sizes.values()) / 1e6:,.1f} MB"),
    ]
    if delays["count"]:
        rows.append(("delay", f"{delays['p50']:.3f} s in the middle, {delays['p99']:.3f} s p99"))
    if cost["total"] >= COST_SHOWN_MIN:
        objective, chosen = report["objective"], report["chosen"]
        worth = f"{objective['total']:,.1f} with {objective['delay_weight']:g} a second of delay"
        rows += [
            ("cost", f"{cost['total']:,.1f}{_against(cost)}"),
            ("objective", worth),
            ("plans", ", ".join(f"{count:,} {name}" for name, count in chosen.items())),
        ]
    if report["loss_of_fidelity"]:
        rows.append(("loss of fidelity", f"{report['loss_of_fidelity_mean']:.4%}"))
    violations = report["violations"]
    rows.append(("violations", f"{len(violations):,}"))
    rows += [("", f"{v['checker']} at {v['at_s']} s: {v['what']}") for v in violations[:_SHOWN_MAX]]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def _against(cost: dict[str, Any]) -> str:
    """Return how a cost compares with that of the two simple plans, if it was compared."""
    words = []
    for key, name in (("all_in_root", "in the root"), ("all_in_leaves", "in the leaves")):
        if cost[key]["total"]:
            words.append(f"{cost[key]['total']:,.1f} all {name}")
    return f" ({', '.join(words)})" if words else ""


def _costs(simulation: Simulation) -> dict[str, Any]:
    """Return what plans cost together, and what simple ones would have, in the same states."""
    settings, planned = simulation.scenario.settings.content, simulation.planned

    def cost(found: Iterable[Worth | None]) -> dict[str, float]:
        known = [worth for worth in found if worth is not None]
        transmission = sum(worth.transmission for worth in known)
        conversion = sum(worth.conversion for worth in known)
        return {
            "transmission": transmission,
            "conversion": conversion,
            "total": settings.alpha * transmission + settings.beta * conversion,
        }

    return {
        **cost(plan.worth for plan in planned),
        "all_in_root": cost(plan.all_in_root for plan in planned),
        "all_in_leaves": cost(plan.all_in_leaves for plan in planned),
    }


def _content(simulation: Simulation) -> dict[str, float]:
    """Return what brokers have fetched from each other, and what that cost on links."""
    places = simulation.places
    index = {name: k for k, name in enumerate(places.identifiers)}
    fetched = simulation.world.transfers.fetched_bytes
    cost = sum(
        size_bytes * float(places.link_costs[index[holder], index[broker]])
        for (holder, broker, _), size_bytes in fetched.items()
    )
    return {
        "fetches": len(fetched),
        "bytes": sum(fetched.values()),
        "transmission": cost / _BYTES_PER_SIZE,
    }


def _objective(
    simulation: Simulation, cost_total: float, delays_s: Sequence[float]
) -> dict[str, float]:
    """Return what the run came to, and what plans were predicted to."""
    settings, planned = simulation.scenario.settings.content, simulation.planned
    weight = settings.delay_weight

    def predicted(found: Iterable[Worth | None]) -> float:
        return sum(
            settings.alpha * worth.transmission
            + settings.beta * worth.conversion
            + weight * worth.delay_s
            for worth in found
            if worth is not None
        )

    return {
        "delay_weight": weight,
        "total": cost_total + weight * sum(delays_s),
        "predicted": predicted(plan.worth for plan in planned),
        "predicted_all_in_root": predicted(plan.all_in_root for plan in planned),
        "predicted_all_in_leaves": predicted(plan.all_in_leaves for plan in planned),
    }


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _to_nearest(simulation: Simulation) -> int:
    """Return how many clients moved to the broker at which access is cheapest for them."""
    prices = {client.address: dict(client.prices) for client in simulation.content.subscribers}
    return sum(
        prices[moved.client][moved.home] == min(prices[moved.client].values())
        for moved in simulation.migrated
        if prices.get(moved.client)
    )


def _delays_s(simulation: Simulation) -> list[float]:
    """Return how long deliveries took from the publisher to the subscriber, in order."""
    return sorted(
        (copy.at_ns - copy.published.sent_ns) / _NS_PER_SECOND
        for copy in simulation.ledger.got.values()
        if copy.media_type is not None
    )


def _delays(took: Sequence[float]) -> dict[str, float]:
    if not took:
        return {"count": 0}
    found: dict[str, float] = {"count": len(took), "mean": sum(took) / len(took)}
    for percentile in _PERCENTILES:
        found[f"p{percentile}"] = took[max(0, -(-len(took) * percentile // 100) - 1)]
    return found


def _matching(simulation: Simulation) -> float:
    """Return the share of registered subscriptions that a publication matched."""
    published = simulation.ledger.published.values()
    count = len(simulation.content.subscribers)
    if not published or not count:
        return 0.0
    return sum(len(entry.owed) for entry in published) / (len(published) * count)
