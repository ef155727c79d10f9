"""Stream objects as one broker sees them: its copy, and who is to have it.

Effective tolerances of brokers as plain data, and the rules that follow from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from distributary.broker.addresses import Address
from distributary.broker.encoding import wire
from distributary.broker.streams.messages import Amounts, Values, Wanted
from distributary.content.divergence import Version
from distributary.content.publication import Publication
from distributary.content.tolerance import EffectiveTolerance, ForwardingRule, Tolerance

if TYPE_CHECKING:
    from distributary.broker.streams.tree import ChildLink, Tree

__all__ = [
    "NOTHING",
    "Branch",
    "ChildRecord",
    "Copy",
    "Follower",
    "LinkCount",
    "ObjectKey",
    "ObjectName",
    "ObjectRecord",
    "Rules",
    "Stream",
    "TreeRecord",
    "amounts_of",
    "kept_throughout",
    "needs",
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


@wire(610)
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


@wire(611)
@dataclass(frozen=True, slots=True)
class ChildRecord:
    """A link to a child, with what it demanded."""

    tree: str
    child: str
    link: int
    demand: int
    wanted: tuple[Wanted, ...]


@wire(612)
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


@wire(613)
@dataclass(frozen=True, slots=True)
class LinkCount:
    """How many links to parents this broker has asked for."""

    count: int
