"""Publishers: clients that publish events, each until it is accepted."""

from __future__ import annotations

import json
from collections import deque
from typing import NamedTuple

from distributary.broker import client as messages
from distributary.broker.addresses import Blob
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.migration.messages import RegisterClient
from distributary.broker.settings import ns
from distributary.broker.timers import RoundTrip
from distributary.content import Publication
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.scenario import REPEAT_S_MAX
from distributary.simulator.workload.device import Device
from distributary.simulator.world import World

__all__ = ["Publisher"]

_PRICES_S = 20.0
_REPEAT_S = 1.0


class _Event(NamedTuple):
    publication: Publication
    blob: Blob | None
    foreign: bool


class Publisher(Device):
    """A client that publishes under one source, in one session after the other.

    Parameters
    ----------
    pipeline
        How many events are under way at once; a further one is sent when one was answered.

    Attributes
    ----------
    prices
        What a unit of traffic costs it at each broker, if it tells.
    """

    def __init__(
        self,
        world: World,
        name: str,
        home: str,
        source: str,
        ledger: Ledger,
        *,
        pipeline: int = 1,
        tenant: str = "",
    ) -> None:
        super().__init__(world, name, home, tenant=tenant)
        self.source = source
        self.ledger = ledger
        self.prices: tuple[tuple[str, float], ...] = ()
        self._pipeline = pipeline
        self._rates: tuple[tuple[int, float], ...] = ()
        self._waiting: deque[_Event] = deque()
        self._under_way: dict[int, _Event] = {}
        self._session = "1"
        self._last = 0
        self._pausing = False
        # How long answers take, and when what is under way was sent last.
        self._trip = RoundTrip()
        self._sent_ns: dict[int, int] = {}
        self.handle(messages.Accepted, self._accepted)
        self.handle(messages.Busy, self._busy)
        self.handle(messages.ContentMissing, self._missing)
        self.handle(messages.Advertised, lambda m: self.answered("advertise", m.source))
        self.handle(messages.Refused, self._refused)

    def publish(
        self, publication: Publication, blob: Blob | None, *, foreign: bool = False
    ) -> None:
        """Publish an event after those before it; a foreign one should be refused."""
        self._waiting.append(_Event(publication, blob, foreign))
        self._send_more()

    def advertise(self, rates: tuple[tuple[int, float], ...]) -> None:
        """Say which cells it will publish in, and how often."""
        self._rates = rates
        self.request(messages.Advertise(self.source, rates), "advertise", self.source)

    def restart(self) -> None:
        """Forget how far it was, and publish again in another session what was not answered."""
        for event in self._under_way.values():
            if not event.foreign:
                self.ledger.has_twin(ItemId(self.tenant, *event.publication.identity))
        self._waiting.extendleft(reversed(self._under_way.values()))
        self._under_way.clear()
        self._sent_ns.clear()
        self._session = str(int(self._session) + 1)
        self._last = 0
        self._send_more()

    def tell_prices(self) -> None:
        """Tell its prices from now on."""
        self.send(RegisterClient(self.prices))
        self.world.at(self.world.now_ns + ns(_PRICES_S), self.tell_prices)

    def reattach(self, home: str) -> None:
        """Go to another home because the first one is lost for ever."""
        for event in self._under_way.values():
            self._note(event, home)
        super().reattach(home)
        if self._rates:
            self.advertise(self._rates)

    def _send_more(self) -> None:
        while self._waiting and len(self._under_way) < self._pipeline and not self._pausing:
            event = self._waiting.popleft()
            self._last += 1
            self._under_way[self._last] = event
            self._note(event, self.home)
            self._put(event)
            self._request_event(self._last)

    def _request_event(self, number: int) -> None:
        event = self._under_way[number]

        def ask() -> bool:
            if self._under_way.get(number) is not event:
                return False
            # It may have been sent again just now, as its home has said when.
            late = self.world.now_ns >= self._sent_ns.get(number, 0) + self._wait_ns
            if late and not self._pausing:
                self._send_event(number)
            return True

        self._send_event(number)
        following_s = min(2 * self._wait_ns / 1e9, REPEAT_S_MAX)
        self.world.at(self.world.now_ns + self._wait_ns, self._repeat, ask, following_s)

    @property
    def _wait_ns(self) -> int:
        """How long it waits for an answer: who asks too soon makes its home slower."""
        return min(max(ns(_REPEAT_S), self._trip.timeout_ns), ns(REPEAT_S_MAX))

    def _send_event(self, number: int) -> None:
        event = self._under_way[number]
        text = json.dumps(event.publication.document(), separators=(",", ":"))
        # The first that is not answered is another one each time.
        first = min(self._under_way)
        self._sent_ns[number] = self.world.now_ns
        self.send(messages.Publish(text, event.blob, self._session, number, first))

    def _ask_again(self) -> None:
        super()._ask_again()
        for number in sorted(self._under_way):
            self._send_event(number)

    def _note(self, event: _Event, home: str) -> None:
        if event.foreign:
            return
        publication, blob = event.publication, event.blob
        self.ledger.sent(
            publication,
            len(publication.content) if blob is None else blob.size_bytes,
            home,
            self.world.now_ns,
            "" if blob is None else blob.digest,
            session=f"{self.address} {self._session}",
            tenant=self.tenant,
        )

    def _answered_event(self, session: str, number: int) -> _Event | None:
        """Return what an answer is to, if it was waited for, and go on."""
        event = self._under_way.pop(number, None) if session == self._session else None
        if event is not None:
            self._trip.measure(self.world.now_ns - self._sent_ns.pop(number))
            self._send_more()
        return event

    def _accepted(self, message: messages.Accepted) -> None:
        event = self._answered_event(message.session, message.number)
        if event is None:
            return
        identity = ItemId(self.tenant, message.source, message.id)
        assert identity[1:] == event.publication.identity, "an answer to something else"
        if event.foreign:
            what = f"{self.address} published {identity}, whose source is another tenant's"
            self.ledger.stolen.append((self.world.now_ns, what))
        else:
            self.ledger.accepted(identity, self.world.now_ns)

    def _put(self, event: _Event) -> None:
        """Bring the content of an event to the home, before the event itself."""
        if event.blob is not None and not self._away:
            self.world.transfers.put(self.address, self.home, event.blob)

    def _missing(self, message: messages.ContentMissing) -> None:
        event = self._under_way.get(message.number) if message.session == self._session else None
        if event is not None:
            self._put(event)
            self._send_event(message.number)

    def _busy(self, message: messages.Busy) -> None:
        answered = message.session == self._session and message.number in self._under_way
        if answered and not self._pausing:
            self._pausing = True
            self.world.at(self.world.now_ns + message.wait_ns, self._go_on)

    def _go_on(self) -> None:
        self._pausing = False
        for number in sorted(self._under_way):
            self._send_event(number)
        self._send_more()

    def _refused(self, message: messages.Refused) -> None:
        if message.what == "publication":
            event = self._answered_event(message.session, message.number)
            if event is None:
                return
            if event.foreign:
                self.ledger.foreign += 1
                return
        what = f"{message.what} {message.source} {message.id}"
        self.ledger.refusals.append(
            (self.world.now_ns, f"{self.address} was refused {what}: {message.reason}")
        )
