"""Bugs planted in brokers on purpose, each with a shipped scenario that notices it.

A checker that never complains proves nothing, and neither does a scenario in which nothing can
go wrong. Every bug breaks one rule that a reasonable implementation might break. Bugs that no
client can notice, because something else repairs what they break, are not here:
`docs/simulator.md` names them and says what that code is for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any

from distributary.broker.adaptation import node
from distributary.broker.adaptation.adaptation import Adaptation
from distributary.broker.addresses import Address
from distributary.broker.client import Publish
from distributary.broker.content import Content, FetchRecord
from distributary.broker.core import Part
from distributary.broker.deliveries.deliveries import Deliveries
from distributary.broker.deliveries.finished import Arrival, Finished, FinishedItems
from distributary.broker.deliveries.queues import Acknowledged, Queued, QueuedTogether
from distributary.broker.dissemination.audience import AbsentHomes
from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.dissemination.messages import Item, Offer, Portion
from distributary.broker.dissemination.task import ContentRecord, ProgressRecord, Sequence
from distributary.broker.driver import Driver
from distributary.broker.host import ClientGone, Effect, Free, Send, SourceOwners, Turn
from distributary.broker.links.link import Kept
from distributary.broker.links.links import Links
from distributary.broker.membership.membership import Membership
from distributary.broker.membership.roster import Known
from distributary.broker.migration.arrivals import ArrivalRecord, Arrivals, HeldRecord
from distributary.broker.migration.departures import DepartureRecord, Departures
from distributary.broker.migration.migration import Migration
from distributary.broker.publishing.intake import Intake
from distributary.broker.publishing.publications import KeptRecord, SettlementRecord
from distributary.broker.publishing.publishing import Publishing
from distributary.broker.relays import Relays
from distributary.broker.rendezvous.messages import Copies, CopiesKept, Registration
from distributary.broker.rendezvous.rendezvous import Registrations, Rendezvous
from distributary.broker.rendezvous.table import EntryRecord, Purpose, Replication, Table
from distributary.broker.streams.messages import Ask
from distributary.broker.streams.stream import (
    Demands,
    Flow,
    LinkCount,
    ObjectRecord,
    TreeRecord,
    rules_between,
)
from distributary.broker.streams.streams import Streams
from distributary.broker.subscriptions.lifecycle import Lifecycle
from distributary.broker.subscriptions.subscription import (
    Covering,
    LocalSubscription,
    SubscriptionRecord,
    VersionRecord,
    _alike,
)
from distributary.broker.subscriptions.subscriptions import Subscriptions
from distributary.simulator.node import Node
from distributary.simulator.workload.publisher import Publisher

__all__ = ["BUGS", "Bug"]


@dataclass(frozen=True)
class Bug:
    """One bug.

    Attributes
    ----------
    scenario
        The shipped scenario that notices it.
    checker
        Who complains.
    part
        What stands in for the healthy part of every broker.
    node
        What stands in for the healthy host of every broker.
    rare
        Whether it takes more than a few runs to notice it.
    also
        Further parts that are broken in the same way, where one of them would hide the other.
    publisher
        What stands in for clients that publish.
    seed
        One with which it was noticed, tried first.
    """

    scenario: str
    checker: str
    part: type[Part] | None = None
    node: type[Node] = Node
    rare: bool = False
    also: tuple[type[Part], ...] = ()
    publisher: type[Publisher] = Publisher
    seed: int = 0

    @property
    def name(self) -> str:
        """What it does wrong, in a few words."""
        if self.publisher is not Publisher:
            return self.publisher.__name__
        return (self.part or self.node).__name__

    @property
    def parts(self) -> Mapping[str, type[Part]]:
        """What a `Simulation` is given."""
        found = (self.part, *self.also)
        return {part.name: part for part in found if part is not None}


def forgets(part: type[Part], *kinds: type) -> type[Part]:
    """Return a part that does not find some of its records after a restart."""

    def load(self: Part, key: str, record: Any) -> None:
        if not isinstance(record, kinds):
            part.load(self, key, record)

    return type(f"Forgets{kinds[0].__name__}", (part,), {"load": load})


def with_handler(part: type[Part], name: str, kind: type, handler: Callable[..., None]) -> Any:
    """Return a part that handles one kind of message in another way."""

    def handlers(self: Part) -> Any:
        return {**part.handlers(self), kind: MethodType(handler, self)}

    return type(name, (part,), {"handlers": handlers})


def ignores(part: type[Part], kind: type) -> Any:
    """Return a part that does nothing about one kind of message."""
    return with_handler(part, f"Ignores{kind.__name__}", kind, lambda *_: None)


# Hosts.


class _Hasty(Driver):
    def _finish(self, effects: list[Effect], message: object | None, sender: Address) -> None:
        sends = [effect for effect in effects if isinstance(effect, Send)]
        self._carry_out(list(sends))
        super()._finish([e for e in effects if not isinstance(e, Send)], message, sender)


class SendsFirst(Node):
    """Sends what comes of a turn before its commit."""

    driver_class = _Hasty


class KeepsHalf(Node):
    """Has half of a commit on its disk when it goes down during one."""

    def tear(self, writes: Mapping[str, bytes | None]) -> None:
        keys = list(writes)
        self.put({key: writes[key] for key in keys[len(keys) // 2 :]})


# Links.


class SendsAstray(Links):
    """Sends each part of a plan to the child that the part before it was for."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._other: str | None = None

    def _astray(self, peer: str, message: object) -> str:
        if isinstance(message, Portion):
            peer, self._other = self._other or peer, peer
        return peer

    def send(self, peer: str, message: object, turn: Turn, **how: Any) -> None:
        super().send(self._astray(peer, message), message, turn, **how)

    def pass_on(self, peer: str, message: object, turn: Turn, **how: Any) -> None:
        super().pass_on(self._astray(peer, message), message, turn, **how)


class AcknowledgesEarly(Links):
    """Acknowledges what only passes before those who get it next have stored it."""

    def _post(self, *args: Any, kept: bool = True, passing: bool = False, **how: Any) -> None:
        super()._post(*args, kept=kept and not passing, **how)


# Relays.


class AnswersAnotherLife(Relays):
    """Gives out the same tickets in every life, and so takes answers to what it asked before."""

    def start(self, turn: Turn) -> None:
        self.core.tickets.life = 0
        super().start(turn)


# Publishers' homes.


class CountsFromOne(Publishing):
    """Numbers publications from 1 again after a restart."""

    def start(self, turn: Turn) -> None:
        super().start(turn)
        for count in self._counts.values():
            count.last = 0


class TakesAsTheyCome(Publishing):
    """Takes what a client has under way in the order in which it arrives."""

    def handlers(self) -> Any:
        return {**super().handlers(), Publish: self._at_once}

    def _at_once(self, message: Publish, sender: Address, turn: Turn) -> None:
        assert self._intake._take(message, sender, None, turn) is None, "it has room for all"


class OffersOnce(Publishing):
    """Does not offer what it keeps to a new root of its cell."""

    def members_changed(self, *_: Any) -> None:
        pass


class NeverBusy(Publishing):
    """Takes whatever comes, however much it keeps and its roots have not taken."""

    def obstacle(self, *_: Any) -> None:
        return None


class IgnoresBusy(Publisher):
    """Publishes again at its own pace, whatever its home says."""

    def _busy(self, message: Any) -> None:
        pass


# Roots.


class _Loyal(AbsentHomes):
    def _relieve(self, *_: Any) -> None:
        pass


class NeverGivesUp(Dissemination):
    """Keeps everything for homes that are away."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._absent.__class__ = _Loyal


class _TakesAny(Sequence):
    __slots__ = ()

    def ready(self) -> Offer | None:
        if not self._early:
            return None
        number = min(self._early)
        self.following = max(self.following or 0, number + 1)
        return self._early.pop(number)

    def is_new(self, offer: Offer) -> bool:
        super().is_new(offer)
        number = offer.item.number
        if number in self.tasks:
            return False
        self._early[number] = offer
        return True


class TakesInAnyOrder(Dissemination):
    """Takes the items of a publisher as they come."""

    def _sequence(self, item: Any) -> Sequence:
        return self._sequences.setdefault(item.sequence, _TakesAny())


def _offered(self: Any, offer: Offer, sender: Address, turn: Turn) -> None:
    Dissemination._offered(self, replace(offer, root=self.core.identity), sender, turn)


TakesWhatIsForOthers = with_handler(Dissemination, "TakesWhatIsForOthers", Offer, _offered)


class IgnoresLateRegistrations(Dissemination):
    """Does not go through what it still has for a registration that others have confirmed."""

    def registered_late(self, *_: Any) -> None:
        pass


class _TrustsItself(Registrations):
    def _safe(self, entry: Any, purpose: Purpose, cell: int, now_ns: int) -> bool:
        return purpose is Purpose.REGISTER or super()._safe(entry, purpose, cell, now_ns)


class ConfirmsAlone(Rendezvous):
    """Confirms a registration before the surrogate has it, or publishers' homes know of it."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._registry.__class__ = _TrustsItself


class _CountsHomes(Replication):
    def keepers(self, home: str, cell: int) -> tuple[str, ...]:
        return self.line(cell)[:2]


class CountsHomes(Rendezvous):
    """Confirms a registration that only one broker has besides its home."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._replication.__class__ = _CountsHomes


class _TrustsHomes(Registrations):
    def _safe(self, entry: Any, purpose: Purpose, cell: int, now_ns: int) -> bool:
        if purpose is Purpose.REGISTER:
            return self.replication.is_root(cell) and self.replication.safe(entry, cell)
        # Those who have a copy know what homes may believe, too, and would wait.
        return purpose is Purpose.COPY or super()._safe(entry, purpose, cell, now_ns)


class ConfirmsUnannounced(Rendezvous):
    """Confirms a registration while homes may still believe that nobody is interested."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._registry.__class__ = _TrustsHomes


def _store_nothing(self: Any, message: Copies, sender: Address, turn: Turn) -> None:
    held = tuple(copy.held for copy in message.copies)
    self.core.links.send(sender, CopiesKept(held, message.advertisers), turn)


StoresNoCopies = with_handler(Rendezvous, "StoresNoCopies", Copies, _store_nothing)


# Subscribers' homes.


class NeverRemembers(Deliveries):
    """Takes everything that arrives for new."""

    def _store(self, arrival: Arrival, turn: Turn) -> None:
        known = self._items.get(arrival.item.identity)
        if known is not None:
            self._items.put(replace(known, subscriptions=()))
        super()._store(arrival, turn)


class ConfirmsUnqueued(Deliveries):
    """Leaves out what its own graph does not know, and confirms it all the same."""

    def _put(self, local: Any, parcel: Queued, item: Any, *rest: Any) -> bool:
        names = self.core.settings.graph_for(item.size_bytes).names
        if parcel.reason is None and parcel.blob is not None and parcel.media_type not in names:
            return True
        return super()._put(local, parcel, item, *rest)


class _TellsTenantsApartNever(Table):
    def matches(
        self, cell: int, publication: Any, tenant: str = "", *, tolerance: bool
    ) -> list[Registration]:
        found: list[Registration] = []
        for one in sorted({tenant for tenant, _ in self._matchers.get(cell, {})}):
            found += super().matches(cell, publication, one, tolerance=tolerance)
        return found


class MatchesAcrossTenants(Rendezvous):
    """Finds the registrations that an item matches, whosever they are."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._table.__class__ = _TellsTenantsApartNever


class DeliversAcrossTenants(Deliveries):
    """Puts what a root sends into the queues that it names, whosever they are."""

    def _behind(self, name: str, item: Any) -> Any:
        local = self.core.subscriptions.get(name)
        return local is not None, [] if local is None else [local]


class _CoversAcrossTenants(Covering):
    def find(
        self, narrow: LocalSubscription, arrives: Callable[[Address], bool] = lambda _: False
    ) -> LocalSubscription | None:
        for (_, *alike), wide in list(self._wide.items()):
            if alike == [*_alike(narrow)[1:]]:
                narrower = copy(narrow)
                narrower.client = next((one.client for one in wide.values()), narrow.client)
                found = super().find(narrower)
                if found is not None and found.id != narrow.id:
                    return found
        return None


class CoversAcrossTenants(Subscriptions):
    """Keeps a subscription back because another tenant has a wider one."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._ledger.covering.__class__ = _CoversAcrossTenants


class _HoldsNothingBack(FinishedItems):
    def holds_back(self, arrival: Arrival) -> bool:
        return False


class HandsOutAtOnce(Deliveries):
    """Hands out an item before an earlier one of the same publisher has come."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._items.__class__ = _HoldsNothingBack


class _CoversAnything(Covering):
    def find(
        self, narrow: LocalSubscription, arrives: Callable[[Address], bool] = lambda _: False
    ) -> LocalSubscription | None:
        alike = self._wide.get(_alike(narrow), {})
        return next((wide for wide in alike.values() if wide is not narrow), None)


class CoversTooEagerly(Subscriptions):
    """Keeps a subscription back because there is another one of a like device."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._ledger.covering.__class__ = _CoversAnything


class _LetsGo(Lifecycle):
    def _uncover(self, registration: str, turn: Turn) -> None:
        local = self._ledger.registered(registration)
        assert local is not None
        self._covering.cover(local, None)


class ForgetsCovered(Subscriptions):
    """Does not register those that a subscription has covered when it ends."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._lifecycle.__class__ = _LetsGo


class _NeverLooks(Lifecycle):
    def _watch(self, *_: Any) -> None:
        pass


class LivesForEver(Subscriptions):
    """Does not end a subscription that has expired."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._lifecycle.__class__ = _NeverLooks


class _EndsAtOnce(Lifecycle):
    def _retire_others(self, last: LocalSubscription, until_ns: int, turn: Turn) -> None:
        for local in self._ledger.generations(last.id):
            if local is not last and local.live:
                self.end(local, turn)


class ForgetsWhatWasBefore(Subscriptions):
    """Ends what a subscription was before a change as soon as the change is answered."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._lifecycle.__class__ = _EndsAtOnce


class _AnswersAtOnce(Lifecycle):
    def change(self, known: LocalSubscription, new: LocalSubscription, turn: Turn) -> None:
        super().change(known, new, turn)
        self._tell(new, turn)


class ChangesAtOnce(Subscriptions):
    """Answers a change before the new registration is at its roots."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._lifecycle.__class__ = _AnswersAtOnce


class ServesBoth(Deliveries):
    """Goes on serving what a subscription was before a change."""

    def _owes(self, local: LocalSubscription, item: Item) -> bool:
        until_ns, local.until_ns = local.until_ns, 0
        wanted = super()._owes(local, item)
        local.until_ns = until_ns
        return wanted


class KeepsToNoWindow(Deliveries):
    """Sends clients everything there is for them, whatever they have acknowledged."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._queues._window = (10**9, 10**15)


class WaitsForMore(Deliveries):
    """Does not send a client that is back what has waited for it."""

    def client_back(self, *_: Any) -> None:
        pass


# Clients that move.


class _KeepsToItself(Departures):
    def redirect(self, *_: Any) -> None:
        pass


class RedirectsNothing(Migration):
    """Keeps what still comes for a client that has left to itself."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.departures = _KeepsToItself(core)


class _CatchesUpNever(Departures):
    def _catch_up(self, *_: Any) -> None:
        pass


class PassesOnNothingKept(Migration):
    """Does not redirect what came while a client's new home was being told of it."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.departures = _CatchesUpNever(core)


class _HoldsNothing(Arrivals):
    def holds(self, client: Address) -> bool:
        return False


class NeverHolds(Migration):
    """Delivers what roots send for a client before what its old home still redirects."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.arrivals = _HoldsNothing(core)


class DrainsAtOnce(Subscriptions):
    """Says that nothing is on its way to a client that has left, without asking the roots."""

    def withdrawing(self, ids: Any) -> bool:
        return False


class TakesNoMemories(Deliveries):
    """Does not take over what a client that comes has had."""

    def adopt_client(self, record: Any, home: str, turn: Turn) -> None:
        super().adopt_client(replace(record, finished=()), home, turn)


class TakesNoQueues(Deliveries):
    """Does not take over what a client that comes has not acknowledged."""

    def adopt_client(self, record: Any, home: str, turn: Turn) -> None:
        queues = tuple((name, last, last, ()) for name, last, *_ in record.queues)
        super().adopt_client(replace(record, queues=queues), home, turn)


# Content.


class FreesWhatIsReferredTo(Content):
    """Frees content as soon as one of the records that refer to it is erased."""

    def release(self, tenant: str, blob: Any, turn: Turn) -> None:
        super().release(tenant, blob, turn)
        if blob is not None and self.has(blob):
            self._known[blob.digest].size_bytes = None
            turn.effects.append(Free(blob.digest))


class NeverFrees(Content):
    """Keeps content to which nothing refers any more."""

    def _review(self, digest: str, turn: Turn) -> None:
        pass


class _BelievesClients(Intake):
    def _missing(self, *_: Any) -> None:
        return None


class TakesWithoutContent(Publishing):
    """Accepts publications whose content is not there."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._intake.__class__ = _BelievesClients


class LendsNothing(Content):
    """Does not keep what the new home of a client has yet to fetch."""

    def lend(self, *_: Any) -> None:
        pass


# Streams.


class _ComparesWithReceived(Flow):
    def _pass_on(self, turn: Turn, stream: Any, version: Any) -> None:
        super()._pass_on(turn, stream, version)
        for branch in stream.branches:
            if branch.last is not None and stream.copy is not None:
                branch.last = stream.copy


class ComparesWithReceived(Streams):
    """Compares a version with the one before it, not with the last one it sent."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._flow.__class__ = _ComparesWithReceived


class _IgnoresOwnTolerance(Demands):
    def rely(self, stream: Any) -> None:
        super().rely(stream)
        for branch in stream.branches:
            branch.rules = rules_between(None, branch.amounts)


class IgnoresOwnTolerance(Streams):
    """Passes on as if its own copy were never off."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._demands.__class__ = _IgnoresOwnTolerance


class _TellsOnce(Flow):
    def repeat(self, stream: Any, turn: Turn) -> None:
        pass


class TellsClientsOnce(Streams):
    """Does not repeat the last version to a client that may have missed it."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._flow.__class__ = _TellsOnce


class NeverReleases(Adaptation):
    """Lets whom it holds wait until the hold expires."""

    def _do(self, output: node.Output, turn: Turn) -> None:
        if not isinstance(output, node.SendRelease):
            super()._do(output, turn)


ONCE = "exactly once"

BUGS: tuple[Bug, ...] = (
    Bug("migration-torn", ONCE, forgets(Links, Kept)),
    Bug("migration-torn", ONCE, node=SendsFirst),
    Bug("migration-torn", ONCE, node=KeepsHalf),
    Bug("map-small", ONCE, SendsAstray),
    Bug("relays", ONCE, AcknowledgesEarly, seed=4),
    Bug("converters", "selection", AnswersAnotherLife, seed=3),
    Bug("crash-restart", ONCE, forgets(Membership, Known), rare=True),
    Bug("pipeline-crash", ONCE, CountsFromOne),
    Bug("reboot", "content", forgets(Publishing, KeptRecord, SettlementRecord)),
    Bug("pipeline-crash", "order", TakesAsTheyCome),
    Bug("foreign", "sources", ignores(Publishing, SourceOwners)),
    Bug("split-late", ONCE, OffersOnce),
    Bug("reboot", "content", forgets(Dissemination, ContentRecord, ProgressRecord)),
    Bug("split-loss", "order", TakesInAnyOrder),
    Bug("changes-split", ONCE, TakesWhatIsForOthers, rare=True, seed=2),
    Bug("split-late", ONCE, IgnoresLateRegistrations),
    Bug("reboot", ONCE, forgets(Rendezvous, EntryRecord)),
    Bug("lost-unsafe", ONCE, ConfirmsAlone, seed=3),
    Bug("interest-split", ONCE, ConfirmsUnannounced, seed=2),
    Bug("lost-replica", ONCE, CountsHomes, seed=2),
    Bug("lost-root", ONCE, StoresNoCopies, seed=1),
    Bug("reboot", ONCE, forgets(Deliveries, Finished)),
    Bug("reboot", ONCE, forgets(Deliveries, Queued, QueuedTogether)),
    Bug("reboot", ONCE, forgets(Deliveries, Acknowledged)),
    Bug("lossy", ONCE, NeverRemembers),
    Bug("newer-graphs", ONCE, ConfirmsUnqueued),
    Bug("tenants", "selection", DeliversAcrossTenants, also=(MatchesAcrossTenants,)),
    Bug("tenants", ONCE, CoversAcrossTenants),
    Bug("lossy", "order", HandsOutAtOnce),
    Bug("reboot", ONCE, forgets(Subscriptions, SubscriptionRecord)),
    Bug("changes-migration", ONCE, forgets(Subscriptions, VersionRecord), seed=1),
    Bug("churn", ONCE, CoversTooEagerly, seed=1),
    Bug("covering", ONCE, ForgetsCovered),
    Bug("churn", "ends", LivesForEver),
    Bug("changes", ONCE, ForgetsWhatWasBefore),
    Bug("changes", "order", ChangesAtOnce, seed=5),
    Bug("changes", "selection", ServesBoth),
    Bug("overload", "stores", NeverBusy),
    Bug("overload", "pressure", publisher=IgnoresBusy),
    Bug("absent", "delays", NeverGivesUp, seed=4),
    Bug("away", "pressure", KeepsToNoWindow),
    Bug("away", "pressure", ignores(Deliveries, ClientGone)),
    Bug("away", ONCE, WaitsForMore, seed=1),
    Bug("mass-migration", ONCE, RedirectsNothing),
    Bug("migration-torn", ONCE, PassesOnNothingKept),
    Bug("migration-torn", "order", NeverHolds),
    Bug("content-migration", ONCE, DrainsAtOnce, rare=True, seed=2),
    Bug("migration-lost", ONCE, TakesNoMemories, seed=1),
    Bug("migration-torn", ONCE, TakesNoQueues),
    Bug("migration-crash", ONCE, forgets(Migration, ArrivalRecord, HeldRecord)),
    Bug("migration-crash", ONCE, forgets(Migration, DepartureRecord)),
    Bug("migration-torn", ONCE, forgets(Migration, HeldRecord)),
    Bug("fetch-later", "selection", FreesWhatIsReferredTo),
    Bug("content-migration", "content", NeverFrees),
    Bug("lossy", "selection", TakesWithoutContent),
    Bug("content-migration", "selection", forgets(Content, FetchRecord)),
    Bug("content-migration", "selection", LendsNothing, seed=3),
    Bug("stream-instant", "tolerances", ComparesWithReceived),
    Bug("stream-instant", "tolerances", IgnoresOwnTolerance),
    Bug("stream-faults", "tolerances", TellsClientsOnce),
    Bug("stream-faults", "tolerances", ignores(Streams, Ask)),
    Bug("stream-faults", "broker", forgets(Streams, ObjectRecord, TreeRecord)),
    Bug("stream-faults", "broker", forgets(Streams, LinkCount), rare=True),
    Bug("stream-small", "holds", NeverReleases),
)
