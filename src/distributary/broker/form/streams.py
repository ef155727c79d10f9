"""The form of what is said about streams."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from distributary.broker.form.rules import Rules
from distributary.broker.messages.streams import (
    Attach,
    Attached,
    AttachRefused,
    Demand,
    FollowObject,
    ObjectAnnounced,
    Pulse,
    Wanted,
)
from distributary.broker.streams.announcements import read_object
from distributary.content.divergence import DIVERGENCES
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "check_announced",
    "check_attach",
    "check_demand",
    "check_follow",
    "check_path",
    "check_refused",
]


def check_announced(message: ObjectAnnounced, rules: Rules) -> None:
    """Refuse what is no object."""
    read_object(message.event)
    rules.brokers((message.home,))


def check_follow(message: FollowObject, rules: Rules) -> None:
    """Refuse what is no object."""
    read_object(message.event)
    rules.brokers((message.root,))


def check_attach(message: Attach, rules: Rules) -> None:
    """Refuse a tree of nobody."""
    rules.brokers((message.root,))
    _check_wanted(message.wanted, rules)


def check_demand(message: Demand, rules: Rules) -> None:
    """Refuse a demand that nobody can meet."""
    _check_wanted(message.wanted, rules)


def check_path(message: Attached | Pulse, rules: Rules) -> None:
    """Refuse a way over nobody."""
    rules.brokers(message.path)


def check_refused(message: AttachRefused, rules: Rules) -> None:
    """Refuse to be sent to nobody."""
    if message.to is not None:
        rules.brokers((message.to,))


def _check_wanted(wanted: Iterable[Wanted], rules: Rules) -> None:
    for one in wanted:
        for _, kinds in one.amounts:
            for kind, amount in kinds:
                if kind not in DIVERGENCES:
                    raise PeerMisbehaved(f"a divergence {quoted(kind)}, which there is not")
                # Clients choose it, in the unit of whatever they follow.
                rules.amounts((amount,), sys.float_info.max)
