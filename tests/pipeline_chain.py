"""All jobs of the pipeline, one after another, and a hash of every table they leave.

`python -m tests.pipeline_chain FOLDER MASTER` runs them in a process of its own: a process
has one Spark, on one master.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from distributary.pipeline.config import Step
from distributary.pipeline.jobs.run import run
from distributary.pipeline.runs import RUNS
from distributary.pipeline.schemas import TABLES, table_schema
from distributary.pipeline.session import session
from distributary.pipeline.store import Store

__all__ = ["PLANNING", "SAMPLE", "ingest_steps", "table_hashes", "write_files"]

SAMPLE = Step(
    "sample",
    {
        "publications": 200,
        "subscriptions": 120,
        "users": 60,
        "brokers": 8,
        "objects": 4,
        "seconds": 120,
        "seed": 7,
    },
)
"""Tables of every kind, as small as they can be with something in each."""

PLANNING = (
    Step("match"),
    Step("channels", {"dimensions": ["type", "/level"], "bins": 4, "by": "mass"}),
    Step("traffic", {"partners": 3}),
    Step("rates"),
    Step("plans"),
    Step("wire", {"seed": 7}),
    Step("tree", {"seed": 7}),
)
"""All jobs that compute something from those tables."""


def write_files(folder: Path) -> None:
    """Write files to ingest: several of quotes, with repeated rows and broken ones."""
    folder.mkdir(parents=True)
    for number in range(3):
        lines = ["object,time,value"]
        for second in range(40):
            # A third of the times is in the next file too, with another value.
            at = number * 26 + second
            lines.append(f"stock-{at % 5},2026-01-05T00:00:{at % 60:02d}Z,{10 + number + at / 8}")
        lines[7] = "stock-1,yesterday,10"
        lines[9] = "stock-1,2026-01-05T00:00:00Z"
        (folder / f"quotes-{number}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def ingest_steps(folder: Path) -> tuple[Step, ...]:
    """Return the job that reads what `write_files` wrote."""
    return (Step("ingest", {"table": "quotes", "files": [str(folder)]}),)


def table_hashes(folder: Path) -> dict[str, str]:
    """Return a hash of the rows of every table in a folder, sorted, whatever their files.

    But for `runs`, which no two are the same of.
    """
    store = Store(str(folder))
    names = [name for name in sorted(TABLES) if name != RUNS and store.has(name)]
    return {name: _hash(store, name) for name in names}


def _hash(store: Store, name: str) -> str:
    rows = store.read(name)
    # Keys are unique within a day.
    names = [*(table_schema(name).key or rows.column_names), *({"day"} & {*rows.column_names})]
    ordered = rows.sort_by([(column, "ascending") for column in names]).to_pylist()
    return hashlib.sha256(repr((len(ordered), ordered)).encode()).hexdigest()


def main(folder: Path, master: str) -> None:
    """Run all jobs on a master; tables go to `data` and `ingested` in the folder."""
    with session(master=master, driver_memory="1g") as spark:
        run(Store(str(folder / "data"), spark), (SAMPLE, *PLANNING))
        run(Store(str(folder / "ingested"), spark), ingest_steps(folder.parent / "files"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
