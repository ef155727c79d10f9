"""One portion that a broker carries out: conversions first, then what they were for."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.blob import Blob
from distributary.broker.encoding import wire
from distributary.broker.messages.content import Portion
from distributary.broker.plan_part import RELAY, PlanPart

__all__ = ["HandledRecord", "Job", "JobRecord"]


@wire(580)
@dataclass(frozen=True, slots=True)
class JobRecord:
    """A portion whose conversions are not done, as it is kept."""

    portion: Portion


@wire(581)
@dataclass(frozen=True, slots=True)
class HandledRecord:
    """The homes for which an attempt at an item was passed on, as they are kept."""

    source: str
    id: str
    root: str
    attempt: int
    homes: tuple[str, ...]


class Job:
    """A portion under way.

    Attributes
    ----------
    portion, part
        What came, and the plan as it is carried out.
    in_hand
        Content by format; None for the one in the event.
    own
        Whether something is still to be handed to clients of this broker.
    children
        The parts that are still to be passed on.
    waiting
        Conversions whose input is not there yet.
    making
        Formats that are being made.
    lost
        (format, reason): what could not be made.
    """

    __slots__ = (
        "children",
        "in_hand",
        "key",
        "lost",
        "making",
        "own",
        "part",
        "portion",
        "waiting",
    )

    def __init__(self, portion: Portion, part: PlanPart) -> None:
        self.portion = portion
        self.part = part
        first, names = part.first, part.formats
        came = portion.plan
        self.in_hand: dict[str, Blob | None] = {
            came.formats[k]: blob
            for k, blob in zip(came.first.receives, portion.blobs, strict=True)
        }
        self.own = first.after != RELAY
        self.children = part.children()
        self.waiting = [(names[origin], names[target]) for origin, target in first.made]
        self.making: set[str] = set()
        self.lost: list[tuple[str, str]] = []
        item = portion.item
        homes = sorted(portion.plan.homes())
        self.key = f"{item.source}\n{item.id}\n{portion.root}\n{portion.attempt}\n{homes[0]}"

    def startable(self) -> list[tuple[str, str]]:
        """Return the conversions that can begin, (from, to), which count as begun."""
        ready = [(origin, target) for origin, target in self.waiting if origin in self.in_hand]
        self.waiting = [conversion for conversion in self.waiting if conversion not in ready]
        self.making.update(target for _, target in ready)
        return ready

    def own_ready(self) -> bool:
        """Whether clients of this broker can be given what they want."""
        names = self.part.formats
        return self.own and all(names[k] in self.in_hand for k in self.part.first.wants)

    def ready_children(self) -> list[PlanPart]:
        """Return the parts that can be passed on, which count as passed on."""
        names = self.part.formats
        ready: list[PlanPart] = []
        rest: list[PlanPart] = []
        for child in self.children:
            has_all = all(names[k] in self.in_hand for k in child.first.receives)
            (ready if has_all else rest).append(child)
        self.children = rest
        return ready

    def left_out(self) -> list[str]:
        """Return the homes that cannot be served any more."""
        homes = {home for child in self.children for home in child.homes()}
        if self.own:
            homes.add(self.part.first.broker)
        return sorted(homes)
