"""Many rows through a cluster with a small driver, and how much memory the driver took.

`python -m tests.cluster_driver FOLDER MASTER PUBLICATIONS` runs jobs and prints one line of
JSON. A process has one Spark, on one master.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import psutil
from tests.spark_cluster import listening_addresses

from distributary.pipeline.config import Step
from distributary.pipeline.jobs.run import run
from distributary.pipeline.session import session
from distributary.pipeline.store import Store

_KIB = 1024


def main(folder: str, master: str, publications: int) -> None:
    """Run the jobs that read every publication, with a driver of one gibibyte."""
    steps = (
        Step(
            "sample",
            {
                "publications": publications,
                "subscriptions": 20,
                "users": 1_000,
                "brokers": 16,
                "objects": 2,
                "seconds": 60,
                "matches": 1.0,
                "seed": 1,
            },
        ),
        Step("match"),
        Step("channels"),
        Step("traffic"),
    )
    with session(master=master, driver_memory="1g") as spark:
        reports = run(Store(folder, spark), steps)
        (java,) = [child for child in psutil.Process().children() if child.name() == "java"]
        found = {
            "executors": _executors(spark.sparkContext),
            "listening": sorted(listening_addresses([os.getpid()])),
            "java_bytes": _peak(java.pid),
            "python_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB,
            "steps": [report.document() for report in reports],
        }
    print(json.dumps(found))


def _executors(context: object) -> int:
    """Return how many processes do the work, apart from the driver."""
    known = context._jsc.sc().statusTracker().getExecutorInfos()  # type: ignore[attr-defined]
    return len(known) - 1


def _peak(pid: int) -> int:
    """Return the most memory that a process ever had, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return int(psutil.Process(pid).memory_info().rss)
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * _KIB


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
