"""Stores: no broker keeps more on its disk than its settings allow, whatever comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.broker.dissemination.task import ContentRecord
from distributary.broker.encoding import kinds
from distributary.broker.publishing.publications import KeptRecord
from distributary.broker.settings import Settings
from distributary.simulator.checkers.violation import Checker

__all__ = ["StoresCheck"]

_NAMED_MAX = 10
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
                if count > most and len(self.violations) < _NAMED_MAX:
                    self.complain(now_ns, f"{broker} keeps {count:,} {what}, more than {most:,}")
