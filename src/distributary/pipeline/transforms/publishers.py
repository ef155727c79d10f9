"""Publishers of publications: who names them, and whether they are users."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PublisherRule"]

_NAME = re.compile(r"[a-z0-9]{1,256}")
_SHOWN = 60
_PUBLICATIONS = "publications"


@dataclass(frozen=True)
class PublisherRule:
    """How files name the publishers of publications, and what becomes of unknown ones.

    A publisher who is no user is noticed here, where the row can still say where it came
    from: everything about publications works without, until `wire` finds that somebody
    publishes who cannot be attached.

    Attributes
    ----------
    attribute
        The attribute of an event that names its publisher; None stands for the extension
        `publisher`, and the source of events without it.
    anybody
        Whether publications of somebody who is no user are kept, as nobody's.
    """

    attribute: str | None = None
    anybody: bool = False

    def __post_init__(self) -> None:
        if self.attribute is not None and _NAME.fullmatch(self.attribute) is None:
            raise BadInput(
                "--publisher",
                f"{quoted(self.attribute)} is not the name of an attribute",
                hint="names have lower-case letters 'a' to 'z' and digits only",
            )

    def check_table(self, name: str) -> None:
        """Raise `BadInput` when something is asked for that only publications have."""
        if name != _PUBLICATIONS and self != PublisherRule():
            option = "--any-publisher" if self.attribute is None else "--publisher"
            raise BadInput(option, f"is for publications, not for {name}")

    def applied(self, rows: DataFrame, users: DataFrame) -> DataFrame:
        """Return publications as `transforms.ingest.ingested` has them, with this rule applied."""
        from pyspark.sql import functions as f

        known = f.broadcast(users.select(f.col("user").alias("_known")).distinct())
        found = rows.join(known, rows["publisher"] == known["_known"], "left")
        unknown = f.col("publisher").isNotNull() & f.col("_known").isNull()
        if self.anybody:
            kept = f.when(~unknown, f.col("publisher"))
            return found.withColumn("publisher", kept).drop("_known")
        shown = f.substring("publisher", 1, _SHOWN)
        reason = f.concat(f.lit("publisher: '"), shown, f.lit("' is not in users"))
        return found.withColumn("reason", f.coalesce("reason", f.when(unknown, reason))).drop(
            "_known"
        )
