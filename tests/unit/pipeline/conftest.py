"""One Spark session for all tests of the pipeline, started when the first one asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.quick_spark import JAVA_OPTIONS, SETTINGS

from distributary.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from distributary.pipeline.session import JAVA_OPTIONS as OURS
    from distributary.pipeline.session import spark_session

    settings = {**SETTINGS, "spark.driver.extraJavaOptions": f"{OURS} {JAVA_OPTIONS}"}
    with pytest.MonkeyPatch.context() as patch:
        # Java looks for the module there, wherever the tests are started from.
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        started = spark_session(master="local[2]", driver_memory="1g", settings=settings)
    yield started
    started.stop()


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Store:
    """An empty data folder."""
    return Store(str(tmp_path / "data"), spark)
