"""How content gets from host to host, what that costs, and what a driver frees."""

from __future__ import annotations

from tests.content_worlds import PDF, ContentWorld
from tests.contract.hosts import SimulatedHost

from distributary.broker.addresses import HOST, Blob
from distributary.broker.content import FetchRecord
from distributary.broker.host import ContentPut, Fetched, FetchFailed
from distributary.simulator.content_store import FetchFault

BLOB = Blob.imagined(PDF, 1_000_000, "a map")


class Stores:
    """Three brokers, and what becomes of fetches at the first of them."""

    def __init__(self) -> None:
        self.all = ContentWorld(3)
        self.world = self.all.world
        self.own, self.holder, self.other = self.all.members
        self.node = self.world.nodes[self.own]
        self.answers: list[object] = []
        tell = self.world.tell

        def heard(identity: str, message: object, *, sender: str) -> None:
            if identity == self.own and isinstance(message, Fetched | FetchFailed):
                self.answers.append(message)
            tell(identity, message, sender=sender)

        self.world.tell = heard  # type: ignore[method-assign]

    def fetch(self, ticket: int = 7, seconds: float = 5.0) -> None:
        self.node.fetch(ticket, BLOB, self.holder)
        self.all.run_s(seconds)

    def give(self) -> None:
        self.world.nodes[self.holder].store[BLOB.digest] = BLOB.size_bytes


def test_content_is_fetched_and_charged_once() -> None:
    stores = Stores()
    stores.give()
    stores.node.fetch(7, BLOB, stores.holder)
    stores.fetch()
    assert stores.answers == [Fetched(7, BLOB)]
    assert stores.node.store == {BLOB.digest: BLOB.size_bytes}
    charged = stores.world.transfers.fetched_bytes
    assert charged == {(stores.holder, stores.own, BLOB.digest): BLOB.size_bytes}
    assert stores.world.message_bytes["Content"] == BLOB.size_bytes


def test_what_a_holder_does_not_have_cannot_be_fetched_for_good() -> None:
    stores = Stores()
    stores.fetch()
    (answer,) = stores.answers
    assert isinstance(answer, FetchFailed)
    assert answer.lasting


def test_what_a_holder_is_still_to_get_can_be_fetched_later() -> None:
    stores = Stores()
    running = stores.world.nodes[stores.holder].broker
    assert running is not None
    running.core.content._fetches.load(FetchRecord(BLOB, (stores.other,), ()))
    stores.fetch()
    (answer,) = stores.answers
    assert isinstance(answer, FetchFailed)
    assert not answer.lasting


def test_a_holder_that_is_down_or_out_of_reach_is_asked_again() -> None:
    for reason in ("down", "apart", "busy"):
        stores = Stores()
        stores.give()
        if reason == "down":
            stores.world.crash(stores.holder)
        elif reason == "apart":
            stores.all.overlay.network.apart = frozenset({stores.holder})
        else:
            fault = FetchFault("busy", lasting=False)
            stores.world.transfers.obstacles.append(lambda *_, fault=fault: fault)
        stores.fetch()
        (answer,) = stores.answers
        assert isinstance(answer, FetchFailed)
        assert not answer.lasting
        assert stores.node.store == {}


def test_a_host_that_goes_down_while_it_fetches_does_not_have_it() -> None:
    stores = Stores()
    stores.give()
    stores.node.fetch(7, BLOB, stores.holder)
    stores.world.crash(stores.own)
    stores.all.run_s(5)
    assert stores.node.store == {}
    stores.all.overlay.restart(stores.own)
    stores.fetch(8)
    assert stores.answers == [Fetched(8, BLOB)]


def test_what_a_client_puts_at_a_home_that_is_down_is_lost() -> None:
    stores = Stores()
    stores.world.crash(stores.own)
    stores.world.transfers.put("@c", stores.own, BLOB)
    stores.all.run_s(1)
    assert stores.node.store == {}
    stores.all.overlay.restart(stores.own)
    stores.world.transfers.put("@c", stores.own, BLOB)
    stores.all.run_s(1)
    assert stores.node.store == {BLOB.digest: BLOB.size_bytes}


def test_content_that_comes_again_before_it_is_freed_stays() -> None:
    """The turn that frees it waits for the disk while a client puts the same content."""
    host = SimulatedHost()
    settings = host.world.settings
    store = host.node.store
    store[BLOB.digest] = BLOB.size_bytes
    host.crash()
    host.restart()
    host.hold()
    # A turn that is not durable is before the one that frees.
    host.tell(ContentPut("@d", Blob.imagined(PDF, 1, "another")), HOST)
    host.run(settings.content.retention_s + 1)
    assert not host.broker.has_content(BLOB.digest)
    assert BLOB.digest in store, "not before the disk has what came before"
    host.tell(ContentPut("@c", BLOB), HOST)
    host.release()
    assert BLOB.digest in store
    assert host.broker.has_content(BLOB.digest)


def test_content_that_does_not_come_again_is_freed() -> None:
    host = SimulatedHost()
    host.node.store[BLOB.digest] = BLOB.size_bytes
    host.crash()
    host.restart()
    host.run(host.world.settings.content.retention_s + 1)
    assert host.node.store == {}
