"""Matching the way plain Spark does it: a join on a condition.

The filters of a sample are turned into columns, one for every kind of condition that occurs
in them, null where a subscription does not ask. All of them together are the condition of
the join. Whoever writes a join by hand does the same: an expression that is in a row of a
table cannot be evaluated by Spark.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

__all__ = ["condition_table", "joined", "readable_columns"]

_ATTRIBUTES = ("type", "source", "subject", "region", "severity")
_EXPRESSION = re.compile(
    r"severity >= (?P<severity>\d)"
    r"(?: AND (?:(?P<key>region|source) = '(?P<text>[^']*)'|subject LIKE '(?P<begin>[^']*)%'))?"
)
_TEXTS = (
    *("type_is", "source_is", "subject_is", "region_is", "category_is"),
    *("type_begins", "source_begins", "subject_begins"),
    *("either_type_is", "either_type_ends", "severity_is_not"),
)
_NUMBERS = (
    "severity_min",
    *("latitude_min", "latitude_max", "longitude_min", "longitude_max"),
    *("data_latitude_min", "data_latitude_max", "data_longitude_min", "data_longitude_max"),
)


def joined(publications: DataFrame, conditions: DataFrame) -> DataFrame:
    """Return who gets what: source, event_id, subscription_id and user.

    Parameters
    ----------
    publications
        The table, as `readable_columns` has it.
    conditions
        Subscriptions, as `condition_table` has them.
    """
    pairs = publications.join(f.broadcast(conditions), _condition())
    return pairs.select("source", "event_id", "subscription_id", "user")


def readable_columns(publications: DataFrame) -> DataFrame:
    """Return publications with a column for everything that a filter of a sample reads."""
    attributes, numbers, texts = (f.col(name) for name in ("attributes", "numbers", "texts"))
    return publications.select(
        "source",
        "event_id",
        *(attributes[name]["text"].alias(f"p_{name}") for name in _ATTRIBUTES),
        *(
            attributes[name]["text"].try_cast("double").alias(f"p_{name}")
            for name in ("latitude", "longitude")
        ),
        *(numbers[f"/{name}"].alias(f"p_data_{name}") for name in ("latitude", "longitude")),
        texts["/category"].alias("p_category"),
    )


def condition_table(spark: SparkSession, subscriptions: pa.Table) -> DataFrame:
    """Return subscriptions with a column for every kind of condition."""
    rows = [
        {"subscription_id": name, "user": user, **_asked(json.loads(filters))}
        for name, user, filters in zip(
            *(
                subscriptions[column].to_pylist()
                for column in ("subscription_id", "user", "filters")
            ),
            strict=True,
        )
    ]
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("subscription_id", "user", *_TEXTS)),
            *((name, pa.float64()) for name in _NUMBERS),
            ("located", pa.bool_()),
        ]
    )
    frame: DataFrame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))
    return frame


def _condition() -> Column:
    """Return the condition of the join: all that is asked for holds."""

    def unless_asked(name: str, holds: Column) -> Column:
        return f.col(name).isNull() | f.coalesce(holds, f.lit(False))

    every = [
        *(
            unless_asked(f"{name}_is", f.col(f"p_{name}") == f.col(f"{name}_is"))
            for name in ("type", "source", "subject", "region", "category")
        ),
        *(
            unless_asked(
                f"{name}_begins", f.startswith(f.col(f"p_{name}"), f.col(f"{name}_begins"))
            )
            for name in ("type", "source", "subject")
        ),
        unless_asked(
            "either_type_is",
            (f.col("p_type") == f.col("either_type_is"))
            | f.endswith(f.col("p_type"), f.col("either_type_ends")),
        ),
        f.col("severity_is_not").isNull()
        | f.coalesce(f.col("p_severity") != f.col("severity_is_not"), f.lit(True)),
        unless_asked(
            "severity_min", f.col("p_severity").try_cast("double") >= f.col("severity_min")
        ),
        unless_asked("located", f.col("p_latitude").isNotNull()),
    ]
    for name in ("latitude", "longitude", "data_latitude", "data_longitude"):
        value, low, high = (f.col(text) for text in (f"p_{name}", f"{name}_min", f"{name}_max"))
        every.append(unless_asked(f"{name}_min", (value >= low) & (value < high)))
    condition = every[0]
    for part in every[1:]:
        condition = condition & part
    return condition


def _asked(filters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns that the filters of a subscription of a sample fill."""
    asked: dict[str, Any] = {}
    for entry in filters:
        ((dialect, content),) = entry.items()
        if dialect == "exact":
            asked |= {f"{key.removeprefix('/')}_is": text for key, text in content.items()}
        elif dialect == "prefix":
            asked |= {f"{key}_begins": text for key, text in content.items()}
        elif dialect == "range":
            for key, bounds in content.items():
                asked |= _bounds(key, bounds)
        elif dialect == "any":
            asked["either_type_ends"] = content[0]["suffix"]["type"]
            asked["either_type_is"] = content[1]["exact"]["type"]
        elif dialect == "not":
            asked["severity_is_not"] = content["exact"]["severity"]
        else:
            asked |= _expression(content)
    assert set(asked) <= {*_TEXTS, *_NUMBERS, "located"}, f"a sample never asks for {asked}"
    return asked


def _bounds(key: str, bounds: dict[str, float]) -> dict[str, Any]:
    if not bounds:
        return {"located": True}
    name = f"data_{key[1:]}" if key.startswith("/") else key
    return {f"{name}_min": bounds["min"], f"{name}_max": bounds["max_exclusive"]}


def _expression(text: str) -> dict[str, Any]:
    found = _EXPRESSION.fullmatch(text)
    assert found, f"a sample has no expression such as {text}"
    asked: dict[str, Any] = {"severity_min": float(found["severity"])}
    if found["key"]:
        asked[f"{found['key']}_is"] = found["text"]
    if found["begin"]:
        asked["subject_begins"] = found["begin"]
    return asked
