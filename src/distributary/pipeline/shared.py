"""Something large that every executor needs: sent once, unpacked once per worker process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from distributary.pipeline.workers import settle, unsettle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Shared", "share"]

T = TypeVar("T")

# What this worker process has unpacked, by digest. A worker outlives its tasks, and so does
# what it needs for all of them; jobs use one or two such things.
_UNPACKED: dict[str, Any] = {}
_UNPACKED_MAX = 4


class Shared(Generic[T]):
    """A value as the executors see it; `get` there returns it.

    Spark's broadcast carries the bytes where there is one. Through Spark Connect there is
    none, and the bytes travel with the function.
    """

    def __init__(self, digest: str, fetch: Callable[[], bytes]) -> None:
        self._digest = digest
        self._fetch = fetch

    def get(self) -> T:
        """Return the value, unpacked once per process."""
        if self._digest not in _UNPACKED:
            unsettle()
            while len(_UNPACKED) >= _UNPACKED_MAX:
                _UNPACKED.pop(next(iter(_UNPACKED)))
            # The bytes are what our own driver packed; Spark itself sends functions this way.
            _UNPACKED[self._digest] = pickle.loads(self._fetch())  # noqa: S301
            settle()
        value: T = _UNPACKED[self._digest]
        return value


def share(spark: SparkSession, value: T) -> Shared[T]:
    """Return a value that functions on executors can use."""
    packed = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    digest = hashlib.sha256(packed).hexdigest()
    if hasattr(spark, "_jvm"):
        broadcast = spark.sparkContext.broadcast(packed)

        def fetch() -> bytes:
            content: bytes = broadcast.value
            return content

    else:

        def fetch() -> bytes:
            return packed

    return Shared(digest, fetch)
