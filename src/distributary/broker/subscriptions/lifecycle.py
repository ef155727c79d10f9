"""The life of subscriptions: registered or covered, leased, ended, withdrawn.

Registering: telling the roots of cells, until each of them has answered.

Each message names several cells with one root, as far as this broker knows. Routing brings it
to the root of the first; if others of them have another root by now, that one leaves them
out, and they are asked for again one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from distributary.broker.client import Subscribed, Unsubscribed
from distributary.broker.effects import Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.settings import ns
from distributary.broker.subscriptions.ledger import Ledger, WithdrawalRecord
from distributary.broker.subscriptions.messages import Register, Registered, Withdraw, Withdrawn
from distributary.broker.subscriptions.subscription import Event, LocalSubscription, State
from distributary.broker.timers import Backoff, Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Lifecycle", "Registrar"]


class Lifecycle:
    """Takes the subscriptions of a ledger from state to state."""

    def __init__(self, core: Core, ledger: Ledger) -> None:
        self.core = core
        self.registrar = Registrar(core)
        self._ledger = ledger
        self._covering = ledger.covering

    def resume(self, turn: Turn) -> None:
        """Set leases going, and tell the roots what they may have missed.

        Nobody could renew a lease while this broker was away: all begin anew.
        """
        renewed_ns = turn.now_ns + ns(self.core.settings.subscriptions.lease_s)
        for local in self._ledger:
            local.expires_ns = max(local.expires_ns, renewed_ns)
            self._watch_lease(local)
            if local.forwarded:
                self._register(local, turn)
        for local in self._ledger:
            if local.state is State.ENDING:
                self._let_go(local, turn)
        for _, withdrawal in sorted(self._ledger.withdrawals.items()):
            self._withdraw(withdrawal, turn)
        # Brokers that start together should not all renew at the same moment.
        self._renew_later(turn, self.core.rng.uniform(0.5, 1.0))

    # What roots answer.

    def registered(self, message: Registered, turn: Turn) -> None:
        """Take a root's word that a registration is safe."""
        local = self._ledger.get(message.id)
        if local is None or local.version != message.version:
            return
        if self.registrar.answered(_registration_name(local.id), message.cells):
            self._confirm(local, turn)

    def withdrawn(self, message: Withdrawn, turn: Turn) -> None:
        """Take a root's word that a registration is forgotten."""
        name = _withdrawal_name(message.version)
        if self.registrar.answered(name, message.cells):
            self.registrar.abandon(name)
            self._ledger.withdrawn(message.version, turn)

    # Registering.

    def begin(self, local: LocalSubscription, turn: Turn) -> None:
        """Enter a subscription, and register it unless it is covered."""
        self._ledger.enter(local)
        self._ledger.keep(local, turn)
        self._watch_lease(local)
        wide = None
        if self.core.settings.subscriptions.covering:
            wide = self._covering.find(local)
        if wide is None:
            self._register(local, turn)
        else:
            local.step(Event.COVERED)
            self._covering.cover(local, wide.id)
            self._tell(local, turn)
        self.followers_changed(local, turn)

    def _register(self, local: LocalSubscription, turn: Turn) -> None:
        def make(cells: tuple[int, ...], _: Turn) -> Register:
            return Register(
                local.id,
                local.version,
                local.reading.filters,
                local.reading.profile,
                local.subscription.tolerance is not None,
                local.since_ns,
                local.confirmed,
                cells,
                local.claim,
            )

        self.registrar.pursue(_registration_name(local.id), local.cells, make, turn)
        if not local.cells:
            self._confirm(local, turn)

    def _renew_registrations(self, turn: Turn) -> None:
        self.registrar.again(turn)
        self._renew_later(turn, 1.0)

    def _renew_later(self, turn: Turn, share: float) -> None:
        period_s = self.core.settings.subscriptions.registration_s
        self.core.timers.at(turn.now_ns + ns(share * period_s), self._renew_registrations)

    def _confirm(self, local: LocalSubscription, turn: Turn) -> None:
        if not local.step(Event.CONFIRMED):
            return
        coverer = local.coverer
        self._covering.cover(local, None)
        self._tell(local, turn)
        if coverer is not None:
            self._release(coverer, turn)

    def _tell(self, local: LocalSubscription, turn: Turn) -> None:
        """Tell a client that its subscription is in force, unless it knows."""
        news = not local.confirmed
        if news:
            local.confirmed = True
            local.since_ns = turn.now_ns
        self._ledger.keep(local, turn)
        if news:
            turn.send(local.client, Subscribed(local.subscription.id))

    def followers_changed(self, local: LocalSubscription, turn: Turn) -> None:
        """Note that a subscription has come, changed or ended."""
        if local.subscription.tolerance is not None:
            self.core.streams.subscriptions_changed(turn)

    # Ending.

    def _watch_lease(self, local: LocalSubscription) -> None:
        if local.live:
            self.core.timers.at(local.expires_ns, self._lease_ended, local)

    def _lease_ended(self, turn: Turn, local: LocalSubscription) -> None:
        if self._ledger.get(local.id) is not local or not local.live:
            return
        if self.core.migration.has_left(local.client):
            # The client renews at its new home, and this one ends it when all has arrived there.
            local.expires_ns = turn.now_ns + ns(self.core.settings.subscriptions.lease_s)
        if turn.now_ns < local.expires_ns:
            self._watch_lease(local)
        else:
            self.end(local, turn)
            turn.send(local.client, Unsubscribed(local.subscription.id))

    def end(self, local: LocalSubscription, turn: Turn) -> None:
        """End a subscription; its registration stays while others need it."""
        local.step(Event.ENDED)
        if local.state is State.ENDED:
            self._ledger.forget(local, turn)
        else:
            coverer = local.coverer
            self._covering.cover(local, None)
            self._ledger.keep(local, turn)
            if coverer is not None:
                self._release(coverer, turn)
            self._let_go(local, turn)
        self.followers_changed(local, turn)

    def depart(self, local: LocalSubscription, turn: Turn) -> None:
        """End a subscription whose client has moved.

        One that was covered is withdrawn as well: roots answer when nothing is on its way.
        """
        if local.state is not State.COVERED:
            self.end(local, turn)
            return
        local.step(Event.ENDED)
        self._withdraw(self._ledger.withdraw(local, turn), turn)
        self.followers_changed(local, turn)

    def _let_go(self, local: LocalSubscription, turn: Turn) -> None:
        """Have those register themselves that one that is ending covers; then withdraw it."""
        for covered in self._covering.covered_by(local.id):
            self._uncover(covered, turn)
        self._release(local.id, turn)

    def _uncover(self, subscription_id: str, turn: Turn) -> None:
        local = self._ledger.get(subscription_id)
        assert local is not None
        if local.state is not State.COVERED:
            return
        wide = self._covering.find(local)
        if wide is not None:
            self._covering.cover(local, wide.id)
            self._ledger.keep(local, turn)
            return
        local.step(Event.UNCOVERED)
        self._ledger.keep(local, turn)
        self._register(local, turn)

    def _release(self, subscription_id: str, turn: Turn) -> None:
        """Withdraw a registration that is ending, once nobody needs it any more."""
        local = self._ledger.get(subscription_id)
        if local is None or self._covering.covered_by(subscription_id):
            return
        if local.step(Event.RELEASED):
            self.registrar.abandon(_registration_name(local.id))
            self._withdraw(self._ledger.withdraw(local, turn), turn)

    def _withdraw(self, withdrawal: WithdrawalRecord, turn: Turn) -> None:
        def make(cells: tuple[int, ...], _: Turn) -> Withdraw:
            return Withdraw(withdrawal.id, withdrawal.version, cells)

        if withdrawal.cells:
            name = _withdrawal_name(withdrawal.version)
            self.registrar.pursue(name, withdrawal.cells, make, turn)
        else:
            self._ledger.withdrawn(withdrawal.version, turn)


def _registration_name(subscription_id: str) -> str:
    return f"s/{subscription_id}"


def _withdrawal_name(version: int) -> str:
    return f"w/{version}"


_GROUPED_ATTEMPTS = 2

Make = Callable[[tuple[int, ...], Turn], object]


class _Pursuit:
    """Something that the roots of some cells have to be told."""

    __slots__ = ("attempts", "cells", "make", "timer", "waiting")

    def __init__(self, make: Make) -> None:
        self.make = make
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

    def pursue(self, name: str, cells: Iterable[int], make: Make, turn: Turn) -> None:
        """Tell the roots of cells something, again and again until they have answered.

        Parameters
        ----------
        name
            What to call it; what went by that name before is not told any more.
        cells
            Whose roots are told.
        make
            Makes the message for some of the cells, when it is sent.
        """
        self.abandon(name)
        pursuit = self._pursuits[name] = _Pursuit(make)
        pursuit.cells |= set(cells)
        pursuit.waiting |= pursuit.cells
        if pursuit.cells:
            self._send(name, pursuit, pursuit.waiting, turn)

    def answered(self, name: str, cells: Iterable[int]) -> bool:
        """Note that roots have answered; True when that was the last answer."""
        pursuit = self._pursuits.get(name)
        if pursuit is None or not pursuit.waiting:
            return False
        pursuit.waiting.difference_update(cells)
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

    def again(self, turn: Turn) -> None:
        """Tell everything that is not abandoned to everybody again, as leases need it."""
        for name, pursuit in list(self._pursuits.items()):
            pursuit.waiting |= pursuit.cells
            pursuit.attempts = 0
            self._send(name, pursuit, pursuit.waiting, turn)

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
        if not moved:
            return
        for name, pursuit in list(self._pursuits.items()):
            cells = pursuit.cells & moved
            if cells:
                pursuit.waiting |= cells
                pursuit.attempts = 0
                self._send(name, pursuit, cells, turn)

    def _send(self, name: str, pursuit: _Pursuit, cells: set[int], turn: Turn) -> None:
        self._rest(pursuit)
        at_ns = turn.now_ns + self._backoff.after(pursuit.attempts)
        pursuit.attempts += 1
        pursuit.timer = self._core.timers.at(at_ns, self._repeat, name)
        links, key_of = self._core.links, self._core.rendezvous.key_of
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
            groups.setdefault(root, []).append(cell)
        if together:
            return [tuple(groups[root]) for root in sorted(groups)]
        return [(cell,) for cell in sorted(cells)]

    def _rest(self, pursuit: _Pursuit) -> None:
        if pursuit.timer is not None:
            pursuit.timer.cancel()
            pursuit.timer = None
