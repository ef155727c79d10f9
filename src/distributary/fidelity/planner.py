"""The planner: one problem in, one forest out, by any method."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from distributary.errors import BadInput, quoted
from distributary.fidelity._descent_kernels import adapt_round
from distributary.fidelity.anneal import AnnealingSchedule, anneal, batches
from distributary.fidelity.baselines import dita_tree, random_tree, source_tree
from distributary.fidelity.exact import exact_tree
from distributary.fidelity.forest import APPROACHES, Forest, check
from distributary.fidelity.greedy import grown_state
from distributary.fidelity.loss import Loss, loss
from distributary.fidelity.model import forest_of, servers_of, state_of
from distributary.fidelity.overload import repair
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.search import Observer, search

__all__ = ["METHODS", "StreamTrees", "adapt", "build_trees"]

METHODS = ("source", "random", "dita", "greedy", "anneal", "adapt", "exact", "auto")

# Servers that "adapt" hands the token to between two looks at the clock.
_BATCH_SERVERS = 2_000


@dataclass(frozen=True, eq=False)
class StreamTrees:
    """Finished trees and what they lose.

    Attributes
    ----------
    method
        The method that built them.
    forest
        The trees.
    loss
        Their loss of fidelity.
    seconds
        From the parsed problem to the finished trees.
    evaluations
        How many moves or places were weighed; None for methods that weigh none.
    """

    method: str
    forest: Forest = field(repr=False)
    loss: Loss = field(repr=False)
    seconds: float
    evaluations: int | None = None


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
        When an argument is none of those named above.
    TooLarge
        When "exact" would have to enumerate too much; before it starts.
    """
    for name, value, choices in (("method", method, METHODS), ("objects", approach, APPROACHES)):
        if value not in choices:
            raise BadInput(name, f"{quoted(value)} is none of {', '.join(choices)}")
    if start is not None:
        if start.approach != approach:
            raise BadInput("start", f"is for {start.approach}, not for {approach}")
        check(problem, start)
    began = time.perf_counter()
    evaluations: int | None = None
    if method == "source":
        forest = source_tree(problem, approach)
    elif method == "random":
        forest = random_tree(problem, approach, seed=seed)
    elif method == "dita":
        forest = dita_tree(problem, approach, fanout=fanout)
    elif method == "greedy":
        state, evaluations = grown_state(problem, approach)
        forest = _kept_up(problem, forest_of(state, approach))
    elif method == "exact":
        forest = exact_tree(problem, approach)
    elif method == "auto":
        forest, evaluations = search(
            problem, approach, seed=seed, time_limit=time_limit, observe=observe
        )
        forest = _kept_up(problem, forest)
    else:
        begin = start or random_tree(problem, approach, seed=seed)
        # A tree that is overloaded costs infinitely much whatever one does to a part of it.
        begin = repair(problem, begin)
        if method == "anneal":
            forest, evaluations = anneal(
                problem, begin, seed=seed, schedule=schedule, time_limit=time_limit
            )
        else:
            forest, evaluations = adapt(
                problem, begin, rounds=rounds, time_limit=time_limit, observe=observe
            )
    seconds = time.perf_counter() - began
    return StreamTrees(method, forest, loss(problem, forest), seconds, evaluations)


def _kept_up(problem: FidelityProblem, forest: Forest) -> Forest:
    """Return the forest, repaired if some node in it cannot keep up."""
    return repair(problem, forest) if loss(problem, forest).overloaded else forest


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
    began = time.monotonic()
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
            timely = time_limit is None or time.monotonic() - began < time_limit
            if not timely:
                break
        done += 1
        if observe is not None:
            observe("adapt", done, rounds or done + made)
        if made == 0:
            break
    return forest_of(state, start.approach), evaluations
