"""The workers of a pool, and the conversions that wait for them.

Each worker has a slot: a thread in the caller that starts it, sends it one job after the
other and replaces it when it is worn out or gone. Jobs wait in one queue for whichever worker
is free first. Threads and workers start when there is something to do for them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.media.cache_key import CacheKey
from distributary.media.failure import ConversionFailed, Unconvertible
from distributary.media.isolation import Isolation
from distributary.media.job import ConversionJob
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult
from distributary.media.worker_process import NotStarted, WorkerProcess

if TYPE_CHECKING:
    from distributary.media.cache import Cache

__all__ = ["WorkerPool"]

# A worker that somebody else ends between two jobs is noticed with the next one, which
# then has not begun. More than a few in a row, and something is wrong with the machine.
# Pauses give it time to recover.
_PAUSES_SECONDS = (0.0, 0.2, 1.0)
_JOIN_SECONDS_MAX = 10.0
# How often a worker without a job is looked at: what took it over may still be at work.
_IDLE_SECONDS = 1.0


@dataclass(eq=False)
class WorkerSlot:
    """One conversion at a time: a thread, its worker, and what the two are at.

    The process is another one from time to time, and none before the first job.
    """

    thread: threading.Thread | None = None
    worker: WorkerProcess | None = None
    job: ConversionJob | None = None


class WorkerPool:
    """Workers and what waits for them.

    Up to `waiting_max` jobs wait while all workers are busy. A worker that lacks room for a job
    is replaced. Jobs are looked up in the cache before they are done, and kept there afterwards.
    """

    def __init__(self, size: int, *, waiting_max: int, limits: Limits, cache: Cache | None) -> None:
        self.size = size
        self._waiting_max = waiting_max
        self._limits = limits
        self._cache = cache
        self._closed = False
        self._reset()
        _POOLS.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._lookup_queued = threading.Condition(self._lock)
        self._queued = threading.Condition(self._lock)
        self._stopped = threading.Condition(self._lock)
        # Jobs that have yet to be looked up in the cache, and jobs that wait for a worker.
        self._lookups: deque[ConversionJob] = deque()
        self._waiting: deque[ConversionJob] = deque()
        self._slots: list[WorkerSlot] = []
        self._lookup_thread: threading.Thread | None = None

    def put(self, job: ConversionJob) -> None:
        """Take a job in, to be done as soon as a worker is free; never waits."""
        with self._lock:
            refusal = self._refusal(job) or self._admitted(job)
        if refusal is not None:
            job.future.set_exception(refusal)

    def _admitted(self, job: ConversionJob) -> ConversionFailed | None:
        if self._cache is None:
            return self._enqueue(job)
        try:
            if self._lookup_thread is None:
                self._lookup_thread = _start_thread(self._serve_lookups, "lookup", self._cache)
        except RuntimeError:
            return job.out_of_threads()
        self._lookups.append(job)
        self._lookup_queued.notify()
        return None

    def _refusal(self, job: ConversionJob) -> ConversionFailed | None:
        if self._closed:
            return job.failure("closed", "the pool is closed")
        if self._overflow() > 0:
            self._waiting = deque(item for item in self._waiting if not item.future.cancelled())
            if self._overflow() > 0:
                return job.failure("busy", "too many conversions are waiting already")
        return None

    def _overflow(self) -> int:
        """Return by how much too many would wait if one more came."""
        free = self.size - sum(slot.job is not None for slot in self._slots)
        return len(self._lookups) + len(self._waiting) + 1 - free - self._waiting_max

    def _enqueue(self, job: ConversionJob) -> ConversionFailed | None:
        """Let a job wait for a worker; return why that is of no use, if it is."""
        idle = sum(slot.job is None for slot in self._slots)
        if idle <= len(self._waiting) and len(self._slots) < self.size:
            slot = WorkerSlot()
            try:
                slot.thread = _start_thread(self._work, f"worker-{len(self._slots) + 1}", slot)
                self._slots.append(slot)
            except RuntimeError:
                # The system has no more threads. Those that there are will get to it, if any.
                if not self._slots:
                    return job.out_of_threads()
        self._waiting.append(job)
        self._queued.notify()
        return None

    def _serve_lookups(self, cache: Cache) -> None:
        """Look up arrivals in the cache, apart from the workers: it may have to read a lot."""
        while True:
            with self._lock:
                while not (self._lookups or self._closed):
                    self._lookup_queued.wait()
                if self._closed:
                    return
                job = self._lookups.popleft()
            found = None
            if not job.future.cancelled():
                found = self._look_up(cache, job)
            if found is None:
                with self._lock:
                    found = job.closed() if self._closed else self._enqueue(job)
            if found is not None and job.future.set_running_or_notify_cancel():
                job.resolve(found)
            del job, found

    def _look_up(
        self, cache: Cache, job: ConversionJob
    ) -> ConversionResult | ConversionFailed | None:
        try:
            version = f"{job.converter.name} {job.converter.version}"
            job.key = CacheKey.of(job.content, job.source, job.target, version)
            return cache.get(job.key, job.limits)
        except Exception as error:
            # A converter that cannot say its version.
            return job.failure("impossible", f"its converter fails: {type(error).__name__}")

    def _work(self, slot: WorkerSlot) -> None:
        """Do jobs, one after the other, until the pool is closed."""
        while True:
            with self._lock:
                self._queued.wait_for(lambda: self._waiting or self._closed, _IDLE_SECONDS)
                if self._closed:
                    break
                job = self._waiting.popleft() if self._waiting else None
                if job is not None and not job.future.set_running_or_notify_cancel():
                    continue
                slot.job = job
            if job is None:
                if slot.worker is not None and slot.worker.ended_for_excess():
                    self._renew(slot)
                continue
            result = self._result(slot, job)
            if job.key is not None and self._cache is not None and _worth_keeping(result):
                # Who waits for the result shall have it, whatever becomes of the cache.
                with suppress(Exception):
                    self._cache.put(job.key, result)
            # Before the result is out: whoever calls the job off must not hit the next one.
            with self._lock:
                slot.job = None
            job.resolve(result)
            # Content must not stay for as long as nothing else comes.
            del job, result
            self._renew(slot)
        if slot.worker is not None:
            slot.worker.end()

    def _result(self, slot: WorkerSlot, job: ConversionJob) -> ConversionResult | ConversionFailed:
        reason = ""
        for pause_seconds in _PAUSES_SECONDS:
            if self._stops_within(pause_seconds, job):
                break
            try:
                worker = self._worker(slot, job)
                return worker.convert(
                    job.content,
                    job.source,
                    job.target,
                    converter=job.converter.name,
                    limits=job.limits,
                )
            except Unconvertible as error:
                if self._closed:
                    return job.closed()
                return job.failure(error.kind, error.reason)
            except (NotStarted, OSError) as error:
                reason = str(error)
            except Exception as error:
                # A fault of ours or of this machine; who waits for the result must hear of it.
                if slot.worker is not None:
                    slot.worker.kill()
                return job.failure("killed", f"{type(error).__name__} in the caller")
        if self._closed or job.cancelled:
            return job.failure("closed", "it was called off")
        return job.failure("killed", f"no worker starts: {reason}")

    def _stops_within(self, seconds: float, job: ConversionJob) -> bool:
        """Wait for a moment, and return whether nobody wants the job any more."""
        with self._lock:
            return self._stopped.wait_for(lambda: self._closed or job.cancelled, seconds)

    def _worker(self, slot: WorkerSlot, job: ConversionJob) -> WorkerProcess:
        """Return the worker of a slot, another one than before if need be."""
        if slot.worker is not None and slot.worker.serves(job.limits):
            return slot.worker
        return self._replace(slot, self._limits.widened(job.limits))

    def _renew(self, slot: WorkerSlot) -> None:
        """Replace a worker that will not do another job, before somebody waits for it."""
        worker = slot.worker
        if worker is not None and not (worker.usable or self._closed):
            # If it fails, the next job tries again and says why.
            with suppress(OSError):
                self._replace(slot, self._limits)

    def _replace(self, slot: WorkerSlot, limits: Limits) -> WorkerProcess:
        before = slot.worker
        if before is not None:
            before.end()
        worker = WorkerProcess(limits)
        with self._lock:
            slot.worker = worker
            unwanted = self._closed or (slot.job is not None and slot.job.cancelled)
        if unwanted:
            worker.kill()
        return worker

    def cancel(self, job: ConversionJob) -> None:
        """Stop a job that nobody waits for any more: its worker is killed if it is at it."""
        job.future.cancel()
        with self._lock:
            job.cancelled = True
            for slot in self._slots:
                if slot.job is job and slot.worker is not None:
                    slot.worker.kill()
            self._stopped.notify_all()

    def pids(self) -> tuple[int, ...]:
        """Return the worker processes there are."""
        with self._lock:
            workers = [slot.worker for slot in self._slots]
        return tuple(worker.pid for worker in workers if worker is not None and worker.alive)

    def isolation(self) -> Isolation | None:
        """Return how a worker is isolated; None before the first has converted something."""
        with self._lock:
            workers = [slot.worker for slot in self._slots]
        known = (worker.isolation for worker in workers if worker is not None)
        return next((item for item in known if item is not None), None)

    def close(self) -> None:
        """Kill the workers, fail what waits, and wait for the threads to end."""
        with self._lock:
            self._closed = True
            left = [*self._lookups, *self._waiting]
            self._lookups.clear()
            self._waiting.clear()
            slots, lookup_thread = list(self._slots), self._lookup_thread
            for slot in slots:
                if slot.worker is not None:
                    slot.worker.kill()
            self._lookup_queued.notify_all()
            self._queued.notify_all()
            self._stopped.notify_all()
        for job in left:
            if job.future.set_running_or_notify_cancel():
                job.resolve(job.closed())
        for thread in (lookup_thread, *(slot.thread for slot in slots)):
            # A callback of a result, which runs in one of them, may close the pool too.
            if thread is not None and thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS_MAX)

    def forget(self) -> None:
        """Begin anew in a forked process: threads are gone, and workers are its parent's."""
        for slot in self._slots:
            if slot.worker is not None:
                slot.worker.forget()
        self._reset()


def _worth_keeping(result: ConversionResult | ConversionFailed) -> bool:
    # What is impossible here may only lack a package, and faults of converters are mended.
    return not (isinstance(result, ConversionFailed) and result.kind in ("impossible", "faulty"))


def _start_thread(target: Callable[..., None], name: str, *arguments: object) -> threading.Thread:
    """Start a thread that does not keep the program from ending.

    Raises `RuntimeError` when the system has no more of them.
    """
    thread = threading.Thread(
        target=target, args=arguments, name=f"distributary-media-{name}", daemon=True
    )
    thread.start()
    return thread


_POOLS: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)
