"""Stores: brokers have what they count on, and keep no more than their settings allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from distributary.broker.dissemination.task import ContentRecord
from distributary.broker.encoding import kinds
from distributary.broker.publishing.publications import KeptRecord
from distributary.broker.settings import Settings, ns
from distributary.simulator.checkers.violation import NAMED_MAX, Checker

if TYPE_CHECKING:
    from distributary.simulator.node import Node
    from distributary.simulator.world import World

__all__ = ["ContentCheck", "StoresCheck"]

# Records that refer to content which their broker has, or is to get.
_REFERRING = (
    "content/lent/",
    "content/put/",
    "deliveries/entry/",
    "dissemination/content/",
    "migration/early/",
    "migration/held/",
    "publishing/kept/",
    "relays/job/",
)
_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
# How much later than it could be freed content is, when timers are late.
_SLACK_S = 5.0


class ContentCheck(Checker):
    """Checks content stores against what brokers have on their disks."""

    name = "content"

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._kept_ns = ns(world.settings.content.retention_s + _SLACK_S)

    def finish(self, now_ns: int) -> None:
        """Look at what was missing, and at what every broker has by now.

        Not at one whose disk does not have yet what it knows.
        """
        for at_ns, what in self._world.transfers.missing:
            self.complain(at_ns, what)
        for _, node in sorted(self._world.nodes.items()):
            driver = node.driver
            if node.broker is not None and driver is not None and driver.is_durable:
                self._look(node, now_ns)

    def _look(self, node: Node, now_ns: int) -> None:
        broker = node.broker
        assert broker is not None
        content = broker.core.content
        clock_ns = broker.core.clock.read(node.clock_ns(now_ns))
        referred = _referred_to(node)
        wrong: list[str] = []
        for digest in referred | node.store.keys():
            unused_ns = content.unused_ns(digest, clock_ns)
            if digest in referred and unused_ns is not None:
                wrong.append(f"has a record that refers to {digest}, and would free it")
            if digest not in node.store:
                continue
            if not broker.has_content(digest):
                wrong.append(f"has {digest} and does not know it")
            elif unused_ns is not None and unused_ns > self._kept_ns:
                wrong.append(f"still has {digest}, to which nothing refers")
        for what in sorted(wrong):
            self.complain(now_ns, f"{node.identity} {what}")


def _referred_to(node: Node) -> set[str]:
    """Return the digests in the records of a node."""
    return {
        found.decode()
        for key, data in node.journal.items()
        if key.startswith(_REFERRING)
        for found in _DIGEST.findall(data)
    }


# Behind the version.
_KIND = slice(1, 3)
_NUMBERS = {kind: number.to_bytes(2, "big") for number, kind in kinds().items()}


class StoresCheck(Checker):
    """Looks at disks now and then.

    A turn may take several items at once, those that have waited for one before them, so that
    a limit may be passed by as many.

    Parameters
    ----------
    disks
        What is on every disk, by broker.
    """

    name = "stores"

    def __init__(
        self, settings: Settings, disks: Callable[[], Mapping[str, Mapping[str, bytes]]]
    ) -> None:
        super().__init__()
        self._disks = disks
        publishing, content = settings.publishing, settings.content
        early = content.early_items
        self._limits = (
            ("publishing/kept/", KeptRecord, "publications", publishing.items_max),
            ("dissemination/content/", ContentRecord, "items", content.items_max + early),
        )

    def look(self, now_ns: int) -> None:
        """Count what is kept."""
        for broker, journal in self._disks().items():
            for prefix, kind, what, most in self._limits:
                if len(journal) <= most:
                    continue
                number = _NUMBERS[kind]
                count = sum(
                    record[_KIND] == number
                    for key, record in journal.items()
                    if key.startswith(prefix)
                )
                if count > most and len(self.violations) < NAMED_MAX:
                    self.complain(now_ns, f"{broker} keeps {count:,} {what}, more than {most:,}")
