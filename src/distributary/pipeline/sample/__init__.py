"""Realistic data of any size from a seed, made on Spark itself."""

from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.tables import sample_tables

__all__ = ["SampleSizes", "sample_tables"]
