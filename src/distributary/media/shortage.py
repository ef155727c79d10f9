"""Whether an exception means that memory ran out, which libraries say in several ways."""

from __future__ import annotations

import errno

__all__ = ["lacks_memory"]

# The dynamic linker, the C library, and Pillow's codecs.
_WORDS = (
    "failed to map segment",
    "cannot allocate memory",
    "out of memory",
    "encoder error -9",
    "decoder error -9",
)


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an exception, or what it was raised from, is for want of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError | ImportError):
            if isinstance(error, OSError) and error.errno == errno.ENOMEM:
                return True
            said = str(error).lower()
            if any(word in said for word in _WORDS):
                return True
        error = error.__cause__
    return False
