"""What a run comes to: costs as they are weighed, delays as they were predicted, policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from distributary.simulator import Simulation, compared_report, comparison_lines, report_of
from distributary.simulator.policies import POLICIES, under_policy
from distributary.simulator.scenario import Scenario
from distributary.simulator.scenario_file import scenario_from

FORMATS = [
    "application/pdf",
    "audio/mpeg",
    "audio/wav",
    "image/jpeg;width=1280",
    "image/jpeg;width=320",
    "text/plain;charset=utf-8",
]


def scenario(
    *,
    publications: int = 12,
    overlay: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    **content: Any,
) -> Scenario:
    return scenario_from(
        {
            "size": "small",
            "overlay": {"brokers": 12, **(overlay or {})},
            "content": {"graph": "map", "formats": FORMATS, **content},
            "workload": {
                "publications": publications,
                "publishers": 2,
                "matching": 0.5,
                "begin_s": 4,
                "duration_s": 30,
            },
            "settings": settings or {},
        },
        Path("s.toml"),
    )


def run(wanted: Scenario, seed: int = 1) -> dict[str, Any]:
    simulation = Simulation(wanted, seed=seed)
    simulation.run()
    return report_of(simulation)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (3.0, 0.5), (0.0, 2.0)])
def test_costs_are_weighed_by_alpha_and_beta(alpha: float, beta: float) -> None:
    """The simple plans' too: with other weights they are compared with what is worth as much."""
    cost = run(scenario(alpha=alpha, beta=beta))["cost"]
    for one in (cost, cost["all_in_root"], cost["all_in_leaves"]):
        assert one["transmission"] > 0.0
        weighed = alpha * one["transmission"] + beta * one["conversion"]
        assert one["total"] == pytest.approx(weighed)


@pytest.mark.parametrize("policy", POLICIES)
def test_deliveries_take_as_long_as_predicted_while_nothing_else_is_going_on(policy: str) -> None:
    """Without delays on the way a delivery takes what the plan's conversions take, and no more."""
    instant = {"delay_ms_mean": 0.0, "access_delay_ms": 0.0, "bandwidth_mbps": 0.0}
    overlay = {**instant, "heterogeneity": "strong"}
    alone = scenario(publications=1, tree="discovered", overlay=overlay)
    for seed in range(1, 4):
        simulation = Simulation(under_policy(alone, policy), seed=seed)
        simulation.run()
        (plan,) = simulation.planned
        delays_s = report_of(simulation)["delays_s"]
        assert plan.worth.delay_s > 0.0
        assert delays_s["count"] * delays_s["mean"] == pytest.approx(plan.worth.delay_s, rel=1e-6)


@pytest.mark.parametrize("heterogeneity", ["none", "weak"])
def test_content_takes_as_much_longer_on_links_as_predicted(heterogeneity: str) -> None:
    """Up to its way to the root, which is the same for every plan, and to what wraps it."""
    instant = {"delay_ms_mean": 0.0, "access_delay_ms": 0.0}
    narrow = {**instant, "bandwidth_mbps": 5.0, "heterogeneity": heterogeneity}
    patient = {"links": {"retry_s": 1000, "retry_s_max": 1000}, "content": {"repeat_s": 1000}}
    alone = scenario(publications=1, tree="discovered", overlay=narrow, settings=patient)
    unexplained, predicted_s = [], []
    for policy in POLICIES:
        simulation = Simulation(under_policy(alone, policy), seed=2)
        simulation.run()
        (plan,) = simulation.planned
        delays_s = report_of(simulation)["delays_s"]
        predicted_s.append(plan.worth.delay_s / delays_s["count"])
        unexplained.append(delays_s["mean"] - predicted_s[-1])
    assert unexplained == pytest.approx([unexplained[0]] * len(POLICIES), abs=0.1)
    assert max(predicted_s) > min(predicted_s) + 0.2


def test_a_root_waits_for_content_that_takes_long_on_a_link() -> None:
    """Much longer than the ten seconds after which it sends anew what nobody confirms."""
    patient = {"links": {"retry_s": 1000, "retry_s_max": 1000}}
    slow = scenario(publications=1, overlay={"bandwidth_mbps": 0.3}, settings=patient)
    report = run(slow, seed=2)
    assert report["delays_s"]["p100"] > 25.0
    assert report["plans"] == 1
    assert report["violations"] == []


def test_no_plan_is_expected_to_come_to_more_than_a_simple_one() -> None:
    objective = run(scenario(publications=40, delay_weight=2.0, load_growth=5.0))["objective"]
    assert objective["delay_weight"] == 2.0
    assert 0.0 < objective["predicted"] <= objective["predicted_all_in_root"]
    assert objective["predicted"] <= objective["predicted_all_in_leaves"]


def test_what_a_run_comes_to_is_its_cost_and_its_delays() -> None:
    report = run(scenario(delay_weight=0.7))
    delays = report["delays_s"]
    expected = report["cost"]["total"] + 0.7 * delays["count"] * delays["mean"]
    assert report["objective"]["total"] == pytest.approx(expected)
    assert delays["p90"] <= delays["p95"] <= delays["p99"]
    assert sum(report["chosen"].values()) == report["plans"]


def test_every_policy_has_a_run_of_its_own() -> None:
    wanted = scenario(publications=20)
    report = compared_report(wanted, seed=3)
    assert list(report["policies"]) == list(POLICIES)
    for policy, figures in report["policies"].items():
        alone = run(under_policy(wanted, policy), seed=3)
        assert figures == {
            "cost": alone["cost"]["total"],
            "delay_s_mean": alone["delays_s"]["mean"],
            "delay_s_p95": alone["delays_s"]["p95"],
            "objective": alone["objective"]["total"],
            "violations": 0,
        }
        if policy != "planned":
            assert list(alone["chosen"]) == [policy]
    assert report["log_hash"] == run(wanted, seed=3)["log_hash"]
    assert len({figures["cost"] for figures in report["policies"].values()}) > 2


def test_a_scenario_with_a_simple_method_is_compared_with_planning() -> None:
    report = compared_report(scenario(method="all-in-root"), seed=3)
    assert list(report["chosen"]) == ["all-in-root"]
    assert report["policies"]["all-in-root"]["cost"] == report["cost"]["total"]
    assert report["policies"] == compared_report(scenario(), seed=3)["policies"]


def test_policies_are_shown_as_a_table_of_means() -> None:
    figures = {"cost": 1.0, "delay_s_mean": 2.0, "delay_s_p95": 3.0, "objective": 4.0}
    other = {name: 3.0 * value for name, value in figures.items()}
    reports = [{"policies": dict.fromkeys(POLICIES, one)} for one in (figures, other)]
    head, *lines = comparison_lines(reports)
    assert head.split() == [
        "policy",
        "cost",
        "mean",
        "delay",
        "s",
        "p95",
        "delay",
        "s",
        "objective",
    ]
    assert [line.split() for line in lines] == [
        [policy, "2.0", "4.000", "6.000", "8.0"] for policy in POLICIES
    ]
    assert len({len(line) for line in (head, *lines)}) == 1
