"""The first chapter: what has happened, counted on Spark, and what the planners make of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from examples.whole_story.tables import SPACE, write_tables

from distributary.pipeline.jobs.channels import channels
from distributary.pipeline.jobs.ingest import ingest
from distributary.pipeline.jobs.match import match
from distributary.pipeline.jobs.plans import plans
from distributary.pipeline.jobs.rates import rates
from distributary.pipeline.jobs.traffic import traffic
from distributary.pipeline.jobs.tree import tree
from distributary.pipeline.jobs.wire import wire
from distributary.pipeline.report import JobReport
from distributary.pipeline.session import JAVA_OPTIONS, session
from distributary.pipeline.store import Store

__all__ = ["History", "tell_history"]

_NOTICES = 200
# A publisher is known by the source of its events, and is one of the sample's users.
_PUBLISHER = "user-0000003"
# What stands among the notices that arrive: a line that is cut off, one that is no event,
# and one whose time has no offset.
_BROKEN = (
    '{"specversion": "1.0", "id": "n-cut", "source": "/maps"',
    '["not", "an", "event"]',
    '{"specversion":"1.0","id":"n-time","source":"/maps","type":"notice","time":"2026-11-15T08:00:00"}',
)


@dataclass(frozen=True)
class History:
    """What the jobs said, by job, and where their tables are."""

    data: Path
    reports: Mapping[str, JobReport]


def tell_history(
    folder: Path, *, seed: int, say: Callable[[str], None], wired: Callable[[Path], None]
) -> History:
    """Make a day of history, read what arrived, and run every job over it.

    Parameters
    ----------
    folder
        Gets the tables, in `data`, and the files that arrived, in `arrived`.
    seed
        Of every random choice.
    say
        Told what is being done.
    wired
        Called with the folder of the tables as soon as those are there that say who gets what
        and who is at home where. Other jobs go on after that.
    """
    data, arrived = folder / "data", folder / "arrived"
    arrived.mkdir(parents=True, exist_ok=True)
    notices = arrived / "notices.jsonl"
    notices.write_text("\n".join(_notices()) + "\n")
    shutil.rmtree(data, ignore_errors=True)
    write_tables(data, seed=seed)
    reports: dict[str, JobReport] = {}
    say("starting Spark")
    # So short a run is over before Java's second compiler has paid for itself.
    settings = {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -XX:TieredStopAtLevel=1"}
    with session(driver_memory="1g", settings=settings) as spark:
        store = Store(str(data), spark)
        steps: dict[str, Callable[[], JobReport]] = {
            "ingest": lambda: ingest(store, "publications", [str(notices)], add=True),
            "channels": lambda: channels(store, store, SPACE),
            "wire": lambda: wire(store, store, seed=seed),
            "match": lambda: match(store, store),
            "traffic": lambda: traffic(store, store),
            "rates": lambda: rates(store, store),
            "tree": lambda: tree(store, store, seed=seed, time_limit=10.0),
            "plans": lambda: plans(store, store),
        }
        for name, step in steps.items():
            say(f"pipeline {name}")
            reports[name] = step()
            if name == "match":
                wired(data)
    return History(data, reports)


def _notices() -> list[str]:
    """Return CloudEvents of map notices as lines of JSON, broken ones among them."""
    lines = [
        json.dumps(
            {
                "specversion": "1.0",
                "id": f"n-{number:03d}",
                "source": _PUBLISHER,
                "type": "notice",
                "subject": f"sheet-{number % 12:02d}",
                "time": f"2026-01-05T{number % 24:02d}:{number % 60:02d}:00Z",
                "datacontenttype": "application/json",
                "data": {"level": number % 7, "latitude": 48.0 + number / 100.0},
            }
        )
        for number in range(_NOTICES)
    ]
    for place, broken in enumerate(_BROKEN):
        lines.insert(50 * (place + 1), broken)
    return lines
