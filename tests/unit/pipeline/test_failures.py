"""What Spark says becomes one sentence that names the folder and what to do."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from distributary.errors import BadInput
from distributary.pipeline.failures import explained
from distributary.pipeline.jobs.sample import frames
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store

SIZES = SampleSizes(publications=50, subscriptions=2000, users=20, brokers=4, objects=2, seconds=5)
COMMAND = "import sys; from distributary.cli import main; sys.exit(main())"


@pytest.mark.parametrize(
    ("error", "place"),
    [
        # As PySpark says it when a broadcast does not fit.
        (
            pickle.PicklingError("Could not serialize broadcast: OSError: [Errno 28] {full}"),
            "local",
        ),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "data"),
        (
            RuntimeError("java.io.FileNotFoundException: {local}/blockmgr-1/0e/shuffle_0 ({full})"),
            "local",
        ),
        (
            RuntimeError("Task failed while writing rows to file:{data}/run-1f. {full}"),
            "data",
        ),
    ],
    ids=["broadcast", "Python", "shuffle", "table"],
)
def test_a_full_disk_is_named(
    error: Exception, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {"local": str(tmp_path / "local"), "data": str(tmp_path / "data")}
    monkeypatch.setenv("SPARK_LOCAL_DIRS", folders["local"])
    if not isinstance(error, OSError):
        said = str(error).format(full="No space left on device", **folders)
        error = type(error)(said)
    with (
        pytest.raises(BadInput, match="the disk is full; hint: make room there") as caught,
        explained("match", folders["data"]),
    ):
        raise error
    assert caught.value.place == folders[place]
    assert ("SPARK_LOCAL_DIRS" in str(caught.value)) is (place == "local")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), explained("match", "data"):
        raise ZeroDivisionError


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk on which next to nothing fits."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.full
def test_a_job_on_a_full_disk_ends_with_one_sentence_and_leaves_nothing(
    store: Store, small_disk: Path, tmp_path: Path
) -> None:
    made = frames(store.spark, SIZES, seed=1)
    for name in ("publications", "subscriptions", "users"):
        store.write(name, made[name])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [
            *(sys.executable, "-c", COMMAND, "pipeline", "match", "--data", store.folder.path("")),
            *("--master", "local[1]", "--driver-memory", "1g"),
        ],
        env={**os.environ, "SPARK_LOCAL_DIRS": str(small_disk), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {small_disk}: the disk is full; hint: ")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in temporary.iterdir() if "warehouse" in path.name] == []


def test_the_warehouse_is_private_and_nobody_can_guess_it(store: Store) -> None:
    location = store.spark.conf.get("spark.sql.warehouse.dir")
    assert location is not None
    folder = Path(location.removeprefix("file:"))
    assert folder.parent == Path(tempfile.gettempdir())
    assert folder.name.startswith("distributary-warehouse-")
    assert folder.stat().st_mode & 0o077 == 0
