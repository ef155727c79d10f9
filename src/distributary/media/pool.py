"""Conversions in a pool of worker processes: whatever content does, the caller goes on."""

from __future__ import annotations

import asyncio
import weakref
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Self

from distributary.arguments import checked
from distributary.content.media_type import MediaType
from distributary.cores import available_cores
from distributary.errors import BadInput
from distributary.media.failure import ConversionFailed
from distributary.media.formats import canonical
from distributary.media.isolation import Isolation
from distributary.media.job import ConversionJob
from distributary.media.limits import Limits
from distributary.media.refusal import refused_parameter
from distributary.media.registry import Registry, installed
from distributary.media.result import ConversionResult
from distributary.media.worker_pool import WorkerPool

if TYPE_CHECKING:
    from distributary.media.cache import Cache

__all__ = ["Pool", "shared_pool"]


class Pool:
    """Converts content in processes that can be killed.

    Workers are started when they are needed and kept, so that a small conversion does not
    pay for a process. One that takes too long, needs too much or goes down with what it was
    given is replaced, and the conversion fails with the reason. Threads and event loops may
    share a pool. A process that is forked starts workers of its own.

    Parameters
    ----------
    workers
        How many conversions may run at once; as many as there are cores unless given.
    limits
        What a conversion may use unless it is told otherwise.
    cache
        Where results are kept and looked up; nowhere unless given.
    waiting_max
        How many conversions may wait while all workers are busy. Further ones fail at once,
        so that a caller who is too fast learns it before memory is full.
    """

    @checked
    def __init__(
        self,
        workers: int | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        cache: Cache | None = None,
        waiting_max: int = 1000,
    ) -> None:
        if workers is not None and workers < 1:
            raise BadInput("workers", f"must be at least 1, not {workers}")
        if waiting_max < 0:
            raise BadInput("waiting_max", f"must be at least 0, not {waiting_max}")
        self.limits = limits
        self._workers = WorkerPool(
            workers or available_cores(),
            waiting_max=waiting_max,
            limits=limits,
            cache=cache,
        )
        # Also when the interpreter ends, or nobody remembers the pool.
        self._close = weakref.finalize(self, self._workers.close)

    @property
    def workers(self) -> int:
        """How many conversions may run at once."""
        return self._workers.size

    def convert(
        self,
        content: bytes,
        source: MediaType | str,
        target: MediaType | str,
        *,
        limits: Limits | None = None,
    ) -> ConversionResult:
        """Return content in another format, or raise `ConversionFailed`.

        One converter has to do it; `convert_along` goes through others. The limits are those of
        the pool unless given, and time in the queue does not count.
        """
        return self.submit(content, source, target, limits=limits).result()

    def submit(
        self,
        content: bytes,
        source: MediaType | str,
        target: MediaType | str,
        *,
        limits: Limits | None = None,
    ) -> Future[ConversionResult]:
        """Have content converted, and return at once where the result will be.

        It is `ConversionResult`, or `ConversionFailed` as an exception, also when it fails
        right away.
        """
        return self._submit(content, source, target, limits)[0]

    async def convert_async(
        self,
        content: bytes,
        source: MediaType | str,
        target: MediaType | str,
        *,
        limits: Limits | None = None,
    ) -> ConversionResult:
        """Return content in another format while the event loop goes on.

        Cancelling it takes the conversion out of the queue, or kills the worker that is at it.
        """
        future, job = self._submit(content, source, target, limits)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if job is not None:
                self._workers.cancel(job)
            raise

    @checked
    def convert_along(
        self,
        content: bytes,
        source: MediaType | str,
        target: MediaType | str,
        *,
        limits: Limits | None = None,
    ) -> ConversionResult:
        """Return content in another format, through others if no converter does it directly.

        The time is that of all steps. It counts as cached if every step was.

        The limits are those of each step.
        """
        here, goal = _parsed(source, "source"), _parsed(target, "target")
        result = ConversionResult(content, goal, seconds=0.0, cached=False)
        if here == goal:
            return result
        registry = installed()
        try:
            route = registry.route(here, goal)
        except BadInput:
            raise _impossible(registry, here, goal, limits or self.limits) from None
        seconds, cached = 0.0, True
        for step in route:
            result = self.convert(result.content, here, step, limits=limits)
            here = step
            seconds, cached = seconds + result.seconds, cached and result.cached
        return ConversionResult(result.content, goal, seconds=seconds, cached=cached)

    @checked
    def _submit(
        self,
        content: bytes,
        source: MediaType | str,
        target: MediaType | str,
        limits: Limits | None,
    ) -> tuple[Future[ConversionResult], ConversionJob | None]:
        limits = limits or self.limits
        here, goal = _parsed(source, "source"), _parsed(target, "target")
        registry = installed()
        converter = registry.converter(here, goal)
        if converter is None:
            return _failed(_impossible(registry, here, goal, limits)), None
        content = bytes(content)
        job = ConversionJob(content, here, goal, converter, limits)
        if len(content) > limits.input_bytes:
            reason = f"it has {len(content):,} bytes; {limits.input_bytes:,} are allowed"
            return _failed(job.failure("input", reason)), None
        self._workers.put(job)
        return job.future, job

    def pids(self) -> tuple[int, ...]:
        """Return the worker processes that are there at the moment."""
        return self._workers.pids()

    def isolation(self) -> Isolation | None:
        """Return how well workers are contained here; None before the first conversion."""
        return self._workers.isolation()

    def close(self) -> None:
        """Kill the workers; conversions that have not ended fail."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _parsed(media_type: MediaType | str, place: str) -> MediaType:
    if isinstance(media_type, str):
        media_type = MediaType.parse(media_type, place=place)
    return canonical(media_type)


def _failed(failure: ConversionFailed) -> Future[ConversionResult]:
    future: Future[ConversionResult] = Future()
    future.set_exception(failure)
    return future


def _impossible(
    registry: Registry, source: MediaType, target: MediaType, limits: Limits
) -> ConversionFailed:
    reason = "no converter does this"
    refused = refused_parameter(registry, source, target)
    if refused is not None:
        reason = f"{refused[0]}; hint: {refused[1]}"
    elif registry.missing:
        extras = ",".join(sorted({extra for _, extra in registry.missing}))
        reason += f'; hint: pip install "distributary[{extras}]" adds converters'
    return ConversionFailed(source, target, kind="impossible", reason=reason, limits=limits)


# Made when this is imported, which costs next to nothing: workers start with the first
# conversion. Whoever asks for it first need not keep others from making a second one.
_SHARED = Pool()


def shared_pool() -> Pool:
    """Return the pool of this process, for callers that have none of their own.

    It has a worker per core and no cache, and ends with the process. Broker hosts and Spark
    executors use it.
    """
    return _SHARED
