"""Devices: clients as they are anywhere, attached to a home broker over a link that may lose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributary.broker.addresses import Address, client_address
from distributary.broker.migration import messages as migration
from distributary.broker.settings import ns
from distributary.simulator.scenario import REPEAT_S_MAX
from distributary.simulator.world import World

__all__ = ["Device"]

_REPEAT_S = 1.0
# How long it takes until a host notices that a client has gone.
_NOTICED_S = 1.0


class Device:
    """A client that repeats what is not answered, and goes where its home sends it.

    While it is away it says nothing and hears nothing, and what it would have said is lost.

    Attributes
    ----------
    concerned
        Whether something goes wrong with it, so that it may have to wait.
    left
        The homes that it has had before.
    """

    def __init__(self, world: World, name: str, home: str, *, tenant: str = "") -> None:
        self.world = world
        self.tenant = tenant
        self.address: Address = client_address(name, tenant)
        self.home = home
        self.concerned = False
        self.left: set[str] = set()
        self._away = False
        self._lost: set[str] = set()
        self._epoch = 0
        self._next: str | None = None
        self._moved_ns = 0
        self._open: dict[tuple[str, ...], object] = {}
        self._handlers: dict[type, Callable[[Any], object]] = {
            migration.RequestToMove: self._asked_to_move,
            migration.MoveNow: self._move,
        }
        world.clients[self.address] = self

    def handle(self, kind: type, handler: Callable[[Any], object]) -> None:
        """Have messages of a kind handled."""
        self._handlers[kind] = handler

    def receive(self, message: object, *, sender: Address, now_ns: int) -> None:
        """Take a message; what an earlier home still says is not heard."""
        if self._away:
            return
        if isinstance(message, migration.Connected):
            if sender == self._next:
                self._connected(message)
        elif sender == self.home or isinstance(message, migration.MoveNow):
            handler = self._handlers.get(type(message))
            assert handler is not None, f"a client got a {type(message).__name__}"
            handler(message)

    def send(self, message: object) -> None:
        """Send a message to the home broker; it may get lost."""
        self._send_to(self.home, message)

    def _send_to(self, broker: str, message: object) -> None:
        if not self._away:
            self.world.send(self.address, broker, message)

    def go_away(self) -> None:
        """Lose the connection; the host of its home notices before long."""
        self.concerned = True
        self._away = True
        self.world.at(self.world.now_ns + ns(_NOTICED_S), self._noticed)

    def _noticed(self) -> None:
        if self._away:
            self.world.nodes[self.home].client_gone(self.address)

    def come_back(self, *, noticed: bool) -> None:
        """Have a connection again.

        Parameters
        ----------
        noticed
            Whether the host of its home says so; otherwise it must say something itself.
        """
        self._away = False
        if noticed:
            self.world.nodes[self.home].client_back(self.address)

    def request(self, message: object, *key: str) -> None:
        """Send a message again and again until `answered` is called with the same key."""
        if key not in self._open:
            self._open[key] = message

            def ask() -> bool:
                if self._open.get(key) is not message:
                    return False
                self.send(message)
                return True

            self._repeat(ask)

    def answered(self, *key: str) -> bool:
        """Note an answer; say whether it was waited for."""
        return self._open.pop(key, None) is not None

    def reattach(self, home: str) -> None:
        """Go to another home because the first one is lost for ever."""
        self._lost.add(self.home)
        self._epoch += 1
        self._moved_ns = 0
        self.home = home
        self._connect(home)
        self._ask_again()

    def received_numbers(self) -> tuple[tuple[str, int], ...]:
        """Return the number of the last delivery of each subscription."""
        return ()

    def wanted(self) -> tuple[tuple[str, int], ...] | None:
        """Return all subscriptions that it has, with their revisions, if it has begun anew."""
        return None

    def _repeat(self, send: Callable[[], bool], wait_s: float = _REPEAT_S) -> None:
        """Send something again and again, with exponential backoff, until it is not sent."""
        if send():
            following_s = min(2.0 * wait_s, REPEAT_S_MAX)
            self.world.at(self.world.now_ns + ns(wait_s), self._repeat, send, following_s)

    def _asked_to_move(self, message: migration.RequestToMove) -> None:
        self.send(migration.AcceptMove(message.target, accepted=True))

    def _move(self, message: migration.MoveNow) -> None:
        target = message.target
        if target in self._lost:
            return
        if target != self.home:
            # By the move of which it has heard last; where it is meant, that is said again.
            self._moved_ns = message.moved_ns
            if target != self._next:
                self._connect(target)
        elif self._next is None:
            if message.moved_ns != self._moved_ns:
                # It came by another move than the one in which its home expects it.
                self._say_connect(target, message.moved_ns)
        elif self._next != target:
            # Something old has made it look for another home, which says where it belongs.
            self._next = None

    def _connect(self, target: str) -> None:
        """Knock at a broker until it answers; only then it is the home, if another one is."""
        self._next = target

        def knock() -> bool:
            if self._next != target:
                return False
            self._say_connect(target, self._moved_ns)
            return True

        self._repeat(knock)

    def _say_connect(self, target: str, moved_ns: int) -> None:
        message = migration.Connect(self.received_numbers(), self._epoch, moved_ns, self.wanted())
        self._send_to(target, message)

    def _connected(self, message: migration.Connected) -> None:
        assert self._next is not None
        before, moved = self.home, self.home != self._next
        self.home, self._next = self._next, None
        if moved:
            self.left.add(before)
            self._ask_again()

    def _ask_again(self) -> None:
        for message in list(self._open.values()):
            self.send(message)
