"""Reading subscriptions: JSON from clients, and the same texts again from peers and disks.

What a text means is worked out once; brokers that share a process share the result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from distributary.content import ContentSpace, Subscription
from distributary.content.documents import parse_document
from distributary.errors import BadInput
from distributary.filters import Filter, cells
from distributary.filters.index import ID_CHARACTERS_MAX

__all__ = ["Reading", "cell_mask_of", "cells_of", "filter_of", "read"]

_REMEMBERED_MAX = 65_536


@dataclass(frozen=True)
class Reading:
    """A subscription with everything that follows from its text.

    Attributes
    ----------
    subscription, filter
        What it says.
    filters, profile
        JSON, equal for equal ones.
    """

    subscription: Subscription
    filter: Filter
    filters: str
    profile: str | None


@lru_cache(maxsize=_REMEMBERED_MAX)
def read(text: str) -> Reading:
    """Return the subscription in a client's text.

    Raises
    ------
    BadInput
        When it is not JSON, or breaks the rules.
    """
    subscription = Subscription.parse(parse_document(text))
    if len(subscription.id) > ID_CHARACTERS_MAX:
        raise BadInput("id", f"has more than {ID_CHARACTERS_MAX:,} characters")
    Filter.parse(list(subscription.filters))
    filters = _written(list(subscription.filters))
    profile = subscription.profile
    return Reading(
        subscription,
        filter_of(filters),
        filters,
        None if profile is None else _written(profile.document()),
    )


@lru_cache(maxsize=_REMEMBERED_MAX)
def filter_of(filters: str) -> Filter:
    """Return the filter that a text of JSON says.

    Raises
    ------
    BadInput
        When it says none.
    """
    return Filter.parse(parse_document(filters))


@lru_cache(maxsize=_REMEMBERED_MAX)
def cells_of(filters: str, space: ContentSpace) -> tuple[int, ...]:
    """Return the cells in which a filter can match."""
    return tuple(int(cell) for cell in cells(filter_of(filters), space))


@lru_cache(maxsize=_REMEMBERED_MAX)
def cell_mask_of(filters: str, space: ContentSpace) -> int:
    """Return the cells in which a filter can match, as the bits of a number."""
    return sum(1 << cell for cell in cells_of(filters, space))


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
