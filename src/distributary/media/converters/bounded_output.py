"""A file in memory that refuses to grow beyond what a conversion may write."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from distributary.media.failure import Unconvertible

__all__ = ["BoundedOutput"]


class BoundedOutput(BytesIO):
    """A file in memory with a largest size.

    Muxers write as they go, so a result that grows too large stops the conversion while it
    runs, not after it has filled the memory.

    Parameters
    ----------
    bytes_max
        How large it may become.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__()
        self._bytes_max = bytes_max

    def write(self, buffer: Any, /) -> int:
        """Write at the current position, or refuse."""
        if self.tell() + len(buffer) > self._bytes_max:
            raise Unconvertible("output", f"the result is larger than {self._bytes_max:,} bytes")
        return super().write(buffer)
