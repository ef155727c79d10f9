"""What rendezvous brokers say to each other, and to the homes of publishers."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.encoding import wire
from distributary.broker.messages.links import Step

__all__ = [
    "AdvertiseCells",
    "Copies",
    "CopiesKept",
    "Copy",
    "Forget",
    "HandedOver",
    "Handover",
    "Held",
    "Interest",
    "InterestTaken",
    "Registration",
]


@dataclass(frozen=True, slots=True)
class Registration:
    """What a rendezvous broker knows of a subscription.

    Attributes
    ----------
    home
        The broker that registered it, and to which what matches is sent.
    id
        The subscription's; together with the home it names the registration.
    version
        Counts what the home has said about registrations.
    filters, profile
        JSON; a subscriber without a profile takes the original.
    tolerance
        Whether it follows streams rather than content.
    since_ns
        From when on publications are owed, by the home's clock.
    confirmed
        Whether it had been confirmed to its client when it came here.
    path
        The brokers that it passed on the way here, the home first.
    claim
        As in `messages.subscriptions.Register`.
    """

    home: str
    id: str
    version: int
    filters: str
    profile: str | None
    tolerance: bool
    since_ns: int
    confirmed: bool
    path: tuple[Step, ...]
    claim: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """That a broker holds what was last said about a registration in some cells."""

    home: str
    id: str
    version: int
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """What was last said about a registration in some cells: None when it was withdrawn."""

    held: Held
    registration: Registration | None


@wire(50)
@dataclass(frozen=True, slots=True)
class Copies:
    """A root's copies for the surrogate, which takes over when the root is lost.

    Attributes
    ----------
    advertisers
        (cell, home of a publisher): who may have been told that nobody is interested.
    """

    copies: tuple[Copy, ...]
    advertisers: tuple[tuple[int, str], ...] = ()


@wire(51)
@dataclass(frozen=True, slots=True)
class CopiesKept:
    """A surrogate has stored copies."""

    held: tuple[Held, ...]
    advertisers: tuple[tuple[int, str], ...] = ()


@wire(52)
@dataclass(frozen=True, slots=True)
class Handover:
    """All of some cells, for the broker that is their root now."""

    copies: tuple[Copy, ...]
    advertisers: tuple[tuple[int, str], ...] = ()


@wire(53)
@dataclass(frozen=True, slots=True)
class HandedOver:
    """A new root has stored what it was given, and so has its surrogate."""

    held: tuple[Held, ...]


@wire(54)
@dataclass(frozen=True, slots=True)
class Forget:
    """Registrations that their homes have not renewed; a surrogate need not keep them."""

    held: tuple[Held, ...]


@wire(55)
@dataclass(frozen=True, slots=True)
class AdvertiseCells:
    """The home of publishers asks whether anybody is interested in some cells.

    Attributes
    ----------
    asked_ns
        When, by its own clock; the answer counts from then.
    """

    cells: tuple[int, ...]
    asked_ns: int


@wire(56)
@dataclass(frozen=True, slots=True)
class Interest:
    """Whether anybody is interested in a cell.

    Attributes
    ----------
    wanted
        False: nobody, for `interest_s` from when it was asked.
    asked_ns
        When that was, by the clock of the one who asked; 0 when the root speaks unasked, and
        wants an answer.
    told_ns
        When it was said, by the root's clock.
    """

    cell: int
    wanted: bool
    asked_ns: int
    told_ns: int


@wire(57)
@dataclass(frozen=True, slots=True)
class InterestTaken:
    """The home of publishers knows that a cell is wanted, and drops nothing in it any more.

    Attributes
    ----------
    told_ns
        As the root said.
    """

    cell: int
    told_ns: int
