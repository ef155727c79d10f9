"""Registering: what homes and roots say about registrations, and say again until it is answered.

A home routes `Register` and `Withdraw` to the roots of its subscription's cells, and repeats
them until every cell has been answered for. A version orders what is said about one
registration, so that what arrives late changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from distributary.broker.addresses import Speaker
from distributary.broker.core import Core
from distributary.broker.encoding import encodable, since
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.settings import ns
from distributary.broker.timers import Backoff, Timer

__all__ = [
    "MOVES_MAX",
    "Register",
    "Registered",
    "Registrar",
    "RegistrationsRenewed",
    "RenewRegistrations",
    "Withdraw",
    "Withdrawn",
    "digest_of",
]

MOVES_MAX = 1_000_000
"""Claims that differ by less are of one subscription, whose client has moved so often at most.

Nobody who subscribes anew elsewhere does so within a millisecond.
"""


@encodable(40, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Register:
    """Keep a registration in some cells, whose root is the same as far as the home knows.

    Attributes
    ----------
    id
        What roots call the subscription; together with the home it names the registration.
    version
        Counts what the home has said about registrations.
    filters, profile
        JSON; a subscriber without a profile takes the original.
    tolerance
        Whether it follows streams rather than content.
    since_ns
        From when on publications are owed, by the home's clock: when it was first confirmed,
        or when it was asked for while it has not been.
    confirmed
        Whether it has been confirmed to its client.
    claim
        Orders homes from which the same subscription is registered: when it was asked for,
        less one for every time that its client has moved since. Changes do not count. The
        highest is served.
    tenant
        Its client's. Nothing of any other tenant matches.
    vouched
        Whose answers its client was told by, in these cells: each root, and the time that it gave
        in `Registered`. A root that finds itself there has missed nothing since, whatever clocks
        say.
    before
        The registrations that a root has to know before it takes this one, each with those of the
        cells in which there is one. This may be on its way to a root that knows them, and come to
        the next one instead.
    """

    id: str
    version: int
    filters: str
    profile: str | None
    tolerance: bool
    since_ns: int
    confirmed: bool
    cells: tuple[int, ...]
    claim: int = 0
    tenant: str = ""
    vouched: tuple[tuple[str, int], ...] = since(2, ())
    before: tuple[tuple[str, tuple[int, ...]], ...] = since(2, ())


@encodable(41, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Registered:
    """A registration is kept in some cells, by their root and all who are to keep it too.

    Attributes
    ----------
    entered_ns
        Since when the root has had it in all of its cells, by the root's clock.
    """

    id: str
    version: int
    cells: tuple[int, ...]
    entered_ns: int = since(2, 0)


@encodable(42, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Withdraw:
    """Forget a registration, and whatever was said about it before this version."""

    id: str
    version: int
    cells: tuple[int, ...]


@encodable(43, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A registration is forgotten in some cells, by their root and all who have kept it too."""

    id: str
    version: int
    cells: tuple[int, ...]


@encodable(361, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RenewRegistrations:
    """All that a home has registered with a root, which should keep it for longer.

    Attributes
    ----------
    digest
        Of that, by `digest_of`: a root that has the same need not be told, nor write anything.
    """

    digest: bytes


@encodable(362, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RegistrationsRenewed:
    """Whether a root keeps what a home has registered; if it has something else, it does not."""

    digest: bytes
    renewed: bool


def digest_of(registrations: Iterable[tuple[str, int, tuple[int, ...]]]) -> bytes:
    """Return a digest of registrations: (id, version, cells in order)."""
    data = msgspec.msgpack.encode(sorted(registrations))
    return hashlib.blake2b(data, digest_size=16).digest()


# Registering: telling the roots of cells, until each of them has answered.
#
# Each message names several cells with one root, as far as this broker knows. Routing brings it
# to the root of the first; if others of them have another root by now, that one leaves them
# out, and they are asked for again one by one.

_GROUPED_ATTEMPTS = 2
# So often a root is asked to renew what it has before it is told everything again.
_RENEWALS = 3

Make = Callable[[tuple[int, ...], Turn], object]
After = Callable[[], Sequence[str]]


def _nothing() -> Sequence[str]:
    return ()


class _Pursuit:
    """Something that the roots of some cells have to be told.

    Attributes
    ----------
    subject
        The registration and its version, if roots keep it only for a while.
    current
        Whether roots have been told what is true now.
    after
        Names what roots have to know before.
    """

    __slots__ = ("after", "attempts", "cells", "current", "make", "subject", "timer", "waiting")

    def __init__(self, make: Make, subject: tuple[str, int] | None, after: After) -> None:
        self.make = make
        self.subject = subject
        self.after = after
        self.current = True
        self.cells: set[int] = set()
        self.waiting: set[int] = set()
        self.attempts = 0
        self.timer: Timer | None = None


class Registrar:
    """What this broker wants the roots of cells to know, by name."""

    def __init__(self, core: Core) -> None:
        self._core = core
        settings = core.settings.subscriptions
        self._backoff = Backoff(ns(settings.confirm_s), ns(settings.registration_s))
        self._pursuits: dict[str, _Pursuit] = {}
        self._roots: dict[int, str] = {}
        # The first hops on which roots were told, and renewals that were not answered.
        self._hops: dict[int, str | None] = {}
        self._moved = False
        self._renewals: dict[str, tuple[bytes, Timer]] = {}

    def pursue(
        self,
        name: str,
        cells: Iterable[int],
        make: Make,
        turn: Turn,
        *,
        subject: tuple[str, int] | None = None,
        after: After = _nothing,
    ) -> None:
        """Tell the roots of cells something, again and again until they have answered.

        Parameters
        ----------
        name
            What to call it; what went by that name before is not told any more.
        cells
            Whose roots are told.
        make
            Makes the message for some of the cells, when it is sent.
        subject
            The registration and its version, if roots keep it only for a while.
        after
            Names what roots have to know before, for the sake of order.
        """
        self.abandon(name)
        pursuit = self._pursuits[name] = _Pursuit(make, subject, after)
        pursuit.cells |= set(cells)
        pursuit.waiting |= pursuit.cells
        if pursuit.cells:
            self._send(name, pursuit, pursuit.waiting, turn)

    def answered(self, name: str, cells: Iterable[int], turn: Turn) -> bool:
        """Note that roots have answered; True when that was the last answer."""
        pursuit = self._pursuits.get(name)
        if pursuit is None or not pursuit.waiting:
            return False
        pursuit.waiting.difference_update(cells)
        for other, later in list(self._pursuits.items()):
            some = later.waiting.intersection(cells)
            if some and name in later.after():
                self._send(other, later, some, turn)
        if pursuit.waiting:
            return False
        self._rest(pursuit)
        return True

    def waiting(self, name: str) -> bool:
        """Whether some root has not answered."""
        pursuit = self._pursuits.get(name)
        return pursuit is not None and bool(pursuit.waiting)

    def abandon(self, name: str) -> None:
        """Tell something to nobody any more."""
        pursuit = self._pursuits.pop(name, None)
        if pursuit is not None:
            self._rest(pursuit)

    def changed(self, name: str) -> None:
        """Note that roots should be told something again, when they next are."""
        pursuit = self._pursuits.get(name)
        if pursuit is not None:
            pursuit.current = False

    def again(self, turn: Turn) -> None:
        """Have roots keep everything for longer, and tell them again what may have changed.

        Most of the time nothing has. Telling everything over links would write every
        registration to the disks along the way; a digest is lost at worst, and sent again.
        """
        roots: set[str] = set()
        for name, pursuit in list(self._pursuits.items()):
            if pursuit.subject is None or pursuit.waiting or self._is_stale(pursuit):
                self._tell_all(name, pursuit, turn)
            else:
                roots.update(self._roots[cell] for cell in pursuit.cells)
        self._moved = False
        for root in sorted(roots):
            self._renew(turn, root, 0)

    def _is_stale(self, pursuit: _Pursuit) -> bool:
        """Whether roots may know another way here than there is, or something else is new."""
        if self._moved or not pursuit.current:
            return True
        membership, key_of = self._core.membership, self._core.rendezvous.key_of
        return any(self._hops[c] != membership.next_hop(key_of(c)) for c in pursuit.cells)

    def _tell_all(self, name: str, pursuit: _Pursuit, turn: Turn) -> None:
        pursuit.waiting |= pursuit.cells
        pursuit.attempts = 0
        pursuit.current = True
        self._send(name, pursuit, pursuit.waiting, turn)

    def _renew(self, turn: Turn, root: str, attempts: int) -> None:
        self._end_renewal(root)
        if attempts == _RENEWALS:
            self._tell_root(root, turn)
            return
        own = [
            (*pursuit.subject, tuple(sorted(c for c in pursuit.cells if self._roots[c] == root)))
            for pursuit in self._pursuits.values()
            if pursuit.subject is not None
        ]
        digest = digest_of(one for one in own if one[2])
        at_ns = turn.now_ns + self._backoff.after(attempts)
        timer = self._core.timers.at(at_ns, self._renew, root, attempts + 1)
        self._renewals[root] = (digest, timer)
        self._core.tell(root, RenewRegistrations(digest), turn)

    def renewed(self, message: RegistrationsRenewed, root: str, turn: Turn) -> None:
        """Take a root's word that it keeps everything, or tell it everything."""
        waiting = self._renewals.get(root)
        if waiting is not None and waiting[0] == message.digest:
            self._end_renewal(root)
            if not message.renewed:
                self._tell_root(root, turn)

    def _end_renewal(self, root: str) -> None:
        waiting = self._renewals.pop(root, None)
        if waiting is not None:
            waiting[1].cancel()

    def _tell_root(self, root: str, turn: Turn) -> None:
        self._tell_cells({cell for cell, known in self._roots.items() if known == root}, turn)

    def _tell_cells(self, cells: set[int], turn: Turn) -> None:
        for name, pursuit in list(self._pursuits.items()):
            some = pursuit.cells & cells
            if some:
                pursuit.waiting |= some
                pursuit.attempts = 0
                self._send(name, pursuit, some, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Tell everything to roots that are new or have come back."""
        membership, key_of = self._core.membership, self._core.rendezvous.key_of
        left = {*change.down, *change.gone}
        moved: set[int] = set()
        for cell, root in self._roots.items():
            if not change.came and root not in left:
                continue
            now = membership.root_of(key_of(cell))
            if now != root or now in change.came:
                self._roots[cell] = now
                moved.add(cell)
        self._moved = True
        self._tell_cells(moved, turn)

    def _send(self, name: str, pursuit: _Pursuit, cells: set[int], turn: Turn) -> None:
        self._rest(pursuit)
        at_ns = turn.now_ns + self._backoff.after(pursuit.attempts)
        pursuit.attempts += 1
        pursuit.timer = self._core.timers.at(at_ns, self._repeat, name)
        links, key_of = self._core.links, self._core.rendezvous.key_of
        before = (self._pursuits.get(one) for one in pursuit.after())
        cells = cells.difference(*(one.waiting for one in before if one is not None))
        for group in self._groups(cells, together=pursuit.attempts <= _GROUPED_ATTEMPTS):
            links.route(key_of(group[0]), pursuit.make(group, turn), turn)

    def _repeat(self, turn: Turn, name: str) -> None:
        pursuit = self._pursuits[name]
        self._send(name, pursuit, pursuit.waiting, turn)

    def _groups(self, cells: set[int], *, together: bool) -> list[tuple[int, ...]]:
        """Return cells by root, or each on its own."""
        membership, key_of = self._core.membership, self._core.rendezvous.key_of
        groups: dict[str, list[int]] = {}
        for cell in sorted(cells):
            root = self._roots[cell] = membership.root_of(key_of(cell))
            self._hops[cell] = membership.next_hop(key_of(cell))
            groups.setdefault(root, []).append(cell)
        if together:
            return [tuple(groups[root]) for root in sorted(groups)]
        return [(cell,) for cell in sorted(cells)]

    def _rest(self, pursuit: _Pursuit) -> None:
        if pursuit.timer is not None:
            pursuit.timer.cancel()
            pursuit.timer = None
