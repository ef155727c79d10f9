"""Files of subscriptions: an array of objects with an `id` and `filters`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from distributary.content.documents import read_document
from distributary.errors import BadInput, quoted
from distributary.filters.filter import Filter

__all__ = ["read_subscriptions"]


def read_subscriptions(path: Path | str) -> dict[str, Filter]:
    """Return the filter of every subscription in a JSON file, by its id.

    Whatever else a subscription has (a profile, a tolerance) is not read.

    Raises `BadInput` naming the file, the subscription and the place in its filters.
    """
    return read_document(path, _subscriptions)


def _subscriptions(document: object) -> dict[str, Filter]:
    if not isinstance(document, list):
        raise BadInput(
            "document",
            "must be an array of subscriptions",
            hint='each is an object such as {"id": "s1", "filters": []}',
        )
    found: dict[str, Filter] = {}
    for index, entry in enumerate(document):
        place = f"[{index}]"
        if not isinstance(entry, Mapping):
            raise BadInput(place, "must be an object with an id and filters")
        for name in ("id", "filters"):
            if name not in entry:
                raise BadInput(f"{place}.{name}", "is missing")
        identity = entry["id"]
        if not isinstance(identity, str) or not identity:
            raise BadInput(f"{place}.id", "must be a string that is not empty")
        if identity in found:
            raise BadInput(f"{place}.id", f"{quoted(identity)} is given twice")
        found[identity] = Filter.parse(entry["filters"], place=f"{place}.filters")
    return found
