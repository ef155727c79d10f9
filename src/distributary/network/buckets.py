"""Buckets of keys and values that gateways share, kept by JetStream.

They are laid out as the tools of NATS have them. Entries are read one by one, by a request that is
answered with JSON: for consumers and direct reads gateways have no permission (`subjects` says
why). The server says on a subject of its own that something has changed, and whoever watches a
bucket then asks for all that is newer than what it knows, as it does after a break, and every now
and then in case it was not told.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from distributary.errors import BadInput, DistributaryError, PeerMisbehaved, quoted
from distributary.network.connection import NatsConnection, Server
from distributary.network.subjects import BUCKETS, Subjects

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["Bucket", "BucketWatcher", "Buckets", "Changed", "Entry", "WasChanged", "make_buckets"]

_log = logging.getLogger(__name__)

_ASK_S = 5.0
_RETRY_S = 0.2
# A change of which nobody has told is found after so long; revocation has five seconds.
_LOOK_S = 2.0
_NO_MESSAGE = 10037
_NO_STREAM = 10059
_WRONG_REVISION = (10071, 10164)
_DELETED = b"KV-Operation: "
# How long an entry that was deleted is still seen as deleted, by gateways that were away.
_MARKER_TTL = "1h"
_BUCKET_BYTES_MAX = 512 * 2**20
_VALUE_BYTES_MAX = 64 * 2**10
# A server hangs up on who sends a longer line than 4,096, which has an inbox in it as well.
_SUBJECT_BYTES_MAX = 3_072


class WasChanged(DistributaryError):
    """An entry is not any more what somebody took it for; it has to be read again."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a bucket.

    Attributes
    ----------
    value
        None when it was deleted.
    revision
        Numbers all changes of a bucket.
    """

    key: tuple[str, ...]
    value: bytes | None
    revision: int


Changed: TypeAlias = Callable[[Entry | None, Entry | None], None]
"""Takes an entry as it was and as it is; None where there is none."""


async def make_buckets(subjects: Subjects, server: Server, name: str, *, replicas: int = 1) -> None:
    """Make all buckets of an overlay that are not there yet, as an operator.

    Parameters
    ----------
    replicas
        How many servers of a cluster have a copy of each.

    Raises
    ------
    OSError
        When the server does not answer: it has no JetStream, or does not permit it.
    """
    connection = NatsConnection(server, name=name, inbox=subjects.inbox(name), handlers={})
    try:
        await _connected(connection)
        for bucket in BUCKETS:
            called = subjects.bucket(bucket)
            config = {
                "name": f"KV_{called}",
                "subjects": [f"$KV.{called}.>"],
                "max_msgs_per_subject": 1,
                "max_bytes": _BUCKET_BYTES_MAX,
                "max_msg_size": _VALUE_BYTES_MAX,
                "discard": "new",
                "storage": "file",
                "retention": "limits",
                "num_replicas": replicas,
                "deny_delete": True,
                "allow_rollup_hdrs": True,
                "allow_msg_ttl": True,
                "duplicate_window": 120 * 10**9,
                "republish": {
                    "src": f"$KV.{called}.>",
                    "dest": f"{subjects.changes(bucket)}.>",
                    "headers_only": True,
                },
            }
            data = json.dumps(config).encode()
            subject = f"$JS.API.STREAM.CREATE.KV_{called}"
            answer = json.loads(await connection.request(subject, data, timeout_s=_ASK_S))
            if "error" in answer:
                raise OSError(f"bucket {called}: {answer['error'].get('description')}")
    finally:
        await connection.close()


class Buckets:
    """The buckets of an overlay, by one connection of a gateway.

    Parameters
    ----------
    name
        Of the gateway.
    """

    def __init__(self, subjects: Subjects, server: Server, name: str) -> None:
        self.subjects = subjects
        self._buckets = {bucket: Bucket(self, bucket) for bucket in BUCKETS}
        self._watchers: list[BucketWatcher] = []
        self.connection = NatsConnection(
            server,
            name=f"{subjects.overlay} {name} buckets",
            inbox=subjects.inbox(name),
            handlers={
                f"{subjects.changes(bucket)}.>": partial(self._heard, bucket) for bucket in BUCKETS
            },
            changed=self._changed,
        )

    def __getitem__(self, name: str) -> Bucket:
        return self._buckets[name]

    async def check(self) -> None:
        """Look whether they have been made.

        Raises
        ------
        BadInput
            When one of them is not there.
        OSError
            When the server does not answer.
        """
        for name, bucket in self._buckets.items():
            try:
                await bucket.next(0)
            except FileNotFoundError:
                raise BadInput(
                    f"bucket {self.subjects.bucket(name)}",
                    "is not there",
                    hint="an operator makes what gateways share: distributary gateway --prepare",
                ) from None

    def watched(self, watcher: BucketWatcher) -> None:
        """Have somebody told when something changes."""
        self._watchers.append(watcher)

    async def close(self) -> None:
        """End all watchers, and the connection."""
        for watcher in self._watchers:
            await watcher.close()
        await self.connection.close()

    def _heard(self, bucket: str, message: Msg) -> None:
        for listener in self._buckets[bucket].listeners:
            with contextlib.suppress(PeerMisbehaved):
                begin = self.subjects.changes(bucket)
                listener(self.subjects.key(bucket, message.subject, begin=begin))
        for watcher in self._watchers:
            if watcher.bucket.name == bucket:
                watcher.look()

    def _changed(self, connected: bool) -> None:
        for watcher in self._watchers:
            watcher.connection_changed(connected)


class Bucket:
    """One bucket; made by `Buckets`."""

    def __init__(self, buckets: Buckets, name: str) -> None:
        self.name = name
        self.listeners: list[Callable[[tuple[str, ...]], None]] = []
        """Who is told the key of whatever changes; now and then it is not."""
        self._buckets = buckets
        self._subjects = buckets.subjects

    async def get(self, *key: str) -> Entry | None:
        """Return an entry, if there is one.

        Raises
        ------
        OSError
            When the server does not answer.
        """
        subject = self._subjects.entry(self.name, *key)
        if len(subject) > _SUBJECT_BYTES_MAX:
            return None
        entry = await self._ask({"last_by_subj": subject})
        return None if entry is None or entry.value is None else entry

    async def put(
        self, *key: str, value: bytes, revision: int | None = None, ttl_s: int | None = None
    ) -> int:
        """Write an entry; return its revision.

        Parameters
        ----------
        revision
            The one that is replaced; 0 where there must be none.
        ttl_s
            After which time the server forgets it.

        Raises
        ------
        WasChanged
            When another one is there.
        BadInput
            When the key is too long for the server.
        OSError
            When the server does not answer; whether it is written is not known then.
        """
        ending = {} if ttl_s is None else {"Nats-TTL": f"{ttl_s}s"}
        return await self._write(key, value, ending, revision)

    async def delete(self, *key: str, revision: int | None = None) -> int:
        """Delete an entry, or raise `WasChanged` if it is not that of a revision."""
        marks = {"KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": _MARKER_TTL}
        return await self._write(key, b"", marks, revision)

    async def entries(self, *key: str) -> AsyncIterator[Entry]:
        """Return all entries whose keys begin with some parts, oldest first."""
        after = 0
        while True:
            entry = await self.next(after, *key)
            if entry is None:
                return
            after = entry.revision
            if entry.value is not None:
                yield entry

    async def next(self, after: int, *key: str) -> Entry | None:
        """Return the oldest change that is newer than a revision, if there is one."""
        subject = f"{self._subjects.entry(self.name, *key)}.>"
        return await self._ask({"seq": after + 1, "next_by_subj": subject})

    def watch(self, changed: Changed) -> BucketWatcher:
        """Have a copy of all entries that there are, and be told of every change."""
        watcher = BucketWatcher(self, changed)
        self._buckets.watched(watcher)
        watcher.connection_changed(self._buckets.connection.connected)
        return watcher

    async def _write(
        self, key: tuple[str, ...], value: bytes, headers: dict[str, str], revision: int | None
    ) -> int:
        subject = self._subjects.entry(self.name, *key)
        if len(subject) > _SUBJECT_BYTES_MAX:
            raise BadInput(f"{quoted(key[-1])} of {self.name}", "has a name that is too long")
        if revision == 0:
            # Of one that was deleted there is still something.
            last = await self._ask({"last_by_subj": subject})
            if last is not None and last.value is not None:
                raise WasChanged(f"{self.name}: {'/'.join(key)} is there already")
            revision = 0 if last is None else last.revision
        if revision is not None:
            headers = {**headers, "Nats-Expected-Last-Subject-Sequence": str(revision)}
        answer = await self._request(subject, value, headers)
        error = answer.get("error")
        if error is None:
            return int(answer["seq"])
        if error.get("err_code") in _WRONG_REVISION:
            raise WasChanged(f"{self.name}: {'/'.join(key)} was changed by somebody else")
        raise OSError(f"bucket {self.name}: {error.get('description')}")

    async def _ask(self, question: dict[str, object]) -> Entry | None:
        subject = f"$JS.API.STREAM.MSG.GET.KV_{self._subjects.bucket(self.name)}"
        answer = await self._request(subject, json.dumps(question).encode(), {})
        error = answer.get("error")
        if error is not None:
            if error.get("err_code") == _NO_MESSAGE:
                return None
            kind = FileNotFoundError if error.get("err_code") == _NO_STREAM else OSError
            raise kind(f"bucket {self.name}: {error.get('description')}")
        message = answer["message"]
        deleted = _DELETED in base64.b64decode(message.get("hdrs", ""))
        try:
            key = self._subjects.key(self.name, message["subject"])
        except PeerMisbehaved:
            # Not one of ours; whoever goes through all of them gets past it.
            return Entry((), None, int(message["seq"]))
        data = None if deleted else base64.b64decode(message.get("data", ""))
        return Entry(key, data, int(message["seq"]))

    async def _request(self, subject: str, data: bytes, headers: dict[str, str]) -> dict[str, Any]:
        connection = self._buckets.connection
        await _connected(connection)
        answer: dict[str, Any] = json.loads(
            await connection.request(subject, data, timeout_s=_ASK_S, headers=headers)
        )
        return answer


async def _connected(connection: NatsConnection) -> None:
    """Wait for a connection, or raise `OSError` that says why there is none."""
    try:
        async with asyncio.timeout(_ASK_S):
            await connection.wait()
    except TimeoutError:
        raise TimeoutError(f"there is no connection to NATS: {connection.problem}") from None


class BucketWatcher:
    """A copy of what is in a bucket, kept up to date; made by `Bucket.watch`.

    Attributes
    ----------
    entries
        All of them, by key, as they were when everything was known.
    """

    def __init__(self, bucket: Bucket, changed: Changed) -> None:
        self.bucket = bucket
        self.entries: dict[tuple[str, ...], Entry] = {}
        self._revision = 0
        self._changed = changed
        self._wanted = asyncio.Event()
        self._current = asyncio.Event()
        self._progress = asyncio.Condition()
        self._connected = False
        self._closing = False
        self._problem = ""
        # What is there, as far as it was read since the connection was made.
        self._begun: dict[tuple[str, ...], Entry] | None = {}
        self._task = asyncio.ensure_future(self._run())

    @property
    def is_current(self) -> bool:
        """Whether all is known up to a moment ago, as far as anybody can tell."""
        return self._current.is_set()

    async def wait(self) -> None:
        """Wait until all is known."""
        await self._current.wait()

    async def reached(self, revision: int) -> None:
        """Wait until a change is known, such as one of one's own."""
        self.look()
        async with self._progress:
            await self._progress.wait_for(lambda: self._revision >= revision)

    def look(self) -> None:
        """Find what is new, now."""
        self._wanted.set()

    def connection_changed(self, connected: bool) -> None:
        """Begin anew with a new connection: it may be another server's."""
        self._connected = connected
        self._current.clear()
        self._begun = {}
        self._revision = 0
        self._wanted.set()

    async def close(self) -> None:
        """Know nothing more."""
        self._closing = True
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        # The library turns a cancellation into an error of its own.
        while not self._closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wanted.wait()
            self._wanted.clear()
            if not self._connected:
                continue
            try:
                await self._catch_up()
            except (OSError, ValueError, KeyError) as error:
                self._current.clear()
                self._say(str(error))
                await asyncio.sleep(_RETRY_S)
                self._wanted.set()

    def _say(self, problem: str) -> None:
        """Write down what is wrong, once for as long as it is."""
        if problem != self._problem:
            self._problem = problem
            if problem:
                _log.warning("bucket %s cannot be read: %s", self.bucket.name, problem)

    async def _catch_up(self) -> None:
        while True:
            begun, revision = self._begun, self._revision
            entry = await self.bucket.next(revision)
            if begun is not self._begun:
                # By now there is another connection.
                continue
            if entry is None:
                break
            self._revision = entry.revision
            if begun is None:
                self._replace(entry.key, entry)
            else:
                begun[entry.key] = entry
        if self._begun is not None:
            begun, self._begun = self._begun, None
            for key in {*self.entries, *begun}:
                self._replace(key, begun.get(key))
        self._say("")
        self._current.set()
        async with self._progress:
            self._progress.notify_all()

    def _replace(self, key: tuple[str, ...], entry: Entry | None) -> None:
        old = self.entries.pop(key, None)
        new = None if entry is None or entry.value is None else entry
        if new is not None:
            self.entries[key] = new
        if old != new:
            self._changed(old, new)
