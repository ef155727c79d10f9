"""What several subscriptions of one broker wait for, written once.

An item comes to a home for all its subscribers at once. A record for each of them would contain
the same event as often, and be as many writes. So there is one record for all of them, which
stays until the last has acknowledged. How far each of them is says its own record, which is
written for every acknowledgement and not for every item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from distributary.broker.blob import Blob
from distributary.broker.deliveries.queue import Queued
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire

__all__ = ["QueuedTogether", "Together"]


class _Content(NamedTuple):
    """What some subscriptions get: as in `Queued`, with (client, subscription, number) of each."""

    event: str
    blob: Blob | None
    media_type: str
    reason: str | None
    places: tuple[tuple[str, str, int], ...]


@wire(605)
@dataclass(frozen=True, slots=True)
class QueuedTogether:
    """Something that not all of several subscriptions have acknowledged, as it is kept."""

    source: str
    id: str
    queued_ns: int
    contents: tuple[_Content, ...]

    @classmethod
    def of(cls, entries: Iterable[Queued]) -> QueuedTogether:
        """Return what is kept for the subscriptions that are sent one item."""
        places: dict[tuple[str, Blob | None, str, str | None], list[tuple[str, str, int]]] = {}
        first = None
        for one in entries:
            first = first or one
            content = (one.event, one.blob, one.media_type, one.reason)
            places.setdefault(content, []).append((one.client, one.subscription, one.number))
        assert first is not None
        contents = tuple(_Content(*content, tuple(some)) for content, some in places.items())
        return cls(first.source, first.id, first.queued_ns, contents)

    def __iter__(self) -> Iterator[Queued]:
        """Go through what is for each of them."""
        for event, blob, media_type, reason, places in self.contents:
            for client, subscription, number in places:
                yield Queued(
                    client,
                    subscription,
                    number,
                    self.source,
                    self.id,
                    event,
                    blob,
                    media_type,
                    reason,
                    self.queued_ns,
                )

    def subscriptions(self) -> list[str]:
        """Return who stands in it."""
        return [place[1] for content in self.contents for place in content.places]

    def without(self, subscription: str) -> QueuedTogether:
        """Return what is left when one of them has ended."""
        contents = [
            content._replace(
                places=tuple(place for place in content.places if place[1] != subscription)
            )
            for content in self.contents
        ]
        return replace(self, contents=tuple(content for content in contents if content.places))


class _Kept:
    __slots__ = ("key", "left", "record")

    def __init__(self, key: str, record: QueuedTogether) -> None:
        self.key = key
        self.record = record
        self.left = 0


class Together:
    """The records for several subscriptions that one broker keeps."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], _Kept] = {}
        # Also those in which it has acknowledged its entry, and others have not.
        self._named: dict[str, dict[str, _Kept]] = {}

    def load(self, key: str, record: QueuedTogether, waiting: Iterable[Queued]) -> None:
        """Take back a record, with those of its entries that were not acknowledged."""
        kept = _Kept(key, record)
        for subscription in record.subscriptions():
            self._named.setdefault(subscription, {})[key] = kept
        for entry in waiting:
            self._waiting[entry.subscription, entry.number] = kept
            kept.left += 1

    def keep(self, entries: list[Queued], turn: Turn) -> None:
        """Write down what several subscriptions are sent of one item."""
        record = QueuedTogether.of(entries)
        # No two entries of a subscription have a number.
        first = entries[0]
        name = journal_key(*first.identity, first.subscription, str(first.number))
        key = f"deliveries/together/{name}"
        self.load(key, record, entries)
        turn.persist(key, record)

    def release(self, subscription: str, number: int, turn: Turn) -> bool:
        """Note that an entry need not be kept; return whether it was in a record of several."""
        kept = self._waiting.pop((subscription, number), None)
        if kept is None:
            return False
        kept.left -= 1
        if not kept.left:
            turn.erase(kept.key)
            for name in kept.record.subscriptions():
                self._unname(name, kept)
        return True

    def end(self, subscription: str, turn: Turn) -> None:
        """Strike out a subscription that has ended, all of whose entries are released.

        Another one of the same name would take them for its own after a crash: that these were
        acknowledged is forgotten with the first.
        """
        for kept in self._named.pop(subscription, {}).values():
            kept.record = kept.record.without(subscription)
            turn.persist(kept.key, kept.record)

    def _unname(self, subscription: str, kept: _Kept) -> None:
        named = self._named[subscription]
        del named[kept.key]
        if not named:
            del self._named[subscription]
