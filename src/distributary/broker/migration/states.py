"""The states of a client that leaves a broker, and of one that comes to it."""

from __future__ import annotations

from enum import Enum, auto

from distributary.broker.transitions import Transitions

__all__ = ["ARRIVING", "LEAVING", "Arriving", "Coming", "Going", "Leaving"]


class Leaving(Enum):
    """How far a client has left its home."""

    RESERVING = auto()
    ASKED = auto()
    REPLICATING = auto()
    REDIRECTING = auto()
    DRAINING = auto()
    LEFT = auto()
    STAYING = auto()
    FORGOTTEN = auto()


class Going(Enum):
    """What can happen to a client that is to leave."""

    GRANTED = auto()
    REFUSED = auto()
    ACCEPTED = auto()
    DECLINED = auto()
    SILENT = auto()
    REPLICATED = auto()
    ARRIVED = auto()
    DRAINED = auto()
    RETURNED = auto()
    EXPIRED = auto()
    TARGET_LOST = auto()


# Room is reserved at the target before the client is asked, so that its consent is enough.
# From `accept` on the old home answers the client no more. What still comes for it is kept
# here, and passed on as well once the target has stored the rest: should the target be lost,
# or not take the client, nothing is missing. The client has come to the target, and its
# subscriptions are registered from there, when the target says so. Then they are withdrawn
# here, and when no root owes this broker anything for them any more, the target is told that
# nothing follows. What is reserved or asked is forgotten in a crash, and the client stays;
# from `accept` on everything is durable.
LEAVING: Transitions[Leaving, Going] = Transitions(
    "client that leaves",
    Leaving.RESERVING,
    {
        (Leaving.RESERVING, Going.GRANTED): Leaving.ASKED,
        (Leaving.RESERVING, Going.REFUSED): Leaving.STAYING,
        (Leaving.RESERVING, Going.SILENT): Leaving.STAYING,
        (Leaving.RESERVING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.ASKED, Going.ACCEPTED): Leaving.REPLICATING,
        (Leaving.ASKED, Going.DECLINED): Leaving.STAYING,
        (Leaving.ASKED, Going.SILENT): Leaving.STAYING,
        (Leaving.ASKED, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.REPLICATING, Going.REPLICATED): Leaving.REDIRECTING,
        (Leaving.REPLICATING, Going.REFUSED): Leaving.STAYING,
        (Leaving.REPLICATING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.REDIRECTING, Going.ARRIVED): Leaving.DRAINING,
        (Leaving.REDIRECTING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.DRAINING, Going.DRAINED): Leaving.LEFT,
        (Leaving.DRAINING, Going.TARGET_LOST): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.RETURNED): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.EXPIRED): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.TARGET_LOST): Leaving.FORGOTTEN,
    },
)


class Arriving(Enum):
    """How far a client has come to its new home."""

    RESERVED = auto()
    REGISTERING = auto()
    TAKING_OVER = auto()
    SETTLED = auto()
    FORGOTTEN = auto()


class Coming(Enum):
    """What can happen to a client that is to come."""

    REPLICATED = auto()
    REGISTERED = auto()
    ENDED = auto()
    RELEASED = auto()
    REFUSED = auto()
    HOME_LOST = auto()


# What roots send for the client while its subscriptions are registered in both places waits
# until the old home has redirected the last of what it was sent before: only then is the
# order of each publisher kept.
ARRIVING: Transitions[Arriving, Coming] = Transitions(
    "client that arrives",
    Arriving.RESERVED,
    {
        (Arriving.RESERVED, Coming.REPLICATED): Arriving.REGISTERING,
        (Arriving.RESERVED, Coming.RELEASED): Arriving.FORGOTTEN,
        (Arriving.RESERVED, Coming.REFUSED): Arriving.FORGOTTEN,
        (Arriving.RESERVED, Coming.HOME_LOST): Arriving.FORGOTTEN,
        (Arriving.REGISTERING, Coming.REGISTERED): Arriving.TAKING_OVER,
        (Arriving.REGISTERING, Coming.HOME_LOST): Arriving.SETTLED,
        (Arriving.TAKING_OVER, Coming.ENDED): Arriving.SETTLED,
        (Arriving.TAKING_OVER, Coming.HOME_LOST): Arriving.SETTLED,
    },
)
