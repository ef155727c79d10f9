"""Wirings in files: the broker of every user, and what that costs.

A wiring file is one JSON object::

    {"method": "search", "total_cost": 12.0, "access_cost": 12.0, "core_cost": 0.0,
     "lower_bound": 12.0, "gap": 0.0, "seconds": 0.01,
     "assignment": {"u1": "b1", "u2": "b1"}, "core": "mst"}

Users are in the order of the problem file. `core_cost_shortened` is true where shortest
paths stand in for prices between brokers that the problem gave, and absent elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.arrays import IntArray
from distributary.content.documents import read_document
from distributary.content.fields import Record
from distributary.errors import BadInput, quoted
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import Wiring

__all__ = [
    "NO_BROKER",
    "Assignment",
    "parse_wiring",
    "read_wiring",
    "resolved",
    "wiring_document",
    "wiring_figures",
]

NO_BROKER = -1
"""The broker of a user who has none yet."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """An earlier assignment, seen from a problem that may have changed since.

    Users who are new and those whose broker is gone have `NO_BROKER`, shape (users,). Each thing
    that has changed has a sentence in `warnings`.
    """

    broker_of: IntArray
    warnings: tuple[str, ...] = ()


@checked
def wiring_figures(problem: WiringProblem, wiring: Wiring) -> dict[str, str | float | int]:
    """Return the figures of a wiring, in the order in which they are written."""
    figures: dict[str, str | float | int] = {
        "method": wiring.method,
        "total_cost": float(wiring.cost.total),
        "access_cost": float(wiring.cost.access),
        "core_cost": float(wiring.cost.core),
        "lower_bound": float(wiring.lower_bound),
        "gap": float(wiring.gap),
        "seconds": float(wiring.seconds),
    }
    if wiring.steiner_saving is not None:
        figures["steiner_saving"] = float(wiring.steiner_saving)
    if wiring.moved is not None:
        figures["moved"] = int(wiring.moved)
    figures["core"] = wiring.core
    if problem.shortened:
        figures["core_cost_shortened"] = True
    return figures


@checked
def wiring_document(
    problem: WiringProblem, wiring: Wiring, user_order: Sequence[str] | None = None
) -> dict[str, object]:
    """Return a wiring as a JSON document.

    Users are written in `user_order`, usually that of the problem's file; the problem's own unless
    given.
    """
    broker_of = {
        user: problem.brokers[broker]
        for user, broker in zip(problem.users, wiring.broker_of.tolist(), strict=True)
    }
    assignment = {user: broker_of[user] for user in user_order or problem.users}
    document: dict[str, object] = {}
    for name, figure in wiring_figures(problem, wiring).items():
        if name == "core":
            document["assignment"] = assignment
        document[name] = figure
    return document


def read_wiring(path: Path | str, problem: WiringProblem) -> Assignment:
    """Return the assignment in a file; see `parse_wiring`."""
    return read_document(path, lambda document: parse_wiring(document, problem))


def parse_wiring(document: object, problem: WiringProblem) -> Assignment:
    """Return the assignment in a JSON document as the start of re-wiring `problem`.

    The figures in the document are not read: `cost` works them out. Users and brokers may
    have come and gone since it was written.
    """
    entries = Record(document).record("assignment")
    return resolved({user: entries.name(user) for user in entries.keys}, problem)


@checked
def resolved(broker_of: dict[str, str], problem: WiringProblem) -> Assignment:
    """Return which broker of the problem each of its users has, by name."""
    brokers = {name: b for b, name in enumerate(problem.brokers)}
    found = np.full(problem.user_count, NO_BROKER, dtype=np.int64)
    fresh: list[str] = []
    stranded: list[str] = []
    known = 0
    for u, user in enumerate(problem.users):
        broker = broker_of.get(user)
        if broker is None:
            fresh.append(user)
            continue
        known += 1
        found[u] = brokers.get(broker, NO_BROKER)
        if found[u] == NO_BROKER:
            stranded.append(user)
    if not known:
        raise BadInput("assignment", "has none of the users of the problem")
    gone = sorted(broker_of.keys() - set(problem.users)) if len(broker_of) > known else []
    warnings = []
    for names, words in (
        (gone, "not in the problem, ignored"),
        (fresh, "new, attached to any broker"),
        (stranded, "at brokers that are not in the problem, attached to any other"),
    ):
        if names:
            shown = quoted(names[0]) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")
            warnings.append(f"users {words}: {shown}")
    return Assignment(found, tuple(warnings))
