"""The planner: one problem in, one forest out, by any method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from distributary.arguments import check_choice, check_count, check_time_limit, check_type
from distributary.drawing.embedded import drawn_or_told
from distributary.errors import BadInput
from distributary.fidelity._descent_kernels import adapt_round
from distributary.fidelity.anneal import AnnealingSchedule, anneal, batches
from distributary.fidelity.baselines import random_tree
from distributary.fidelity.forest import APPROACHES, Forest, check, verified
from distributary.fidelity.greedy import grown_state
from distributary.fidelity.loss import Loss, loss
from distributary.fidelity.model import forest_of, servers_of, state_of
from distributary.fidelity.names import TreePlace, place_columns, tree_place
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.search import Observer, repair
from distributary.fidelity.tree_file import trees_document
from distributary.frames import frame
from distributary.kernels import clock
from distributary.methods import FIDELITY, run_method

__all__ = ["METHODS", "StreamTrees", "adapt", "build_trees"]

METHODS = FIDELITY
"""Every method by its name, baselines first."""

# Servers that "adapt" hands the token to between two looks at the clock.
_BATCH_SERVERS = 2_000


@dataclass(frozen=True, eq=False)
class StreamTrees:
    """Finished trees and what they lose.

    `seconds` are from the parsed problem to the finished trees, `evaluations` how many moves or
    places were weighed, None for methods that weigh none; `problem` has the names.
    """

    method: str
    forest: Forest = field(repr=False)
    loss: Loss = field(repr=False)
    seconds: float
    evaluations: int | None = None
    problem: FidelityProblem = field(repr=False, kw_only=True)

    def at(self, node: str, object: str | None = None) -> TreePlace:  # noqa: A002
        """Return where a server stands; in the tree of an object, if each has its own."""
        return tree_place(self, node, object)

    def to_dict(self) -> dict[str, Any]:
        """Return the trees with names, as `distributary tree` writes them."""
        return trees_document(self.problem, self)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a row per tree and server: its parent, how late updates are, how busy it is.

        `library` is "pandas", "polars" or "arrow".
        """
        return frame(place_columns(self), library)

    def _repr_html_(self) -> str:
        from distributary.fidelity.draw import trees_picture

        count = self.problem.node_count
        return drawn_or_told(self, count, lambda: trees_picture(self.problem, self).svg())


def build_trees(
    problem: FidelityProblem,
    *,
    method: str = "auto",
    approach: str = "one-tree",
    seed: int = 0,
    start: Forest | None = None,
    fanout: int | None = None,
    schedule: AnnealingSchedule | None = None,
    rounds: int | None = None,
    time_limit: float | None = None,
    observe: Observer | None = None,
) -> StreamTrees:
    """Build the tree, or the trees, that the stream follows.

    Parameters
    ----------
    problem
        What to plan.
    method
        One of `METHODS`.
    approach
        "one-tree" for all objects, or "tree-each".
    seed
        Seed of every random choice.
    start
        The trees that "anneal" and "adapt" start from; by default random ones.
    fanout
        The most children a node may have with "dita"; searched when not given.
    schedule
        How "anneal" cools; by default as the paper does.
    rounds
        The most rounds of "adapt"; by default until no move helps.
    time_limit
        Seconds after which "auto", "anneal" and "adapt" stop where they are.
    observe
        Called with a stage, what is done of it and how much there is.

    Raises
    ------
    BadInput
        When an argument is not as described above.
    TooLarge
        When "exact" would have to enumerate too much; before it starts.
    """
    check_type("problem", problem, FidelityProblem, hint="read_problem(path).problem is one")
    check_choice("method", method, METHODS)
    check_choice("objects", approach, APPROACHES)
    check_count("seed", seed)
    check_type("start", start, Forest, type(None))
    check_type("schedule", schedule, AnnealingSchedule, type(None))
    for name, count in (("fanout", fanout), ("rounds", rounds)):
        if count is not None:
            check_count(name, count, least=1)
    check_time_limit(time_limit)
    if start is not None:
        if start.approach != approach:
            raise BadInput("start", f"is for {start.approach}, not for {approach}")
        check(problem, start)
    began = clock()
    result = run_method(
        METHODS,
        method,
        problem,
        verified=lambda problem, forest: verified(problem, forest, approach),
        approach=approach,
        seed=seed,
        start=start,
        fanout=fanout,
        schedule=schedule,
        rounds=rounds,
        time_limit=time_limit,
        observe=observe,
    )
    forest, evaluations = (result, None) if isinstance(result, Forest) else result
    seconds = clock() - began
    lost = loss(problem, forest)
    return StreamTrees(method, forest, lost, seconds, evaluations, problem=problem)


def grown_trees(problem: FidelityProblem, approach: str) -> tuple[Forest, int]:
    """Return the trees of the method "greedy", and how many places were weighed."""
    state, evaluations = grown_state(problem, approach)
    return repair(problem, forest_of(state, approach)), evaluations


def annealed_trees(
    problem: FidelityProblem,
    approach: str,
    *,
    start: Forest | None,
    seed: int,
    schedule: AnnealingSchedule | None,
    time_limit: float | None,
) -> tuple[Forest, int]:
    """Return the trees of the method "anneal", and how many moves were weighed."""
    begin = _sound_start(problem, approach, start, seed)
    return anneal(problem, begin, seed=seed, schedule=schedule, time_limit=time_limit)


def adapted_trees(
    problem: FidelityProblem,
    approach: str,
    *,
    start: Forest | None,
    seed: int,
    rounds: int | None,
    time_limit: float | None,
    observe: Observer | None,
) -> tuple[Forest, int]:
    """Return the trees of the method "adapt", and how many moves were weighed."""
    begin = _sound_start(problem, approach, start, seed)
    return adapt(problem, begin, rounds=rounds, time_limit=time_limit, observe=observe)


def _sound_start(
    problem: FidelityProblem, approach: str, start: Forest | None, seed: int
) -> Forest:
    """Return the trees to begin with, a random one unless given, repaired.

    A tree that is overloaded costs infinitely much whatever one does to a part of it.
    """
    return repair(problem, start or random_tree(problem, approach, seed=seed))


def adapt(
    problem: FidelityProblem,
    start: Forest,
    *,
    rounds: int | None = None,
    time_limit: float | None = None,
    observe: Observer | None = None,
) -> tuple[Forest, int]:
    """Return the trees after rounds of adaptation, and how many moves were weighed.

    In each round every node, from the source down, makes the best of the six moves among
    its children and grandchildren, if one helps (Zhou, Ooi and Tan, Algorithm 1). When the
    time is up, the trees that the round has not come to stay as they are.
    """
    began = clock()
    state = state_of(problem, start.approach, start.parents)
    server_start, _ = servers_of(problem, start.approach)
    evaluations = 0
    done = 0
    timely = True
    while timely and (rounds is None or done < rounds):
        made = 0
        for first, last in batches(server_start, _BATCH_SERVERS):
            moves, weighed = adapt_round(state, first, last)
            made += moves
            evaluations += weighed
            timely = time_limit is None or clock() - began < time_limit
            if not timely:
                break
        done += 1
        if observe is not None:
            observe("adapt", done, rounds or done + made)
        if made == 0:
            break
    return forest_of(state, start.approach), evaluations
