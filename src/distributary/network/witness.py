"""The witness: what a host remembers of its broker's work, for those who watch.

Nothing of it is needed to carry messages, and nothing of it is on the disk. It is told of every
message, commit and conversion, so each of these calls has to be worth next to nothing; the study
`live-telemetry` says what they cost.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from distributary.broker.addresses import Address, Blob, tenant_of
from distributary.broker.telemetry import Adapted, Delivered, Planned, Refined, TreeLinked
from distributary.network.host_metrics import HostMetrics
from distributary.network.logs import PUBLICATION
from distributary.network.trail import Trail

__all__ = ["Witness"]

_log = logging.getLogger(__name__)

_MOVES_MAX = 200


class Witness:
    """Sees what one host does.

    Parameters
    ----------
    now_ns
        The host's clock.

    Attributes
    ----------
    trail
        Publications, and when they were where.
    metrics
        What is counted.
    moves
        What changed last in the trees of streams: `adapted` where the broker has made a `move`
        for some `gain`, `linked` where its `parent` is another.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.trail = Trail(now_ns)
        self.metrics = HostMetrics()
        self.moves: deque[dict[str, Any]] = deque(maxlen=_MOVES_MAX)
        self._now_ns = now_ns
        self._tells = _log.isEnabledFor(logging.DEBUG)

    def received(self, sender: Address, message: object) -> None:
        """See a message that the broker is about to handle."""
        self.trail.received(sender, message)

    def sent(self, to: Address, message: object, size_bytes: int) -> None:
        """See a message that leaves for another broker."""
        self.trail.sent(to, message)
        self.metrics.sent(to, message, size_bytes)

    def converted(self, began_ns: int, origin: Blob, target: str, made: Blob | None) -> None:
        """See that a conversion has ended, without result if it has failed."""
        seconds = (self._now_ns() - began_ns) / 1e9
        self.trail.converted(began_ns, origin, target, made)
        self.metrics.converted(origin.media_type, target, seconds, failed=made is None)

    def reported(self, record: object) -> None:
        """See what the broker reports."""
        self.metrics.reported(record)
        if type(record) is Delivered:
            self.trail.delivered(record)
        elif type(record) is Adapted:
            self._moved("adapted", record.tree, move=record.move, gain=record.gain)
        elif type(record) is TreeLinked:
            self._moved("linked", record.tree, parent=record.parent)
        if self._tells:
            _tell(record)

    def _moved(self, what: str, tree: str, **others: object) -> None:
        # As trees are named: see `streams.forest.tree_name`.
        tenant = tree[1:].partition(" ")[0] if tree.startswith(" ") else ""
        place = {"at_ns": self._now_ns(), "tenant": tenant, "tree": tree}
        self.moves.append({"what": what, **place, **others})


def _tell(record: object) -> None:
    """Write down what has become of a publication, with its name."""
    if isinstance(record, Delivered):
        tenant = tenant_of(record.client)
        told = f"delivery {record.number} of {record.subscription} as {record.media_type}"
    elif isinstance(record, Planned):
        tenant, told = record.tenant, f"planned for {record.broker_count} brokers: {record.chosen}"
    elif isinstance(record, Refined):
        tenant, told = record.tenant, "planned anew, as the next hops are others"
    else:
        return
    name = (tenant, record.source, record.id)
    _log.debug("%s", told, extra=dict(zip(PUBLICATION, name, strict=True)))
