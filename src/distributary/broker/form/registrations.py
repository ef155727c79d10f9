"""The form of what is said about registrations, and of the ways on which they come."""

from __future__ import annotations

from collections.abc import Iterable

from distributary.broker.form.rules import Rules
from distributary.broker.formats import profile_of
from distributary.broker.messages.links import Routed, Step
from distributary.broker.messages.rendezvous import (
    AdvertiseCells,
    Copies,
    CopiesKept,
    Copy,
    Forget,
    HandedOver,
    Handover,
    Held,
    Interest,
    InterestTaken,
    Registration,
)
from distributary.broker.messages.subscriptions import Register, Registered, Withdraw, Withdrawn
from distributary.broker.subscriptions.reading import filter_of
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "check_cell",
    "check_cells",
    "check_copies",
    "check_held",
    "check_register",
    "check_routed",
]


def check_routed(message: Routed, rules: Rules) -> None:
    """Refuse a message that comes from nowhere."""
    rules.brokers((message.key, message.origin))
    _check_path(message.path, rules)


def check_register(message: Register, rules: Rules) -> None:
    """Refuse a registration that nobody can match with."""
    rules.cells(message.cells)
    _check_wish(message)


def check_cells(message: Withdraw | Registered | Withdrawn | AdvertiseCells, rules: Rules) -> None:
    """Refuse cells that are none."""
    rules.cells(message.cells)


def check_cell(message: Interest | InterestTaken, rules: Rules) -> None:
    """Refuse a cell that is none."""
    rules.cells((message.cell,))


def check_copies(message: Copies | Handover, rules: Rules) -> None:
    """Refuse copies of what cannot be a registration."""
    for copy in message.copies:
        _check_copy(copy, rules)
    _check_advertisers(message.advertisers, rules)


def check_held(message: CopiesKept | HandedOver | Forget, rules: Rules) -> None:
    """Refuse to be told of what cannot be a registration."""
    for held in message.held:
        _check_held(held, rules)
    if isinstance(message, CopiesKept):
        _check_advertisers(message.advertisers, rules)


def _check_copy(copy: Copy, rules: Rules) -> None:
    held, registration = copy.held, copy.registration
    _check_held(held, rules)
    if registration is None:
        return
    told = (registration.home, registration.id, registration.version)
    if told != (held.home, held.id, held.version):
        raise PeerMisbehaved(f"{quoted(registration.id)} given for {quoted(held.id)}")
    _check_wish(registration)
    _check_path(registration.path, rules)


def _check_held(held: Held, rules: Rules) -> None:
    rules.brokers((held.home,))
    rules.cells(held.cells)


def _check_wish(wish: Register | Registration) -> None:
    """Read what is wanted; whoever keeps it reads it again."""
    filter_of(wish.filters)
    if wish.profile is not None:
        profile_of(wish.profile)


def _check_path(path: tuple[Step, ...], rules: Rules) -> None:
    if not path:
        raise PeerMisbehaved("a way that begins nowhere")
    rules.brokers(step.broker for step in path)
    for step in path:
        rules.amounts((step.link_cost, step.node_cost))


def _check_advertisers(advertisers: Iterable[tuple[int, str]], rules: Rules) -> None:
    for cell, home in advertisers:
        rules.cells((cell,))
        rules.brokers((home,))
