"""Search through all orders in which things can happen.

Any message on its way may be the next to arrive, so all orders are tried, breadth first: the
first fault that is found has a shortest way to it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from tests.explorer.space import Space, State, Step
from tests.explorer.system import System

__all__ = ["Exploration", "Fault", "explore"]


@dataclass(frozen=True)
class Fault:
    """What went wrong, and a shortest way there.

    Attributes
    ----------
    what
        In a sentence.
    trace
        What happened, in order.
    nodes
        What each node is doing at the end.
    """

    what: str
    trace: tuple[str, ...]
    nodes: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the way as numbered lines, and where it ends."""
        steps = [f"{number}. {text}" for number, text in enumerate(self.trace, 1)]
        end = ", ".join(f"{name} is in {state}" for name, state in enumerate(self.nodes))
        return [*steps, f"then {self.what}: {end}"]


@dataclass(frozen=True)
class Exploration:
    """What a search has found.

    Attributes
    ----------
    state_count, step_count
        How many distinct states were reached, and how many steps lead from one to another.
    complete
        Whether these are all there are.
    fault
        The first fault, if there is one.
    """

    state_count: int
    step_count: int
    complete: bool
    fault: Fault | None = field(default=None)


class _Seen:
    """The states that were reached, in order, and how."""

    def __init__(self, space: Space) -> None:
        self.space = space
        start = space.start()
        self.numbers: dict[State, int] = {start: 0}
        self.states = [start]
        self.quiet = [space.quiet(start)]
        self.edges_from, self.edges_to = array("l"), array("l")
        self._came_from = array("l", [-1])
        self._came_by: list[Step | None] = [None]

    def add(self, at: int, step: Step, state: State) -> bool:
        """Enter a step from a state to another; whether that one is new."""
        number = self.numbers.setdefault(state, len(self.states))
        self.edges_from.append(at)
        self.edges_to.append(number)
        if number < len(self.states):
            return False
        self.states.append(state)
        self.quiet.append(self.space.quiet(state))
        self._came_from.append(at)
        self._came_by.append(step)
        return True

    def cut_off(self) -> int:
        """Return the first state without a way to a quiet one, -1 if there is none."""
        sources: list[list[int]] = [[] for _ in self.states]
        for one, two in zip(self.edges_from, self.edges_to, strict=True):
            sources[two].append(one)
        reached = list(self.quiet)
        waiting = [number for number, quiet in enumerate(reached) if quiet]
        while waiting:
            for source in sources[waiting.pop()]:
                if not reached[source]:
                    reached[source] = True
                    waiting.append(source)
        return reached.index(False) if False in reached else -1

    def found(self, *, complete: bool, what: str = "", at: int = -1) -> Exploration:
        """Return the search as far as it got, with the fault in a state, if there is one."""
        fault = None
        if what:
            nodes = self.space.node_texts(self.states[at])
            trace: list[str] = []
            while (step := self._came_by[at]) is not None:
                trace.append(self.space.describe(step))
                at = self._came_from[at]
            fault = Fault(what, tuple(reversed(trace)), nodes)
        return Exploration(len(self.states), len(self.edges_to), complete, fault)


def explore(system: System, *, states_max: int) -> Exploration:
    """Go through the states of a system, nearest first, until there is a fault or no more.

    A state in which nothing can happen, but in which somebody waits, is a deadlock. When all
    states have been seen, it is also a fault if one has no way to a quiet one.

    Parameters
    ----------
    system
        What to explore.
    states_max
        After how many distinct states to stop.
    """
    space = Space(system)
    seen = _Seen(space)
    at = 0
    while at < len(seen.states) and len(seen.states) < states_max:
        steps = space.steps(seen.states[at])
        for step, following in steps:
            if seen.add(at, step, following):
                wrong = space.fault(following[0])
                if wrong is not None:
                    return seen.found(complete=False, what=wrong, at=len(seen.states) - 1)
        if not steps and not seen.quiet[at]:
            what = "nothing can happen any more, and somebody waits"
            return seen.found(complete=False, what=what, at=at)
        at += 1
    complete = at == len(seen.states)
    lost = seen.cut_off() if complete else -1
    if lost >= 0:
        what = "from here on somebody waits for ever"
        return seen.found(complete=True, what=what, at=lost)
    return seen.found(complete=complete)
