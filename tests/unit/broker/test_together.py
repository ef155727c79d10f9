"""What several subscriptions wait for is written once, and each is as if it had its own record."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker_overlays import Overlay

from distributary.broker.client import Acknowledge
from distributary.broker.deliveries.queues import Queued, QueuedTogether, Queues
from distributary.broker.encoding import decode, encode
from distributary.broker.host import Erase, Persist, Turn
from distributary.broker.subscriptions.subscription import scoped_id

CLIENTS = ["@a", "@b", "@c", "@d"]


class Home:
    """The queues of a broker with a disk, and what each of its subscriptions should have."""

    def __init__(self) -> None:
        self.core = Overlay(2).broker(Overlay(2).members[0]).core
        self.disk: dict[str, bytes] = {}
        self.writes = 0
        self.queues = Queues(self.core)
        self.expected: dict[str, dict[int, str]] = {client: {} for client in CLIENTS}
        self.last = dict.fromkeys(CLIENTS, 0)
        self.items = 0

    def crash(self) -> None:
        self.queues = Queues(self.core)
        for key in sorted(self.disk):
            self.queues.load(key, decode(self.disk[key]))
        for _, queue in self.queues:
            queue.begin()

    def put(self, clients: list[str]) -> None:
        self.items += 1
        turn = Turn(self.items)
        entries = []
        for client in clients:
            # Some get another format.
            event = f"{self.items} {client in CLIENTS[2:]}"
            parcel = Queued(
                client, scoped_id(client, "s"), 0, "/x", str(self.items), event, None, "a/a", None
            )
            entries.append(self.queues.put(parcel.subscription, parcel, turn))
            self.last[client] += 1
            self.expected[client][self.last[client]] = event
        self.queues.keep(entries, turn)
        self.commit(turn)

    def acknowledge(self, client: str, count: int) -> None:
        turn = Turn(self.items)
        number = min(self.expected[client], default=1) - 1 + count
        self.queues.acknowledged(Acknowledge("s", number), client, turn)
        self.expected[client] = {n: e for n, e in self.expected[client].items() if n > number}
        self.commit(turn)

    def end(self, client: str) -> None:
        turn = Turn(self.items)
        self.queues.drop(scoped_id(client, "s"), turn)
        self.expected[client] = {}
        self.last[client] = 0
        self.commit(turn)

    def commit(self, turn: Turn) -> None:
        for effect in turn.effects:
            if isinstance(effect, Persist):
                self.disk[effect.key] = encode(effect.record)
                self.writes += 1
            elif isinstance(effect, Erase):
                self.disk.pop(effect.key, None)
                self.writes += 1

    def found(self) -> dict[str, dict[int, str]]:
        queues: dict[str, Any] = {queue.client: queue for _, queue in self.queues}
        return {
            client: {n: entry.event for n, entry in queues[client].waiting.items()}
            if client in queues
            else {}
            for client in CLIENTS
        }


STEPS = st.one_of(
    st.tuples(
        st.just("put"), st.lists(st.sampled_from(CLIENTS), min_size=1, max_size=4, unique=True)
    ),
    st.tuples(st.just("acknowledge"), st.sampled_from(CLIENTS), st.integers(1, 4)),
    st.tuples(st.just("end"), st.sampled_from(CLIENTS)),
    st.tuples(st.just("crash")),
)


@given(st.lists(STEPS, max_size=30))
@settings(max_examples=60)
def test_every_subscription_has_what_it_has_not_acknowledged(steps: list[tuple[Any, ...]]) -> None:
    home = Home()
    for step, *arguments in steps:
        getattr(home, step)(*arguments)
        assert home.found() == home.expected
    home.crash()
    assert home.found() == home.expected
    for client in CLIENTS:
        home.end(client)
    assert home.disk == {}


def test_an_item_is_one_write_and_one_erasure_whoever_waits_for_it() -> None:
    home = Home()
    for _ in range(16):
        home.put(CLIENTS)
    assert home.writes == 16
    for client in CLIENTS:
        home.acknowledge(client, 16)
    # And how far each of them is.
    assert home.writes == 16 + 16 + len(CLIENTS)
    assert not [key for key in home.disk if "together" in key or "entry" in key]


def test_who_begins_anew_under_the_name_of_one_that_has_ended_gets_nothing_of_it() -> None:
    home = Home()
    home.put(["@a", "@b"])
    home.end("@a")
    home.put(["@a", "@b"])
    home.crash()
    assert home.found()["@a"] == {1: "2 False"}
    assert home.found()["@b"] == {1: "1 False", 2: "2 False"}


def test_what_is_alike_stands_in_a_record_once() -> None:
    entries = [
        Queued(client, scoped_id(client, "s"), 7, "/x", "1", "x" * 1000, None, "a/a", None, 5)
        for client in CLIENTS
    ]
    record = QueuedTogether.of(entries)
    assert list(record) == entries
    assert len(encode(record)) < 1200
    assert list(decode(encode(record))) == entries
