"""Jobs on a real standalone cluster: one master and two workers, processes of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark_cluster import cluster_environment, listening_addresses, standalone_cluster

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[3]
GIB = 2**30
# What a Java of a gibibyte of heap takes beside it: its own code, threads, buffers.
BESIDE_HEAP = 0.6 * GIB
LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[int]]]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def drive(master: str, folder: Path, publications: int) -> dict[str, Any]:
    """Run jobs in a process of its own and return what it says about itself."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.cluster_driver", str(folder), master, str(publications)],
        cwd=ROOT,
        env=cluster_environment(),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=7200,
        check=True,
    )
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def test_a_cluster_and_its_driver_listen_on_loopback_alone(
    cluster: tuple[str, list[int]], tmp_path: Path
) -> None:
    master, pids = cluster
    found = drive(master, tmp_path / "data", 1_000)
    assert found["executors"] == 2
    assert set(found["listening"]) <= LOOPBACK
    assert found["listening"]
    assert listening_addresses(pids) <= LOOPBACK


def test_ten_million_rows_pass_with_a_driver_of_one_gibibyte(
    cluster: tuple[str, list[int]],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """No job collects what grows with the data."""
    rows = 10_000_000
    found = drive(cluster[0], tmp_path / "data", rows)
    for name in ("java_bytes", "python_bytes"):
        record_property(name, found[name])
        print(f"peak of the driver's {name}: {found[name] / GIB:.2f} GiB")
    steps = {step["job"]: step for step in found["steps"]}
    assert steps["sample"]["tables_out"]["publications"] == rows
    assert steps["match"]["tables_in"]["publications"] == rows
    assert steps["match"]["rows_out"] > rows / 10
    assert steps["channels"]["tables_in"]["publications"] == rows
    assert steps["traffic"]["tables_out"]["traffic"] == 1_000
    assert found["java_bytes"] < GIB + BESIDE_HEAP
    assert found["python_bytes"] < GIB / 2
