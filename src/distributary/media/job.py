"""A conversion that somebody has asked for."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from distributary.content.media_type import MediaType
from distributary.media.cache_key import CacheKey
from distributary.media.converter import Converter
from distributary.media.failure import ConversionFailed, FailureKind
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult

__all__ = ["ConversionJob"]


@dataclass(eq=False)
class ConversionJob:
    """One conversion to do.

    Its result goes to the future, and into the cache under the key, if there is one.
    """

    content: bytes
    source: MediaType
    target: MediaType
    converter: Converter
    limits: Limits
    future: Future[ConversionResult] = field(default_factory=Future)
    key: CacheKey | None = None
    cancelled: bool = False

    def failure(self, kind: FailureKind, reason: str) -> ConversionFailed:
        """Return that it failed."""
        return ConversionFailed(
            self.source, self.target, kind=kind, reason=reason, limits=self.limits
        )

    def closed(self) -> ConversionFailed:
        """Return that the pool was closed before it was done."""
        return self.failure("closed", "the pool was closed")

    def out_of_threads(self) -> ConversionFailed:
        """Return that nothing could be started to do it."""
        return self.failure("busy", "the system has no thread for it")

    def resolve(self, result: ConversionResult | ConversionFailed) -> None:
        """Hand the result to whoever waits for it."""
        if isinstance(result, ConversionFailed):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)
