"""An annotated map for 1,024 brokers: every method, side by side, and a picture.

A map is published as a PDF. Subscribers want it as it is, as an image, as text, or as
speech made from the text. The brokers on the way can convert; where should they?
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from distributary.cli.compare import comparison_table
from distributary.cli.progress import progress
from distributary.placement.comparison import compare_methods
from distributary.placement.draw import draw_plan
from distributary.placement.generate import generate_problem

SEED = 7
BROKERS = 1024
MATCHING = 0.7
PICTURE = Path("build/demo/plan.html")


def main() -> None:
    """Plan, compare, draw."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    problem = generate_problem(
        "map", seed=SEED, brokers=BROKERS, matching=MATCHING, heterogeneity="weak"
    )
    console.print(
        f"An annotated map for {BROKERS:,} brokers, {MATCHING:.0%} of which have subscribers, "
        f"with links and processors as uneven as PlanetLab's (seed {SEED}).\n"
        f"Its dissemination tree has {problem.node_count} brokers; "
        f"they want {int(problem.wants.sum())} deliveries in {problem.format_count} formats.",
        highlight=False,
    )
    with progress() as observe:
        results = compare_methods(problem, seed=SEED, observe=observe)
    console.print(comparison_table(results))
    for result in results:
        if result.skipped is not None:
            print(f"skipped {result.method}: {result.skipped}")
    best = next(result for result in results if result.method == "exact")
    assert best.placement is not None
    assert best.placement.optimal
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".html", ".svg"):
        draw_plan(problem, best.placement, PICTURE.with_suffix(suffix))
    print(f"* cheapest plan found; the picture of the optimal one is in {PICTURE}")
    print(
        f"make demo: the optimal plan costs {best.placement.total_cost:,.2f}, "
        f"{best.saving_all_in_root or 0.0:.1%} less than converting at the root and "
        f"{best.saving_all_in_leaves or 0.0:.1%} less than converting at the leaves."
    )


if __name__ == "__main__":
    main()
