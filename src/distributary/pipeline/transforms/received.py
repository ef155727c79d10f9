"""What users receive, counted from deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["received"]


def received(deliveries: DataFrame, *keys: str) -> DataFrame:
    """Return the bytes of the publications that each user gets, in whole numbers.

    A publication counts once for a user, however many subscriptions match it, and with its
    original bytes, as it does where it is published: in what format it arrives is up to the
    brokers.

    Parameters
    ----------
    deliveries
        The table, with other columns that its publications have, if any.
    *keys
        Such columns, to add up by beside the user.

    Returns
    -------
        The keys, `user` and `bytes`.
    """
    from pyspark.sql import functions as f

    once = deliveries.groupBy(*keys, "user", "source", "event_id").agg(
        f.max("bytes").alias("bytes")
    )
    return once.groupBy(*keys, "user").agg(f.sum("bytes").alias("bytes"))
