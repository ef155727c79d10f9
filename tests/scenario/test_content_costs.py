"""What is fetched on every link is what plans say, link by link, and so are costs in reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from distributary.broker.plan_part import PlanPart
from distributary.broker.settings import Settings
from distributary.broker.telemetry import Planned
from distributary.simulator import Simulation, read_scenario, report_of

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MEGABYTE = 1e6


def planned_links(part: PlanPart) -> list[tuple[str, str, str, float]]:
    """Every format that crosses a link of a plan: from, to, format and megabytes."""
    found, above = [], [part.first.broker]
    for node in part.nodes[1:]:
        del above[node.depth - part.first.depth :]
        found += [(above[-1], node.broker, part.formats[k], part.sizes[k]) for k in node.receives]
        above.append(node.broker)
    return found


def sizes_of(settings: Settings, media_type: str, size_bytes: int) -> dict[str, int]:
    """How many bytes content has as it was published, and in each format made of it."""
    graph = settings.graph_for(size_bytes)
    made = zip(graph.names, graph.sizes.tolist(), strict=True)
    return {**{name: round(size * MEGABYTE) for name, size in made}, media_type: size_bytes}


@pytest.mark.parametrize("name", ["video-small", "map-small"])
def test_each_format_crosses_each_link_of_the_tree_once_and_costs_what_the_plan_says(
    name: str,
) -> None:
    """Besides, each root fetches what somebody wants from the publisher's home.

    A publisher's home that also has subscribers need not fetch what it has. Trees are
    discovered, so that nobody plans its own part of one anew. A plan may have been made for
    content that was up to a tenth larger or smaller; what is fetched is what there is.
    """
    scenario = read_scenario(SCENARIOS / f"{name}.toml")
    content = replace(scenario.settings.content, tree="discovered")
    scenario = replace(scenario, settings=replace(scenario.settings, content=content))
    simulation = Simulation(scenario, seed=3)
    simulation.run()
    assert simulation.violations == []
    assert simulation.refined == 0
    expected: Counter[tuple[str, str]] = Counter()
    planned = 0.0
    plans: list[tuple[str, Planned, PlanPart]] = []
    for broker, node in simulation.world.nodes.items():
        assert node.broker is not None
        recent = node.broker.core.dissemination.recent
        plans += [(broker, report, part) for _, report, part in recent]
    assert len(plans) == len(simulation.planned), "each was planned once, and is remembered"
    costs = {
        (one, other): float(simulation.places.link_costs[i, k])
        for i, one in enumerate(simulation.places.identifiers)
        for k, other in enumerate(simulation.places.identifiers)
    }
    for root, report, part in plans:
        (entry,) = (
            entry
            for entry in simulation.ledger.published.values()
            if entry.publication.identity == (report.source, report.id)
        )
        if entry.size_bytes == 0:
            continue
        own = entry.publication.media_type
        assert own is not None
        sizes = sizes_of(scenario.settings, own, entry.size_bytes)
        if entry.home != root:
            expected[entry.home, root] += entry.size_bytes
        for parent, child, format_, megabytes in planned_links(part):
            assert sizes[format_] == pytest.approx(megabytes * MEGABYTE, rel=0.1, abs=1)
            planned += megabytes * costs[parent, child]
            if child != entry.home or format_ != own:
                expected[parent, child] += sizes[format_]
    fetched: Counter[tuple[str, str]] = Counter()
    for (holder, broker, _), size_bytes in simulation.world.transfers.fetched_bytes.items():
        fetched[holder, broker] += size_bytes
    assert sum(expected.values()) > 0
    assert fetched == +expected
    document = report_of(simulation)
    paid = sum(size_bytes / MEGABYTE * costs[link] for link, size_bytes in expected.items())
    assert document["content"]["transmission"] == pytest.approx(paid, rel=1e-9)
    assert document["cost"]["transmission"] == pytest.approx(planned, rel=1e-9)
