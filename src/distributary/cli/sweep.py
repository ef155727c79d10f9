"""Sweeps: many runs of many scenarios in several processes, and a table of what failed."""

from __future__ import annotations

import functools
import gc
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributary.cli.output import write_document
from distributary.cli.progress import Observe, progress
from distributary.errors import BadInput, counted

if TYPE_CHECKING:
    from distributary.simulator.scenario import Scenario
    from distributary.simulator.simulation import Simulation

__all__ = ["replay_line", "run_seeds", "scenario_files", "sweep"]

# A process that is done early finds something to do while the oldest run goes on.
_AHEAD_PER_PROCESS = 4


@dataclass
class _Row:
    """What came of one scenario."""

    scenario: str
    seeds: int = 0
    failures: int = 0
    seconds: float = 0.0


def sweep(
    folder: Path, seeds: range, *, jobs: int, with_large: bool, output: Path | None
) -> list[str]:
    """Run every scenario in a folder with every seed; return the commands of the failing runs.

    The commands are printed as they are found, and a table at the end. Reports are kept only
    if they are to be written: those of a night need gigabytes.
    """
    paths = scenario_files(folder, with_large=with_large)
    reports: list[dict[str, Any]] = []
    rows: list[_Row] = []
    failing: list[str] = []
    with progress() as observe:
        runs = _observed(run_seeds(paths, seeds, jobs=jobs), len(paths) * len(seeds), observe)
        for path, of_one in groupby(runs, key=lambda run: run[0]):
            row = _Row(path.stem)
            rows.append(row)
            for _, report, seconds in of_one:
                row.seeds += 1
                row.seconds += seconds
                if report["violations"]:
                    row.failures += 1
                    failing.append(replay_line(path, report["seed"]))
                    print(failing[-1], file=sys.stderr, flush=True)
                if output is not None:
                    reports.append(report)
            wrong = f"{counted(row.failures, 'run')} with violations"
            print(
                f"{row.scenario}: {counted(row.seeds, 'seed')}, {wrong}",
                file=sys.stderr,
                flush=True,
            )
    if output is not None:
        write_document({"runs": reports}, output)
    print("\n".join(_table(rows)))
    return failing


def scenario_files(folder: Path, *, with_large: bool) -> list[Path]:
    """Return the scenario files of a folder by name, or raise `BadInput`; small ones, or all."""
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise BadInput(str(folder), "has no scenario", hint="a scenario is a file NAME.toml")
    found = [path for path in paths if _scenario(path).size == "small" or with_large]
    if not found:
        raise BadInput(str(folder), "has no small scenario", hint="--large runs large ones too")
    return found


def run_seeds(
    paths: Sequence[Path],
    seeds: Sequence[int],
    *,
    jobs: int,
    compare: bool = False,
    observe: Observe | None = None,
    keep: Callable[[Simulation], None] | None = None,
) -> Iterator[tuple[Path, dict[str, Any], float]]:
    """Yield the report of each scenario and seed, in this order, and how long the run took.

    With one job, runs are made in this process, `observe` is told how far each is, and `keep` is
    given each when it is over. With `compare` every policy is run.
    """
    asked = ((path, seed) for path in paths for seed in seeds)
    if jobs == 1:
        from distributary.simulator.garbage import resting_collector

        with resting_collector():
            for path, seed in asked:
                yield path, *_run(path, seed, compare, observe, keep)
        return
    # Processes that start afresh: a fork of this one would bring its locks along.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin_process) as pool:
        waiting: deque[tuple[Path, Future[tuple[dict[str, Any], float]]]] = deque()
        try:
            for path, seed in asked:
                waiting.append((path, pool.submit(_run, path, seed, compare)))
                if len(waiting) >= jobs * _AHEAD_PER_PROCESS:
                    first, future = waiting.popleft()
                    yield first, *future.result()
            for first, future in waiting:
                yield first, *future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def replay_line(path: Path, seed: int, *, compare: bool = False) -> str:
    """Return what shows a failing run again."""
    replay = ["distributary", "simulate", str(path), "--seed", str(seed)]
    return "replay: " + shlex.join([*replay, "--compare"] if compare else replay)


def _run(
    path: Path,
    seed: int,
    compare: bool,
    observe: Observe | None = None,
    keep: Callable[[Simulation], None] | None = None,
) -> tuple[dict[str, Any], float]:
    from distributary.simulator import Simulation, compared_report, report_of

    # The run before this one is a net of cycles that nobody looks for while runs go on: those of
    # a night would take all memory. What is left after that stays, and is not looked through again.
    gc.collect()
    gc.freeze()
    began = time.perf_counter()
    if compare:
        report = compared_report(_scenario(path), seed=seed, observe=observe, keep=keep)
        return report, time.perf_counter() - began
    simulation = Simulation(_scenario(path), seed=seed)
    simulation.run(observe)
    if keep is not None:
        keep(simulation)
    return report_of(simulation), time.perf_counter() - began


@functools.cache
def _scenario(path: Path) -> Scenario:
    from distributary.simulator import read_scenario

    return read_scenario(path)


def _begin_process() -> None:
    """Have the process that waits for this one decide what an interrupt means.

    What is to be collected between runs is, by `_run`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()


def _observed(
    runs: Iterable[tuple[Path, dict[str, Any], float]], total: int, observe: Observe | None
) -> Iterator[tuple[Path, dict[str, Any], float]]:
    for done, run in enumerate(runs, start=1):
        if observe is not None:
            observe(run[0].stem, done, total)
        yield run


def _table(rows: Sequence[_Row]) -> list[str]:
    total = _Row("in all")
    for row in rows:
        total.seeds += row.seeds
        total.failures += row.failures
        total.seconds += row.seconds
    width = max(len(row.scenario) for row in (*rows, total, _Row("scenario")))
    head = f"{'scenario':<{width}}  {'seeds':>9}  {'failures':>8}  {'seconds':>9}"
    return [
        head,
        *(
            f"{row.scenario:<{width}}  {row.seeds:>9,}  {row.failures:>8,}  {row.seconds:>9,.1f}"
            for row in (*rows, total)
        ),
    ]
