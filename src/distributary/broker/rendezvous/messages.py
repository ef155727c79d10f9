"""What rendezvous brokers say to each other, and to the homes of publishers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from distributary.broker.addresses import Speaker
from distributary.broker.core import Check, Rules
from distributary.broker.encoding import encodable, since
from distributary.broker.links.messages import Step, check_path
from distributary.broker.planning import profile_of
from distributary.broker.subscriptions.registrar import Register, Registered, Withdraw, Withdrawn
from distributary.broker.subscriptions.subscription import filter_of
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
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
    "since_ns",
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
    claim, tenant, vouched
        As in `Register`.
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
    tenant: str = ""
    vouched: tuple[tuple[str, int], ...] = since(2, ())


@dataclass(frozen=True, slots=True)
class Held:
    """That a broker holds what was last said about a registration in some cells."""

    home: str
    id: str
    version: int
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """What was last said about a registration in some cells: None when it was withdrawn.

    Attributes
    ----------
    claim
        The claim of one that was withdrawn; 0 when nobody knows it.
    """

    held: Held
    registration: Registration | None
    claim: int = since(2, 0)


def since_ns(copy: Copy) -> int:
    """Return from when on something is owed, which orders the generations of a subscription."""
    return 0 if copy.registration is None else copy.registration.since_ns


@encodable(50, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Copies:
    """A root's copies for those who may have to take over: the surrogate, or the next in line.

    Attributes
    ----------
    advertisers
        (cell, home of a publisher): who may have been told that nobody is interested.
    """

    copies: tuple[Copy, ...]
    advertisers: tuple[tuple[int, str], ...] = ()


@encodable(51, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class CopiesKept:
    """Another broker has stored copies."""

    held: tuple[Held, ...]
    advertisers: tuple[tuple[int, str], ...] = ()


@encodable(52, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Handover:
    """All of some cells, for the broker that is their root now."""

    copies: tuple[Copy, ...]
    advertisers: tuple[tuple[int, str], ...] = ()


@encodable(53, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class HandedOver:
    """A new root has stored what it was given, and so have all who are to keep it too."""

    held: tuple[Held, ...]


@encodable(54, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Forget:
    """Registrations that their homes have not renewed; nobody need keep them any more."""

    held: tuple[Held, ...]


@encodable(55, Speaker.BROKER)
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


@encodable(56, Speaker.BROKER)
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


@encodable(57, Speaker.BROKER)
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


def _check_register(message: Register, rules: Rules) -> None:
    """Refuse a registration that nobody can match with."""
    rules.cells(message.cells)
    _check_wish(message, rules)


def _check_cells(message: Withdraw | Registered | Withdrawn | AdvertiseCells, rules: Rules) -> None:
    """Refuse cells that are none."""
    rules.cells(message.cells)


def _check_cell(message: Interest | InterestTaken, rules: Rules) -> None:
    """Refuse a cell that is none."""
    rules.cells((message.cell,))


def _check_copies(message: Copies | Handover, rules: Rules) -> None:
    """Refuse copies of what cannot be a registration."""
    for copy in message.copies:
        _check_copy(copy, rules)
    _check_advertisers(message.advertisers, rules)


def _check_held(message: CopiesKept | HandedOver | Forget, rules: Rules) -> None:
    """Refuse to be told of what cannot be a registration."""
    for held in message.held:
        _check_one_held(held, rules)
    if isinstance(message, CopiesKept):
        _check_advertisers(message.advertisers, rules)


def _check_copy(copy: Copy, rules: Rules) -> None:
    held, registration = copy.held, copy.registration
    _check_one_held(held, rules)
    if registration is None:
        rules.times((copy.claim,))
        return
    told = (registration.home, registration.id, registration.version)
    if told != (held.home, held.id, held.version):
        raise PeerMisbehaved(f"{quoted(registration.id)} given for {quoted(held.id)}")
    _check_wish(registration, rules)
    check_path(registration.path, registration.home, rules)


def _check_one_held(held: Held, rules: Rules) -> None:
    rules.brokers((held.home,))
    rules.cells(held.cells)


def _check_wish(wish: Register | Registration, rules: Rules) -> None:
    """Read what is wanted; whoever keeps it reads it again."""
    rules.tenants((wish.tenant,))
    rules.brokers(root for root, _ in wish.vouched)
    filter_of(wish.filters)
    if wish.profile is not None:
        profile_of(wish.profile)


def _check_advertisers(advertisers: Iterable[tuple[int, str]], rules: Rules) -> None:
    for cell, home in advertisers:
        rules.cells((cell,))
        rules.brokers((home,))


CHECKS: Mapping[type, Check] = {
    Register: _check_register,
    Registered: _check_cells,
    Withdraw: _check_cells,
    Withdrawn: _check_cells,
    Copies: _check_copies,
    CopiesKept: _check_held,
    Handover: _check_copies,
    HandedOver: _check_held,
    Forget: _check_held,
    AdvertiseCells: _check_cells,
    Interest: _check_cell,
    InterestTaken: _check_cell,
}
"""What must hold of messages beyond the types of their fields."""
