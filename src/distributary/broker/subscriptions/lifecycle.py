"""The life of subscriptions: registered or covered, changed, ended, withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.addresses import tenant_of
from distributary.broker.client import Subscribed
from distributary.broker.effects import Turn
from distributary.broker.settings import ns
from distributary.broker.subscriptions.ledger import Ledger, WithdrawalRecord
from distributary.broker.subscriptions.messages import Register, Registered, Withdraw, Withdrawn
from distributary.broker.subscriptions.notices import EXPIRED
from distributary.broker.subscriptions.registrar import Registrar
from distributary.broker.subscriptions.subscription import Event, LocalSubscription, State

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Lifecycle"]

# How soon to look again after a client that may yet come back.
_LOOK_NS = ns(1.0)


class Lifecycle:
    """Takes the subscriptions of a ledger from state to state."""

    def __init__(self, core: Core, ledger: Ledger) -> None:
        self.core = core
        self.registrar = Registrar(core)
        self._ledger = ledger
        self._covering = ledger.covering

    def resume(self, turn: Turn) -> None:
        """Go on with what was kept, and tell the roots what they may have missed."""
        for local in self._ledger:
            if self._ledger.get(local.id) is local and local.confirmed:
                # A crash may have kept us from noting that another one is the last now.
                self._retire_others(local, local.since_ns, turn)
        for local in self._ledger:
            self._watch(local, turn)
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
        local = self._ledger.registered(message.id)
        if local is None or local.version != message.version:
            return
        if self.registrar.answered(_registration_name(message.id), message.cells, turn):
            self._confirm(local, turn)

    def withdrawn(self, message: Withdrawn, turn: Turn) -> None:
        """Take a root's word that a registration is forgotten."""
        name = _withdrawal_name(message.version)
        if self.registrar.answered(name, message.cells, turn):
            self.registrar.abandon(name)
            self._ledger.withdrawn(message.version, turn)

    # Registering.

    def begin(self, local: LocalSubscription, turn: Turn) -> None:
        """Enter a subscription, and register it unless it is covered."""
        self._ledger.enter(local)
        self._ledger.keep(local, turn)
        self._watch(local, turn)
        wide = None
        # What covers a later generation may be known to a new root before the earlier ones are,
        # and then order would be lost.
        if self.core.settings.subscriptions.covering and not local.generation:
            wide = self._covering.find(local)
        if wide is None:
            self._register(local, turn)
        else:
            local.step(Event.COVERED)
            self._covering.cover(local, wide.registration)
            self._tell(local, turn)
        self.followers_changed(local, turn)

    def _register(self, local: LocalSubscription, turn: Turn) -> None:
        def make(cells: tuple[int, ...], _: Turn) -> Register:
            return Register(
                local.registration,
                local.version,
                local.reading.filters,
                local.reading.profile,
                local.subscription.tolerance is not None,
                local.since_ns,
                local.confirmed,
                cells,
                local.claim,
                tenant_of(local.client),
            )

        name, subject = _registration_name(local.registration), (local.registration, local.version)

        def after() -> list[str]:
            """What roots send for earlier generations must not come behind what is newer."""
            if not local.generation:
                return []
            earlier = self._ledger.generations(local.id)[: local.generation]
            return [
                _registration_name(one.coverer or one.registration)
                for one in earlier
                if one.live and one.generation < local.generation
            ]

        self.registrar.pursue(name, local.cells, make, turn, subject=subject, after=after)
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
            self.registrar.changed(_registration_name(local.registration))
        self._ledger.keep(local, turn)
        if news:
            self._retire_others(local, turn.now_ns, turn)
            turn.send(local.client, Subscribed(local.subscription.id, local.revision))

    # Changing. The new generation is registered beside the old one. From its confirmation on
    # it is the one that counts. The old one stays for as long as something published before
    # may come, from behind a partition if need be; the time of publication tells which of the
    # two an item is for.

    def change(self, known: LocalSubscription, new: LocalSubscription, turn: Turn) -> None:
        """Put another generation in the place of a subscription."""
        self.begin(new, turn)
        if not known.confirmed:
            # Nobody has been promised anything.
            self.end(known, turn)

    def begin_anew(self, new: LocalSubscription, turn: Turn) -> None:
        """Put a subscription in the place of one that its client has given up elsewhere."""
        self.begin(new, turn)
        for local in self._ledger.generations(new.id):
            if local is not new and local.live:
                self.end(local, turn)

    def _retire_others(self, last: LocalSubscription, until_ns: int, turn: Turn) -> None:
        for local in self._ledger.generations(last.id):
            if local is last or not local.live or local.until_ns:
                continue
            if local.subscription.tolerance is not None or not local.confirmed:
                self.end(local, turn)
            else:
                local.until_ns = until_ns
                self._ledger.keep(local, turn)
                self._watch(local, turn)

    def followers_changed(self, local: LocalSubscription, turn: Turn) -> None:
        """Note that a subscription has come, changed or ended."""
        if local.subscription.tolerance is not None:
            self.core.streams.subscriptions_changed(turn)

    # Ending.

    def _watch(self, local: LocalSubscription, turn: Turn) -> None:
        """Have a subscription end in time: when it expires, or is needed no more."""
        kept_ns = ns(self.core.settings.content.retention_s)
        end_ns = local.until_ns + kept_ns if local.until_ns else local.expires_ns
        if local.watch is not None:
            local.watch.cancel()
            local.watch = None
        if local.live and end_ns is not None:
            local.watch = self.core.timers.at(end_ns, self._look, local)

    def _look(self, turn: Turn, local: LocalSubscription) -> None:
        if self._ledger.registered(local.registration) is not local or not local.live:
            return
        if local.until_ns:
            if turn.now_ns >= local.until_ns + ns(self.core.settings.content.retention_s):
                self.end(local, turn)
        elif local.expires_ns is None or turn.now_ns < local.expires_ns:
            # It has been put off, which has a timer of its own.
            return
        elif self.core.migration.has_left(local.client):
            # Its new home ends it, and it is withdrawn here when all has arrived there.
            local.watch = self.core.timers.at(turn.now_ns + _LOOK_NS, self._look, local)
        else:
            self.core.subscriptions.give_up(local, EXPIRED, turn)

    def watch(self, local: LocalSubscription, turn: Turn) -> None:
        """Note that a subscription may expire at another time than before."""
        self._watch(local, turn)

    def end_all(self, subscription_id: str, turn: Turn) -> None:
        """End a subscription with all its generations."""
        for local in self._ledger.generations(subscription_id):
            if local.live:
                self.end(local, turn)

    def end(self, local: LocalSubscription, turn: Turn) -> None:
        """End a subscription; its registration stays while others need it."""
        local.step(Event.ENDED)
        self._watch(local, turn)
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
        self._watch(local, turn)
        self._withdraw(self._ledger.withdraw(local, turn), turn)
        self.followers_changed(local, turn)

    def _let_go(self, local: LocalSubscription, turn: Turn) -> None:
        """Have those register themselves that one that is ending covers; then withdraw it."""
        for covered in self._covering.covered_by(local.registration):
            self._uncover(covered, turn)
        self._release(local.registration, turn)

    def _uncover(self, registration: str, turn: Turn) -> None:
        local = self._ledger.registered(registration)
        assert local is not None
        if local.state is not State.COVERED:
            return
        wide = self._covering.find(local)
        if wide is not None:
            self._covering.cover(local, wide.registration)
            self._ledger.keep(local, turn)
            return
        local.step(Event.UNCOVERED)
        self._ledger.keep(local, turn)
        self._register(local, turn)

    def _release(self, registration: str, turn: Turn) -> None:
        """Withdraw a registration that is ending, once nobody needs it any more."""
        local = self._ledger.registered(registration)
        if local is None or self._covering.covered_by(registration):
            return
        if local.step(Event.RELEASED):
            self.registrar.abandon(_registration_name(local.registration))
            self._withdraw(self._ledger.withdraw(local, turn), turn)

    def _withdraw(self, withdrawal: WithdrawalRecord, turn: Turn) -> None:
        def make(cells: tuple[int, ...], _: Turn) -> Withdraw:
            return Withdraw(withdrawal.id, withdrawal.version, cells)

        if withdrawal.cells:
            name = _withdrawal_name(withdrawal.version)
            self.registrar.pursue(name, withdrawal.cells, make, turn)
        else:
            self._ledger.withdrawn(withdrawal.version, turn)


def _registration_name(registration: str) -> str:
    return f"s/{registration}"


def _withdrawal_name(version: int) -> str:
    return f"w/{version}"
