"""The trail of publications: when a broker got what from whom, and what became of it.

The protocol does without the times of single publications, and a host sees all that its broker
gets, sends and converts. It notes messages as they are, encoded. Nobody looks into them before
somebody asks, so that a note takes well under a microsecond; and as what is noted is limited in
bytes, it goes back over the last few thousand messages. It is in memory alone.

Times are those of each broker's own clock. Messages so large that they go in parts leave no trail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from distributary.broker.addresses import Address, Blob, tenant_of
from distributary.broker.client import Publish, named_in
from distributary.broker.dissemination.messages import ItemId, Offer, Portion
from distributary.broker.encoding import decode, kinds
from distributary.broker.links.messages import Hop, Routed
from distributary.broker.planning import inline_blob
from distributary.broker.telemetry import Delivered
from distributary.errors import BadInput, PeerMisbehaved

__all__ = ["Trail", "way_of"]

_BYTES_MAX = 4 * 2**20
_DELIVERIES_MAX = 8192
_CONVERSIONS_MAX = 1024
# Longer names are not followed, so that few notes cannot take much.
_NAME_CHARACTERS_MAX = 1024
# By their first bytes: see `encoding`.
_CARRIERS = frozenset(
    number.to_bytes(2, "big") for number, kind in kinds().items() if kind in (Portion, Routed)
)

_ENCODER = msgspec.msgpack.Encoder()

_Row: TypeAlias = dict[str, Any]


_Note: TypeAlias = tuple[int, bool, Address, bytes | Publish]
"""A message: when it was here, whether it was sent, by or to whom, and its bytes; from a client
as it is."""


@dataclass(frozen=True, slots=True)
class _Conversion:
    """A conversion that has ended; without what it has made if it has failed."""

    began_ns: int
    ended_ns: int
    origin: Blob
    target: str
    made: Blob | None


class Trail:
    """What one host has noted of publications.

    Parameters
    ----------
    now_ns
        The host's clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._notes: deque[_Note] = deque()
        self._bytes = 0
        self._conversions: deque[_Conversion] = deque(maxlen=_CONVERSIONS_MAX)
        self._deliveries: deque[tuple[int, Delivered]] = deque(maxlen=_DELIVERIES_MAX)

    # What is noted.

    def received(self, sender: Address, message: object) -> None:
        """Note a message that the broker is about to handle, if it is about a publication."""
        if type(message) is Hop:
            if message.message[1:3] in _CARRIERS:
                self._note(False, sender, message.message, len(message.message))
        elif type(message) is Publish:
            self._note(False, sender, message, len(message.event))

    def sent(self, to: Address, message: object) -> None:
        """Note a message that leaves, if it is about a publication."""
        if type(message) is Hop and message.message[1:3] in _CARRIERS:
            self._note(True, to, message.message, len(message.message))

    def _note(self, sent: bool, peer: Address, message: bytes | Publish, size: int) -> None:
        self._notes.append((self._now_ns(), sent, peer, message))
        self._bytes += size
        while self._bytes > _BYTES_MAX:
            old = self._notes.popleft()[-1]
            self._bytes -= len(old.event if isinstance(old, Publish) else old)

    def converted(self, began_ns: int, origin: Blob, target: str, made: Blob | None) -> None:
        """Note that a conversion has just ended."""
        self._conversions.append(_Conversion(began_ns, self._now_ns(), origin, target, made))

    def delivered(self, record: Delivered) -> None:
        """Note that something is in the queue of a subscription, durably."""
        if len(record.source) + len(record.id) <= _NAME_CHARACTERS_MAX:
            self._deliveries.append((self._now_ns(), record))

    # What is told.

    def rows(self, item: ItemId) -> list[_Row]:
        """Return what is known of a publication here, in the order in which it happened."""
        found: dict[tuple[object, ...], _Row] = {}
        contents: set[str] = set()
        # As the two names stand in messages, one after the other.
        needle = _ENCODER.encode((item.source, item.id))[1:]
        since_ns: int | None = None
        for at_ns, sent, peer, message in self._notes:
            if isinstance(message, Publish):
                row = self._published(item, peer, message, contents)
            else:
                row = self._hop(item, message, contents) if needle in message else None
            if row is None:
                continue
            since_ns = at_ns if since_ns is None else since_ns
            if "carries" in row:
                row |= {"what": "sent" if sent else "received", "peer": peer}
            known = found.setdefault(
                (row["what"], row.get("peer"), row.get("carries"), row.get("attempt")),
                {**row, "at_ns": at_ns, "times": 0},
            )
            known["times"] += 1
        rows = [*found.values(), *self._conversions_of(contents, since_ns), *self._delivered(item)]
        return sorted(rows, key=lambda row: int(row["at_ns"]))

    def _published(
        self, item: ItemId, client: Address, message: Publish, contents: set[str]
    ) -> _Row | None:
        text = message.event
        # JSON may escape anything.
        if item.id not in text and "\\" not in text:
            return None
        if tenant_of(client) != item.tenant or named_in(text) != (item.source, item.id):
            return None
        # What breaks the rules was refused.
        with suppress(BadInput):
            contents.add((message.blob or inline_blob(text, "")[0]).digest)
            return {"what": "published"}
        return None

    def _hop(self, item: ItemId, data: bytes, contents: set[str]) -> _Row | None:
        # Others have sent it, and it was noted before the broker looked at it.
        with suppress(PeerMisbehaved, BadInput, LookupError):
            message = decode(data)
            if isinstance(message, Routed):
                message = decode(message.message)
            if not isinstance(message, Offer | Portion) or message.item.identity != item:
                return None
            if message.item.inline:
                contents.add(inline_blob(message.item.event, "")[0].digest)
            if isinstance(message, Offer):
                contents.update(() if message.blob is None else (message.blob.digest,))
                return {"carries": "offer", "attempt": 0, "formats": [message.item.media_type]}
            plan = message.plan
            formats = [plan.formats[k] for k in plan.first.receives]
            contents.update(blob.digest for blob in message.blobs if blob is not None)
            return {"carries": "portion", "attempt": message.attempt, "formats": formats}
        return None

    def _conversions_of(self, contents: set[str], since_ns: int | None) -> list[_Row]:
        """Return conversions of some contents and of what was made of them.

        The same content may have been converted for others before: what began earlier than
        this publication came here was not for it.
        """
        rows: dict[tuple[str, str], _Row] = {}
        for one in sorted(self._conversions, key=lambda one: one.began_ns):
            early = since_ns is None or one.began_ns < since_ns
            pair = (one.origin.media_type, one.target)
            if early or pair in rows or one.origin.digest not in contents:
                continue
            if one.made is not None:
                contents.add(one.made.digest)
            rows[pair] = {
                "what": "converted",
                "from": pair[0],
                "to": pair[1],
                "at_ns": one.began_ns,
                "ended_ns": one.ended_ns,
                "failed": one.made is None,
            }
        return list(rows.values())

    def _delivered(self, item: ItemId) -> list[_Row]:
        rows: dict[str, _Row] = {}
        for at_ns, one in self._deliveries:
            if (one.source, one.id) == item[1:] and tenant_of(one.client) == item.tenant:
                new = {"what": "delivered", "format": one.media_type, "count": 0, "at_ns": at_ns}
                row = rows.setdefault(one.media_type, new)
                row["count"] += 1
                row["ended_ns"] = at_ns
        return list(rows.values())


def way_of(told: Mapping[str, Sequence[_Row]], *, root: str, planned_ns: int) -> list[_Row]:
    """Return the way of a publication, as all brokers tell it together, in order of time.

    Parameters
    ----------
    told
        The rows of each broker, as `Trail.rows` gives them.
    root, planned_ns
        Who has planned it, and when.

    Returns
    -------
    steps
        Each has `what`, the `broker` that did it, and when it `began_ns` and `ended_ns`; the
        end is None where nobody knows it. `what` is `published`; `planned`; `sent`, with the
        broker `to` which it went, the `formats` that did, what it `carries` (an `offer` to the
        root or a `portion` from it) and how many `times` it was sent; `converted`, `from` and
        `to`; `delivered`, with the `format` and the `count` of subscriptions.
    """
    arrived = {
        (row["peer"], broker, row["carries"], row["attempt"]): row["at_ns"]
        for broker, rows in told.items()
        for row in rows
        if row["what"] == "received"
    }
    planned = {"began_ns": planned_ns, "ended_ns": planned_ns}
    steps: list[_Row] = [{"what": "planned", "broker": root, **planned}]
    for broker, rows in told.items():
        for row in rows:
            what, began_ns = row["what"], row["at_ns"]
            step = {"what": what, "broker": broker, "began_ns": began_ns, "ended_ns": began_ns}
            if what == "sent":
                hop = (broker, row["peer"], row["carries"], row["attempt"])
                step |= {"ended_ns": arrived.get(hop), "to": row["peer"]}
                step |= {name: row[name] for name in ("carries", "attempt", "formats", "times")}
            elif what in ("converted", "delivered"):
                step |= {name: value for name, value in row.items() if name != "at_ns"}
            elif what == "received":
                continue
            steps.append(step)
    return sorted(steps, key=lambda step: (step["began_ns"], step["broker"]))
