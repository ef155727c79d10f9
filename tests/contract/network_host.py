"""The host on NATS, for the contract: a real server and journal, and a time that tests turn."""

from __future__ import annotations

import asyncio
import errno
import heapq
import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from tests.contract.bench import CLIENT, Bench
from tests.contract.hosts import GRAPH, OWN, first
from tests.nats_server import shared_server

from distributary.broker.addresses import HOST, Address, Blob
from distributary.broker.broker import Broker
from distributary.broker.encoding import decode
from distributary.broker.settings import Settings, ns
from distributary.content.media_type import MediaType
from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.network.clock import Alarm
from distributary.network.connection import NatsConnection, Server
from distributary.network.content import ContentStore
from distributary.network.host import NetworkHost
from distributary.network.journal import SqliteJournal
from distributary.network.subjects import Subjects
from distributary.network.transfers import Transfers
from distributary.simulator.node import CommitFailed

_BEGIN_NS = 1_700_000_000 * 10**9
_overlays = itertools.count()


class _Alarm:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class ManualClock:
    """A clock that stands still until somebody turns it."""

    def __init__(self) -> None:
        self.passed_ns = 0
        self.skew_ns = _BEGIN_NS
        self._alarms: list[tuple[int, int, _Alarm]] = []
        self._count = itertools.count()

    def now_ns(self) -> int:
        return self.passed_ns + self.skew_ns

    def call_at(self, at_ns: int, call: Callable[[], None]) -> Alarm:
        alarm = _Alarm(call)
        heapq.heappush(self._alarms, (at_ns - self.skew_ns, next(self._count), alarm))
        return alarm

    async def sleep(self, seconds: float) -> None:
        passed = asyncio.Event()
        self.call_at(self.now_ns() + ns(seconds), passed.set)
        await passed.wait()

    def turn_to_next(self, end_ns: int) -> bool:
        """Turn to the next alarm before a time, and let it ring; say whether there was one."""
        while self._alarms and self._alarms[0][0] <= end_ns:
            at_ns, _, alarm = heapq.heappop(self._alarms)
            if alarm.call is not None:
                self.passed_ns = max(self.passed_ns, at_ns)
                alarm.call()
                return True
        self.passed_ns = end_ns
        return False


class _Journal(SqliteJournal):
    """A journal that can be held, and made to fail."""

    fails: Callable[[Mapping[str, bytes | None]], bool] | None = None
    crash: bool | None = None
    """Whether the next commit is durable, after which there is a crash."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, OWN)
        self.open = threading.Event()
        self.open.set()
        self.waits = False
        self.crashed = False
        self.abandoned = False
        self.full = False

    def commit(self, writes: Mapping[str, bytes | None]) -> None:
        self.waits = not self.open.is_set()
        self.open.wait()
        self.waits = False
        if self.full:
            raise OSError(errno.ENOSPC, "no space left on device")
        if self.fails is not None and self.fails(writes):
            raise CommitFailed("disk")
        if self.abandoned:
            raise CommitFailed("the process is gone")
        if self.crash is not None:
            self.crashed = True
            if not self.crash:
                raise CommitFailed("the process is gone")
        super().commit(writes)


class _Host(NetworkHost):
    """A host that writes down what it is told."""

    def note(self, seen: HostOnNats) -> None:
        self.seen = seen

    def report(self, record: object) -> None:
        super().report(record)
        self.seen.reports.append(record)

    def failed(self, error: Exception, message: object | None) -> None:
        what = f"{type(error).__name__} over {type(message).__name__}: {error}"
        self.seen.failures.append(what)

    def left(self) -> None:
        super().left()
        self.seen.left += 1

    def stopped(self, reason: str) -> None:
        super().stopped(reason)
        self.seen.stopped.append(reason)

    def _written(self, done: asyncio.Future[None], writes: Mapping[str, bytes | None]) -> None:
        assert isinstance(self._journal, _Journal)
        if not self._journal.crashed:
            super()._written(done, writes)


class HostOnNats:
    """A `NetworkHost`, with somebody who sees everything that leaves it."""

    def __init__(self) -> None:
        self.sent: list[tuple[Address, object]] = []
        self.reports: list[object] = []
        self.failures: list[str] = []
        self.stopped: list[str] = []
        self.left = 0
        self._folder = Path(tempfile.mkdtemp(prefix="contract-"))
        self._loop = asyncio.new_event_loop()
        self._clock = ManualClock()
        self._subjects = Subjects(f"contract-{next(_overlays)}")
        self._server = Server((shared_server().url,), "test", "test")
        self._held = False
        self._host: _Host | None = None
        self._journal: _Journal | None = None
        self._watcher: NatsConnection = self._run(self._watch())
        self.restart()
        self.sent.clear()
        self._commits_before = self.host.commits

    async def _watch(self) -> NatsConnection:
        watcher = NatsConnection(
            self._server,
            name="watcher",
            inbox="_INBOX",
            handlers={f"d.{self._subjects.overlay}.*.>": self._saw},
        )
        await watcher.wait()
        return watcher

    def _saw(self, message: Any) -> None:
        _, _, kind, *rest = message.subject.split(".")
        if kind == "b" and rest[1] == OWN:
            self.sent.append((rest[0], decode(message.data)))
        elif kind == "i":
            assert rest == ["=", "==", CLIENT.removeprefix("@"), OWN]
            self.sent.append((CLIENT, decode(message.data)))

    @property
    def host(self) -> _Host:
        assert self._host is not None
        return self._host

    @property
    def broker(self) -> Broker:
        assert self.host.driver.broker is not None
        return self.host.driver.broker

    @property
    def commits(self) -> int:
        return self.host.commits - self._commits_before

    def tell(self, message: object, sender: Address = CLIENT) -> None:
        if self._host is None:
            return
        if sender == HOST:
            self.host.driver.receive(message, sender=sender)
        else:
            self._run(self._told(message, sender))
        self._run(self._settle())

    async def _told(self, message: object, sender: Address) -> None:
        # By hand, as the same turn of the loop must see all of it; messages that come by
        # NATS are what the live tests are about.
        self.host.driver.receive(message, sender=sender)

    def run(self, seconds: float) -> None:
        end_ns = self._clock.passed_ns + ns(seconds)
        self._run(self._settle())
        while self._run(self._turn(end_ns)):
            self._run(self._settle())

    async def _turn(self, end_ns: int) -> bool:
        return self._clock.turn_to_next(end_ns)

    async def _settle(self) -> None:
        """Wait until nothing more happens before time goes on."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0)
            host, journal = self._host, self._journal
            if host is None or journal is None:
                break
            if journal.crashed:
                await self._crash()
                break
            quiet = 0 if host._scheduled else quiet + 1
            commit = host._tasks.get("commit")
            if commit is not None and not commit.done() and not journal.waits:
                await asyncio.wait([commit], timeout=0.001)
                quiet = 0
        if self._host is not None:
            await self._host.connection.flush()
        await self._watcher.flush()

    def disk(self) -> Mapping[str, bytes]:
        if self._journal is not None:
            return self._journal.read()
        journal = SqliteJournal(self._folder / "journal.db", OWN)
        try:
            return journal.read()
        finally:
            journal.close()

    def hold(self) -> None:
        self._held = True
        if self._journal is not None:
            self._journal.open.clear()

    def release(self) -> None:
        self._held = False
        if self._journal is not None:
            self._journal.open.set()
            self._journal.waits = False
        self._run(self._settle())

    def fill(self, full: bool) -> None:
        """Have the disk be full, or have room again."""
        assert self._journal is not None
        self._journal.full = full

    def fail(self, wanted: Callable[[Mapping[str, bytes | None]], bool]) -> None:
        assert self._journal is not None
        self._journal.fails = wanted

    def crash_at_commit(self, *, durable: bool) -> None:
        assert self._journal is not None
        self._journal.crash = durable

    def crash(self) -> None:
        if self._host is not None:
            self._run(self._crash())

    async def _crash(self) -> None:
        host, journal = self._host, self._journal
        self._host = self._journal = None
        assert host is not None
        assert journal is not None
        journal.abandoned = True
        journal.open.set()
        await host.close()

    def restart(self) -> None:
        self._run(self._start())
        self._run(self._settle())

    async def _start(self) -> None:
        self._journal = _Journal(self._folder / "journal.db")
        if self._held:
            self._journal.open.clear()
        self._host = _Host(
            OWN,
            Settings(graph=GRAPH),
            first=first(),
            journal=self._journal,
            folder=self._folder,
            subjects=self._subjects,
            server=self._server,
            convert=self._convert,
            transfers=Transfers(ContentStore(self._folder / "content"), bytes_max=2**20),
            clock=self._clock,
            parts={"bench": Bench},
        )
        self._host.note(self)
        await self._host.connection.wait()
        await self._host.start()

    async def _convert(self, blob: Blob, target: str, data: bytes | None) -> tuple[Blob, float]:
        await self._clock.sleep(2.0)
        if target != "b/b":
            a, b = MediaType.parse(blob.media_type), MediaType.parse(target)
            raise ConversionFailed(a, b, kind="impossible", reason="no", limits=Limits())
        return Blob.imagined(target, 1, blob.digest), 2.0

    def damage(self, key: str, data: bytes) -> None:
        if self._journal is not None:
            SqliteJournal.commit(self._journal, {key: data})
            return
        journal = SqliteJournal(self._folder / "journal.db", OWN)
        journal.commit({key: data})
        journal.close()

    def turn_clock_back(self, seconds: float) -> None:
        self._clock.skew_ns -= ns(seconds)

    def close(self) -> None:
        self.crash()
        self._run(self._watcher.close())
        self._run(self._loop.shutdown_default_executor())
        self._loop.close()
        shutil.rmtree(self._folder)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)
