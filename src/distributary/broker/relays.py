"""Relays: what every hop does with content on its way.

A hop checks the plan against its own routing table, fetches the content from whoever has sent
the portion, makes its conversions, hands to its own clients what is for them, and passes on to
each child the part of the plan for its subtree, with the formats that the child is to receive. A
portion with nothing to fetch or to convert is done with at once, and not stored: it passes, and
is acknowledged when all children have theirs. Any other is a job, which is kept until it is done;
after a crash it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from distributary.broker.addresses import Address, Blob
from distributary.broker.core import Core, Handler, Part
from distributary.broker.deliveries.finished import Arrival
from distributary.broker.dissemination.messages import (
    HOPS_SINCE,
    ContentLost,
    ConversionLost,
    ItemId,
    NextHops,
    Portion,
    Probe,
    ProbeAnswer,
)
from distributary.broker.encoding import encodable, encode, journal_key, since
from distributary.broker.host import ConversionRefused, Converted, Turn
from distributary.broker.plan_part import RELAY, PlanPart, Route
from distributary.broker.planning import (
    Planning,
    along_hop,
    formats_in,
    inline_blob,
    plan_tree,
    tree_along,
)
from distributary.broker.settings import ContentSettings, ns
from distributary.broker.telemetry import ConversionTime, Refined
from distributary.broker.timers import Retention

__all__ = ["JobRecord", "Relays", "other_hops", "refined"]


# One portion that a broker carries out: content first, then conversions, then what they are for.


@encodable(580)
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


@encodable(581)
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


# Refinement: a broker whose next hops are not the plan's plans its own subtree anew.
#
# Content follows routing tables, and a plan is made on a tree that is only an estimate, or was
# true when it was found. A broker knows its next hop to every home and nothing beyond: where the
# plan has another child on the way, the new tree goes from the broker to the next hop and from
# there to the home.


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


_NS_PER_SECOND = 1e9


class Relays(Part):
    """What one broker does with content on its way."""

    name = "relays"
    uses = ("membership", "links", "content", "deliveries")

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._kept_ns = ns(core.settings.content.retention_s)
        self._handled: dict[Attempt, set[str]] = {}
        self._handled_max = core.settings.publishing.identities_max
        # Those of which there is a record: others were passed on at once.
        self._recorded: set[Attempt] = set()
        self._forgetting = Retention(core.timers, self._forget)
        self._under_way: dict[Attempt, int] = {}
        self._loaded: list[JobRecord] = []
        # Who waits for a conversion under way: by tenant, content and target. What one tenant
        # has does not make anything quicker for another, who could tell by that.
        self._making: dict[tuple[str, str, str], list[Job]] = {}
        self._load = 0.0

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {Portion: self._portion, Probe: self._probe}

    def load(self, key: str, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, JobRecord):
            self._loaded.append(record)
        else:
            assert isinstance(record, HandledRecord)
            attempt = (record.identity, record.root, record.attempt)
            self._handled[attempt] = set(record.homes)
            self._recorded.add(attempt)

    def start(self, turn: Turn) -> None:
        """Make again what was not done."""
        self._forgetting.keep_all(self._handled, turn.now_ns + self._kept_ns)
        loaded, self._loaded = self._loaded, []
        for record in loaded:
            root = record.portion.root
            # The version before did not write down who has sent it.
            sender = record.sender or ("" if root == self.core.identity else root)
            self.carry_out(record.portion, turn, sender, loaded=True)

    @property
    def left_s(self) -> float:
        """How long the conversions under way should take, if none has begun."""
        return self.core.membership.node_cost * self._load

    def snapshot(self) -> dict[str, Any]:
        """Return what is being converted, and for how long that should take."""
        making = sorted(target for _, _, target in self._making)
        under_way = sum(self._under_way.values())
        return {"under_way": under_way, "converting": making, "left_s": self.left_s}

    # Portions.

    def _portion(self, portion: Portion, sender: Address, turn: Turn) -> None:
        if len(portion.plan.nodes) == 1:
            # Nothing to pass on. Whether clients have it already is known where they are.
            self.carry_out(portion, turn, sender)
            return
        handled = self._handled.get(attempt_of(portion))
        if handled is None and len(self._handled) >= self._handled_max:
            # Its root sends it again, on another way if there is one.
            return
        if handled is None or not handled.issuperset(portion.plan.home_names()):
            self.carry_out(portion, turn, sender)

    def carry_out(
        self, portion: Portion, turn: Turn, sender: str = "", *, loaded: bool = False
    ) -> None:
        """Do what a plan says from this broker on.

        Parameters
        ----------
        sender
            Who has sent it, and has its content; a root sees to that before it plans.
        loaded
            Whether there is a record of it, of which nothing is left when it is done.
        """
        part = self._along_hops(portion, turn)
        if self._may_come_again(portion):
            attempt = attempt_of(portion)
            handled = self._handled.get(attempt)
            if handled is None:
                handled = self._handled[attempt] = set()
                self._forgetting.keep(attempt, turn.now_ns + self._kept_ns)
            handled.update(portion.plan.home_names())
        if not (loaded or part.first.made or (sender and self._lacks(portion))):
            self._pass_on(portion, part, turn)
            return
        job = Job(portion, part)
        self._under_way[job.attempt] = self._under_way.get(job.attempt, 0) + 1
        for blob in portion.blobs:
            self._refer(job, blob)
        turn.persist(f"relays/job/{job.key}", JobRecord(portion, sender))
        for name, blob in job.lack(self.core.content.has).items() if sender else ():
            self.core.content.fetch(blob, sender, turn, job.key, self._fetched, job, name)
        self._go_on(job, turn)

    def _pass_on(self, portion: Portion, part: PlanPart, turn: Turn) -> None:
        """Do all at once that a plan says where there is nothing to fetch or to convert."""
        in_hand = in_hand_of(portion)
        if part.first.after != RELAY:
            self._deliver(portion, part, in_hand, turn)
        identity = portion.item.identity
        for child in part.children():
            self._send(portion, identity, child, in_hand, turn, passes=True)

    def _lacks(self, portion: Portion) -> bool:
        has = self.core.content.has
        return any(blob is not None and not has(blob) for blob in portion.blobs)

    def _along_hops(self, portion: Portion, turn: Turn) -> PlanPart:
        """Return the plan, or another one where the next hops are not the plan's."""
        part = portion.plan
        if len(part.nodes) == 1:
            return part
        membership = self.core.membership
        other = other_hops(part, membership.hop_to)
        if not other:
            return part
        planning = refined(
            part,
            other,
            link_cost_to=membership.link_cost_to,
            own_cost=membership.node_cost,
            own_wait_s=self.left_s,
            settings=self.core.settings.content,
        )
        turn.report(Refined(portion.item.source, portion.item.id, portion.item.tenant))
        self._tell_hops(portion.root, [home for home, hop in other.items() if hop], turn)
        return planning.part

    def _tell_hops(self, root: str, homes: list[str], turn: Turn) -> None:
        """Tell a root how this broker passes on what is for homes like these.

        It may get lost: then the next plan is wrong as well, and the root is told again.
        """
        membership = self.core.membership
        if not homes or root == self.core.identity or membership.version < HOPS_SINCE:
            return
        row = tuple(
            (prefix, hop, membership.link_cost_to(hop))
            for prefix, hop in membership.hops_beside(homes).items()
        )
        self.core.links.tell_soon(root, NextHops(membership.node_cost, row), turn)

    def _go_on(self, job: Job, turn: Turn) -> None:
        """Do what can be done with what is in hand."""
        for origin, target in job.startable():
            self._make(job, origin, target, turn)
        portion = job.portion
        if job.own_ready():
            job.own = False
            self._deliver(portion, job.part, job.in_hand, turn)
        for child in job.ready_children():
            self._send(portion, job.attempt[0], child, job.in_hand, turn)
        if not job.making and not job.coming:
            self._finish(job, turn)

    def _deliver(
        self, portion: Portion, part: PlanPart, in_hand: Mapping[str, Blob | None], turn: Turn
    ) -> None:
        """Hand to clients of this broker what is for them."""
        first, formats = part.first, part.formats
        self.core.deliveries.receive(
            Arrival(
                portion.item,
                portion.root,
                portion.attempt,
                portion.original,
                first.after,
                part.grants_of(first),
                {formats[k]: in_hand[formats[k]] for k in first.wants},
            ),
            turn,
        )

    def _send(
        self,
        portion: Portion,
        identity: ItemId,
        child: PlanPart,
        in_hand: Mapping[str, Blob | None],
        turn: Turn,
        *,
        passes: bool = False,
    ) -> None:
        """Send a child its part of the plan, with the formats that it is to receive."""
        first, formats = child.first, child.formats
        blobs = tuple([in_hand[formats[k]] for k in first.receives])
        self.core.content.use(blobs, turn)
        message = Portion(
            portion.item, portion.root, portion.attempt, portion.original, child, blobs
        )
        links, hops = self.core.links, child.height
        if portion.root == self.core.identity:
            # The root begins with an item anew after a crash, and when a child goes down.
            about = tuple([(identity, home) for home in child.home_names()])
            links.send(first.broker, message, turn, kept=False, hops=hops, about=about)
        elif passes:
            links.pass_on(first.broker, message, turn, hops=hops)
        else:
            links.send(first.broker, message, turn, hops=hops)

    def _may_come_again(self, portion: Portion) -> bool:
        """Whether to note that a portion was carried out, as it may come once more.

        Not where there is nothing to pass on: whether clients have it is known where they are.
        Nor at the root, which has sent it to itself.
        """
        return len(portion.plan.nodes) > 1 and portion.root != self.core.identity

    def _finish(self, job: Job, turn: Turn) -> None:
        portion = job.portion
        homes = tuple(job.left_out())
        assert job.lost or job.unfetched or not homes, "the plan does not make what it sends"
        if homes:
            kind, lost = (ConversionLost, job.lost) if job.lost else (ContentLost, job.unfetched)
            message = kind(job.attempt[0], portion.attempt, tuple(lost), homes)
            self.core.links.send(portion.root, message, turn)
        left = self._under_way.pop(job.attempt) - 1
        if left:
            self._under_way[job.attempt] = left
        for blob in job.referred:
            self.core.content.release(portion.item.tenant, blob, turn)
        # Last: a crash before this repeats what was done, and others tell it from new.
        if self._may_come_again(portion):
            homes = tuple(sorted(self._handled[job.attempt]))
            self._recorded.add(job.attempt)
            turn.persist(_handled_key(job.attempt), HandledRecord(*job.attempt, homes))
        turn.erase(f"relays/job/{job.key}")

    def _forget(self, attempt: Attempt, turn: Turn) -> None:
        if attempt in self._under_way:
            # Conversions may take longer than anything is kept.
            self._forgetting.keep(attempt, turn.now_ns + self._kept_ns)
            return
        self._handled.pop(attempt, None)
        if attempt in self._recorded:
            self._recorded.remove(attempt)
            turn.erase(_handled_key(attempt))

    # Content.

    def _refer(self, job: Job, blob: Blob | None) -> None:
        """Have content not be freed while a job is under way."""
        if blob is not None:
            job.referred.append(blob)
            self.core.content.refer(job.portion.item.tenant, blob)

    def _fetched(self, turn: Turn, failure: str, job: Job, name: str) -> None:
        blob = job.coming.pop(name)
        if failure:
            job.unfetched.append((name, failure))
        else:
            job.in_hand[name] = blob
        self._go_on(job, turn)

    # Conversions.

    def _make(self, job: Job, origin: str, target: str, turn: Turn) -> None:
        item = job.portion.item
        blob, data = job.in_hand[origin], None
        if blob is None:
            blob, data = inline_blob(item.event, item.media_type)
        key = (item.tenant, blob.digest, target)
        waiting = self._making.get(key)
        if waiting is not None:
            waiting.append(job)
            return
        self._making[key] = [job]
        work = job.seconds[origin, target]
        self._load += work
        asked = (origin, blob.size_bytes, turn.now_ns)
        self.core.convert(turn, blob, target, self._converted, key, work, asked, data=data)

    def _converted(
        self,
        turn: Turn,
        answer: Converted | ConversionRefused,
        key: tuple[str, str, str],
        work: float,
        asked: tuple[str, int, int],
    ) -> None:
        self._load -= work
        target = key[-1]
        if isinstance(answer, Converted):
            origin, origin_bytes, asked_ns = asked
            took_s = (turn.now_ns - asked_ns) / _NS_PER_SECOND
            made = answer.blob.size_bytes
            self.core.measured.conversion(
                ConversionTime(origin, target, 1, took_s, made, origin_bytes, answer.seconds)
            )
        jobs = self._making.pop(key)
        if not self._making:
            # What is left of a sum of floats would be work for ever.
            self._load = 0.0
        for job in jobs:
            job.making.discard(target)
            if isinstance(answer, Converted):
                self._refer(job, answer.blob)
                job.in_hand[target] = answer.blob
            else:
                job.lost.append((target, answer.reason))
            self._go_on(job, turn)

    # Probes.

    def _probe(self, probe: Probe, sender: Address, turn: Turn) -> None:
        own = self.core.identity
        membership = self.core.membership
        step = (own, membership.link_cost_to(sender), membership.node_cost)
        steps = (*probe.steps, step)
        if own in probe.homes:
            turn.send(probe.root, ProbeAnswer(probe.identity, probe.attempt, steps))
        self.pass_on_probe(replace(probe, steps=steps, padding=b""), turn)

    def pass_on_probe(self, probe: Probe, turn: Turn) -> None:
        """Send a probe on to its homes, one for each next hop."""
        membership = self.core.membership
        below: dict[str, list[str]] = {}
        for home in probe.homes:
            hop = membership.hop_to(home)
            if hop is not None:
                below.setdefault(hop, []).append(home)
        for hop in sorted(below):
            turn.send(hop, self._padded(probe, tuple(below[hop])))

    def _padded(self, probe: Probe, homes: tuple[str, ...]) -> Probe:
        def made(padding: bytes) -> Probe:
            return replace(probe, homes=homes, padding=padding)

        missing = self.core.settings.content.probe_bytes - len(encode(made(b"")))
        return made(bytes(max(0, missing)))


def _handled_key(attempt: Attempt) -> str:
    identity, root, number = attempt
    return f"relays/handled/{journal_key(*identity)}/{root}/{number}"
