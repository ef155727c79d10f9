"""One way to a Spark session: embedded, on a cluster, or through Spark Connect.

Embedded is the default and needs nothing but the Python packages. Everything listens on
the loopback interface then.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from distributary.errors import BadInput, MissingPackage, first_line
from distributary.pipeline.executor_package import ensure_package
from distributary.pipeline.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EMBEDDED", "JAVA_OPTIONS", "session", "spark_session"]

EMBEDDED = "local[*]"

# What a job needs wherever it runs.
_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # What is kept for a second use has as few partitions as it needs, too.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    # An error in our code names our code, not the worker's machinery.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # Times are kept to the microsecond, in the type that every reader knows.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # A task writes the files of so many days side by side; for more it has to sort its rows.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    "spark.ui.showConsoleProgress": "false",
}
# What only makes sense when the driver is this process and its machine is all there is.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# Collecting serially starts faster and takes less memory; with few cores nothing is lost.
# Spark talks a lot unless it is told from the start to report errors alone.
_LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()
JAVA_OPTIONS = f"-XX:+UseSerialGC -Dlog4j2.configurationFile={_LOGGING}"


def spark_session(
    *,
    master: str | None = None,
    remote: str | None = None,
    driver_memory: str = "2g",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session, with settings under which every job gives the same results.

    Unless they are given, the master is `SPARK_MASTER` or the embedded one, and the Spark
    Connect server `SPARK_REMOTE`. Settings win over ours.
    """
    if master is not None and remote is not None:
        raise BadInput("--remote", "cannot be combined with --master")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingPackage("pyspark", extra="spark", purpose="the pipeline") from None
    remote = remote or (os.environ.get("SPARK_REMOTE") if master is None else None)
    # Workers run the interpreter that runs the driver: another one may lack our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    options = {**_EVERYWHERE, **(settings or {})}
    if remote:
        builder = SparkSession.builder.remote(remote)
    else:
        master = master or os.environ.get("SPARK_MASTER") or EMBEDDED
        ensure_java()
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            options = {**_LOCAL, **options}
        options = {
            "spark.driver.memory": driver_memory,
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.sql.warehouse.dir": _warehouse(),
            **options,
        }
        builder = SparkSession.builder.master(master)
    builder = builder.appName("distributary")
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        where = f"--remote {remote}" if remote else f"--master {master}"
        raise BadInput(
            where, f"Spark does not start there: {first_line(error)}", hint="is it running?"
        ) from error
    if remote is None:
        spark.sparkContext.setLogLevel("ERROR")
    if remote is not None or not str(master).startswith("local"):
        ensure_package(spark)
    return spark


@contextmanager
def session(
    *,
    master: str | None = None,
    remote: str | None = None,
    driver_memory: str = "2g",
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Yield a session as `spark_session` makes it, and stop it in the end."""
    spark = spark_session(
        master=master, remote=remote, driver_memory=driver_memory, settings=settings
    )
    try:
        yield spark
    finally:
        spark.stop()


@lru_cache(maxsize=1)
def _warehouse() -> str:
    """Return a folder of this process alone, which Spark wants though no job uses it.

    With a name that others can guess, it could be theirs, or a link to somewhere else.
    """
    folder = tempfile.mkdtemp(prefix="distributary-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
