"""Links: messages between brokers that arrive, and the way to the root of a key.

A message is kept, sent, and sent again until it is acknowledged. The receiver hands it to
the part that it is for, notes that it did, and acknowledges last, when all that came of the
message is durable. It thus arrives once, but not in order: what came after a lost message is
not held up by it.

Content is on the disk of whoever sends it already, who begins with it anew after a crash. It is
not kept a second time, and its receiver tells by its name that it has had it. Brokers that it
only passes store nothing at all: see `link`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.core import Core, Handler, Part
from distributary.broker.encoding import decode, encode
from distributary.broker.host import Turn
from distributary.broker.links.link import (
    LINK,
    SPAN,
    Deduplication,
    DeduplicationRecord,
    Envelope,
    Gathering,
    Kept,
    LinkEvent,
    LinkState,
    Outbox,
    Passage,
    Passages,
    Retries,
    link_state,
)
from distributary.broker.links.messages import (
    CHECKS,
    FRAGMENT_BYTES,
    FRAGMENTS_SINCE,
    Fragment,
    Gathered,
    Hop,
    HopAck,
    Parcel,
    Reassembly,
    Routed,
    Step,
)
from distributary.broker.membership.roster import MembersChanged, MemberStatus
from distributary.broker.settings import ns
from distributary.broker.telemetry import Misbehaved
from distributary.broker.timers import Backlog
from distributary.errors import PeerMisbehaved

__all__ = ["Links"]

# Brokers that do not agree yet on who is there may send a message round in circles.
_HOPS_MAX = 64

# A peer that leaves this many attempts without acknowledgement is looked after.
_DOUBTFUL_ATTEMPTS = 2

# Of a digit of a broker's name.
_DIGIT_VALUES = 16

# Behind the version.
_KIND = slice(1, 3)
_ROUTED = encode(Routed("", "", b"", ()))[_KIND]
_FRAGMENT = encode(Fragment(0, 0, 1, b""))[_KIND]

_CARRIERS = frozenset((Hop, HopAck, Gathered, Fragment))

Passed = dict[str, list[tuple[int, int, int]]]
"""What has passed, by who has sent it: its number, when it was sent and when it came."""

# Numbers of one life of a broker are above those of all its lives before.
_NUMBERS_PER_LIFE = 1 << 32


class Links(Part):
    """The messages of one broker to others that must arrive.

    Attributes
    ----------
    path
        While a message that was routed is handled at its root: the brokers that it passed,
        from its origin to the root.
    """

    name = "links"
    uses = ("membership",)
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.path: tuple[Step, ...] = ()
        self._retry_ns = ns(core.settings.links.retry_s)
        self._retry_ns_max = ns(core.settings.links.retry_s_max)
        self._lost_ns = ns(core.settings.membership.lost_s)
        self._outboxes: dict[str, Outbox] = {}
        self._seen: dict[str, Deduplication] = {}
        self._unfinished: dict[str, Reassembly] = {}
        self._loaded: dict[str, list[Envelope]] = {}
        self._retries = Retries(core.timers, wanted=self._is_due, again=self._again)
        self._flying = 0
        self._gathering = Gathering(core)
        self._passages = Passages()
        # What is being handled, or sent another way, if it may pass.
        self._passage: Passage | None = None
        self._backlog = Backlog(core.timers)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Hop: self._hop,
            HopAck: self._acknowledged,
            Gathered: self._gathered,
            Routed: self._routed,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back a message that is to arrive, or what has come or been handled of a peer."""
        what, _, rest = key.partition("/")
        if what == "seen":
            assert isinstance(record, DeduplicationRecord)
            self._seen[rest] = Deduplication(record.floor, record.above)
        elif what == "part":
            assert isinstance(record, Fragment)
            self._unfinished.setdefault(rest.partition("/")[0], Reassembly()).take_back(record)
        else:
            assert isinstance(record, Kept)
            peer, _, number = rest.partition("/")
            self._loaded.setdefault(peer, []).append(Envelope(int(number), record.message))

    def start(self, turn: Turn) -> None:
        """Send again what has not been acknowledged."""
        for peer, envelopes in sorted(self._loaded.items()):
            outbox = self._outbox_to(peer)
            for envelope in self._in_parcels(peer, envelopes, turn):
                envelope.about = self._about(envelope)
                self._leave(peer, outbox, envelope, turn, flying=outbox.put(envelope))
        self._loaded.clear()
        for peer in sorted(self._seen):
            if not self.core.membership.is_alive(peer):
                self.core.timers.at(turn.now_ns + self._lost_ns, self._forget, peer)

    @property
    def idle(self) -> bool:
        """Whether every message has been acknowledged, and nothing waits to be said."""
        return not (self._backlog or any(self._outboxes.values()) or self._gathering)

    def carries(self, about: object) -> bool:
        """Whether a message about something waits to be acknowledged by a peer that is there."""
        return any(
            about in outbox.abouts
            for outbox in self._outboxes.values()
            if outbox.state is LinkState.OPEN
        )

    def is_full(self, peer: str | None) -> bool:
        """Whether too much waits already for a peer; None is the own broker."""
        outbox = None if peer is None else self._outboxes.get(peer)
        limits = self.core.settings.links
        return outbox is not None and (
            len(outbox) >= limits.outbox_items or outbox.size_bytes >= limits.outbox_bytes
        )

    def send(
        self,
        peer: str,
        message: object,
        turn: Turn,
        *,
        kept: bool = True,
        hops: int = 1,
        about: tuple[object, ...] = (),
    ) -> None:
        """Send a message that arrives once, if it can ever arrive.

        If the peer is lost for ever, the part that handles such messages gets it back by
        `undeliverable`; it may have arrived before. A message to the own broker is handled
        at once.

        Parameters
        ----------
        kept
            Whether it is to be written to disk. If not, whoever sends it does so again after
            a crash, when it may arrive twice, and a peer that goes down does not get it.
        hops
            How many brokers in a row store it, or hand it on, before it is acknowledged.
        """
        if peer == self.core.identity:
            self.core.handle_own(message, turn)
        else:
            self._post(peer, self.core.encoded(message), turn, kept=kept, hops=hops, about=about)

    def pass_on(self, peer: str, message: object, turn: Turn, *, hops: int = 1) -> None:
        """Hand on what has come and is not stored here; that is acknowledged when the peer has.

        What came may be handed on to several. Whoever handles such messages knows those that
        it has had before.
        """
        assert peer != self.core.identity
        self._post(peer, self.core.encoded(message), turn, passing=True, hops=hops)

    def tell_soon(self, peer: str, message: object, turn: Turn) -> None:
        """Send a message that is asked for again if it gets lost, together with others."""
        if peer == self.core.identity:
            self.core.handle_own(message, turn)
        else:
            self._gathering.add(peer, message, turn)

    def route(self, key: str, message: object, turn: Turn, *, kept: bool = True) -> None:
        """Send a message, hop by hop, to the root of a key, which handles it as from us.

        It arrives at a broker that takes itself for the root. While brokers do not agree on
        who is there it may arrive twice, or get lost by going round in circles; when one on the
        way crashes it may arrive twice, too. `kept` is as for `send`.
        """
        own = Step(self.core.identity, 0.0, self.core.membership.node_cost)
        hop = self.core.membership.next_hop(key)
        if hop is None:
            before, self.path = self.path, (own,)
            try:
                self.core.handle_own(message, turn)
            finally:
                self.path = before
        else:
            routed = Routed(key, self.core.identity, self.core.encoded(message), (own,))
            hops = self._hops_to(key, hop)
            about: tuple[object, ...] = getattr(message, "about", ())
            self._post(hop, self.core.encoded(routed), turn, kept=kept, hops=hops, about=about)

    def snapshot(self) -> dict[str, Any]:
        """Return what waits for which peer."""
        return {
            "outboxes": [
                {
                    "peer": peer,
                    "state": outbox.state.name.lower(),
                    "messages": sum(1 for _ in outbox),
                    "bytes": outbox.size_bytes,
                }
                for peer, outbox in sorted(self._outboxes.items())
                if outbox
            ]
        }

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Pause, go on, or give up."""
        for peer in change.gone:
            if peer in self._seen:
                self.core.timers.at(turn.now_ns + self._lost_ns, self._forget, peer)
            if self._changes(peer, LinkEvent.GONE):
                self._give_back(peer, list(self._outboxes[peer]), turn)
        for peer in change.down:
            if self._changes(peer, LinkEvent.DOWN):
                # What is for the root of a key goes another way, and what is not kept is sent
                # anew by whoever sent it first.
                other = [one for one in self._outboxes[peer] if _is_routed(one) or not one.kept]
                self._give_back(peer, other, turn)
        for peer in change.came:
            if self._changes(peer, LinkEvent.CAME):
                outbox = self._outboxes[peer]
                outbox.timeout_ns = self._timeout_ns(peer)
                for envelope in list(outbox.flight.values()):
                    envelope.attempts = 0
                    self._transmit(peer, outbox, envelope, turn)

    def _about(self, envelope: Envelope) -> tuple[object, ...]:
        """Return what a message of this broker to a root is about, which was on the disk."""
        if not _is_routed(envelope):
            return ()
        parcel = envelope.parcel
        routed = decode(envelope.message if parcel is None else parcel.message)
        if routed.origin != self.core.identity:
            return ()
        about: tuple[object, ...] = getattr(decode(routed.message), "about", ())
        return about

    def _post(
        self,
        peer: str,
        message: bytes,
        turn: Turn,
        *,
        kept: bool = True,
        passing: bool = False,
        hops: int = 1,
        about: tuple[object, ...] = (),
    ) -> None:
        outbox = self._outboxes.get(peer)
        if outbox is None:
            outbox = self._outbox_to(peer)
        if len(message) > FRAGMENT_BYTES and self.core.membership.version >= FRAGMENTS_SINCE:
            # Kept, as its parts are by who gets them.
            parcel, parts = Parcel.split(message, outbox.next_number)
            for part in parts:
                envelope = Envelope(outbox.next_number, encode(part), parcel, about)
                self._put(peer, outbox, envelope, turn)
            return
        envelope = Envelope(outbox.next_number, message, about=about)
        envelope.kept, envelope.hops = kept, hops
        passage = self._passage if passing else None
        if passage is not None:
            if outbox.state is LinkState.OPEN and outbox.has_room:
                envelope.kept, envelope.passage = False, passage
            else:
                envelope.kept = True
        self._put(peer, outbox, envelope, turn)

    def _put(self, peer: str, outbox: Outbox, envelope: Envelope, turn: Turn) -> None:
        flying = outbox.put(envelope)
        if envelope.passage is not None:
            envelope.passage.left += 1
        if envelope.kept:
            turn.persist(_key(peer, envelope.number), Kept(envelope.message))
        self._leave(peer, outbox, envelope, turn, flying=flying)

    def _in_parcels(self, peer: str, loaded: list[Envelope], turn: Turn) -> list[Envelope]:
        """Return what was kept, in order, with the parts of one message in a parcel.

        Parts of which some are not there are of a message that was never sent, or that has
        arrived, as a crash came between what was written of it.
        """
        parts: dict[int, list[Fragment]] = {}
        envelopes = sorted(loaded, key=lambda envelope: envelope.number)
        for envelope in envelopes:
            if envelope.message[_KIND] == _FRAGMENT:
                part: Fragment = decode(envelope.message)
                parts.setdefault(part.first, []).append(part)
        found = []
        parcels: dict[int, Parcel] = {}
        for first, some in parts.items():
            if len(some) == some[0].count:
                whole = Parcel(b"".join(part.data for part in some), first, len(some))
                parcels.update(dict.fromkeys(whole.numbers, whole))
        for envelope in envelopes:
            envelope.parcel = parcels.get(envelope.number)
            if envelope.parcel is None and envelope.message[_KIND] == _FRAGMENT:
                turn.erase(_key(peer, envelope.number))
            else:
                found.append(envelope)
        return found

    def _outbox_to(self, peer: str) -> Outbox:
        membership = self.core.membership
        state = link_state(membership.status(peer))
        outbox = self._outboxes[peer] = Outbox(
            state,
            first_number=membership.life * _NUMBERS_PER_LIFE + 1,
            timeout_ns=self._timeout_ns(peer),
        )
        return outbox

    def _timeout_ns(self, peer: str) -> int:
        return min(4 * self.core.membership.delay_ns_to(peer), self._retry_ns_max)

    def _leave(
        self, peer: str, outbox: Outbox, envelope: Envelope, turn: Turn, *, flying: bool
    ) -> None:
        envelope.posted_ns = turn.now_ns
        self._flying += flying
        if outbox.state is LinkState.CLOSED:
            # Not at once: whoever sends does not expect it back before it has finished.
            self.core.timers.at(turn.now_ns, self._return, peer)
        elif flying and outbox.state is LinkState.OPEN:
            self._transmit(peer, outbox, envelope, turn)

    def _leave_following(self, peer: str, outbox: Outbox, turn: Turn) -> None:
        while (following := outbox.following()) is not None:
            self._leave(peer, outbox, following, turn, flying=True)

    def _transmit(self, peer: str, outbox: Outbox, envelope: Envelope, turn: Turn) -> None:
        envelope.attempts += 1
        envelope.sent_ns = turn.now_ns
        self._look_later(peer, outbox, envelope, turn)
        number, lowest = envelope.number, outbox.lowest
        turn.send(peer, Hop(number, lowest, envelope.message, turn.now_ns, envelope.kept))

    def _look_later(self, peer: str, outbox: Outbox, envelope: Envelope, turn: Turn) -> None:
        envelope.looked_ns = turn.now_ns
        envelope.due_ns = turn.now_ns + self._wait_ns(outbox, envelope)
        self._retries.push(envelope.due_ns, peer, envelope.number)

    def _wait_ns(self, outbox: Outbox, envelope: Envelope) -> int:
        # What has a long way to go is acknowledged late, and the links further on wait less.
        wait_ns = self._retry_ns * envelope.hops
        return wait_ns if wait_ns > outbox.timeout_ns else outbox.timeout_ns

    def _hops_to(self, key: str, hop: str) -> int:
        """Return about how many hops it is to the root of a key by way of a broker."""
        membership = self.core.membership
        if membership.root_of(key) == hop:
            return 1
        # Each hop gets one digit right, and so many tell all brokers apart.
        return 1 + math.ceil(math.log(max(len(membership.alive()), 2), _DIGIT_VALUES))

    def _is_due(self, peer: str, number: int, at_ns: int) -> bool:
        outbox = self._outboxes[peer]
        envelope = outbox.flight.get(number)
        return envelope is not None and envelope.due_ns == at_ns and outbox.state is LinkState.OPEN

    def _again(self, peer: str, number: int, turn: Turn) -> None:
        membership = self.core.membership
        outbox = self._outboxes[peer]
        envelope = outbox.flight[number]
        if outbox.stands_in_line(envelope):
            self._look_later(peer, outbox, envelope, turn)
            return
        if envelope.attempts >= _DOUBTFUL_ATTEMPTS:
            waited_ns = turn.now_ns - envelope.posted_ns
            if waited_ns > self._lost_ns and membership.status(peer) is MemberStatus.UNKNOWN:
                self._give_back(peer, list(outbox), turn)
                return
            membership.doubt(peer, turn)
        if envelope.hops > 1:
            # It may have got stuck further on, where there may be another way.
            outbox.disclaim(envelope)
        outbox.wait_longer(envelope, longest_ns=self._retry_ns_max)
        self._transmit(peer, outbox, envelope, turn)

    def _gathered(self, message: Gathered, sender: Address, turn: Turn) -> None:
        passed: Passed = {}
        for number, sent_ns, held_ns in message.acknowledgements:
            self._has_arrived(sender, number, sent_ns, held_ns, passed, turn)
        if passed:
            self._tell_passed(passed, turn)
        for encoded in message.messages:
            self._take(encoded, sender, (), turn)

    def _acknowledged(self, message: HopAck, sender: Address, turn: Turn) -> None:
        passed: Passed = {}
        self._has_arrived(sender, message.number, message.sent_ns, 0, passed, turn)
        self._tell_passed(passed, turn)

    def _has_arrived(
        self, sender: Address, number: int, sent_ns: int, held_ns: int, passed: Passed, turn: Turn
    ) -> None:
        outbox = self._outboxes.get(sender)
        if outbox is None:
            return
        # What passes may get stuck further on, for as long as a broker is away. Whoever took that
        # for what acknowledgements take would wait as long for whatever is lost here.
        late_ns = held_ns - self._retry_ns if held_ns > self._retry_ns else 0
        envelope = outbox.pop(number, sent_ns=sent_ns, now_ns=turn.now_ns, late_ns=late_ns)
        if envelope is None:
            return
        if envelope.attempts == 1:
            self.core.measured.hop(sender, max(0, turn.now_ns - envelope.sent_ns - held_ns))
        if envelope.passage is not None:
            self._passed(envelope.passage, passed)
        parcel = envelope.parcel
        if parcel is None:
            if envelope.kept:
                turn.erase(_key(sender, envelope.number))
        else:
            parcel.left.discard(envelope.number)
            if not parcel.left:
                self._erase_parcel(sender, parcel, turn)
        self._flying -= 1
        if envelope.attempts > 1:
            # What waited for it may have to wait long: it was sent again and again.
            for other in outbox.flight.values():
                sooner = turn.now_ns + self._wait_ns(outbox, other) < other.due_ns
                if sooner and not outbox.stands_in_line(other):
                    self._look_later(sender, outbox, other, turn)
        if outbox.queues:
            self._leave_following(sender, outbox, turn)
        if not self._flying:
            self._retries.clear()

    def _hop(self, message: Hop, sender: Address, turn: Turn) -> None:
        self.core.membership.gossip.check_identity(sender)
        if not 0 <= message.number - message.lowest < SPAN:
            raise PeerMisbehaved(f"a Hop {message.number} from {sender}, which cannot be")
        number = message.number
        seen = self._seen.get(sender)
        if seen is None:
            seen = self._seen[sender] = Deduplication()
        if number not in seen:
            if (sender, number) in self._passages:
                return
            if message.message[_KIND] == _FRAGMENT:
                if not self._take_part(message, sender, turn):
                    return
            elif self._passes(message, sender, turn):
                return
            seen.add(number, lowest=message.lowest)
            if message.kept:
                turn.persist(f"links/seen/{sender}", seen.record())
        self._gathering.acknowledge(sender, number, message.sent_ns, turn.now_ns, turn)

    # What passes.

    def _passes(self, message: Hop, sender: Address, turn: Turn) -> bool:
        """Have a message handled; return whether it is acknowledged later, by others."""
        passage = Passage(sender, message.number, message.sent_ns, message.lowest, turn.now_ns)
        before, self._passage = self._passage, passage
        try:
            self._take(message.message, sender, (), turn)
        finally:
            self._passage = before
        if not passage.left:
            return False
        self._passages.add(passage)
        return True

    def _passed(self, passage: Passage, passed: Passed) -> None:
        """Note that one more has got what passed, or will not; when all have, it has arrived."""
        if not self._passages.is_over(passage):
            return
        sender, number = passage.sender, passage.number
        # In memory alone: should it come again after a crash, it passes again.
        self._seen.setdefault(sender, Deduplication()).add(number, lowest=passage.lowest)
        passed.setdefault(sender, []).append((number, passage.sent_ns, passage.came_ns))

    def _tell_passed(self, passed: Passed, turn: Turn) -> None:
        # They have been gathered already, and would wait at every hop once more.
        for peer in sorted(passed):
            self._gathering.acknowledge_now(peer, passed[peer], turn)

    def _take_part(self, message: Hop, sender: Address, turn: Turn) -> bool:
        """Keep a part of a message, or have the message handled that it completes.

        Return whether the part is to be acknowledged: not when there are too many already.
        """
        unfinished = self._unfinished.setdefault(sender, Reassembly())
        for number in unfinished.drop_before(message.lowest):
            turn.erase(_part_key(sender, number))
        try:
            part: Fragment = decode(message.message)
            unfinished.check(part, message.number)
        except PeerMisbehaved as error:
            turn.report(Misbehaved(sender, error.problem))
            return True
        if not unfinished.has_room(part):
            return False
        whole = unfinished.add(part)
        if whole is None:
            turn.persist(_part_key(sender, message.number), part)
        else:
            self._take(whole, sender, (), turn)
            for number in range(part.first, part.first + part.count):
                if number != message.number:
                    turn.erase(_part_key(sender, number))
        return True

    def _routed(self, message: Routed, sender: Address, turn: Turn) -> None:
        membership = self.core.membership
        membership.gossip.check_identity(message.key)
        membership.gossip.check_identity(sender)
        if len(message.path) > _HOPS_MAX:
            return
        step = Step(self.core.identity, membership.link_cost_to(sender), membership.node_cost)
        path = (*message.path, step)
        self._find_way(Routed(message.key, message.origin, message.message, path), turn)

    def _find_way(
        self, message: Routed, turn: Turn, *, kept: bool = True, about: tuple[object, ...] = ()
    ) -> None:
        hop = self.core.membership.next_hop(message.key)
        if hop is None:
            self._take(message.message, message.origin, message.path, turn)
            return
        own = self.core.identity
        # It does not pass anywhere for a second time.
        passing = own not in [step.broker for step in message.path[:-1]]
        hops, data = self._hops_to(message.key, hop), self.core.encoded(message)
        self._post(hop, data, turn, kept=kept, passing=passing, hops=hops, about=about)

    def _take(self, message: bytes, sender: Address, path: tuple[Step, ...], turn: Turn) -> None:
        """Have a message handled, or say who has sent what no broker sends."""
        count = len(turn.effects)
        try:
            carried = decode(message)
            # Only a Hop carries a Routed, and nothing carries a Hop: whoever could wrap these
            # as it likes would speak as another, or wrap without end.
            if type(carried) in _CARRIERS or (path and type(carried) is Routed):
                raise PeerMisbehaved(f"a {type(carried).__name__} inside of what carries none")
            before, self.path = self.path, path
            try:
                self.core.handle(carried, sender, turn)
            finally:
                self.path = before
        except PeerMisbehaved as error:
            # It would be no better the next time, so it counts as handled. Those who have
            # passed it on are not to blame: they do not look into it.
            del turn.effects[count:]
            turn.report(Misbehaved(sender, error.problem))

    def _changes(self, peer: str, event: LinkEvent) -> bool:
        outbox = self._outboxes.get(peer)
        following = None if outbox is None else LINK.step(outbox.state, event)
        if outbox is None or following is None:
            return False
        outbox.state = following
        return True

    def _return(self, turn: Turn, peer: str) -> None:
        outbox = self._outboxes[peer]
        if outbox.state is LinkState.CLOSED:
            self._give_back(peer, list(outbox), turn)

    def _give_back(self, peer: str, envelopes: list[Envelope], turn: Turn) -> None:
        outbox = self._outboxes[peer]
        self._flying -= outbox.take(envelopes)
        self._leave_following(peer, outbox, turn)

        def give_back(envelope: Envelope, turn: Turn) -> None:
            passed: Passed = {}
            parcel = envelope.parcel
            message = decode(envelope.message if parcel is None else parcel.message)
            before, self._passage = self._passage, envelope.passage
            try:
                if isinstance(message, Routed):
                    kept = envelope.kept or envelope.passage is not None
                    self._find_way(message, turn, kept=kept, about=envelope.about)
                else:
                    self.core.part_of(message).undeliverable(message, peer, turn)
            finally:
                self._passage = before
            if envelope.passage is not None:
                self._passed(envelope.passage, passed)
            # Last: a crash in between must leave one of the two on the disk.
            if parcel is None:
                if envelope.kept:
                    turn.erase(_key(peer, envelope.number))
            else:
                self._erase_parcel(peer, parcel, turn)
            self._tell_passed(passed, turn)

        wholes = {
            envelope.number if envelope.parcel is None else envelope.parcel.numbers[0]: envelope
            for envelope in reversed(envelopes)
        }
        self._backlog.each(give_back, reversed(wholes.values()), turn)

    def _erase_parcel(self, peer: str, parcel: Parcel, turn: Turn) -> None:
        for number in parcel.numbers:
            turn.erase(_key(peer, number))

    def _forget(self, turn: Turn, peer: str) -> None:
        if peer in self._seen and not self.core.membership.is_alive(peer):
            del self._seen[peer]
            turn.erase(f"links/seen/{peer}")
            unfinished = self._unfinished.pop(peer, None)
            for number in () if unfinished is None else unfinished.numbers():
                turn.erase(_part_key(peer, number))


def _is_routed(envelope: Envelope) -> bool:
    message = envelope.message if envelope.parcel is None else envelope.parcel.message
    return message[_KIND] == _ROUTED


def _key(peer: str, number: int) -> str:
    return f"links/out/{peer}/{number}"


def _part_key(peer: str, number: int) -> str:
    return f"links/part/{peer}/{number}"
