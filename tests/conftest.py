"""Settings that all tests share: examples, order, and what everyday work can do without."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# A first call compiles, so single examples have no deadline; a failure prints its replay.
# Examples are the same in every run, so that a change is to blame when one fails, unless the
# environment asks to look for others, as `make test-full` does.
settings.register_profile(
    "distributary",
    deadline=None,
    print_blob=True,
    derandomize="EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("distributary")

# Which test compiles what is nobody's business.
logging.getLogger("distributary.kernels").disabled = True

HERE = Path(__file__).parent
# In the order in which they run, after everything else.
SLOW = (
    "unit/pipeline",
    "docs",
    "unit/test_benchmarks.py",
    "scenario",
    "unit/media",
    "unit/cli",
    "unit/broker/test_explorer.py",
    "unit/broker/test_migration_faults.py",
    "unit/network/gateway/test_patience.py",
    "unit/network/test_connection.py",
    "unit/network/test_doctor.py",
    "unit/simulator/test_adaptation_small.py",
    "unit/simulator/test_delivery_table.py",
    "unit/simulator/test_policies.py",
    "property/test_wiring_search.py",
    "unit/test_kernels.py",
    "unit/test_light_import.py",
    "unit/test_minimal_import.py",
)
# Overlays in real time, and servers that do not answer.
WAITING = ("tests/browser/", "tests/live/", "tests/unit/network/test_doctor.py")
# About half of these.
GATEWAYS = ("tests/browser/", "tests/live/test_gateway")
# Files whose tests share what takes seconds to make.
SHARING = ("tests/unit/media/test_pool", "tests/unit/media/test_prediction.py")
# Every process takes up to a gigabyte.
PROCESSORS_MAX = 16
# Of each property at most: they are the same in every run, so many more would show little more.
# Whoever asks to look for others gets as many as the test states.
EXAMPLES = 30
# Where slow tests are left out.
FAST_EXAMPLES = 15


class Chains(LoadScopeScheduling):  # type: ignore[misc]
    """Give tests to processes one by one, but those of a chain to the same one.

    A Spark session takes seconds and most of a gigabyte, so one process has all that need it.
    Two others have all that wait while time really passes: the rest use the processor
    meanwhile. These three are the largest units of work and so begin first. Whatever shares a
    costly fixture stays together as well. (The mark `xdist_group` is for this, but pytest 9.2 no
    longer has the attribute that xdist 3.8 writes it into.)
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/unit/pipeline/") or "[pipeline-" in nodeid:
            return "spark"
        if nodeid.startswith(WAITING) or "[live-" in nodeid:
            return "waiting for gateways" if nodeid.startswith(GATEWAYS) else "waiting"
        return nodeid.partition("::")[0] if nodeid.startswith(SHARING) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Chains:
    """Return who decides which process runs which test."""
    return Chains(config, log)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Have two processes more than processors, for tests that wait."""
    processors = min(os.cpu_count() or 1, PROCESSORS_MAX)
    return processors if _is_fast(config) else processors + 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read slow tests where they are left out: some import for seconds."""
    return True if _is_fast(config) and _place(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Do not make tests that are left out anyway: there are twelve thousand of the long sweeps."""
    if "not full" not in collector.config.option.markexpr:
        return None
    marks = [getattr(one, "pytestmark", []) for one in (obj, collector.obj)]
    every = [mark for found in marks for mark in (found if isinstance(found, list) else [found])]
    return [] if any(mark.name == "full" for mark in every) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put fast tests first, and mark the slow ones."""
    items.sort(key=lambda item: _place(item.path))
    for item in items:
        if _place(item.path):
            item.add_marker(pytest.mark.slow)
        if _is_fast(config):
            _limit_examples(item, FAST_EXAMPLES)
        elif "EXPLORE" not in os.environ:
            _limit_examples(item, EXAMPLES)


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and not in what stays anyway: that is a seventh of a simulation."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """See that no test leaves the rest of its process without what counts coverage."""
    before = sys.gettrace()
    yield
    assert sys.gettrace() is before, "the test has left another tracer behind"


def _is_fast(config: pytest.Config) -> bool:
    return "not slow" in config.option.markexpr


@cache
def _place(path: Path) -> int:
    """Return where in SLOW a test stands, from 1, or 0 for a fast one."""
    places = (place for place, slow in enumerate(SLOW, 1) if path.is_relative_to(HERE / slow))
    return next(places, 0)


def _limit_examples(item: pytest.Item, examples_max: int) -> None:
    # Hypothesis has no public way to lower a number that a test states itself.
    test = getattr(item, "obj", None)
    stated = getattr(test, "_hypothesis_internal_use_settings", None)
    if stated is not None and stated.max_examples > examples_max:
        fewer = settings(stated, max_examples=examples_max)
        vars(test)["_hypothesis_internal_use_settings"] = fewer
