"""Spark's daemon of Python workers, with what workers need loaded before it makes any.

A worker is a fork of it. Loading Arrow, Numba and the planners takes each seconds otherwise.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.daemon import manager

_LOADED = (
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.json",
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "distributary.pipeline.jobs.stream",
    "distributary.pipeline.sample",
    "distributary.pipeline.transforms.plans",
)

if __name__ == "__main__":
    for name in _LOADED:
        import_module(name)
    manager()
