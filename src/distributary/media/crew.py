"""The workers of a pool, and the conversions that wait for them.

Each worker has a thread in the caller that starts it, sends it one job after the other
and replaces it when it is worn out or gone. Jobs wait in one queue for whichever worker
is free first. Threads and workers start when there is something to do for them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from distributary.media.cache_key import CacheKey
from distributary.media.converted import Converted
from distributary.media.failure import ConversionFailed, Unconvertible
from distributary.media.isolation import Isolation
from distributary.media.job import Job
from distributary.media.lane import Lane, started
from distributary.media.worker_process import NotStarted, WorkerProcess

if TYPE_CHECKING:
    from distributary.media.cache import Cache

__all__ = ["Crew"]

# A worker that somebody else ends between two jobs is noticed with the next one, which
# then has not begun. More than a few in a row, and something is wrong with the machine.
# Pauses give it time to recover.
_PAUSES_SECONDS = (0.0, 0.2, 1.0)
_JOIN_SECONDS_MAX = 10.0


class Crew:
    """Workers and what waits for them.

    Parameters
    ----------
    size
        How many workers there may be.
    waiting_max
        How many jobs may wait while all workers are busy.
    memory_bytes
        What a worker is started with room for. One that lacks room for a job is replaced.
    cache
        Where to look before converting, and to keep what was converted.
    """

    def __init__(
        self, size: int, *, waiting_max: int, memory_bytes: int, cache: Cache | None
    ) -> None:
        self.size = size
        self._waiting_max = waiting_max
        self._memory_bytes = memory_bytes
        self._cache = cache
        self._closed = False
        self._start_afresh()
        _CREWS.add(self)

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._queued = threading.Condition(self._lock)
        self._stopped = threading.Condition(self._lock)
        # Jobs that have yet to be looked up in the cache, and jobs that wait for a worker.
        self._arrivals: deque[Job] = deque()
        self._waiting: deque[Job] = deque()
        self._lanes: list[Lane] = []
        self._reception: threading.Thread | None = None

    def put(self, job: Job) -> None:
        """Take a job in, to be done as soon as a worker is free; never waits."""
        with self._lock:
            refusal = self._refusal(job) or self._admitted(job)
        if refusal is not None:
            job.future.set_exception(refusal)

    def _admitted(self, job: Job) -> ConversionFailed | None:
        if self._cache is None:
            return self._queued_up(job)
        try:
            if self._reception is None:
                self._reception = started(self._receive, "reception", self._cache)
        except RuntimeError:
            return job.without_thread()
        self._arrivals.append(job)
        self._arrived.notify()
        return None

    def _refusal(self, job: Job) -> ConversionFailed | None:
        if self._closed:
            return job.failure("closed", "the pool is closed")
        if self._overflow() > 0:
            self._waiting = deque(item for item in self._waiting if not item.future.cancelled())
            if self._overflow() > 0:
                return job.failure("busy", "too many conversions are waiting already")
        return None

    def _overflow(self) -> int:
        """Return by how much too many would wait if one more came."""
        free = self.size - sum(lane.job is not None for lane in self._lanes)
        return len(self._arrivals) + len(self._waiting) + 1 - free - self._waiting_max

    def _queued_up(self, job: Job) -> ConversionFailed | None:
        """Let a job wait for a worker; return why that is of no use, if it is."""
        idle = sum(lane.job is None for lane in self._lanes)
        if idle <= len(self._waiting) and len(self._lanes) < self.size:
            lane = Lane()
            try:
                lane.thread = started(self._work, f"worker-{len(self._lanes) + 1}", lane)
                self._lanes.append(lane)
            except RuntimeError:
                # The system has no more threads. Those that there are will get to it, if any.
                if not self._lanes:
                    return job.without_thread()
        self._waiting.append(job)
        self._queued.notify()
        return None

    def _receive(self, cache: Cache) -> None:
        """Look up arrivals in the cache, apart from the workers: it may have to read a lot."""
        while True:
            with self._lock:
                while not (self._arrivals or self._closed):
                    self._arrived.wait()
                if self._closed:
                    return
                job = self._arrivals.popleft()
            found = None
            if not job.future.cancelled():
                found = self._looked_up(cache, job)
            if found is None:
                with self._lock:
                    found = job.closed() if self._closed else self._queued_up(job)
            if found is not None and job.future.set_running_or_notify_cancel():
                job.resolve(found)
            del job, found

    def _looked_up(self, cache: Cache, job: Job) -> Converted | ConversionFailed | None:
        try:
            version = f"{job.converter.name} {job.converter.version}"
            job.key = CacheKey.of(job.content, job.source, job.target, version)
            return cache.get(job.key, job.limits)
        except Exception as error:
            # A converter that cannot say its version.
            return job.failure("impossible", f"its converter fails: {type(error).__name__}")

    def _work(self, lane: Lane) -> None:
        """Do jobs, one after the other, until the crew is dismissed."""
        while True:
            with self._lock:
                while not (self._waiting or self._closed):
                    self._queued.wait()
                if self._closed:
                    break
                job = self._waiting.popleft()
                if not job.future.set_running_or_notify_cancel():
                    continue
                lane.job = job
            result = self._result(lane, job)
            if job.key is not None and self._cache is not None and _worth_keeping(result):
                # Who waits for the result shall have it, whatever becomes of the cache.
                with suppress(Exception):
                    self._cache.put(job.key, result)
            # Before the result is out: whoever calls the job off must not hit the next one.
            with self._lock:
                lane.job = None
            job.resolve(result)
            # Content must not stay for as long as nothing else comes.
            del job, result
            self._renew(lane)
        if lane.worker is not None:
            lane.worker.end()

    def _result(self, lane: Lane, job: Job) -> Converted | ConversionFailed:
        reason = ""
        for pause_seconds in _PAUSES_SECONDS:
            if self._stops_within(pause_seconds, job):
                break
            try:
                worker = self._worker(lane, job)
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
                if lane.worker is not None:
                    lane.worker.kill()
                return job.failure("killed", f"{type(error).__name__} in the caller")
        if self._closed or job.called_off:
            return job.failure("closed", "it was called off")
        return job.failure("killed", f"no worker starts: {reason}")

    def _stops_within(self, seconds: float, job: Job) -> bool:
        """Wait for a moment, and return whether nobody wants the job any more."""
        with self._lock:
            return self._stopped.wait_for(lambda: self._closed or job.called_off, seconds)

    def _worker(self, lane: Lane, job: Job) -> WorkerProcess:
        """Return the worker of a lane, another one than before if need be."""
        if lane.worker is not None and lane.worker.serves(job.limits):
            return lane.worker
        return self._replace(lane, max(self._memory_bytes, job.limits.memory_bytes))

    def _renew(self, lane: Lane) -> None:
        """Replace a worker that will not do another job, before somebody waits for it."""
        worker = lane.worker
        if worker is not None and not (worker.usable or self._closed):
            # If it fails, the next job tries again and says why.
            with suppress(OSError):
                self._replace(lane, self._memory_bytes)

    def _replace(self, lane: Lane, memory_bytes: int) -> WorkerProcess:
        before = lane.worker
        if before is not None:
            before.end()
        worker = WorkerProcess(memory_bytes=memory_bytes)
        with self._lock:
            lane.worker = worker
            unwanted = self._closed or (lane.job is not None and lane.job.called_off)
        if unwanted:
            worker.kill()
        return worker

    def call_off(self, job: Job) -> None:
        """Stop a job that nobody waits for any more: its worker is killed if it is at it."""
        job.future.cancel()
        with self._lock:
            job.called_off = True
            for lane in self._lanes:
                if lane.job is job and lane.worker is not None:
                    lane.worker.kill()
            self._stopped.notify_all()

    def pids(self) -> tuple[int, ...]:
        """Return the worker processes there are."""
        with self._lock:
            workers = [lane.worker for lane in self._lanes]
        return tuple(worker.pid for worker in workers if worker is not None and worker.alive)

    def isolation(self) -> Isolation | None:
        """Return how a worker is isolated; None before the first has converted something."""
        with self._lock:
            workers = [lane.worker for lane in self._lanes]
        known = (worker.isolation for worker in workers if worker is not None)
        return next((item for item in known if item is not None), None)

    def close(self) -> None:
        """Kill the workers, fail what waits, and wait for the threads to end."""
        with self._lock:
            self._closed = True
            left = [*self._arrivals, *self._waiting]
            self._arrivals.clear()
            self._waiting.clear()
            lanes, reception = list(self._lanes), self._reception
            for lane in lanes:
                if lane.worker is not None:
                    lane.worker.kill()
            self._arrived.notify_all()
            self._queued.notify_all()
            self._stopped.notify_all()
        for job in left:
            if job.future.set_running_or_notify_cancel():
                job.resolve(job.closed())
        for thread in (reception, *(lane.thread for lane in lanes)):
            # A callback of a result, which runs in one of them, may close the pool too.
            if thread is not None and thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS_MAX)

    def forget(self) -> None:
        """Begin anew in a forked process: threads are gone, and workers are its parent's."""
        for lane in self._lanes:
            if lane.worker is not None:
                lane.worker.forget()
        self._start_afresh()


def _worth_keeping(result: Converted | ConversionFailed) -> bool:
    # What is impossible here may only lack a package.
    return not (isinstance(result, ConversionFailed) and result.kind == "impossible")


_CREWS: weakref.WeakSet[Crew] = weakref.WeakSet()


def _forget_all() -> None:
    for crew in list(_CREWS):
        crew.forget()


os.register_at_fork(after_in_child=_forget_all)
