"""What home brokers and rendezvous brokers say about registrations.

A home routes `Register` and `Withdraw` to the roots of its subscription's cells, and repeats
them until every cell has been answered for. A version orders what is said about one
registration, so that what arrives late changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from distributary.broker.addresses import Speaker
from distributary.broker.encoding import wire

__all__ = [
    "MOVES_MAX",
    "Register",
    "Registered",
    "RegistrationsRenewed",
    "RenewRegistrations",
    "Withdraw",
    "Withdrawn",
    "digest_of",
]


MOVES_MAX = 1_000_000
"""Claims that differ by less are of one subscription, whose client has moved so often at most.

Nobody who subscribes anew elsewhere does so within a millisecond.
"""


@wire(40, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Register:
    """Keep a registration in some cells, whose root is the same as far as the home knows.

    Attributes
    ----------
    id
        What roots call the subscription; together with the home it names the registration.
    version
        Counts what the home has said about registrations.
    filters, profile
        JSON; a subscriber without a profile takes the original.
    tolerance
        Whether it follows streams rather than content.
    since_ns
        From when on publications are owed, by the home's clock: when it was first confirmed,
        or when it was asked for while it has not been.
    confirmed
        Whether it has been confirmed to its client.
    claim
        Orders homes from which the same subscription is registered: when it was asked for,
        less one for every time that its client has moved since. Changes do not count. The
        highest is served.
    tenant
        Its client's. Nothing of any other tenant matches.
    """

    id: str
    version: int
    filters: str
    profile: str | None
    tolerance: bool
    since_ns: int
    confirmed: bool
    cells: tuple[int, ...]
    claim: int = 0
    tenant: str = ""


@wire(41, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Registered:
    """A registration is kept in some cells, by their root and all who are to keep it too."""

    id: str
    version: int
    cells: tuple[int, ...]


@wire(42, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Withdraw:
    """Forget a registration, and whatever was said about it before this version."""

    id: str
    version: int
    cells: tuple[int, ...]


@wire(43, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A registration is forgotten in some cells, by their root and all who have kept it too."""

    id: str
    version: int
    cells: tuple[int, ...]


@wire(361, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RenewRegistrations:
    """All that a home has registered with a root, which should keep it for longer.

    Attributes
    ----------
    digest
        Of that, by `digest_of`: a root that has the same need not be told, nor write anything.
    """

    digest: bytes


@wire(362, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RegistrationsRenewed:
    """Whether a root keeps what a home has registered; if it has something else, it does not."""

    digest: bytes
    renewed: bool


def digest_of(registrations: Iterable[tuple[str, int, tuple[int, ...]]]) -> bytes:
    """Return a digest of registrations: (id, version, cells in order)."""
    data = msgspec.msgpack.encode(sorted(registrations))
    return hashlib.blake2b(data, digest_size=16).digest()
