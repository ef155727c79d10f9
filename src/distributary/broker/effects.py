"""What a broker asks its host to do, and what the host answers.

A turn is a transaction: every `Persist` and `Erase` among its effects becomes durable together
or not at all, and the others are carried out after that, in order. `Spend` takes time of the
broker's processor before the next effect. `driver.Driver` does all this for a host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distributary.broker.addresses import Address, Speaker
from distributary.broker.blob import Blob
from distributary.broker.encoding import since, wire

if TYPE_CHECKING:
    from distributary.broker.planning import Planning, PlanningProblem

__all__ = [
    "ConversionRefused",
    "Convert",
    "Converted",
    "Effect",
    "Erase",
    "Left",
    "MakePlan",
    "Persist",
    "PlanMade",
    "Report",
    "Send",
    "Serve",
    "Spend",
    "Turn",
]


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a broker or a client; it may be lost, repeated or overtaken."""

    to: Address
    message: object


@dataclass(frozen=True, slots=True)
class Persist:
    """Keep a record under a key, in place of what was there."""

    key: str
    record: object


@dataclass(frozen=True, slots=True)
class Erase:
    """Forget what is kept under a key."""

    key: str


@dataclass(frozen=True, slots=True)
class Convert:
    """Convert content; answered by `Converted` or `ConversionRefused`, at least once.

    The same ticket comes again while there is no answer. To a host that is at work on it this
    says nothing new; one that has forgotten it begins anew.
    """

    ticket: int
    blob: Blob
    target: str


@dataclass(frozen=True, slots=True)
class MakePlan:
    """Solve a problem beside the broker, in a thread; answered by `PlanMade`.

    As with `Convert`, the same ticket comes again while there is no answer.
    """

    ticket: int
    problem: PlanningProblem


@dataclass(frozen=True, slots=True)
class Serve:
    """Call `Broker.serve` with this ticket when the processor gets round to it."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Spend:
    """Take the time that a kind of work needs: `filter` or `send`."""

    work: str


@dataclass(frozen=True, slots=True)
class Report:
    """Tell whoever watches; see `telemetry`. Never needed for the protocol itself."""

    record: object


@dataclass(frozen=True, slots=True)
class Left:
    """Know that the broker has left in good order: nobody waits for anything of it."""


Effect: TypeAlias = Send | Persist | Erase | Convert | MakePlan | Serve | Spend | Report | Left


class Turn:
    """What happens between a message and the effects that answer it.

    Attributes
    ----------
    now_ns
        The broker's own clock, which may be off from those of others.
    effects
        What the host is asked to do, in order.
    """

    __slots__ = ("effects", "now_ns")

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.effects: list[Effect] = []

    def send(self, to: Address, message: object) -> None:
        """Send a message that may get lost; `Links.send` is for those that may not."""
        self.effects.append(Send(to, message))

    def persist(self, key: str, record: object) -> None:
        """Keep a record under a key before anything of this turn leaves the broker."""
        self.effects.append(Persist(key, record))

    def erase(self, key: str) -> None:
        """Forget what is kept under a key."""
        self.effects.append(Erase(key))

    def spend(self, work: str) -> None:
        """Take processor time."""
        self.effects.append(Spend(work))

    def report(self, record: object) -> None:
        """Tell whoever watches."""
        self.effects.append(Report(record))


@wire(1, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Converted:
    """A conversion is done."""

    ticket: int
    blob: Blob


@wire(2, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ConversionRefused:
    """A conversion failed.

    Attributes
    ----------
    lasting
        Whether it would fail again, because of the content. Otherwise the host was busy, or
        had to kill it, and the broker asks again later.
    """

    ticket: int
    reason: str
    lasting: bool = since(2, True)


@dataclass(frozen=True, slots=True)
class PlanMade:
    """A plan is made; it stays within the process, and is never encoded."""

    ticket: int
    planning: Planning
