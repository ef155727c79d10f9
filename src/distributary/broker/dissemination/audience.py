"""Audience: who is to get an item, at which home, and on which way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from distributary.broker.dissemination.debts import Forgone
from distributary.broker.dissemination.items import Unsettled
from distributary.broker.dissemination.task import Event, Pending, Task
from distributary.broker.encoding import wire
from distributary.broker.host import Turn
from distributary.broker.links.messages import Step
from distributary.broker.plan_part import Route
from distributary.broker.planning import publication_of, reversed_route
from distributary.broker.rendezvous.messages import Registration
from distributary.broker.settings import ns
from distributary.broker.subscriptions.registrar import MOVES_MAX
from distributary.broker.subscriptions.subscription import filter_of, subscription_of

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Audience", "LatePlace", "LateRecord"]

_CLAIM = attrgetter("claim")

# So many ways are turned round once.
_WAYS_MAX = 65_536

LatePlace = tuple[int, str, str]
"""(cell, home, id) of a registration that has come late."""


@wire(592, since=2)
@dataclass(frozen=True, slots=True)
class LateRecord:
    """That a registration has come late, kept until it has got what it is owed."""

    cell: int
    home: str
    id: str


class Audience:
    """Those who are to get the items of one root.

    Parameters
    ----------
    unsettled
        The items for which something is to be done.
    forgone
        The registrations that were given up.
    """

    def __init__(self, core: Core, unsettled: Unsettled, forgone: Forgone) -> None:
        self._core = core
        self._unsettled = unsettled
        self._forgone = forgone
        self._skew_ns = ns(core.settings.subscriptions.clock_skew_s)
        self._ways: dict[tuple[str, str], tuple[tuple[Step, ...], Route]] = {}
        self._late: dict[LatePlace, Registration] = {}

    def await_turn(self, cell: int, registration: Registration) -> LatePlace:
        """Send nothing for a registration that has come late until it is `admitted`.

        A root goes through all items of the cell for it, when it has done what it had to do
        before. Among that may be item 6, which is taken or offered again: were it sent for the
        registration, 1 to 5 would come behind it.
        """
        place = _late_place(cell, registration)
        self._late[place] = registration
        return place

    def awaits_turn(self, place: LatePlace) -> bool:
        """Whether a registration has not had its turn, or has been told once more since."""
        return place in self._late

    def admitted(self, place: LatePlace) -> Registration | None:
        """Return a registration whose turn has come, as last told; None if it has had it."""
        return self._late.pop(place, None)

    def match(
        self,
        task: Task,
        turn: Turn,
        *,
        only: Registration | None = None,
        elsewhere: Iterable[str] | None = None,
        anew: bool = False,
    ) -> set[str]:
        """Enter who is to get an item and has not, and return the homes that this is new to.

        What has come late and waits for its turn gets the item then.

        Parameters
        ----------
        only
            The only registration to be looked at.
        elsewhere
            Registrations that a home does not have, or that a root had before it restarted, if
            others of the same subscriptions are looked for, and nothing else: a broker that is
            not the root any more may have been told of new ones since, to which the items before
            this one have not been sent.
        anew
            Whether clients may have subscribed anew, as their homes are lost. What is older than
            their claim is not owed then, and would come behind what is newer.
        """
        item, rendezvous = task.item, self._core.rendezvous
        owed_ns = item.published_ns + self._skew_ns
        homes: set[str] = set()
        forgone = self._forgone if self._forgone else None
        publication = publication_of(item.event)
        # A client that has moved is registered from two homes for a while. What one of them
        # was sent it passes on to the other.
        taken = {name: home for home, name in task.served}
        for home, waiting in task.pending.items():
            taken.update(dict.fromkeys(waiting.registrations, home))
        if only is None:
            matches = rendezvous.matches(item.cell, publication, item.tenant)
            if self._late:
                matches = [one for one in matches if not self._is_late(item.cell, one)]
            if elsewhere is not None:
                names = {subscription_of(name) for name in elsewhere}
                matches = [one for one in matches if subscription_of(one.id) in names]
        else:
            # One may come late to many items, among many others.
            meant = only.tenant == item.tenant and filter_of(only.filters).matches(publication)
            matches = [only] if meant else []
        # The higher claim counts. One that has subscribed anew elsewhere, as its home is
        # lost, is served there.
        has_rivals = rendezvous.has_rivals
        for registration in sorted(matches, key=_CLAIM, reverse=True):
            name = registration.id
            if anew and registration.claim > item.published_ns:
                continue
            rivals = rendezvous.rivals(item.cell, registration) if has_rivals else None
            if rivals is None:
                home, route = registration.home, self._way_to(registration)
            elif rivals[0] and rivals[0][0].claim - registration.claim >= MOVES_MAX:
                # Its client has begun anew elsewhere. What it wants there may be something
                # else, although it goes by the same name.
                continue
            else:
                home, route = self._server(task, registration, *rivals)
            if taken.get(name, home) != home or registration.since_ns > owed_ns:
                continue
            place = (home, name)
            if place in task.served or place in task.unknown:
                continue
            if forgone is not None and forgone.skips(home, name, registration.since_ns):
                task.unknown.add((home, name))
                continue
            known = task.pending.get(home)
            if known is None:
                if self._core.membership.is_gone(home):
                    continue
                known = task.pending[home] = Pending(turn.now_ns)
                self._unsettled.owe(task, home)
            taken[name] = home
            if name not in known.registrations:
                known.attempt = task.attempt + 1
                homes.add(home)
            known.registrations[name] = (registration.profile, route)
        if homes and task.settled:
            task.step(Event.WANTED)
            self._unsettled.add(task)
        return homes

    def _server(
        self,
        task: Task,
        registration: Registration,
        others: list[Registration],
        withdrawn: list[str],
    ) -> tuple[str, Route]:
        """Return the home that is to get an item for a registration, and the way there.

        All generations of a subscription are served at one home at a time: at the one that is
        still owed the item before, or else at that with the highest claim. A client moves from A
        to B and changes its subscription there, while A is behind a partition. A is owed item 6,
        and B alone has registered the new generation. Were B sent item 17 for that, A would say
        afterwards that it does not have the subscription any more, and 6 would come to B behind
        17. So A is asked about both, and B gets both in order. The same goes for A when it is
        owed 6, and another root hands over that it has withdrawn, which it does not wait for
        here. And it goes for B, when it was sent 6 at a time when nobody here knew of A: sent to
        A, 17 would be redirected, and be there first. Where both are owed the item before, each for
        another generation, the other one is asked first all the same: what it does not have comes
        here, and was published earlier. Whoever has subscribed anew elsewhere does not listen to
        either, and waits for neither.
        """
        name = registration.id
        able = [
            one
            for one in sorted((registration, *others), key=lambda one: -one.claim)
            if one is registration or self._can_serve(task, one.home, name)
        ]
        first = next(one for one in able if not self._is_late(task.item.cell, one))
        owed = self._unsettled.last_owed(task, name)
        if owed - {first.home}:
            for one in able:
                if one is first:
                    continue
                if one.home in owed and first.claim - one.claim < MOVES_MAX:
                    return one.home, self._way_to(one)
            for home in withdrawn:
                if home in owed and (home, name) not in task.unknown:
                    return home, ()
        return first.home, self._way_to(first)

    def _is_late(self, cell: int, registration: Registration) -> bool:
        """Whether a registration waits for its turn."""
        return self.awaits_turn(_late_place(cell, registration))

    def _can_serve(self, task: Task, home: str, name: str) -> bool:
        return not self._core.membership.is_gone(home) and (home, name) not in task.unknown

    def _way_to(self, registration: Registration) -> Route:
        """Return the way to the home of a registration, turned round once."""
        key, path = (registration.home, registration.id), registration.path
        known = self._ways.get(key)
        if known is None or known[0] is not path:
            if len(self._ways) == _WAYS_MAX:
                self._ways.clear()
            known = self._ways[key] = (path, reversed_route(path))
        return known[1]


def _late_place(cell: int, registration: Registration) -> LatePlace:
    return cell, registration.home, registration.id
