"""How many moves are weighed in a second, on one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.fidelity.checked_loss import checked_loss
from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    result_hash,
)
from distributary.arrays import IntArray, UintArray
from distributary.fidelity import build_trees
from distributary.fidelity._anneal_kernels import delta_of_move, draw_move
from distributary.fidelity._descent_kernels import adapt_round
from distributary.fidelity._state_kernels import PackedForest
from distributary.fidelity.generate import generate_problem
from distributary.fidelity.model import servers_of, state_of
from distributary.kernels import kernel
from distributary.xorshift import seed_state

__all__ = ["STUDY"]

_SEED = 1
_PAPER_MICROSECONDS = 0.6


@dataclass(frozen=True)
class _Stream:
    """How many objects, how likely a server wants one, and what is claimed in millions/s."""

    objects: int
    interest: float
    rate_min: float

    def __str__(self) -> str:
        return "1 object" if self.objects == 1 else f"{self.objects} objects"


@dataclass(frozen=True)
class _Parameters:
    servers: int
    streams: tuple[_Stream, ...]
    moves: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(24, (_Stream(1, 1.0, 8.0), _Stream(5, 0.6, 1.5)), 20_000, repeats=2),
    "large": _Parameters(256, (_Stream(1, 1.0, 8.0), _Stream(100, 0.6, 1.5)), 200_000, repeats=40),
}


@dataclass(frozen=True)
class _Measured:
    """What was found for one stream, in seconds per move."""

    loss: float
    round_moves: int
    drawn_sum: float
    enumerated: float
    drawn: float


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    measured = {}
    for stream in parameters.streams:
        progress(str(stream))
        measured[stream] = _measure(stream, parameters)
    rows: list[tuple[Value, ...]] = []
    for stream, item in measured.items():
        for name, seconds in (("all of a tree", item.enumerated), ("random", item.drawn)):
            rows.append((stream.objects, name, 1e-6 / seconds, 1e6 * seconds))
    return Findings(
        tables=(
            Table(
                f"Moves weighed by one core, {parameters.servers} servers in one tree",
                "speed",
                (
                    Column("objects"),
                    Column("moves"),
                    Column("million per second", 2),
                    Column("µs per move", 3),
                ),
                tuple(rows),
                notes=(
                    "All six kinds of moves at every node of a tree that none of them improves, "
                    "as a round of `adapt` weighs them; and random ones in the same tree, with "
                    f"the time to draw them. Best of {parameters.repeats} times "
                    f"{parameters.moves:,} moves. Zhou, Ooi and Tan state {_PAPER_MICROSECONDS} "
                    "µs per decision with 100 objects, on a CPU of 2.8 GHz in 2007."
                ),
            ),
        ),
        claims=tuple(
            Claim(
                f"{stream}, all moves of a tree",
                1e-6 / item.enumerated,
                ">=",
                stream.rate_min,
                "million/s",
            )
            for stream, item in measured.items()
        ),
        result_hash=result_hash(
            [[item.loss, item.round_moves, item.drawn_sum] for item in measured.values()]
        ),
    )


def _measure(stream: _Stream, parameters: _Parameters) -> _Measured:
    problem = generate_problem(
        seed=_SEED,
        servers=parameters.servers,
        objects=stream.objects,
        interest=stream.interest,
    )
    start = build_trees(problem, seed=_SEED).forest
    adapted = build_trees(problem, method="adapt", start=start)
    state = state_of(problem, "one-tree", adapted.forest.parents)
    _, servers = servers_of(problem, "one-tree")

    def enumerated() -> int:
        weighed = 0
        while weighed < parameters.moves:
            made, moves = adapt_round(state, 0, 1)
            assert made == 0, "the tree has changed"
            weighed += moves
        return weighed

    def drawn() -> int:
        _time_moves(seed_state(_SEED), state, 0, servers, parameters.moves)
        return parameters.moves

    return _Measured(
        checked_loss(problem, adapted),
        adapt_round(state, 0, 1)[1],
        _time_moves(seed_state(_SEED), state, 0, servers, parameters.moves),
        _seconds_per_move(enumerated, parameters.repeats),
        _seconds_per_move(drawn, parameters.repeats),
    )


def _seconds_per_move(weigh: Callable[[], int], repeats: int) -> float:
    """Return the best of several times; short ones, since others may be busy in between."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        moves = weigh()
        best = min(best, (time.perf_counter() - began) / moves)
    return best


@kernel
def _time_moves(
    seed: UintArray, state: PackedForest, t: int, servers: IntArray, count: int
) -> float:
    """Evaluate `count` random moves without making any; return the sum."""
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows = state.delays, state.adaptation, state.rows
    total = 0.0
    done = 0
    while done < count:
        kind, i, other, top = draw_move(seed, links, sums, t, servers)
        if kind >= 0:
            done += 1
            total += delta_of_move(
                links, sums, tops, nodes, delays, adaptation, rows, t, kind, i, other, top
            )
    return total


STUDY = Study(
    name="move-speed",
    about=(
        "How fast a move is weighed: its change of the average loss, computed from what it "
        "changes along the ways to the source."
    ),
    minutes=0.4,
    run=_run,
)
