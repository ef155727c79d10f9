"""Thousands of servers: time and memory of `auto`, as the command that a user would run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.process import DISTRIBUTARY, peak_memory_bytes
from benchmarks.study import (
    Chart,
    Claim,
    Column,
    Findings,
    Line,
    Progress,
    Size,
    Study,
    Table,
    result_hash,
)
from distributary.content.documents import document_text
from distributary.fidelity import build_trees
from distributary.fidelity.delays_file import write_delays
from distributary.fidelity.generate import generate_problem
from distributary.fidelity.problem_file import problem_document

__all__ = ["STUDY"]

_SEED = 1
_SECONDS_MAX = 90.0
_GIB_MAX = 4.0
_DELAYS_NAME = "delays.npy"

_SERVERS: Mapping[Size, tuple[int, ...]] = {
    "small": (20, 40),
    "large": (1_000, 2_000, 5_000, 10_000),
}


@dataclass(frozen=True)
class _Run:
    """One run of the command."""

    loss: float
    seconds: float
    command_seconds: float
    memory_bytes: int

    @property
    def speed(self) -> tuple[float, float, float]:
        """What the table shows of it."""
        return self.seconds, self.command_seconds, self.memory_bytes / 2**20


def _run(size: Size, progress: Progress) -> Findings:
    # So that no process has to compile.
    build_trees(generate_problem(seed=_SEED, servers=12, routers=40))
    runs = {}
    for servers in _SERVERS[size]:
        progress(f"{servers:,} servers")
        runs[servers] = _command(servers)
    most = _SERVERS[size][-1]
    return Findings(
        tables=(
            Table(
                "Seconds and memory of the command",
                "speed",
                (
                    Column("servers"),
                    Column("seconds", 2),
                    Column("with reading and writing s", 2),
                    Column("peak MiB"),
                    Column("ms per server", 3),
                ),
                tuple((n, *run.speed, 1e3 * run.seconds / n) for n, run in runs.items()),
                notes=(
                    "One object, load 1. Every run is a fresh process of `distributary tree FILE "
                    "-o TREE` with compiled code in its cache and the delays in a file beside the "
                    "problem. Seconds are those that the tree states; memory is the peak "
                    "resident size of that process."
                ),
                chart=Chart(
                    "tree-large",
                    "Seconds of auto by servers",
                    "servers",
                    "seconds",
                    (Line("auto", tuple((float(n), run.seconds) for n, run in runs.items())),),
                    x_doubling=True,
                ),
            ),
            Table(
                "Average loss of `auto`",
                "quality",
                (Column("servers"), Column("average loss", 5)),
                tuple((n, run.loss) for n, run in runs.items()),
            ),
        ),
        claims=(
            Claim(f"{most:,} servers", runs[most].seconds, "<", _SECONDS_MAX, "s"),
            Claim(
                f"{most:,} servers, peak memory",
                runs[most].memory_bytes / 2**30,
                "<",
                _GIB_MAX,
                "GiB",
            ),
        ),
        result_hash=result_hash([run.loss for run in runs.values()]),
    )


def _command(servers: int) -> _Run:
    """Return what the command says of a problem, and what it took."""
    with TemporaryDirectory() as folder:
        problem_path, tree_path = Path(folder, "problem.json"), Path(folder, "tree.json")
        problem = generate_problem(seed=_SEED, servers=servers)
        write_delays(problem, Path(folder, _DELAYS_NAME))
        document = problem_document(problem, delays_file=_DELAYS_NAME)
        problem_path.write_text(document_text(document), encoding="utf-8")
        # A large problem and its process need not fit into memory together.
        del problem, document
        began = time.perf_counter()
        memory = peak_memory_bytes(
            [*DISTRIBUTARY, "tree", str(problem_path), "--seed", str(_SEED), "-o", str(tree_path)]
        )
        command_seconds = time.perf_counter() - began
        tree = json.loads(tree_path.read_text(encoding="utf-8"))
    assert tree["overloaded"] == []
    return _Run(float(tree["average_loss"]), float(tree["seconds"]), command_seconds, memory)


STUDY = Study(
    name="tree-large",
    about="How time and memory of `auto` grow with the number of servers.",
    minutes=2.0,
    run=_run,
)
