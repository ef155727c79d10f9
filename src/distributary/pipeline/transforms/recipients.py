"""Everything that matching needs of subscribers: sent to executors once, and used in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.arrays import IntArray
from distributary.content.profile import DeviceProfile
from distributary.filters.index import Index
from distributary.pipeline.transforms.columns import home_brokers, parsed_texts, texts
from distributary.pipeline.transforms.format_choices import FormatChoices

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Recipients", "recipients"]


@dataclass(frozen=True, eq=False)
class Recipients:
    """Subscriptions, ready to be matched.

    Everything is in the order of the index's numbers. The home broker of a user is null when
    it has none.
    """

    index: Index
    subscription_ids: pa.Array
    users: pa.Array
    brokers: pa.Array
    profiles: IntArray
    formats: FormatChoices


def recipients(
    subscriptions: pa.Table, users: pa.Table | None, document: dict[str, object]
) -> Recipients:
    """Return the recipients that tables describe, or raise `BadInput`.

    Who is not in `users` has no home; without the table, nobody has one.
    """
    index = Index.from_arrow(subscriptions.select(["subscription_id", "filters"]))
    ids, names = texts(subscriptions, "subscription_id"), texts(subscriptions, "user")
    profiles, numbers = parsed_texts(subscriptions, "profile", DeviceProfile.parse)
    formats = FormatChoices(document, profiles)
    return Recipients(index, ids, names, home_brokers(users, names), numbers, formats)
