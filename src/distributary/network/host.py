"""The host of one broker: a process on an event loop, with a journal and a connection to NATS.

The broker runs on the loop, one turn after the other. Commits run in a thread, one at a time,
while the broker goes on; so do plans. Conversions run in processes. Nothing here knows
what the messages mean.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address, Blob, is_client
from distributary.broker.broker import Broker
from distributary.broker.client import Changed, Updated
from distributary.broker.core import Part
from distributary.broker.driver import Driver
from distributary.broker.encoding import (
    MESSAGE_BYTES_MAX,
    VERSION,
    decode,
    encode,
    kind_name,
    kinds,
)
from distributary.broker.host import (
    ClientBack,
    ClientGone,
    ContentHeld,
    ConversionRefused,
    Converted,
    Detached,
    Fetched,
    FetchFailed,
    PlanMade,
    Reattached,
    StorageLow,
)
from distributary.broker.planning import PlanningProblem
from distributary.broker.settings import Settings, ns
from distributary.broker.streams import messages as stream_messages
from distributary.broker.telemetry import Misbehaved, SetAsideMessage, SettingsDiffer
from distributary.errors import PeerMisbehaved, quoted
from distributary.media.failure import ConversionFailed
from distributary.network.answers import answer
from distributary.network.clock import Alarm, Clock, WallClock
from distributary.network.connection import NatsConnection, Server
from distributary.network.disk_space import DiskSpace
from distributary.network.draining import drain
from distributary.network.inbox import Inbox
from distributary.network.journal import SqliteJournal, is_full
from distributary.network.requests import decode_request, encode_request
from distributary.network.service_times import ServiceClock
from distributary.network.subjects import Subjects
from distributary.network.transfers import TransferFailed, Transfers
from distributary.network.witness import Witness

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["Convert", "NetworkHost"]

_log = logging.getLogger(__name__)

Convert = Callable[[Blob, str, bytes | None], Awaitable[tuple[Blob, float]]]
"""Returns content in another format when it is in the store, or raises `ConversionFailed`; and
for how many seconds a processor was at work.

Given the content, the format, and the bytes if they are not in the store.
"""

# How long turns follow each other before the loop looks at everything else.
_TURNS_S = 0.01
# How often a commit is tried again for which there was no room on the disk.
_FULL_S = 0.5
_ROOM_S = 1.0
_SENDERS_MAX = 1 << 16
_STREAMS = frozenset(
    kind for kind in kinds().values() if kind.__module__ == stream_messages.__name__
) | {Changed, Updated}
# So many clients that have gone are known to be, those who went last.
_ABSENT_MAX = 1 << 16
# What others can cause to be written down is written no more often than this.
_WARN_S = 10.0
# How many requests a host is at work on.
_REQUESTS_MAX = 1024


class NetworkHost:
    """Runs one broker.

    Parameters
    ----------
    identity, settings, parts
        As for a `Broker`.
    first
        What the broker is told before it starts.
    journal
        Its disk.
    folder
        On the same disk, to see how much room there is.
    room_bytes
        With less room than this, no publications are taken; with twice as much they are again.
    subjects, server
        How to reach the others.
    convert, transfers
        Who converts content, and where it is.
    clock
        Where the time comes from.

    Attributes
    ----------
    ended
        Done when the broker has left, with None, or is stopped for good, with the reason.
    """

    def __init__(
        self,
        identity: str,
        settings: Settings,
        *,
        first: Sequence[object],
        journal: SqliteJournal,
        folder: Path,
        subjects: Subjects,
        server: Server,
        convert: Convert,
        room_bytes: int = 64 * 2**20,
        clock: Clock | None = None,
        parts: Mapping[str, type[Part]] | None = None,
        transfers: Transfers,
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.subjects = subjects
        self.inbox = Inbox()
        self.reports: Counter[str] = Counter()
        self._first = first
        self._journal = journal
        self.disk_space = DiskSpace(folder, room_bytes, self.tell)
        self._convert = convert
        self._clock = clock or WallClock()
        self._parts = parts
        self.transfers = transfers
        self._fetching: dict[str, set[int]] = {}
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str | None] = self._loop.create_future()
        self._disk = ThreadPoolExecutor(1, "disk")
        self._planner = ThreadPoolExecutor(1, "plans")
        self._alarm: Alarm | None = None
        self._scheduled = False
        self._started = False
        self._closed = False
        self._tasks: dict[object, asyncio.Future[Any]] = {}
        self._absent: dict[Address, None] = {}
        self._told_detached = True
        self._senders: dict[str, tuple[str, Address]] = {}
        self._times = ServiceClock()
        self.witness = Witness(self._clock.now_ns)
        self._warn_at: dict[str, float] = {}
        self.commits = 0
        self._commit_began = 0.0
        self.began = time.monotonic()
        self.connection = NatsConnection(
            server,
            name=f"{subjects.overlay} {identity}",
            inbox=subjects.inbox(identity),
            handlers=dict.fromkeys(subjects.read_by_broker(identity), self._arrived),
            changed=self._connection_changed,
        )
        self.driver = Driver(self)

    async def start(self) -> None:
        """Restore the broker and set it going.

        Raises
        ------
        JournalDamaged
            When the journal cannot be read.
        """
        self.transfers.store.tidy(time.time())
        self.driver.start()
        self._started = True
        self._schedule()
        self._look_at_room()
        self._tell_times()

    async def close(self) -> None:
        """Stop at once, as a process that ends; what is committed is on the disk."""
        self._closed = True
        self.driver.halt()
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._tasks.values():
            task.cancel()
        await self.connection.close()
        # A commit under way ends first; nobody is told.
        await self._loop.run_in_executor(None, self._disk.shutdown)
        self._planner.shutdown(wait=False, cancel_futures=True)
        self.transfers.close()
        self._journal.close()
        if not self.ended.done():
            self.ended.set_result(None)

    # What arrives.

    def _arrived(self, message: Msg) -> None:
        known = self._senders.get(message.subject)
        if known is None:
            try:
                known = self.subjects.sender(message.subject)
            except PeerMisbehaved as error:
                self.report(Misbehaved("", error.problem))
                return
            if len(self._senders) >= _SENDERS_MAX:
                self._senders.clear()
            self._senders[message.subject] = known
        kind, sender = known
        data = message.data
        if kind == "h":
            self._asked(message, sender)
        elif kind == "p":
            self._presence(sender, present=data == b"1")
        elif len(data) > MESSAGE_BYTES_MAX:
            self.report(Misbehaved(sender, f"a message of {len(data):,} bytes"))
        else:
            if self._absent and kind == "c":
                self._absent.pop(sender, None)
            self.inbox.put(sender, data)
            self._schedule()

    def tell(self, message: object) -> None:
        """Tell the broker something that the host knows."""
        self.inbox.put_own(message)
        self._schedule()

    @property
    def draining(self) -> bool:
        """Whether the broker is giving its clients to others, to leave in the end."""
        return "drain" in self._tasks

    def drain(self) -> None:
        """Have the broker give its clients to others, and leave."""
        self._task("drain", drain(self))

    def _presence(self, client: Address, *, present: bool) -> None:
        self._absent.pop(client, None)
        if not present:
            self._absent[client] = None
            if len(self._absent) > _ABSENT_MAX:
                # It is sent what comes for it, if anything does, and does not answer.
                self._presence(next(iter(self._absent)), present=True)
        self.tell(ClientBack(client) if present else ClientGone(client))

    def _connection_changed(self, connected: bool) -> None:
        if not self._closed and connected == self._told_detached:
            self._told_detached = not connected
            if self._started:
                self.tell(Reattached() if connected else Detached())

    def _asked(self, message: Msg, sender: str) -> None:
        """Answer a request to the host itself."""
        if not message.reply or len(self._tasks) > _REQUESTS_MAX:
            return
        if not message.reply.startswith(f"{self.subjects.inbox(sender)}."):
            # The server lets a broker answer wherever it is asked to, also in others' names.
            self.report(Misbehaved(sender, f"a request to be answered at {quoted(message.reply)}"))
            return

        async def respond() -> None:
            try:
                request = decode_request(message.data)
            except PeerMisbehaved as error:
                self.report(Misbehaved(sender, error.problem))
                return
            data = encode_request(await answer(self, request, sender))
            self.connection.send(message.reply, data)

        self._task(object(), respond())

    def _schedule(self) -> None:
        if self._started and not self._scheduled and not self._closed:
            self._scheduled = True
            self._loop.call_soon(self._run_turns)

    def _run_turns(self) -> None:
        self._scheduled = False
        end = time.perf_counter() + _TURNS_S
        while len(self.inbox) and not self._closed:
            self._turn(*self.inbox.take())
            if time.perf_counter() > end:
                if len(self.inbox):
                    self._schedule()
                return

    def _turn(self, sender: Address, message: object) -> None:
        if isinstance(message, int):
            began = time.thread_time()
            self.driver.serve(message)
            self._times.took("filter", time.thread_time() - began)
            return
        if isinstance(message, bytes):
            try:
                message = decode(message)
            except PeerMisbehaved as error:
                self.report(Misbehaved(sender, error.problem))
                return
        self.witness.received(sender, message)
        if type(message) in _STREAMS:
            began = time.thread_time()
            self.driver.receive(message, sender=sender)
            self._times.took("filter", time.thread_time() - began)
        else:
            self.driver.receive(message, sender=sender)

    # What the driver asks of its host.

    def now_ns(self) -> int:
        """Return the time by the host's clock."""
        return self._clock.now_ns()

    def restore(self) -> Broker:
        """Return a broker as the disk has it."""
        # Nothing of what is read is garbage, and to look for it takes as long as to read.
        gc.disable()
        try:
            return Broker.restore(
                self.identity,
                self.settings,
                self._journal.read(),
                rng=random.Random(),
                parts=self._parts,
            )
        finally:
            gc.enable()

    def first(self) -> Sequence[object]:
        """Return what the broker is told before it starts."""
        told: list[object] = list(self._first)
        told.append(ContentHeld(tuple(self.transfers.store.held())))
        told += [ClientGone(client) for client in sorted(self._absent)]
        if self.disk_space.is_low:
            told.append(StorageLow())
        if self._told_detached:
            told.append(Detached())
        return told

    def commit(self, writes: Mapping[str, bytes | None]) -> bool:
        """Write to the disk in a thread."""
        self.commits += 1
        self._write(writes)
        return False

    def _write(self, writes: Mapping[str, bytes | None]) -> None:
        if self._closed:
            return
        self._commit_began = time.monotonic()
        future = self._loop.run_in_executor(self._disk, self._journal.commit, writes)
        self._tasks["commit"] = future
        future.add_done_callback(lambda done: self._written(done, writes))

    def _written(self, done: asyncio.Future[None], writes: Mapping[str, bytes | None]) -> None:
        if self._closed or done.cancelled():
            return
        error = done.exception()
        if error is None:
            self.witness.metrics.committed(time.monotonic() - self._commit_began)
            self.driver.committed()
        elif isinstance(error, Exception) and is_full(error):
            # Nothing is lost by waiting for room: what the commit is for has not left either.
            self.disk_space.set_low(True)
            self._clock.call_at(self.now_ns() + ns(_FULL_S), lambda: self._write(writes))
        else:
            # It is not tried again. After a sync that failed, the next one may say that all
            # is well with pages that the system has dropped.
            assert isinstance(error, Exception)
            self.driver.commit_failed(error)
        self._schedule()

    def send(self, to: Address, message: object) -> None:
        """Put a message on its way."""
        timed = type(message) in _STREAMS
        began = time.thread_time() if timed else 0.0
        if is_client(to):
            subject, version = self.subjects.to_client(to, self.identity), VERSION
        else:
            broker = self.driver.broker
            subject = self.subjects.to_broker(to, self.identity)
            version = VERSION if broker is None else broker.version
        data = encode(message, version)
        self.connection.send(subject, data)
        if not is_client(to):
            self.witness.sent(to, message, len(data))
        if timed:
            self._times.took("send", time.thread_time() - began)

    def convert(self, ticket: int, blob: Blob, target: str, data: bytes | None) -> None:
        """Have content converted by other processes."""

        async def convert() -> None:
            answer: object
            made: Blob | None = None
            began_ns = self.now_ns()
            try:
                made, seconds = await self._convert(blob, target, data)
                answer = Converted(ticket, made, seconds)
            except ConversionFailed as failure:
                answer = ConversionRefused(ticket, str(failure), failure.lasting)
            except Exception as error:
                _log.exception("broker %s: a conversion to %s failed", self.identity, target)
                answer = ConversionRefused(ticket, f"{type(error).__name__}: {error}", False)
            self.witness.converted(began_ns, blob, target, made)
            self.tell(answer)

        self._task(ticket, convert())

    def fetch(self, ticket: int, blob: Blob, holder: str) -> None:
        """Get content from another host; once, whoever asks for it."""
        waiting = self._fetching.get(blob.digest)
        if waiting is not None:
            waiting.add(ticket)
            return
        self._fetching[blob.digest] = {ticket}

        async def fetch() -> None:
            failure: TransferFailed | None = None
            began, came = time.monotonic(), 0
            try:
                subject = self.subjects.to_host(holder, self.identity)
                came = await self.transfers.fetch(self.connection, subject, blob)
                self.witness.metrics.fetched(holder, blob, came)
            except TransferFailed as failed:
                failure = failed
            took_s = time.monotonic() - began
            for one in sorted(self._fetching.pop(blob.digest)):
                if failure is None:
                    # The holder of the first is who was asked.
                    mine = (came, took_s) if one == ticket else (0, 0.0)
                    self.tell(Fetched(one, blob, *mine))
                else:
                    self.tell(FetchFailed(one, str(failure), failure.lasting))

        self._task(("fetch", blob.digest), fetch())

    def free(self, digest: str) -> None:
        """Delete content."""
        self.transfers.store.free(digest)

    def make_plan(self, ticket: int, problem: PlanningProblem) -> None:
        """Have a plan made in a thread."""

        async def plan() -> None:
            planning = await self._loop.run_in_executor(self._planner, problem.solve)
            self.tell(PlanMade(ticket, planning))

        self._task(ticket, plan())

    def serve(self, ticket: int) -> None:
        """Have a ticket wait behind what waits already."""
        self.inbox.put_own(ticket)
        self._schedule()

    def spend(self, works: Sequence[str]) -> None:
        """Count what work was done; it has taken its time by itself."""
        self._times.did(works)

    def report(self, record: object) -> None:
        """Count what a broker reports, and write down what somebody should know."""
        self.reports[type(record).__name__] += 1
        self.witness.reported(record)
        if isinstance(record, Misbehaved | SetAsideMessage | SettingsDiffer):
            now, kind = time.monotonic(), type(record).__name__
            if now >= self._warn_at.get(kind, 0.0):
                self._warn_at[kind] = now + _WARN_S
                count = self.reports[kind]
                _log.warning("broker %s reports %s, number %d", self.identity, record, count)

    def wake_at(self, at_ns: int) -> None:
        """Wake the broker at a time of the host's clock."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._clock.call_at(at_ns, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        if not self._closed:
            self.driver.wake()

    def failed(self, error: Exception, message: object | None) -> None:
        """Write down that a turn failed."""
        about = "no message" if message is None else f"a {_kind(message)}"
        _log.error("broker %s failed over %s", self.identity, about, exc_info=error)

    def left(self) -> None:
        """End: the broker has left the overlay."""
        if not self.ended.done():
            self.ended.set_result(None)

    def stopped(self, reason: str) -> None:
        """End: the broker fails again and again."""
        _log.error("broker %s is stopped: %s", self.identity, reason)
        if not self.ended.done():
            self.ended.set_result(reason)

    # What goes on beside it.

    def _task(self, key: object, work: Awaitable[None]) -> None:
        """Do something beside the broker, unless it is being done."""
        if self._closed or key in self._tasks:
            if hasattr(work, "close"):
                work.close()
            return
        task = asyncio.ensure_future(work)
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    def _tell_times(self) -> None:
        if self._closed:
            return
        times = self._times.window()
        if times is not None:
            self.tell(times)
        self._loop.call_later(self.settings.telemetry_s, self._tell_times)

    def _look_at_room(self) -> None:
        if not self._closed:
            self.disk_space.look()
            self._loop.call_later(_ROOM_S, self._look_at_room)


def _kind(message: object) -> str:
    try:
        return kind_name(message)
    except KeyError:
        return type(message).__name__
