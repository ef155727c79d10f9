"""A client that comes to a broker, as that broker knows it and keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.addresses import Address
from distributary.broker.deliveries.queue import Queued
from distributary.broker.encoding import wire
from distributary.broker.migration.states import ARRIVING, Arriving

__all__ = ["Arrival", "ArrivalRecord", "HeldRecord", "Place"]

Place = tuple[int, int, int]
"""Where an item stands among what its publisher has published: cell, series and number."""


@wire(661)
@dataclass(frozen=True, slots=True)
class ArrivalRecord:
    """A client that comes, as it is kept.

    Attributes
    ----------
    state
        The number of a state of `Arriving`.
    taken
        How much of what was redirected has been handed on, in order.
    count
        How much there is; -1 while the old home has not said.
    stored
        Whether all that the old home had kept is stored here.
    connected
        Whether the client itself has come.
    """

    client: str
    home: str
    state: int
    taken: int
    count: int
    stored: bool
    connected: bool


@wire(662)
@dataclass(frozen=True, slots=True)
class HeldRecord:
    """Something for a client that waits for its turn.

    Attributes
    ----------
    doubtful
        Whether it was published about when the subscription came.
    """

    client: str
    subscription: str
    parcel: Queued
    cell: int
    series: int
    place: int
    doubtful: bool = False

    def precedes(self, other: HeldRecord) -> bool:
        """Whether it is for the same subscription, and was published before."""
        return (
            (self.subscription, self.parcel.source, self.cell)
            == (other.subscription, other.parcel.source, other.cell)
            and self.place > 0
            and (self.series, self.place) < (other.series, other.place)
        )


class Arrival:
    """A client that comes.

    Attributes
    ----------
    traffic
        For how many bytes per second room is kept.
    early
        What was redirected before its turn, by number.
    held
        What roots have sent meanwhile, in order.
    client, home, state, taken, count, stored, connected
        As in `ArrivalRecord`.
    """

    def __init__(self, client: Address, home: str, traffic: float = 0.0) -> None:
        self.client = client
        self.home = home
        self.traffic = traffic
        self.state = ARRIVING.initial
        self.taken = 0
        self.count = -1
        self.stored = False
        self.connected = False
        self.early: dict[int, HeldRecord] = {}
        self.held: dict[int, HeldRecord] = {}

    def record(self) -> ArrivalRecord:
        """Return it as it is kept."""
        return ArrivalRecord(
            self.client,
            self.home,
            self.state.value,
            self.taken,
            self.count,
            self.stored,
            self.connected,
        )

    @classmethod
    def from_record(cls, record: ArrivalRecord) -> Arrival:
        """Return it as it was kept."""
        arrival = cls(record.client, record.home)
        arrival.state = Arriving(record.state)
        arrival.taken, arrival.count = record.taken, record.count
        arrival.stored, arrival.connected = record.stored, record.connected
        return arrival
