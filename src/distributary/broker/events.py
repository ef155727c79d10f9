"""What a host tells its broker about what it was asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.blob import Blob
from distributary.broker.encoding import wire

__all__ = ["ConversionRefused", "Converted"]


@wire(1)
@dataclass(frozen=True, slots=True)
class Converted:
    """A conversion is done."""

    ticket: int
    blob: Blob


@wire(2)
@dataclass(frozen=True, slots=True)
class ConversionRefused:
    """A conversion failed, and will fail again."""

    ticket: int
    reason: str
