"""The life of subscriptions: registered or covered, leased, ended, withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.messages.client import Subscribed, Unsubscribed
from distributary.broker.messages.subscriptions import Register, Registered, Withdraw, Withdrawn
from distributary.broker.settings import ns
from distributary.broker.subscriptions.ledger import Ledger, WithdrawalRecord
from distributary.broker.subscriptions.local_subscription import (
    Event,
    LocalSubscription,
    State,
)
from distributary.broker.subscriptions.registrar import Registrar
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Lifecycle"]


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
            turn.send(local.client, Subscribed(local.id))

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
            turn.send(local.client, Unsubscribed(local.id))

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
