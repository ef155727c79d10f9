"""Clients over NATS: what a gateway has for each of those behind it.

A client repeats what is not answered, numbers what it publishes, takes deliveries in the order of
their numbers, and goes where its home sends it. What the messages mean is said where they are
defined, in `broker.client` and `broker.migration.messages`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from distributary.broker import client as messages
from distributary.broker.addresses import Address, Blob, client_address
from distributary.broker.encoding import decode, encode
from distributary.broker.migration import messages as migration
from distributary.errors import DistributaryError, PeerMisbehaved
from distributary.network.connection import NatsConnection, Server
from distributary.network.outgoing import Given, Outgoing, PendingRequest
from distributary.network.subjects import Subjects
from distributary.network.transfers import chunks

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["Client", "ClientGate", "Numbered", "WasRefused"]

Numbered: TypeAlias = messages.Delivery | messages.Undeliverable
"""What a subscription gets, under numbers without gaps."""

_LOOK_S = 0.1
# Acknowledgements go together.
_GATHER_S = 0.01
_PUBLICATION = "publication"


class WasRefused(DistributaryError):
    """A home refused what a client asked for.

    Attributes
    ----------
    refusal
        What the home said.
    """

    def __init__(self, refusal: messages.Refused) -> None:
        self.refusal = refusal
        super().__init__(f"{refusal.what} {refusal.source}{refusal.id}: {refusal.reason}")


class ClientGate:
    """The one connection by which many clients reach their homes.

    Parameters
    ----------
    name
        Of the gateway; it speaks for clients whose names begin with it and a slash.
    brokers
        Where clients may publish when their homes are away; without any, they wait.
    """

    def __init__(
        self, subjects: Subjects, server: Server, name: str, brokers: Sequence[str] = ()
    ) -> None:
        self.subjects = subjects
        self.brokers = brokers
        self.name = name
        self._clients: dict[str, Client] = {}
        self._looking = asyncio.ensure_future(self._look())
        self.connection = NatsConnection(
            server,
            name=f"{subjects.overlay} {name}",
            inbox=subjects.inbox(name),
            handlers=dict.fromkeys(subjects.read_by_gateway(name), self._arrived),
            changed=self._changed,
        )

    def client(
        self,
        name: str,
        home: str,
        deliver: Callable[[Numbered], None] = lambda _: None,
        *,
        tenant: str = "",
        update: Callable[[messages.Updated], None] = lambda _: None,
        changed: Callable[[Client], None] = lambda client: client.know_ends(),
    ) -> Client:
        """Return a client that speaks from here.

        Parameters
        ----------
        deliver
            Called with deliveries, once each, in the order of each subscription.
        update
            Called with versions of stream objects.
        changed
            Called when the client has moved, and when one of its subscriptions has ended. The home
            tells that again until the client says by `know_ends` that it will not forget it.
        """
        address = client_address(f"{self.name}/{name}", tenant)
        client = Client(self, address, home, deliver, update, changed)
        # What stands before the home in the subjects of its inbox.
        self._clients[self.subjects.to_client(client.address, "")] = client
        return client

    def forget(self, client: Client) -> None:
        """Take a client out; what still comes for it is dropped."""
        subject = self.subjects.to_client(client.address, "")
        if self._clients.get(subject) is client:
            del self._clients[subject]

    async def close(self) -> None:
        """End all clients, and the connection."""
        self._looking.cancel()
        for client in list(self._clients.values()):
            await client.close()
        await self.connection.close()

    def _arrived(self, message: Msg) -> None:
        begin, _, home = message.subject.rpartition(".")
        client = self._clients.get(f"{begin}.")
        if client is not None:
            with suppress(PeerMisbehaved):
                client.receive(decode(message.data), home)

    def _changed(self, connected: bool) -> None:
        if connected:
            for client in self._clients.values():
                client.ask_again()

    async def _look(self) -> None:
        # One task for all of them: thousands that wake up ten times a second are much work.
        while True:
            await asyncio.sleep(_LOOK_S)
            now = asyncio.get_running_loop().time()
            for client in list(self._clients.values()):
                client.look(now)


class Client:
    """One client with its home; made by `ClientGate.client`.

    Attributes
    ----------
    address, home
        Who it is, and which broker it is attached to. Its subscriptions are there.
    outgoing
        What it publishes, and how the broker is that takes it.
    repeats
        How many deliveries came again.
    """

    def __init__(
        self,
        gate: ClientGate,
        address: Address,
        home: str,
        deliver: Callable[[Numbered], None],
        update: Callable[[messages.Updated], None],
        changed: Callable[[Client], None],
    ) -> None:
        self.address = address
        self.home = home
        self.repeats = 0
        self.ended: dict[str, messages.Ended] = {}
        self._gate = gate
        self._deliver = deliver
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._requests: dict[tuple[str, str], PendingRequest] = {}
        self.outgoing = Outgoing(
            gate.connection,
            gate.subjects,
            gate.name,
            address,
            home,
            send=self._send,
            brokers=gate.brokers,
        )
        self._next: str | None = None
        self._moved_ns = 0
        self._received: dict[str, int] = {}
        self._early: dict[str, dict[int, Numbered]] = {}
        self._acknowledged: dict[str, int] = {}
        self._taken: dict[str, int] = {}
        self._unsaid: set[str] = set()
        self._gathering = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            messages.Accepted: self.outgoing.accepted,
            messages.Busy: self.outgoing.busy,
            messages.ContentMissing: self.outgoing.content_missing,
            messages.Refused: self._refused,
            messages.Subscribed: lambda m: self._answered("subscribe", m.id, m),
            messages.Unsubscribed: lambda m: self._answered("unsubscribe", m.id, m),
            messages.Status: lambda m: self._answered("status", m.id, m),
            messages.Ended: self._ended,
            messages.Delivery: self._numbered,
            messages.Undeliverable: self._numbered,
            messages.Updated: update,
            messages.Announced: lambda m: self._answered("announcement", _object(m), m),
            migration.RequestToMove: self._asked_to_move,
            migration.MoveNow: self._move,
        }

    # What it asks for.

    def publish(
        self, event: str, content: Given | Blob | None = None, media_type: str = ""
    ) -> asyncio.Future[messages.Accepted]:
        """Publish an event behind those before it; return what says that it is stored.

        Parameters
        ----------
        content, media_type
            What goes with it, if that is not inside of the event; by what refers to it if it was
            put before.

        Raises
        ------
        WasRefused
            When it breaks the rules; of what is returned.
        """
        return self.outgoing.publish(event, content, media_type)

    async def announce(self, source: str, subject: str, event: str) -> messages.Announced:
        """Open a stream object; return when those who follow it know of it."""
        name = f"{source} {subject}"
        answer: messages.Announced = await self._ask("announcement", name, messages.Announce(event))
        return answer

    def change(self, version: messages.Changed) -> None:
        """Tell of a new version of a stream object; a later one makes up for one that is lost."""
        self._send(version)

    @property
    def publishes_at(self) -> str:
        """The broker that takes what it publishes: its home, or another one if that was away."""
        return self.outgoing.home

    def content(self, blob: Blob) -> AsyncIterator[bytes]:
        """Return the bytes of content that was delivered, in chunks.

        Raises
        ------
        TransferFailed
            When the home does not have it, or does not answer.
        """
        subject = self._gate.subjects.to_host(self.home, self._gate.name)
        return chunks(self._gate.connection, subject, blob)

    async def subscribe(
        self, subscription: Mapping[str, Any], *, revision: int = 0
    ) -> messages.Subscribed:
        """Register a subscription; what is published after the answer is owed."""
        text = json.dumps(subscription, separators=(",", ":"))
        message = messages.Subscribe(text, revision)
        answer: messages.Subscribed = await self._ask("subscribe", subscription["id"], message)
        return answer

    async def unsubscribe(self, subscription: str) -> None:
        """End a subscription."""
        await self._ask("unsubscribe", subscription, messages.Unsubscribe(subscription))
        self._received.pop(subscription, None)
        self._early.pop(subscription, None)

    async def status(self, subscription: str) -> messages.SubscriptionStatus | None:
        """Return how a subscription stands, with what was acknowledged before."""
        self.send_acknowledgements()
        asked = messages.AskStatus(subscription)
        answer: messages.Status = await self._ask("status", subscription, asked)
        return answer.status

    def know_ends(self) -> None:
        """Say which subscriptions are known to have ended; then their home forgets that."""
        for name in self.ended:
            self._send(messages.Unsubscribe(name))

    def has_gap(self, subscription: str) -> bool:
        """Whether deliveries wait for one before them."""
        return bool(self._early.get(subscription))

    async def close_gap(self, subscription: str) -> None:
        """Go on after what was acknowledged meanwhile, by whoever was here before."""
        status = await self.status(subscription)
        if status is not None and status.acknowledged > self._received.get(subscription, 0):
            self.resume(subscription, status.acknowledged)

    def resume(self, subscription: str, number: int) -> None:
        """Go on after the delivery of a number, as somebody who has got it already."""
        self._received[subscription] = number
        early = self._early.get(subscription, {})
        # What came before this was known may be what comes next.
        self._early[subscription] = {place: early[place] for place in early if place > number}
        self._deliver_in_order(subscription)

    def acknowledge(self, subscription: str, number: int) -> None:
        """Say that everything up to a number has arrived for good."""
        self._acknowledged[subscription] = max(number, self._acknowledged.get(subscription, 0))
        self._say_soon(subscription)

    def _say_soon(self, subscription: str) -> None:
        self._unsaid.add(subscription)
        if not self._gathering:
            self._gathering = True
            self._loop.call_later(_GATHER_S, self.send_acknowledgements)

    def take(self, subscription: str, number: int) -> None:
        """Say that everything up to a number has come, and more may: it can still be had again."""
        if number > self._taken.get(subscription, 0):
            self._taken[subscription] = number
            self._say_soon(subscription)

    def come_back(self) -> None:
        """Be sent everything again that is not acknowledged, as after somebody else was here."""
        self._taken.clear()
        self._present(False)
        self._present(True)

    async def close(self, *, goodbye: bool = True) -> None:
        """End, and say goodbye: what comes for it waits until it is back.

        Parameters
        ----------
        goodbye
            Not to be said for a client that speaks from elsewhere by now.
        """
        # All at once: whoever comes back under its name speaks after that.
        self._gate.forget(self)
        self.send_acknowledgements()
        if goodbye:
            self._present(False)
        await self.outgoing.close()

    # What it says, and says again.

    def _present(self, present: bool) -> None:
        subject = self._gate.subjects.presence(self.home, self.address)
        self._gate.connection.send(subject, b"1" if present else b"0")

    def _send(self, message: object, home: str | None = None) -> None:
        subject = self._gate.subjects.to_home(home or self.home, self.address)
        self._gate.connection.send(subject, encode(message))

    async def _ask(self, kind: str, name: str, message: object) -> Any:
        request = self._requests.get((kind, name))
        if request is None or request.message != message:
            request = self._requests[kind, name] = PendingRequest(message, self._loop.time())
            self._send(message)
        request.askers += 1
        try:
            return await asyncio.shield(request.answer)
        finally:
            request.askers -= 1
            # Nobody asks again for those who have given up.
            if not request.askers and self._requests.get((kind, name)) is request:
                del self._requests[kind, name]

    def _answered(self, kind: str, name: str, answer: object) -> None:
        request = self._requests.pop((kind, name), None)
        if request is not None and not request.answer.done():
            request.answer.set_result(answer)

    def ask_again(self) -> None:
        """Ask at once for everything that is not answered, as after a break."""
        for request in self._requests.values():
            self._send(request.message)
        self.outgoing.ask_again()
        if self._next is not None:
            self._knock()

    def look(self, now: float) -> None:
        """Ask again for what has waited for long enough."""
        for request in list(self._requests.values()):
            if request.is_due(now):
                self._send(request.message)
        self.outgoing.look(now)
        if self._next is not None:
            self._knock()

    def _refused(self, message: messages.Refused) -> None:
        if message.what == _PUBLICATION:
            request = self.outgoing.answered(message)
        else:
            kind = "subscribe" if message.what == "subscription" else message.what
            name = _object(message) if kind == "announcement" else message.id
            request = self._requests.pop((kind, name), None)
        if request is not None and not request.answer.done():
            request.answer.set_exception(WasRefused(message))

    # Deliveries.

    def receive(self, message: object, sender: str) -> None:
        """Take a message; what an earlier home still says is not heard."""
        if isinstance(message, migration.Connected):
            if sender == self._next:
                self._connected()
            return
        expected = self.outgoing.home if _is_of_publication(message) else self.home
        if sender == expected or isinstance(message, migration.MoveNow):
            handler = self._handlers.get(type(message))
            if handler is not None:
                handler(message)

    def _numbered(self, message: Numbered) -> None:
        name = message.subscription
        received = self._received.get(name, 0)
        early = self._early.setdefault(name, {})
        if message.number <= received or message.number in early:
            self.repeats += 1
            # It has not heard how far we are.
            self._say_soon(name)
            return
        early[message.number] = message
        self._deliver_in_order(name)

    def _deliver_in_order(self, name: str) -> None:
        early, received = self._early[name], self._received.get(name, 0)
        while received + 1 in early:
            received += 1
            self._received[name] = received
            self._deliver(early.pop(received))

    def send_acknowledgements(self) -> None:
        """Say at once what was acknowledged, and what has come."""
        self._gathering = False
        for name in sorted(self._unsaid):
            acknowledged, taken = self._acknowledged.get(name, 0), self._taken.get(name, 0)
            if acknowledged:
                self._send(messages.Acknowledge(name, acknowledged))
            if taken > acknowledged:
                self._send(messages.Received(name, taken))
        self._unsaid.clear()

    def _ended(self, message: messages.Ended) -> None:
        self.ended[message.id] = message
        self._changed(self)

    # Moving to another home.

    def _asked_to_move(self, message: migration.RequestToMove) -> None:
        self._send(migration.AcceptMove(message.target, accepted=True))

    def _move(self, message: migration.MoveNow) -> None:
        target = message.target
        if target != self.home:
            # By the move of which it has heard last; where it is meant, that is said again.
            self._moved_ns = message.moved_ns
            if target != self._next:
                self._next = target
                self._knock()
        elif self._next is not None:
            # Something old has made it look for another home, which says where it belongs.
            self._next = None
        elif message.moved_ns != self._moved_ns:
            # It came by another move than the one in which its home expects it.
            self._say_connect(target, message.moved_ns)

    def _knock(self) -> None:
        assert self._next is not None
        self._say_connect(self._next, self._moved_ns)

    def _say_connect(self, target: str, moved_ns: int) -> None:
        # What is not acknowledged may be wanted again.
        received = {name: self._acknowledged.get(name, 0) for name in self._received}
        self._send(migration.Connect(tuple(sorted(received.items())), moved_ns=moved_ns), target)

    def _connected(self) -> None:
        assert self._next is not None
        self.outgoing.follow(self.home, self._next)
        self.home, self._next = self._next, None
        self.ask_again()
        self._changed(self)


def _object(message: messages.Announced | messages.Refused) -> str:
    """Return what an announcement is called; of a refusal, `id` is the subject."""
    subject = message.subject if isinstance(message, messages.Announced) else message.id
    return f"{message.source} {subject}"


def _is_of_publication(message: object) -> bool:
    """Whether something is an answer to a publication, which may be elsewhere than at home."""
    if isinstance(message, messages.Refused):
        return message.what == _PUBLICATION
    return isinstance(message, messages.Accepted | messages.Busy | messages.ContentMissing)
