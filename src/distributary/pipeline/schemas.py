"""The schema of every table, in one place.

Tables are stored as Delta tables. Times are UTC. The version of a schema is kept in the table's
log and checked on reading, so that a change of columns is noticed and not misread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from distributary.errors import BadInput, quoted
from distributary.pipeline.arrow_types import arrow_schema
from distributary.pipeline.table_files import DAY

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["TABLES", "TableSchema", "table_schema"]


@dataclass(frozen=True)
class TableSchema:
    """What a table is called, its columns, and which of them have to be there.

    Attributes
    ----------
    name
        The name of its folder.
    columns
        The columns and their types, as Spark's SQL writes them; NOT NULL where a row
        without a value is no row of this table.
    key
        The columns that tell rows of one day apart; empty when rows may be repeated.
    time
        The column that says when a row happened; None when it has no time.
    version
        Raised whenever the columns change.
    by_day
        Whether it is laid out by the UTC days of its rows; those without a time have none.
    """

    name: str
    columns: str
    key: tuple[str, ...] = ()
    time: str | None = None
    version: int = 1
    by_day: bool = False

    @property
    def struct_type(self) -> StructType:
        """The columns as Spark's own type."""
        return _parsed(self.columns)

    @property
    def stored_type(self) -> StructType:
        """The columns as Spark's own type, with the day in tables that are laid out by it."""
        from pyspark.sql.types import DateType, StructField, StructType

        own = self.struct_type
        return StructType([*own.fields, StructField(DAY, DateType())]) if self.by_day else own

    @property
    def arrow(self) -> pa.Schema:
        """The columns as Arrow has them; for this no Spark has to run."""
        return _arrow(self.columns)

    @property
    def stored(self) -> pa.Schema:
        """The columns as the log has them: with the day, in tables that are laid out by it."""
        import pyarrow as pa

        return self.arrow.append(pa.field(DAY, pa.date32())) if self.by_day else self.arrow

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.arrow.names)


@lru_cache(maxsize=64)
def _parsed(columns: str) -> StructType:
    from pyspark.sql.types import StructType

    return cast(StructType, StructType.fromDDL(columns))


@lru_cache(maxsize=64)
def _arrow(columns: str) -> pa.Schema:
    return arrow_schema(columns)


_DECLARED = (
    TableSchema(
        "publications",
        "source STRING NOT NULL, event_id STRING NOT NULL, publisher STRING, time TIMESTAMP, "
        "attributes MAP<STRING, STRUCT<type: STRING, text: STRING>> NOT NULL, "
        "numbers MAP<STRING, DOUBLE> NOT NULL, texts MAP<STRING, STRING> NOT NULL, "
        "media_type STRING, bytes BIGINT NOT NULL",
        key=("source", "event_id"),
        time="time",
        by_day=True,
    ),
    TableSchema(
        "subscriptions",
        "subscription_id STRING NOT NULL, user STRING NOT NULL, filters STRING NOT NULL, "
        "profile STRING, tolerance STRING",
        key=("subscription_id",),
    ),
    TableSchema("users", "user STRING NOT NULL, broker STRING", key=("user",)),
    TableSchema("brokers", "broker STRING NOT NULL, capacity DOUBLE", key=("broker",)),
    TableSchema(
        "access_costs", "user STRING NOT NULL, costs ARRAY<DOUBLE> NOT NULL", key=("user",)
    ),
    TableSchema(
        "core_costs", "broker STRING NOT NULL, costs ARRAY<DOUBLE> NOT NULL", key=("broker",)
    ),
    # Delays are milliseconds.
    TableSchema(
        "overlay",
        "broker STRING NOT NULL, identifier STRING NOT NULL, delays ARRAY<DOUBLE> NOT NULL",
        key=("broker",),
    ),
    TableSchema(
        "quotes",
        "object STRING NOT NULL, time TIMESTAMP NOT NULL, value DOUBLE NOT NULL",
        key=("object", "time"),
        time="time",
        by_day=True,
    ),
    TableSchema(
        "deliveries",
        "source STRING NOT NULL, event_id STRING NOT NULL, subscription_id STRING NOT NULL, "
        "user STRING NOT NULL, broker STRING, media_type STRING, bytes BIGINT NOT NULL",
        key=("source", "event_id", "subscription_id"),
        version=2,
        by_day=True,
    ),
    TableSchema("channels", "cell BIGINT NOT NULL, bounds STRING NOT NULL", key=("cell",)),
    # What everybody published in each cell, each day; the publisher is null where nobody is named.
    TableSchema(
        "volume_days",
        "user STRING, cell BIGINT NOT NULL, bytes BIGINT NOT NULL, publications BIGINT NOT NULL, "
        "untimed BIGINT NOT NULL, first TIMESTAMP, last TIMESTAMP",
        key=("user", "cell"),
        by_day=True,
    ),
    TableSchema(
        "rates_published",
        "user STRING NOT NULL, cell BIGINT NOT NULL, bytes_per_second DOUBLE NOT NULL",
        key=("user", "cell"),
    ),
    TableSchema("interests", "user STRING NOT NULL, cell BIGINT NOT NULL", key=("user", "cell")),
    # What deliveries say that everybody received, each day.
    TableSchema(
        "received_days",
        "user STRING NOT NULL, bytes BIGINT NOT NULL",
        key=("user",),
        by_day=True,
    ),
    TableSchema(
        "traffic",
        "user STRING NOT NULL, bytes_in DOUBLE NOT NULL, bytes_out DOUBLE NOT NULL, "
        "bytes_in_by_cells DOUBLE NOT NULL",
        key=("user",),
        version=2,
    ),
    TableSchema(
        "broker_traffic",
        "broker STRING NOT NULL, other STRING NOT NULL, bytes_per_second DOUBLE NOT NULL",
        key=("broker", "other"),
    ),
    TableSchema(
        "partners",
        "user STRING NOT NULL, rank INT NOT NULL, partner STRING NOT NULL, "
        "bytes_per_second DOUBLE NOT NULL",
        key=("user", "rank"),
    ),
    TableSchema(
        "rates",
        "server STRING NOT NULL, object STRING NOT NULL, updates_per_second DOUBLE NOT NULL",
        key=("server", "object"),
    ),
    # What servers were sent each day, and the state in which the day has ended.
    TableSchema(
        "rate_days",
        "object STRING NOT NULL, server STRING NOT NULL, sent BIGINT NOT NULL, first TIMESTAMP, "
        "last TIMESTAMP, value DOUBLE NOT NULL, sent_at TIMESTAMP NOT NULL, "
        "behind BIGINT NOT NULL",
        key=("object", "server"),
        by_day=True,
    ),
    TableSchema(
        "plans",
        "source STRING NOT NULL, event_id STRING NOT NULL, broker_count INT, method STRING, "
        "transmission_cost DOUBLE, conversion_cost DOUBLE, total_cost DOUBLE, "
        "lower_bound DOUBLE, gap DOUBLE, all_in_root DOUBLE, all_in_leaves DOUBLE, "
        "single_format DOUBLE, plan STRING, failure STRING",
        key=("source", "event_id"),
        by_day=True,
    ),
    TableSchema(
        "trees",
        "object STRING NOT NULL, server STRING NOT NULL, parent STRING",
        key=("object", "server"),
    ),
    TableSchema("wiring", "user STRING NOT NULL, broker STRING NOT NULL", key=("user",)),
    TableSchema(
        "decisions",
        "kind STRING NOT NULL, subject STRING NOT NULL, object STRING, "
        "window_start TIMESTAMP NOT NULL, window_end TIMESTAMP NOT NULL, "
        "value DOUBLE NOT NULL, previous DOUBLE",
        key=("kind", "subject", "object", "window_start"),
        time="window_start",
    ),
    TableSchema(
        "runs",
        "run STRING NOT NULL, job STRING NOT NULL, code STRING NOT NULL, source STRING, "
        "began TIMESTAMP NOT NULL, seconds DOUBLE NOT NULL, since DATE, until DATE, "
        "days ARRAY<DATE>, options STRING NOT NULL, inputs MAP<STRING, BIGINT> NOT NULL, "
        "outputs MAP<STRING, BIGINT> NOT NULL, rows_in MAP<STRING, BIGINT> NOT NULL, "
        "rows_out MAP<STRING, BIGINT> NOT NULL, outcome STRING NOT NULL",
        key=("run",),
    ),
    TableSchema(
        "quarantine",
        "table STRING NOT NULL, file STRING NOT NULL, line BIGINT, raw STRING, "
        "reason STRING NOT NULL",
        by_day=True,
    ),
)

TABLES = {item.name: item for item in _DECLARED}
"""Every table by its name."""


def table_schema(name: str) -> TableSchema:
    """Return the table of this name, or raise `BadInput` saying which there are."""
    if name not in TABLES:
        raise BadInput(
            "table", f"{quoted(name)} is not a table", hint=f"tables are {', '.join(TABLES)}"
        )
    return TABLES[name]
