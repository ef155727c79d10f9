"""Random walks through a space of states that is too large to be seen whole.

A search that starts from the beginning sees everything near it and nothing far away. A walk
goes on to the end.
"""

from __future__ import annotations

import random

from tests.explorer.search import Exploration, Fault
from tests.explorer.space import Space, State, Step
from tests.explorer.system import System

__all__ = ["wander"]


def wander(system: System, *, seed: int, walks: int) -> Exploration:
    """Walk from the beginning until nothing can happen any more, again and again.

    Parameters
    ----------
    system
        What to explore.
    seed
        Decides the walks.
    walks
        How many.
    """
    rng = random.Random(seed)
    space = Space(system)
    seen: set[State] = set()
    step_count = 0
    for _ in range(walks):
        state = space.start()
        walk: list[Step] = []
        while True:
            seen.add(state)
            wrong = space.fault(state[0])
            steps = space.steps(state) if wrong is None else []
            if wrong is None and not steps and not space.quiet(state):
                wrong = "nothing can happen any more, and somebody waits"
            if wrong is not None:
                trace = tuple(space.describe(step) for step in walk)
                fault = Fault(wrong, trace, space.node_texts(state))
                return Exploration(len(seen), step_count, False, fault)
            if not steps:
                break
            step, state = steps[rng.randrange(len(steps))]
            walk.append(step)
            step_count += 1
    return Exploration(len(seen), step_count, False)
