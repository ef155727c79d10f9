"""A hundred thousand users: time and memory of `search`, as the command that a user would run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.process import DISTRIBUTARY, peak_memory_bytes
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.wiring.generate import generate_problem
from distributary.wiring.planner import wire
from distributary.wiring.problem_writer import write_problem_tables

__all__ = ["STUDY"]

_SEED = 1
_SECONDS_MAX = 180.0
_GIB_MAX = 8.0


@dataclass(frozen=True)
class _Shape:
    users: int
    brokers: int
    channels: int


_SHAPES: Mapping[Size, tuple[_Shape, ...]] = {
    "small": (_Shape(40, 4, 4),),
    "large": (_Shape(10_000, 100, 64), _Shape(100_000, 1_000, 64)),
}


@dataclass(frozen=True)
class _Run:
    """One run of the command."""

    total_cost: float
    gap: float
    seconds: float
    command_seconds: float
    memory_bytes: int


def _run(size: Size, progress: Progress) -> Findings:
    # So that no process has to compile.
    wire(generate_problem(seed=_SEED, users=30, brokers=4, channels=4), method="search")
    runs = {}
    for shape in _SHAPES[size]:
        progress(f"{shape.users:,} users")
        runs[shape] = _command(shape)
    most = _SHAPES[size][-1]
    return Findings(
        tables=(
            Table(
                "Seconds and memory of the command",
                "speed",
                (
                    *(Column(name) for name in ("users", "brokers", "channels")),
                    Column("seconds", 1),
                    Column("with reading and writing s", 1),
                    Column("peak MiB"),
                ),
                tuple(
                    (
                        shape.users,
                        shape.brokers,
                        shape.channels,
                        run.seconds,
                        run.command_seconds,
                        run.memory_bytes / 2**20,
                    )
                    for shape, run in runs.items()
                ),
                notes=(
                    "Every run is a fresh process of `distributary wire TABLES --method search -o "
                    "WIRING` with compiled code in its cache and the problem in Parquet tables. "
                    "Seconds are those that the wiring states; memory is the peak resident size "
                    "of that process."
                ),
            ),
            Table(
                "Cost of `search`",
                "quality",
                (Column("users"), Column("total cost"), Column("lower bound below it %", 2)),
                tuple((s.users, run.total_cost, 100.0 * run.gap) for s, run in runs.items()),
            ),
        ),
        claims=(
            Claim(
                f"{most.users:,} users and {most.brokers:,} brokers",
                runs[most].seconds,
                "<",
                _SECONDS_MAX,
                "s",
            ),
            Claim(
                f"{most.users:,} users and {most.brokers:,} brokers, peak memory",
                runs[most].memory_bytes / 2**30,
                "<",
                _GIB_MAX,
                "GiB",
            ),
        ),
        result_hash=result_hash([run.total_cost for run in runs.values()]),
    )


def _command(shape: _Shape) -> _Run:
    """Return what the command says of a problem, and what it took."""
    with TemporaryDirectory() as folder:
        tables, wiring_path = Path(folder, "tables"), Path(folder, "wiring.json")
        problem = generate_problem(
            seed=_SEED, users=shape.users, brokers=shape.brokers, channels=shape.channels
        )
        write_problem_tables(problem, tables)
        # A large problem and its process need not fit into memory together.
        del problem
        began = time.perf_counter()
        options = ["--method", "search", "--seed", str(_SEED), "-o", str(wiring_path)]
        memory = peak_memory_bytes([*DISTRIBUTARY, "wire", str(tables), *options])
        command_seconds = time.perf_counter() - began
        wiring = json.loads(wiring_path.read_text(encoding="utf-8"))
    assert len(wiring["assignment"]) == shape.users
    return _Run(
        float(wiring["total_cost"]),
        float(wiring["gap"]),
        float(wiring["seconds"]),
        command_seconds,
        memory,
    )


STUDY = Study(
    name="wiring-large",
    about="How time and memory of `search` grow to a hundred thousand users.",
    minutes=6.0,
    run=_run,
)
