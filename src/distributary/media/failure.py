"""How a conversion fails: as a result, with the reason, and never by taking the caller along."""

from __future__ import annotations

from typing import Literal

from distributary.content.media_type import MediaType
from distributary.errors import DistributaryError
from distributary.media.limits import Limits

__all__ = ["ConversionFailed", "FailureKind", "Unconvertible"]

FailureKind = Literal[
    "impossible",  # no converter does this
    "enlarges",  # the picture would have to become larger than it is
    "damaged",  # the content is not what it says, or is broken
    "time",
    "memory",
    "input",
    "output",
    "pages",
    "pixels",
    "frames",
    "faulty",  # the converter failed for a reason of its own
    "crashed",  # the converter brought its worker down
    "killed",  # somebody else ended the worker
    "busy",  # too many conversions are waiting
    "closed",  # the pool was closed before the conversion ran
]
"""What stopped a conversion. Those named like a limit exceeded it."""

# The fault of the moment, not of the content: the same call may well succeed later.
_PASSING: frozenset[FailureKind] = frozenset({"killed", "busy", "closed"})


class Unconvertible(Exception):
    """Raised by a converter: this content cannot be converted.

    The reason is the rest of the sentence, for people.
    """

    def __init__(self, kind: FailureKind, reason: str) -> None:
        self.kind: FailureKind = kind
        self.reason = reason
        super().__init__(reason)


class ConversionFailed(DistributaryError):
    """A conversion did not happen, and why.

    `kind` says what stopped it to programs, and `reason` to people; `limits` are what it was
    allowed.
    """

    def __init__(
        self,
        source: MediaType,
        target: MediaType,
        *,
        kind: FailureKind,
        reason: str,
        limits: Limits,
    ) -> None:
        self.source = source
        self.target = target
        self.kind: FailureKind = kind
        self.reason = reason
        self.limits = limits
        super().__init__(f"{source} cannot be converted to {target}: {reason}")

    @property
    def lasting(self) -> bool:
        """Whether the same content would fail again, so that the failure is worth keeping."""
        return self.kind not in _PASSING
