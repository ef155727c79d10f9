"""Who follows which quoted object, and how closely: sent to executors once.

A stream object is (`source`, `subject`), and the table `quotes` names it by its subject. A
subscription follows an object when its filters pass an event of it: one with the `source`,
`type` and `subject` of the object and without data, since whether somebody follows an object
must not depend on its values. A server follows what a user follows who is at home there. It
keeps to the effective tolerance of all of them; one without a tolerance wants every version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.content.divergence import DIVERGENCES
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.content.tolerance import EffectiveTolerance, Tolerance
from distributary.content.trace import thresholds_of
from distributary.errors import BadInput, quoted
from distributary.filters.index import Index
from distributary.pipeline.transforms.columns import (
    codes_by_name,
    home_brokers,
    parsed_texts,
    texts,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Followers", "ObjectEvents", "ObjectFollowers", "followers"]

_KINDS = tuple(sorted(DIVERGENCES))
# Every version is one more change.
_EVERY_VERSION = ("changes", 1.0)
_EVENT_ID = "0"


@dataclass(frozen=True)
class ObjectEvents:
    """What the events of quoted objects have in common.

    `value` is the JSON Pointer of what is quoted; None for the only one that tolerances name.
    """

    source: str = "/exchange"
    type: str = "quote"
    value: str | None = None

    def event(self, name: str) -> Publication | None:
        """Return an event of an object; None when no event can be about such a name."""
        try:
            return Publication.parse(
                {
                    "specversion": "1.0",
                    "id": _EVENT_ID,
                    "source": self.source,
                    "type": self.type,
                    "subject": name,
                }
            )
        except BadInput:
            return None

    def check(self) -> None:
        """Raise `BadInput` when there are no events of this source and type."""
        Publication.parse(
            {"specversion": "1.0", "id": _EVENT_ID, "source": self.source, "type": self.type}
        )


@dataclass(frozen=True, eq=False)
class ObjectFollowers:
    """The servers that follow one object.

    Attributes
    ----------
    servers
        Their numbers in `Followers.servers`, rising, shape (M,).
    thresholds
        What each of them asks of the source, as in `content.trace`, shape (M, kinds).
    """

    servers: IntArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class Followers:
    """All servers that follow objects; see `followers`.

    Attributes
    ----------
    events
        What events of objects look like.
    servers
        The names of servers, sorted.
    index
        Finds subscriptions by numbers; what follows is in the order of those.
    homes
        The number of the server that each one's user is at home at.
    tolerances
        The number of each one's row in `amounts`.
    amounts
        The amount that is asked for of each divergence, by name in their order; infinite
        where it is not asked for. Shape (different tolerances, divergences).
    """

    events: ObjectEvents
    servers: tuple[str, ...]
    index: Index
    homes: IntArray
    tolerances: IntArray
    amounts: FloatArray

    def of(self, names: Sequence[str]) -> list[ObjectFollowers]:
        """Return the followers of each of some objects."""
        found = [ObjectFollowers(np.empty(0, np.int64), thresholds_of((), parent=None))] * len(
            names
        )
        events = [(place, self.events.event(name)) for place, name in enumerate(names)]
        known = [(place, event) for place, event in events if event is not None]
        if not known:
            return found
        for rows, numbers in self.index.match_numbers(to_arrow([event for _, event in known])):
            ends = np.searchsorted(rows, np.unique(rows), side="right").tolist()
            begin = 0
            for end in ends:
                place = known[int(rows[begin])][0]
                found[place] = self._followers(numbers[begin:end].astype(np.int64))
                begin = end
        return found

    def _followers(self, subscriptions: IntArray) -> ObjectFollowers:
        """Return the servers of some subscriptions, each with its effective tolerance."""
        homes = self.homes[subscriptions]
        order = np.argsort(homes, kind="stable")
        servers, begins = np.unique(homes[order], return_index=True)
        amounts = np.minimum.reduceat(self.amounts[self.tolerances[subscriptions[order]]], begins)
        asked, alike = np.unique(amounts, axis=0, return_inverse=True)
        effective = [
            EffectiveTolerance(
                {kind: amount for kind, amount in zip(_KINDS, row, strict=True) if amount < np.inf}
            )
            for row in asked.tolist()
        ]
        return ObjectFollowers(servers, thresholds_of(effective, parent=None)[alike.reshape(-1)])


def followers(subscriptions: pa.Table, users: pa.Table, events: ObjectEvents) -> Followers:
    """Return the followers that tables describe, or raise `BadInput`.

    Who is not in `users`, or has no home there, follows nothing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    events.check()
    brokers = home_brokers(users, texts(subscriptions, "user"))
    at_home = pc.is_valid(brokers)
    chosen, brokers = subscriptions.filter(at_home), brokers.filter(at_home)
    amounts, numbers = _amounts(chosen, events)
    # A tolerance about another value of the object is no wish to follow this one.
    concerned = (amounts.min(axis=1) < np.inf)[numbers]
    chosen, brokers = chosen.filter(pa.array(concerned)), brokers.filter(pa.array(concerned))
    servers, homes = codes_by_name(brokers)
    index = Index.from_arrow(chosen.select(["subscription_id", "filters"]))
    return Followers(events, servers, index, homes, numbers[concerned], amounts)


def _amounts(subscriptions: pa.Table, events: ObjectEvents) -> tuple[FloatArray, IntArray]:
    """Return the different tolerances as amounts, and the number of everybody's.

    Those about another value than the one that is quoted are infinite.
    """
    asked, numbers = parsed_texts(subscriptions, "tolerance", Tolerance.parse)
    value = _value({item.value for item in asked if item is not None}, events)
    amounts = np.full((len(asked), len(_KINDS)), np.inf)
    for row, item in zip(amounts, asked, strict=True):
        if item is None:
            kind, amount = _EVERY_VERSION
            row[_KINDS.index(kind)] = amount
        elif item.value == value:
            row[_KINDS.index(item.divergence)] = item.amount
    return amounts, numbers


def _value(named: set[str], events: ObjectEvents) -> str | None:
    if events.value is not None:
        return events.value
    if len(named) > 1:
        first, second, *_ = sorted(named)
        raise BadInput(
            "tolerance",
            f"is about {quoted(first)} for some and {quoted(second)} for others",
            hint="--value says which of them is quoted",
        )
    return next(iter(named), None)
