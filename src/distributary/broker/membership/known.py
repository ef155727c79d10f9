"""What a broker keeps about the members of its overlay."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.encoding import wire

__all__ = ["Known"]


@wire(510)
@dataclass(frozen=True, slots=True)
class Known:
    """What a broker keeps about itself and others.

    Attributes
    ----------
    incarnation
        Its own; the next life begins above it.
    members
        Everybody who has not gone for ever, in ascending order.
    """

    incarnation: int
    members: tuple[str, ...]
