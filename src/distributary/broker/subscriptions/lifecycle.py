"""The life of subscriptions: registered or covered, changed, ended, withdrawn, and told of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Ended, Subscribed, SubscriptionsListed, SubscriptionStatus
from distributary.broker.core import Core
from distributary.broker.encoding import MESSAGE_BYTES_MAX, encodable, journal_key, since
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.broker.subscriptions.registrar import (
    Register,
    Registered,
    Registrar,
    Withdraw,
    Withdrawn,
)
from distributary.broker.subscriptions.subscription import (
    Ledger,
    LocalSubscription,
    SubscriptionEvent,
    SubscriptionState,
    WithdrawalRecord,
    scoped_id,
)
from distributary.broker.timers import Backoff

__all__ = [
    "EXPIRED",
    "MISSED",
    "NOTHING_QUEUED",
    "TOO_MANY_BYTES",
    "TOO_OLD",
    "Depth",
    "Lifecycle",
    "NoticeRecord",
    "Notices",
    "listed",
    "status_of",
]

# Notices: what clients are told of how subscriptions stand, and when one has ended by itself.
#
# A notice is kept until its client has taken it, which is when it answers with `Unsubscribe` or
# subscribes anew. One whose client stays away is not kept for ever.

EXPIRED = "expired"
TOO_MANY_BYTES = "bytes"
TOO_OLD = "age"
MISSED = "missed"


@encodable(664)
@dataclass(frozen=True, slots=True)
class NoticeRecord:
    """A notice that its client has not taken, as it is kept.

    The fields are those of `Ended`, and the epoch that of the subscription.
    """

    client: str
    id: str
    reason: str
    count: int
    first: int
    last: int
    ended_ns: int
    missed: int = since(2, 0)
    epoch: int = since(2, 0)

    @property
    def name(self) -> str:
        """What brokers call the subscription."""
        return scoped_id(self.client, self.id)

    def message(self) -> Ended:
        """Return it as the client is told."""
        return Ended(self.id, self.reason, self.count, self.first, self.last, self.missed)


class Notices:
    """The notices that clients of one broker have not taken."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._by_name: dict[str, NoticeRecord] = {}
        self._counts: dict[Address, int] = {}
        links, subscriptions = core.settings.links, core.settings.subscriptions
        self._backoff = Backoff(ns(links.retry_s), ns(links.retry_s_max))
        self._kept_ns = ns(subscriptions.queue_s)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def load(self, record: NoticeRecord) -> None:
        """Take back what was kept."""
        self._enter(record)

    def start(self, turn: Turn) -> None:
        """Go on telling."""
        for name in sorted(self._by_name):
            self._tell(turn, self._by_name[name], 0)

    def add(self, notice: NoticeRecord, turn: Turn) -> None:
        """Tell a client until it has taken it."""
        self._enter(notice)
        turn.persist(_key(notice.name), notice)
        self._tell(turn, notice, 0)

    def tell(self, name: str, turn: Turn) -> None:
        """Tell a client again at once, if there is something to tell."""
        notice = self._by_name.get(name)
        if notice is not None:
            turn.send(notice.client, notice.message())

    def take(self, name: str, turn: Turn) -> None:
        """Forget a notice, if there is one, which its client has taken."""
        notice = self._by_name.pop(name, None)
        if notice is not None:
            self._counts[notice.client] -= 1
            if not self._counts[notice.client]:
                del self._counts[notice.client]
            turn.erase(_key(name))

    def forget_before(self, client: Address, epoch: int, turn: Turn) -> None:
        """Forget what has ended in an earlier epoch: its client has asked for it elsewhere."""
        for notice in self.of_client(client) if self.knows(client) else ():
            if notice.epoch < epoch:
                self.take(notice.name, turn)

    def _enter(self, notice: NoticeRecord) -> None:
        if notice.name not in self._by_name:
            self._counts[notice.client] = self.count(notice.client) + 1
        self._by_name[notice.name] = notice

    def of_client(self, client: Address) -> tuple[NoticeRecord, ...]:
        """Return those of a client, in order."""
        own = (self._by_name[name] for name in sorted(self._by_name))
        return tuple(notice for notice in own if notice.client == client)

    def count(self, client: Address) -> int:
        """Return how many notices a client has to take."""
        return self._counts.get(client, 0)

    def knows(self, client: Address) -> bool:
        """Whether a client has notices to take."""
        return client in self._counts

    def _tell(self, turn: Turn, notice: NoticeRecord, attempts: int) -> None:
        if self._by_name.get(notice.name) is not notice:
            return
        if turn.now_ns >= notice.ended_ns + self._kept_ns:
            self.take(notice.name, turn)
            return
        if not self._core.migration.departures.has_left(notice.client):
            turn.send(notice.client, notice.message())
        at_ns = turn.now_ns + self._backoff.after(attempts)
        self._core.timers.at(at_ns, self._tell, notice, attempts + 1)


def _key(name: str) -> str:
    return f"subscriptions/n/{journal_key(name)}"


# More than all but the id of a status takes, and than all of a message but what it lists.
_STATUS_BYTES = 96
_MESSAGE_BYTES = 64


class Depth(NamedTuple):
    """How much waits in a queue; the fields are those of `client.SubscriptionStatus`."""

    waiting: int
    waiting_bytes: int
    acknowledged: int
    last: int
    oldest_s: float


NOTHING_QUEUED = Depth(0, 0, 0, 0, 0.0)


def status_of(local: LocalSubscription, depth: Depth) -> SubscriptionStatus:
    """Return how a subscription stands, in its client's words."""
    state = local.state.name.lower()
    own = local.subscription.id
    return SubscriptionStatus(own, local.revision, state, local.confirmed, *depth)


def listed(request: int, standing: Iterable[SubscriptionStatus]) -> list[SubscriptionsListed]:
    """Return the answer to a client, in as many parts as it takes; one when there is nothing."""
    parts: list[list[SubscriptionStatus]] = [[]]
    room = MESSAGE_BYTES_MAX - _MESSAGE_BYTES
    left = room
    for status in standing:
        size = _STATUS_BYTES + len(status.id.encode())
        if size > left:
            parts.append([])
            left = room
        parts[-1].append(status)
        left -= size
    return [
        SubscriptionsListed(request, number, len(parts), tuple(part))
        for number, part in enumerate(parts, 1)
    ]


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
            if local.state is SubscriptionState.ENDING:
                self._let_go(local, turn)
        for _, withdrawal in sorted(self._ledger.withdrawals.items()):
            self._withdraw(withdrawal, turn)
        # Brokers that start together should not all renew at the same moment.
        self._renew_later(turn, self.core.rng.uniform(0.5, 1.0))

    # What roots answer.

    def registered(self, message: Registered, sender: Address, turn: Turn) -> None:
        """Take a root's word that a registration is safe."""
        local = self._ledger.registered(message.id)
        if local is None or local.version != message.version:
            return
        if not local.confirmed:
            own = set(local.cells).intersection(message.cells)
            local.vouched.update(dict.fromkeys(own, (sender, message.entered_ns)))
        if self.registrar.answered(_registration_name(message.id), message.cells, turn):
            self._confirm(local, turn)

    def withdrawn(self, message: Withdrawn, sender: Address, turn: Turn) -> None:
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
            wide = self._covering.find(local, self.core.migration.arrivals.holds)
        if wide is None:
            self._register(local, turn)
        else:
            local.step(SubscriptionEvent.COVERED)
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
                local.vouched_in(cells) if local.confirmed else (),
                tuple(
                    (one.coverer or one.registration, tuple(sorted({*cells} & {*one.cells})))
                    for one in earlier()
                ),
            )

        name, subject = _registration_name(local.registration), (local.registration, local.version)

        def earlier() -> list[LocalSubscription]:
            """What roots send for earlier generations must not come behind what is newer."""
            if not local.generation:
                return []
            known = self._ledger.generations(local.id)[: local.generation]
            return [one for one in known if one.live and one.generation < local.generation]

        def after() -> list[str]:
            return [_registration_name(one.coverer or one.registration) for one in earlier()]

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
        if not local.step(SubscriptionEvent.CONFIRMED):
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
            if turn.now_ns < local.until_ns + ns(self.core.settings.content.retention_s):
                return
            if self.core.migration.moves(local.client):
                # The old home redirects what roots still owe it for this one, and the new one
                # takes that for what it still knows.
                local.watch = self.core.timers.at(turn.now_ns + _LOOK_NS, self._look, local)
            else:
                self.depart(local, turn)
        elif local.expires_ns is None or turn.now_ns < local.expires_ns:
            # It has been put off, which has a timer of its own.
            return
        elif self._ledger.get(local.id) is not local:
            # So has what its client asked for later, and roots may not have heard of yet.
            return
        elif self.core.migration.departures.has_left(local.client):
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
        local.step(SubscriptionEvent.ENDED)
        self._watch(local, turn)
        if local.state is SubscriptionState.ENDED:
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
        """End a subscription whose client has moved, or a generation that was changed long ago.

        One that was covered is withdrawn as well: roots answer when nothing is on its way.
        """
        if local.state is not SubscriptionState.COVERED:
            self.end(local, turn)
            return
        local.step(SubscriptionEvent.ENDED)
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
        if local.state is not SubscriptionState.COVERED:
            return
        wide = self._covering.find(local, self.core.migration.arrivals.holds)
        if wide is not None:
            self._covering.cover(local, wide.registration)
            self._ledger.keep(local, turn)
            return
        local.step(SubscriptionEvent.UNCOVERED)
        self._ledger.keep(local, turn)
        self._register(local, turn)

    def _release(self, registration: str, turn: Turn) -> None:
        """Withdraw a registration that is ending, once nobody needs it any more."""
        local = self._ledger.registered(registration)
        if local is None or self._covering.covered_by(registration):
            return
        if local.step(SubscriptionEvent.RELEASED):
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
