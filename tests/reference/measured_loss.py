"""The measured loss of fidelity, moment by moment.

Zhou, Ooi and Tan, section 2: the loss of a server on an object is the share of time that its
copy is outside; a server's is the mean over its objects, and the average that over servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Copy:
    """A copy that a server has of an object for a while, and the moments it is outside."""

    server: str
    subject: str
    begun: int
    length: int
    outside: frozenset[int]


def measured_loss(copies: Sequence[Copy], since: int, until: int) -> Fraction | None:
    """Return the average loss from one moment up to another; None when nobody has a copy."""
    losses: dict[str, list[Fraction]] = {}
    for copy in copies:
        moments = [m for m in range(copy.begun, copy.begun + copy.length) if since <= m < until]
        if moments:
            late = sum(m in copy.outside for m in moments)
            losses.setdefault(copy.server, []).append(Fraction(late, len(moments)))
    servers = [sum(shares, Fraction(0)) / len(shares) for shares in losses.values()]
    return sum(servers, Fraction(0)) / len(servers) if servers else None
