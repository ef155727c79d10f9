"""One portion that a broker carries out: content first, then conversions, then what they are for.

Refinement: a broker whose next hops are not the plan's plans its own subtree anew.

Content follows routing tables, and a plan is made on a tree that is only an estimate, or was
true when it was found. A broker knows its next hop to every home and nothing beyond: where the
plan has another child on the way, the new tree goes from the broker to the next hop and from
there to the home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distributary.broker.blob import Blob
from distributary.broker.dissemination.messages import ItemId, Portion
from distributary.broker.encoding import journal_key, since, wire
from distributary.broker.formats import formats_in
from distributary.broker.plan_part import RELAY, PlanPart, Route
from distributary.broker.planning import Planning, along_hop, plan_tree, tree_along
from distributary.broker.settings import ContentSettings

__all__ = [
    "Attempt",
    "HandledRecord",
    "Job",
    "JobRecord",
    "attempt_of",
    "in_hand_of",
    "other_hops",
    "refined",
]


@wire(580)
@dataclass(frozen=True, slots=True)
class JobRecord:
    """A portion of which something is to be fetched or converted, as it is kept.

    Attributes
    ----------
    sender
        Who has sent it, and has its content; empty when it is the own broker.
    """

    portion: Portion
    sender: str = since(2, "")


@wire(581)
@dataclass(frozen=True, slots=True)
class HandledRecord:
    """The homes for which an attempt at an item was passed on, as they are kept."""

    identity: ItemId
    root: str
    attempt: int
    homes: tuple[str, ...]


Attempt = tuple[ItemId, str, int]
"""An item, the root that has planned it, and how often it had."""


def attempt_of(portion: Portion) -> Attempt:
    """Return the attempt to which a portion belongs."""
    return portion.item.identity, portion.root, portion.attempt


def in_hand_of(portion: Portion) -> dict[str, Blob | None]:
    """Return the content that a portion brings, by format; None for the one in the event."""
    names = portion.plan.formats
    receives = portion.plan.first.receives
    return {names[k]: blob for k, blob in zip(receives, portion.blobs, strict=True)}


class Job:
    """A portion under way.

    Attributes
    ----------
    portion, part
        What came, and the plan as it is carried out.
    attempt
        Which attempt at which item of which root it belongs to.
    key
        What tells it from others in the journal.
    in_hand
        Content by format whose bytes are here; None for the one in the event.
    coming
        The formats whose bytes are not.
    referred
        What it keeps from being freed.
    own, wants
        Whether something is still to be handed to clients of this broker, and in which formats.
    children
        The parts that are still to be passed on, with the formats that each is to receive.
    waiting
        Conversions whose input is not there yet.
    making
        Formats that are being made.
    lost, unfetched
        (format, reason): what could not be made, and what could not be fetched.
    seconds
        How long conversions take, by (from, to), as whoever planned expects.
    """

    __slots__ = (
        "attempt",
        "children",
        "coming",
        "in_hand",
        "key",
        "lost",
        "making",
        "own",
        "part",
        "portion",
        "referred",
        "seconds",
        "unfetched",
        "waiting",
        "wants",
    )

    def __init__(self, portion: Portion, part: PlanPart) -> None:
        self.portion = portion
        self.part = part
        first, names = part.first, part.formats
        self.in_hand = in_hand_of(portion)
        self.own = first.after != RELAY
        self.wants = {names[k] for k in first.wants}
        self.children = [
            (child, {names[k] for k in child.first.receives}) for child in part.children()
        ]
        self.waiting = [(names[origin], names[target]) for origin, target in first.made]
        self.making: set[str] = set()
        self.lost: list[tuple[str, str]] = []
        self.coming: dict[str, Blob] = {}
        self.unfetched: list[tuple[str, str]] = []
        self.referred: list[Blob] = []
        self.seconds = {
            (names[origin], names[target]): seconds for origin, target, seconds in part.conversions
        }
        self.attempt = attempt_of(portion)
        identity, root, number = self.attempt
        first_home = min(portion.plan.home_names())
        self.key = f"{journal_key(*identity)}/{root}/{number}/{first_home}"

    def lack(self, has: Callable[[Blob], bool]) -> dict[str, Blob]:
        """Return the content by format that is not here, which counts as coming."""
        came = self.in_hand.items()
        self.coming = {name: blob for name, blob in came if blob is not None and not has(blob)}
        for name in self.coming:
            del self.in_hand[name]
        return dict(self.coming)

    def startable(self) -> list[tuple[str, str]]:
        """Return the conversions that can begin, (from, to), which count as begun."""
        if not self.waiting:
            return []
        ready = [(origin, target) for origin, target in self.waiting if origin in self.in_hand]
        self.waiting = [conversion for conversion in self.waiting if conversion not in ready]
        self.making.update(target for _, target in ready)
        return ready

    def own_ready(self) -> bool:
        """Whether clients of this broker can be given what they want."""
        return self.own and self.in_hand.keys() >= self.wants

    def ready_children(self) -> list[PlanPart]:
        """Return the parts that can be passed on, which count as passed on."""
        if not self.children:
            return []
        there = self.in_hand.keys()
        ready = [child for child, receives in self.children if there >= receives]
        if ready:
            self.children = [entry for entry in self.children if not there >= entry[1]]
        return ready

    def left_out(self) -> list[str]:
        """Return the homes that cannot be served any more."""
        homes = {home for child, _ in self.children for home in child.home_names()}
        if self.own:
            homes.add(self.part.first.broker)
        return sorted(homes)


def other_hops(part: PlanPart, next_hop: Callable[[str], str | None]) -> dict[str, str | None]:
    """Return the homes whose next hop is not the child that the plan has on the way.

    Parameters
    ----------
    part
        The plan from the own broker on.
    next_hop
        Where the own broker sends what is for a home; None when it cannot be reached.
    """
    found: dict[str, str | None] = {}
    child_depth = part.first.depth + 1
    child = ""
    for node in part.nodes[1:]:
        if node.depth == child_depth:
            child = node.broker
        if node.after != RELAY:
            hop = next_hop(node.broker)
            if hop != child:
                found[node.broker] = hop
    return found


def refined(
    part: PlanPart,
    other: Mapping[str, str | None],
    *,
    link_cost_to: Callable[[str], float],
    own_cost: float,
    own_wait_s: float,
    settings: ContentSettings,
) -> Planning:
    """Return a plan for the own subtree along the next hops that there are.

    Parameters
    ----------
    part
        The plan from the own broker on.
    other
        The homes that are reached otherwise than it says, with their next hops; those that
        cannot be reached are left out.
    link_cost_to
        What the link to a neighbour costs.
    own_cost, own_wait_s
        What converting costs at the own broker, and how long that is busy with other
        conversions; what others are busy with is known from the plan.
    """
    own = part.first
    node_costs = {node.broker: node.node_cost for node in part.nodes}
    routes: dict[str, Route] = {}
    for home, route in part.routes().items():
        if home == own.broker or home not in other:
            routes[home] = route
            continue
        hop = other[home]
        if hop is None:
            continue
        routes[home] = along_hop(route, (hop, link_cost_to(hop), node_costs.get(hop, 1.0)))
    homes = {home: known for home, known in part.homes().items() if home in routes}
    return plan_tree(
        formats_in(part),
        tree_along(own.broker, own_cost, routes),
        # Who gets no format passes on nothing but the event, for which any will do.
        held=tuple(sorted(own.receives)) or (0,),
        homes=homes,
        waits_s={**{node.broker: node.wait_s for node in part.nodes}, own.broker: own_wait_s},
        settings=settings,
    )
