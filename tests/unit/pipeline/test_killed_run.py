"""Runs that are killed, at named points of a commit and at any moment: nothing is lost or mixed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.smallest_job import day, deliveries, events, filled, match, stale

from distributary.pipeline.days import Days
from distributary.pipeline.runs import runs_in
from distributary.pipeline.store import Store

ROOT = Path(__file__).parents[3]
# The run kills itself at a point: nothing that it would do after that is done.
DYING = """
import os, signal, sys
from distributary.pipeline import runs, store, table_log
from distributary.pipeline.days import Days
from tests.smallest_job import match, stale

folder, point = sys.argv[1:]
whose, name, table, after = {
    "files are written": (store.Store, "draft", "deliveries", True),
    "before the commit": (table_log.TableLog, "_committed", "deliveries", False),
    "after the commit": (table_log.TableLog, "_committed", "deliveries", True),
    "before the row": (store.Store, "draft", "runs", False),
    "before the row is committed": (table_log.TableLog, "_committed", "runs", False),
    "after the row is committed": (table_log.TableLog, "_committed", "runs", True),
}[point]
real = getattr(whose, name)

def dying(self, first, *args, **kwargs):
    about = table in (first, getattr(first, "name", None))
    if about and not after:
        os.kill(os.getpid(), signal.SIGKILL)
    found = real(self, first, *args, **kwargs)
    if about:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

setattr(whose, name, dying)
here = store.Store(folder)
match(here, here, Days(chosen=stale(here).days))
"""
# One run after the other, on a day that has changed, until it is killed.
WORKING = """
import sys
from distributary.pipeline.days import Days
from distributary.pipeline.store import Store
from tests.smallest_job import day, events, match, stale

store, number = Store(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
while True:
    number += 1
    chosen = Days(chosen=frozenset({day(number % 4)}))
    store.write("publications", events(number % 4, f"e{number}", f"f{number}"), chosen)
    match(store, store, Days(chosen=stale(store).days))
    print(number, flush=True)
"""


def environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize(
    ("point", "is_there", "is_done"),
    [
        ("files are written", False, False),
        ("before the commit", False, False),
        ("after the commit", True, False),
        ("before the row", True, False),
        ("before the row is committed", True, False),
        ("after the row is committed", True, True),
    ],
)
def test_a_run_that_is_killed_at_a_point_is_whole_or_not_there_and_done_again(
    tmp_path: Path, point: str, is_there: bool, is_done: bool
) -> None:
    store = filled(tmp_path, 0, 1)
    match(store, store)
    before = deliveries(store)
    store.write("publications", events(1, "new", "newer"), Days(day(1)))
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(tmp_path), point],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = Store(str(tmp_path))
    found = deliveries(left)
    assert (found != before) == is_there
    assert len(found) == (6 if is_there else 4)
    assert (not stale(left)) == is_done
    assert len(runs_in(left)) == (2 if is_done else 1)
    match(left, left, Days(chosen=stale(left).days))
    assert not stale(left)
    assert {row[1] for row in deliveries(left) if row[-1] == day(1)} == {"new", "newer"}


def killed_at_any_moment(folder: Path, times: int, seed: int) -> None:
    rng = random.Random(seed)
    store = filled(folder, 0)
    number = 0
    for _ in range(times):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKING, str(folder), str(number)],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        for _ in range(rng.randrange(3)):
            number = int(worker.stdout.readline())
        try:
            worker.wait(rng.uniform(0.0, 0.2))
        except subprocess.TimeoutExpired:
            os.kill(worker.pid, signal.SIGKILL)
        rest = worker.communicate()[0].split()
        number = max([number, *(int(line) for line in rest)])
        assert worker.returncode == -signal.SIGKILL
        # Every day of the deliveries is that of one version of its publications, whole.
        store = Store(str(folder))
        if not store.has("deliveries"):
            continue
        by_day: dict[object, set[object]] = {}
        for row in deliveries(store):
            by_day.setdefault(row[-1], set()).add(row[1])
        for names in by_day.values():
            assert len({str(name)[1:] for name in names}) == 1
        number += 1
    match(store, store, Days(chosen=stale(store).days))
    found = deliveries(store)
    match(store, store)
    assert deliveries(store) == found


def test_runs_that_are_killed_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    killed_at_any_moment(tmp_path, 2, seed=1)


@pytest.mark.full
def test_two_hundred_runs_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    killed_at_any_moment(tmp_path, 200, seed=2)
