"""What a broker asks its host to do.

The host carries effects out in order. Nothing after a `Persist` or an `Erase` leaves before
it is durable. `Spend` takes time of the broker's processor before the next effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from distributary.broker.addresses import Address
from distributary.broker.blob import Blob

__all__ = ["Convert", "Effect", "Erase", "Persist", "Report", "Send", "Serve", "Spend"]


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a broker or a client; it may be lost, repeated or overtaken."""

    to: Address
    message: object


@dataclass(frozen=True, slots=True)
class Persist:
    """Keep a record under a key, in place of what was there."""

    key: str
    record: object


@dataclass(frozen=True, slots=True)
class Erase:
    """Forget what is kept under a key."""

    key: str


@dataclass(frozen=True, slots=True)
class Convert:
    """Convert content; answered by `events.Converted` or `events.ConversionRefused`."""

    ticket: int
    blob: Blob
    target: str


@dataclass(frozen=True, slots=True)
class Serve:
    """Call `Broker.serve` with this ticket when the processor gets round to it."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Spend:
    """Take the time that a kind of work needs: `filter` or `send`."""

    work: str


@dataclass(frozen=True, slots=True)
class Report:
    """Tell whoever watches; see `telemetry`. Never needed for the protocol itself."""

    record: object


Effect: TypeAlias = Send | Persist | Erase | Convert | Serve | Spend | Report
