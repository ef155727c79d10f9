"""Stream objects as one broker sees them: its copy, and who is to have it.

Effective tolerances of brokers as plain data, and the rules that follow from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from distributary.broker.addresses import Address
from distributary.broker.client import Updated
from distributary.broker.core import Core
from distributary.broker.encoding import encodable
from distributary.broker.host import Persist, Send, Spend, Turn
from distributary.broker.streams.messages import (
    Amounts,
    Ask,
    Attached,
    Demand,
    Dropped,
    Promised,
    Update,
    Values,
    Wanted,
)
from distributary.broker.subscriptions.subscription import own_id
from distributary.broker.telemetry import CopyChanged
from distributary.content.divergence import Version
from distributary.content.publication import Publication
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule, Tolerance

if TYPE_CHECKING:
    from distributary.broker.streams.tree import ChildLink, Forest, ParentLink, Tree

__all__ = [
    "NOTHING",
    "Branch",
    "ChildRecord",
    "Copy",
    "Demands",
    "Flow",
    "Follower",
    "LinkCount",
    "ObjectKey",
    "ObjectName",
    "ObjectRecord",
    "Stream",
    "TreeRecord",
    "amounts_of",
    "ask",
    "kept_throughout",
    "rules_between",
    "smallest",
]


ObjectName: TypeAlias = tuple[str, str]
"""(`source`, `subject`)."""

ObjectKey: TypeAlias = tuple[str, ObjectName]
"""(tenant, name): what tells an object from others. A tree has objects of one tenant only."""


class Copy:
    """One version of an object with all its values."""

    __slots__ = ("_versions", "sequence", "time_ns", "values")

    def __init__(self, sequence: int, time_ns: int, values: Values) -> None:
        self.sequence = sequence
        self.time_ns = time_ns
        self.values = values
        self._versions: dict[str, Version] = {}

    def version(self, pointer: str) -> Version:
        """Return what a tolerance about one pointer looks at."""
        known = self._versions.get(pointer)
        if known is None:
            found = None
            for place, value in self.values:
                if place == pointer:
                    found = value
                    break
            known = self._versions[pointer] = Version(found, self.sequence, self.time_ns)
        return known


def needs(rules: Rules, copy: Copy, last: Copy) -> bool:
    """Whether somebody who was sent `last` needs a newer copy."""
    for pointer, rule in rules:
        if rule.forwards(copy.version(pointer), last.version(pointer)):
            return True
    return False


class Follower:
    """A subscription of this broker's own client that follows an object.

    Attributes
    ----------
    last
        What its client was sent last.
    repeats
        How often that is still sent again, since clients do not answer.
    wait
        After how many pulses.
    """

    __slots__ = ("amounts", "client", "id", "last", "repeats", "rules", "wait")

    def __init__(self, identifier: str, client: Address, amounts: Amounts) -> None:
        self.id = identifier
        self.client = client
        self.amounts = amounts
        self.rules: Rules = ()
        self.last: Copy | None = None
        self.repeats = 0
        self.wait = 0


class Branch:
    """One object on the way to one child.

    Attributes
    ----------
    number
        What the child calls the object.
    last
        The version that the child holds as far as is known; None sends it whatever there is.
    least
        The child holds this change number already, or needs it: nothing older helps it.
    key, kept
        Under which the last update is kept, and whether there is one.
    count, since_ns, rate
        Updates since a time, and updates per second before that.
    """

    __slots__ = (
        "amounts",
        "count",
        "kept",
        "key",
        "last",
        "least",
        "link",
        "number",
        "rate",
        "rules",
        "since_ns",
        "stream",
    )

    def __init__(self, link: ChildLink, stream: Stream, number: int, now_ns: int) -> None:
        self.link = link
        self.stream = stream
        self.number = number
        self.amounts: Amounts = NOTHING
        self.rules: Rules = ()
        self.last: Copy | None = None
        self.least = -1
        self.key = f"streams/sent/{link.peer}/{link.number}/{number}"
        self.kept = False
        self.count = 0
        self.since_ns = now_ns
        self.rate = 0.0

    def holds(self, held: int, least: int) -> None:
        """Learn what the child has, which may be something else than it was sent."""
        copy = self.stream.copy
        if self.last is None or self.last.sequence != held:
            self.last = copy if copy is not None and copy.sequence == held else None
        if least > held:
            self.last = None
        self.least = max(held, least)


class Stream:
    """A stream object at one broker.

    Attributes
    ----------
    number
        What this broker calls it on links to its parents.
    event, publication
        What its versions have in common; None at a broker that only passes it on.
    since_ns
        Since when the tree has its root where it is, by the root's clock.
    copy
        The newest version that has come here.
    asked
        The effective tolerance: the smallest amounts of followers and branches.
    kept
        What the parent keeps to for certain; None at the root of the tree.
    wanted
        The least change number that somebody below needs; -1 when the copy is new enough.
    waiting
        Whether it is waiting for the processor.
    count, rate
        As for branches: versions that some follower needed.
    late_ns, loss
        How long versions had been on their way when they came, added up, and the share of the
        last window that this was: how long the copy was older than it should have been.
    """

    __slots__ = (
        "asked",
        "branches",
        "copy",
        "count",
        "event",
        "followers",
        "kept",
        "late_ns",
        "loss",
        "name",
        "number",
        "publication",
        "rate",
        "since_ns",
        "tree",
        "waiting",
        "wanted",
    )

    def __init__(self, name: ObjectName, tree: Tree, number: int) -> None:
        self.name = name
        self.tree = tree
        self.number = number
        self.event: str | None = None
        self.publication: Publication | None = None
        self.since_ns = 0
        self.copy: Copy | None = None
        self.asked: Amounts = NOTHING
        self.kept: Amounts | None = None
        self.branches: list[Branch] = []
        self.followers: list[Follower] = []
        self.wanted = -1
        self.waiting = False
        self.count = 0
        self.rate = 0.0
        self.late_ns = 0
        self.loss = 0.0

    @property
    def key(self) -> ObjectKey:
        """What tells the object from others."""
        return self.tree.tenant, self.name

    @property
    def held(self) -> int:
        """The change number of the copy; -1 when there is none."""
        return -1 if self.copy is None else self.copy.sequence

    def effective(self) -> Amounts:
        """Return the smallest amounts of all who are to have it from here."""
        everybody: list[Follower | Branch] = [*self.followers, *self.branches]
        return smallest(receiver.amounts for receiver in everybody)


NOTHING: Amounts = ()

Rules = tuple[tuple[str, ForwardingRule], ...]
"""For each pointer that a receiver asks about, when it needs another version."""

# Pairs of a parent's and a child's amounts; children of one broker often want the same.
_PAIRS_CACHED = 16_384


def amounts_of(tolerance: Tolerance) -> Amounts:
    """Return what one subscription asks for."""
    return ((tolerance.value, ((tolerance.divergence, tolerance.amount),)),)


def smallest(several: Iterable[Amounts]) -> Amounts:
    """Return what keeps all of them: the smallest amount wherever one is asked for."""
    distinct = list(dict.fromkeys(several))
    if len(distinct) == 1:
        return distinct[0]
    found: dict[str, dict[str, float]] = {}
    for amounts in distinct:
        for pointer, kinds in amounts:
            least = found.setdefault(pointer, {})
            for kind, amount in kinds:
                least[kind] = min(least.get(kind, amount), amount)
    return _written(found)


def kept_throughout(several: Sequence[Amounts]) -> Amounts:
    """Return what is kept whichever of them is: the largest amount, of what all ask for."""
    first, *others = dict.fromkeys(several)
    if not others:
        return first
    found = {pointer: dict(kinds) for pointer, kinds in first}
    for amounts in others:
        other = {pointer: dict(kinds) for pointer, kinds in amounts}
        found = {
            pointer: {
                kind: max(amount, other[pointer][kind])
                for kind, amount in kinds.items()
                if kind in other[pointer]
            }
            for pointer, kinds in found.items()
            if pointer in other
        }
    return _written(found)


@lru_cache(maxsize=_PAIRS_CACHED)
def rules_between(parent: Amounts | None, child: Amounts) -> Rules:
    """Return when a broker sends a version on.

    Parameters
    ----------
    parent
        What is kept for the broker itself; None at the source, which is never off.
    child
        What the receiver asks for.
    """
    kept = None if parent is None else {pointer: dict(kinds) for pointer, kinds in parent}
    return tuple(
        (
            pointer,
            ForwardingRule(
                parent=None if kept is None else EffectiveTolerance(kept.get(pointer, {})),
                child=EffectiveTolerance(dict(kinds)),
            ),
        )
        for pointer, kinds in child
    )


def _written(found: dict[str, dict[str, float]]) -> Amounts:
    return tuple(
        (pointer, tuple(sorted(kinds.items()))) for pointer, kinds in sorted(found.items())
    )


# What a broker keeps about streams: its links, and the versions of its own clients' objects. The
# last update sent on each branch is kept as the message itself.


@encodable(610)
@dataclass(frozen=True, slots=True)
class TreeRecord:
    """A place in a tree.

    Attributes
    ----------
    events
        What the versions of each object have in common that is followed here.
    """

    tree: str
    root: str
    parent: str | None
    planted: bool
    events: tuple[str, ...]


@encodable(611)
@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A link to a child, with what it demanded."""

    tree: str
    child: str
    link: int
    demand: int
    wanted: tuple[Wanted, ...]


@encodable(612)
@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """An object of a client of this broker, with its last version.

    Attributes
    ----------
    client
        Who announced it; empty when a plan did.
    since_ns
        When it was announced here.
    sequence
        -1 as long as there is no version.
    """

    event: str
    client: str
    tree: str
    since_ns: int
    sequence: int
    time_ns: int
    values: Values


@encodable(613)
@dataclass(frozen=True, slots=True)
class LinkCount:
    """How many links to parents this broker has asked for."""

    count: int


# Versions on their way down the trees.
#
# The handling of a version is the queueing model of Zhou, Ooi and Tan: it waits for the
# processor, then children are looked at in random order, and looking and sending take time.


_FILTER: Final = Spend("filter")
_SEND: Final = Spend("send")

# Clients do not answer. What they were sent last is sent again this often when there is
# nothing newer: with every pulse at first, then after two, four and so on.
_REPEATS: Final = 8
_REPEATS_APART: Final = 4


class Flow:
    """Passes versions on to children and to the broker's own clients."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._conflate = core.settings.streams.conflate

    def take(self, stream: Stream, copy: Copy, turn: Turn) -> None:
        """Take a version that is newer than the copy here."""
        stream.copy = copy
        if copy.sequence >= stream.wanted:
            stream.wanted = -1
        if stream.followers:
            turn.report(CopyChanged(*stream.name, copy.sequence))
            self.tell_followers(stream, turn)
        if stream.branches:
            if self._conflate:
                self.look(stream, turn)
            else:
                self._core.serve(turn, self._pass_on, stream, copy)

    def look(self, stream: Stream, turn: Turn) -> None:
        """Have the processor see who needs the copy as it will be then."""
        if not stream.waiting:
            stream.waiting = True
            self._core.serve(turn, self._pass_on, stream, None)

    def tell_followers(self, stream: Stream, turn: Turn) -> None:
        """Send the copy to the own clients who need it."""
        copy = stream.copy
        if copy is None:
            return
        needed = False
        for follower in stream.followers:
            last = follower.last
            if last is None or (
                copy.sequence != last.sequence and needs(follower.rules, copy, last)
            ):
                follower.last = copy
                follower.repeats = _REPEATS
                follower.wait = 1
                needed = True
                self._tell(stream, follower, copy, turn)
        stream.count += needed

    def repeat(self, stream: Stream, turn: Turn) -> None:
        """Send again what a client may have missed; to be called with every pulse."""
        for follower in stream.followers:
            if follower.repeats == 0 or follower.last is None:
                continue
            follower.wait -= 1
            if follower.wait == 0:
                follower.repeats -= 1
                follower.wait = 1 << max(0, _REPEATS_APART - follower.repeats)
                self._tell(stream, follower, follower.last, turn)

    def tell_again(self, stream: Stream, client: Address, turn: Turn) -> None:
        """Send a client that was gone what it has not been sent meanwhile."""
        for follower in stream.followers:
            if follower.client == client and follower.last is not None:
                follower.repeats = _REPEATS
                follower.wait = 1
                self._tell(stream, follower, follower.last, turn)

    def want(self, stream: Stream, least: int, turn: Turn) -> None:
        """Get a version at least this new from above, because somebody below has one."""
        if stream.held < least and least > stream.wanted:
            stream.wanted = least
            link = stream.tree.parent
            if link is not None:
                ask(link, [stream], turn)

    def _pass_on(self, turn: Turn, stream: Stream, version: Copy | None) -> None:
        if version is None:
            stream.waiting = False
            version = stream.copy
        branches = stream.branches
        if len(branches) > 1:
            self._core.rng.shuffle(branches)
        spend = turn.effects.append
        for branch in branches:
            if not branch.link.awake:
                continue
            if version is None or version.sequence < branch.least:
                self.want(stream, branch.least, turn)
                continue
            spend(_FILTER)
            last = branch.last
            if last is None or (
                version.sequence > last.sequence and needs(branch.rules, version, last)
            ):
                spend(_SEND)
                _send(branch, version, turn)

    def _tell(self, stream: Stream, follower: Follower, copy: Copy, turn: Turn) -> None:
        turn.send(
            follower.client,
            Updated(own_id(follower.id), *stream.name, copy.sequence, copy.time_ns, copy.values),
        )


def ask(link: ParentLink, streams: list[Stream], turn: Turn) -> None:
    """Tell a parent what is held here, and what is needed; it sends what is missing."""
    if link.answered < link.asks:
        # An earlier question may be lost. This one stands for it too.
        streams = list(link.tree.streams.values())
    link.asks += 1
    for stream in streams:
        link.believed[stream.number] = stream.held
    turn.send(
        link.peer,
        Ask(
            link.number,
            link.asks,
            tuple((s.number, s.held, max(s.held, s.wanted)) for s in streams),
        ),
    )


def _send(branch: Branch, copy: Copy, turn: Turn) -> None:
    link = branch.link
    link.sent += 1
    link.quiet = False
    branch.last = copy
    branch.kept = True
    branch.count += 1
    update = Update(link.number, link.sent, branch.number, copy.sequence, copy.time_ns, copy.values)
    turn.effects.append(Persist(branch.key, update))
    turn.effects.append(Send(link.peer, update))


# Tolerances on their way up the trees, and promises on their way down.
#
# A broker demands of its parent the smallest amounts of its own clients and its children. Its
# parent promises to keep to them as soon as it has been promised what it demands itself in
# turn, so that a promise means everybody up to the root. Until then a broker does not rely on
# amounts smaller than those it was promised before: it forwards more than it would have to.


class Demands:
    """Keeps what is demanded, promised and relied upon.

    Parameters
    ----------
    leave
        What to do when nobody needs a tree here any more: `leave(tree, turn)`.
    """

    def __init__(self, forest: Forest, flow: Flow, leave: Callable[[Tree, Turn], None]) -> None:
        self._forest = forest
        self._flow = flow
        self._leave = leave

    def reconsider(self, tree: Tree, streams: Iterable[Stream], turn: Turn) -> None:
        """Find out what these objects are needed for, after something has changed."""
        changed = False
        present: list[Stream] = []
        for stream in dict.fromkeys(streams):
            if stream.tree is not tree or stream.name not in tree.streams:
                continue
            asked = stream.effective()
            if asked != stream.asked:
                stream.asked = asked
                changed = True
            if asked or (stream.event is not None and (tree.owned or tree.planted)):
                present.append(stream)
            else:
                self._forest.remove(stream)
        if not (tree.streams or tree.children or tree.owned or tree.planted):
            self._leave(tree, turn)
            return
        if changed and not tree.owned:
            tree.demand += 1
            for link in tree.links_up():
                self.note(link)
                self.send(link, turn)
        for stream in present:
            self.rely(stream)
            self._flow.tell_followers(stream, turn)
            if stream.branches:
                self._flow.look(stream, turn)

    def rely(self, stream: Stream) -> None:
        """Bring the rules of everybody who gets an object up to date."""
        tree = stream.tree
        if tree.owned:
            stream.kept = None
        else:
            stream.kept = () if tree.parent is None else tree.parent.kept(stream)
        for follower in stream.followers:
            follower.rules = rules_between(stream.kept, follower.amounts)
        for branch in stream.branches:
            branch.rules = rules_between(stream.kept, branch.amounts)

    def note(self, link: ParentLink) -> None:
        """Remember what is demanded now on a link."""
        tree = link.tree
        link.demands[tree.demand] = {s.number: s.asked for s in tree.streams.values()}

    def send(self, link: ParentLink, turn: Turn) -> None:
        """Demand of a parent what is needed now."""
        tree = link.tree
        turn.send(link.peer, Demand(link.number, tree.demand, tree.wanted()))

    def apply(self, link: ChildLink, demand: int, wanted: tuple[Wanted, ...], turn: Turn) -> None:
        """Take what a child wants, in place of what it wanted before."""
        touched: list[Stream] = []
        missing = set(link.branches)
        for entry in wanted:
            missing.discard(entry.number)
            branch = link.branches.get(entry.number)
            if branch is None:
                branch = self._forest.add_branch(link, entry, turn.now_ns)
                branch.holds(entry.held, entry.held)
            elif branch.amounts == entry.amounts:
                continue
            branch.amounts = entry.amounts
            touched.append(branch.stream)
        touched += [
            self._forest.remove_branch(link.branches.pop(number), turn)
            for number in sorted(missing)
        ]
        link.demanded = demand
        record = ChildRecord(link.tree.name, link.peer, link.number, demand, wanted)
        turn.persist(link.key, record)
        self.reconsider(link.tree, touched, turn)
        link.needed = link.tree.demand
        self.promise(link.tree, turn)

    def promise(self, tree: Tree, turn: Turn) -> None:
        """Tell children what is kept to by everybody from here to the root."""
        settled = tree.settled()
        for link in tree.children.values():
            if link.promised < link.demanded and link.needed <= settled:
                link.promised = link.demanded
                self._tell(link, turn)

    def take_demand(self, message: Demand, sender: Address, turn: Turn) -> None:
        """Handle what a child wants."""
        link = self._forest.down.get((sender, message.link))
        if link is None:
            turn.send(sender, Dropped(message.link))
        elif message.demand > link.demanded:
            self.apply(link, message.demand, message.wanted, turn)
        elif message.demand == link.promised:
            self._tell(link, turn)

    def take_promise(self, message: Promised, link: ParentLink, turn: Turn) -> None:
        """Handle what a parent keeps to."""
        if link.confirm(message.demand) and link is link.tree.parent:
            for stream in link.tree.streams.values():
                self.rely(stream)
            self.promise(link.tree, turn)

    def _tell(self, link: ChildLink, turn: Turn) -> None:
        if link.accepted:
            turn.send(link.peer, Promised(link.number, link.promised))
        else:
            link.accepted = True
            path = (*link.tree.path, self._forest.identity)
            turn.send(link.peer, Attached(link.number, link.promised, path))
