"""What one conversion may use. Input is hostile until it has been converted."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Self

from distributary.arguments import checked_fields
from distributary.errors import BadInput

__all__ = ["Limits"]

_MEBIBYTE = 1 << 20
# More would not fit into what systems count time and memory with, and is no limit any more.
_SECONDS_MAX = 1_000_000
_AMOUNT_MAX = 10**15


@checked_fields
@dataclass(frozen=True)
class Limits:
    """How much of everything one conversion may take before it is stopped.

    Attributes
    ----------
    seconds
        Time on the wall; the worker is killed when it is over.
    memory_bytes
        Address space of the worker beyond what it needs to be there at all.
    input_bytes, output_bytes
        Size of the content before and after.
    pages
        Pages of a document.
    pixels
        Pixels of one picture, page or frame.
    frames
        Frames of a video, or thousandths of a sound's samples per channel.
    """

    seconds: float = 60.0
    memory_bytes: int = 1024 * _MEBIBYTE
    input_bytes: int = 256 * _MEBIBYTE
    output_bytes: int = 256 * _MEBIBYTE
    pages: int = 500
    pixels: int = 64_000_000
    frames: int = 200_000

    def __post_init__(self) -> None:
        for item in fields(self):
            amount = getattr(self, item.name)
            if not (math.isfinite(amount) and amount > 0):
                raise BadInput(item.name, f"must be a positive number, not {amount}")
            most = _SECONDS_MAX if item.name == "seconds" else _AMOUNT_MAX
            if amount > most:
                raise BadInput(item.name, f"must be at most {most:,}, not {amount:g}")

    @property
    def file_bytes(self) -> int:
        """How large a temporary file may be."""
        return max(self.input_bytes, self.output_bytes)

    def holds(self, other: Self) -> bool:
        """Whether a worker that was limited to this for good has room for another conversion."""
        return (
            other.seconds <= self.seconds
            and other.memory_bytes <= self.memory_bytes
            and other.file_bytes <= self.file_bytes
        )

    def widened(self, other: Self) -> Self:
        """Return limits within which both are."""
        mine, theirs = asdict(self), asdict(other)
        return type(self)(**{name: max(mine[name], theirs[name]) for name in mine})

    def document(self) -> dict[str, float]:
        """Return the limits by name, as failures and caches write them."""
        return asdict(self)
