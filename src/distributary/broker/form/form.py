"""Who may say what, and what must hold of it beyond the types of its fields.

Handlers change a broker as they go: what they cannot handle has to be found out before. So
every message is checked here first, whether it came by itself, over a link or to a root. What
is refused has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any

from distributary.broker.addresses import HOST, Address, is_client
from distributary.broker.form import adaptation, content, migration, registrations, streams
from distributary.broker.form.rules import Rules
from distributary.broker.messages import client, host
from distributary.broker.messages.adaptation import (
    Answer,
    Hold,
    HoldAnswer,
    HoldRelease,
    Moved,
    Order,
    Question,
    Statistics,
    Token,
)
from distributary.broker.messages.content import (
    ConversionLost,
    Offer,
    Portion,
    Probe,
    ProbeAnswer,
)
from distributary.broker.messages.links import Routed
from distributary.broker.messages.migration import (
    AcceptMove,
    Arrived,
    Connect,
    Redirect,
    RedirectEnd,
    RegisterClient,
    Release,
    Replicate,
    Replicated,
    Reserve,
    Reserved,
    Summarize,
)
from distributary.broker.messages.rendezvous import (
    AdvertiseCells,
    Copies,
    CopiesKept,
    Forget,
    HandedOver,
    Handover,
    Interest,
    InterestTaken,
)
from distributary.broker.messages.streams import (
    Attach,
    Attached,
    AttachRefused,
    Demand,
    FollowObject,
    ObjectAnnounced,
    Pulse,
)
from distributary.broker.messages.subscriptions import Register, Registered, Withdraw, Withdrawn
from distributary.errors import BadInput, PeerMisbehaved

__all__ = ["Speaker", "check_form", "speaker_of"]


class Speaker(Enum):
    """Who says something to a broker."""

    BROKER = "brokers"
    CLIENT = "clients"
    HOST = "hosts"


_MESSAGES = client.__name__.rpartition(".")[0]

_OF_CLIENTS = (RegisterClient, AcceptMove, Connect)

_CHECKS: Mapping[type, Callable[[Any, Rules], None]] = {
    Routed: registrations.check_routed,
    Register: registrations.check_register,
    Registered: registrations.check_cells,
    Withdraw: registrations.check_cells,
    Withdrawn: registrations.check_cells,
    Copies: registrations.check_copies,
    CopiesKept: registrations.check_held,
    Handover: registrations.check_copies,
    HandedOver: registrations.check_held,
    Forget: registrations.check_held,
    AdvertiseCells: registrations.check_cells,
    Interest: registrations.check_cell,
    InterestTaken: registrations.check_cell,
    Offer: content.check_offer,
    Portion: content.check_portion,
    Probe: content.check_probe,
    ProbeAnswer: content.check_probe_answer,
    ConversionLost: content.check_conversion_lost,
    Attach: streams.check_attach,
    Attached: streams.check_path,
    AttachRefused: streams.check_refused,
    Demand: streams.check_demand,
    Pulse: streams.check_path,
    ObjectAnnounced: streams.check_announced,
    FollowObject: streams.check_follow,
    Token: adaptation.check_round,
    Hold: adaptation.check_hold,
    HoldAnswer: adaptation.check_hold_answer,
    HoldRelease: adaptation.check_round,
    Order: adaptation.check_order,
    Moved: adaptation.check_round,
    Question: adaptation.check_question,
    Answer: adaptation.check_answer,
    Statistics: adaptation.check_statistics,
    RegisterClient: migration.check_prices,
    Summarize: migration.check_summarize,
    Reserve: migration.check_reserve,
    Reserved: migration.check_reserved,
    Release: migration.check_client,
    Replicate: migration.check_replicate,
    Replicated: migration.check_client,
    Redirect: migration.check_redirect,
    RedirectEnd: migration.check_redirect_end,
    Arrived: migration.check_client,
    Connect: migration.check_connect,
}


@cache
def speaker_of(kind: type) -> Speaker | None:
    """Return who says messages of a kind; None where anybody may."""
    module = kind.__module__
    if module == client.__name__ or kind in _OF_CLIENTS:
        return Speaker.CLIENT
    if module == host.__name__:
        return Speaker.HOST
    return Speaker.BROKER if module.startswith(_MESSAGES) else None


def check_form(message: object, sender: Address, rules: Rules) -> None:
    """Refuse a message that nobody who keeps to the protocol sends.

    Raises
    ------
    PeerMisbehaved
        With what is wrong.
    """
    kind: type = type(message)
    said_by = speaker_of(kind)
    if said_by is not None and said_by is not _speaker(sender):
        raise PeerMisbehaved(f"a {kind.__name__} from {sender}; only {said_by.value} say that")
    check = _CHECKS.get(kind)
    if check is not None:
        try:
            check(message, rules)
        except BadInput as error:
            raise PeerMisbehaved(f"a {kind.__name__} with a bad text: {error}") from None


def _speaker(address: Address) -> Speaker:
    if is_client(address):
        return Speaker.CLIENT
    return Speaker.HOST if address == HOST else Speaker.BROKER
