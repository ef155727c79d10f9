"""Settings with which Spark is quick at things that are small."""

from __future__ import annotations

__all__ = ["JAVA_OPTIONS", "SETTINGS"]

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Compile quickly rather than well, and without threads beside: most code runs a few times only."""

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # What is cut into tasks by cores is cut into few: most of a small task is overhead.
    "spark.default.parallelism": "1",
    # Tests run everything a few times only: compiling it well does not pay.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Nor does compressing a few kilobytes.
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
    # Workers are copies of a process that has everything loaded already.
    "spark.python.daemon.module": "tests.spark_daemon",
}
