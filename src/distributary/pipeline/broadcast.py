"""Something large that every executor needs: sent once, unpickled once per worker process."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from distributary.pipeline.workers import freeze, set_aside, unfreeze

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Broadcast", "broadcast"]

T = TypeVar("T")

# What this worker process has unpickled, by digest. A worker outlives its tasks, and so does
# what it needs for all of them; jobs use one or two such things.
_VALUES: dict[str, Any] = {}
_VALUES_MAX = 4


class Broadcast(Generic[T]):
    """A value as the executors see it.

    Spark's broadcast carries the bytes where there is one. Through Spark Connect there is
    none, and the bytes travel with the function.
    """

    def __init__(self, digest: str, fetch: Callable[[], bytes]) -> None:
        self._digest = digest
        self._fetch = fetch

    @property
    def value(self) -> T:
        """The value, unpickled once per process."""
        if self._digest not in _VALUES:
            _make_room()
            # The bytes are what our own driver pickled; Spark itself sends functions this way.
            _VALUES[self._digest] = pickle.loads(self._fetch())  # noqa: S301
            set_aside()
        value: T = _VALUES[self._digest]
        return value


def _make_room() -> None:
    """Let go of the older half of what is kept, once there is no more room.

    One at a time would do, but what is let go is only found by looking through everything that
    this process has loaded: a tenth of a second, where unpickling takes a hundredth.
    """
    if len(_VALUES) >= _VALUES_MAX:
        unfreeze()
        for digest in list(_VALUES)[: _VALUES_MAX // 2]:
            del _VALUES[digest]
        freeze()


def broadcast(spark: SparkSession, value: T) -> Broadcast[T]:
    """Return a value that functions on executors can use."""
    pickled = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    digest = hashlib.sha256(pickled).hexdigest()
    if not hasattr(spark, "_jvm"):
        return Broadcast(digest, lambda: pickled)
    # Where it fails PySpark prints a traceback, and then raises an exception all the same.
    with redirect_stderr(io.StringIO()):
        sent = spark.sparkContext.broadcast(pickled)
    return Broadcast(digest, lambda: sent.value)
