"""Content by reference: who may refer to it, where it is fetched, and when it is freed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_overlays import SECOND
from tests.content_worlds import PDF, SETTINGS
from tests.hosted_brokers import Hosted
from tests.publishing_homes import numbered

from distributary.broker.addresses import Blob, client_address, is_digest
from distributary.broker.client import Accepted, Busy, ContentMissing, Publish, Refused
from distributary.broker.content import ContentArrived, FetchRecord, LentRecord, PutRecord
from distributary.broker.deliveries.finished import Finished
from distributary.broker.dissemination.messages import Item, Portion
from distributary.broker.encoding import decode, encode
from distributary.broker.host import (
    ContentHeld,
    ContentPut,
    Fetch,
    Fetched,
    FetchFailed,
    Neighbour,
    Surroundings,
)
from distributary.broker.links.link import Kept
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.plan_part import NOTHING_BEFORE, PlanNode, PlanPart
from distributary.broker.relays import JobRecord
from distributary.broker.settings import CONTENT_BYTES_LIMIT, ContentSettings
from distributary.errors import BadInput, PeerMisbehaved

OWN, ONE, OTHER = "0000", "4000", "8000"
RETENTION_S, PUT_S = 60.0, 100.0
QUICK = replace(
    SETTINGS,
    content=ContentSettings(
        retention_s=RETENTION_S, put_s=PUT_S, ask_s=5.0, content_bytes_max=1_000_000
    ),
)
BLOB = Blob.imagined(PDF, 1_000, "a map")


def hosted() -> Hosted:
    neighbours = tuple(Neighbour(peer, 1_000_000) for peer in (ONE, OTHER))
    return Hosted(OWN, QUICK, Surroundings(neighbours, (OWN,)))


def want(host: Hosted, holder: str | None, told: list[str], name: str = "x") -> None:
    """Want the content for something that refers to it."""
    turn = host.turn()
    if name not in told:
        host.content.refer("", BLOB)
    host.content.fetch(BLOB, holder, turn, name, lambda _, failure: told.append(failure))
    host.do(turn.effects)


def publication(number: int = 1, blob: Blob | None = BLOB, first: int = 0) -> Publish:
    attributes = {"datacontenttype": PDF} if blob else {}
    return numbered(number, first=first or 1, blob=blob, **attributes)


# Digests.


@given(st.text())
def test_only_a_digest_is_a_digest(text: str) -> None:
    hexadecimal = len(text) == 64 and set(text) <= set("0123456789abcdef")
    assert is_digest(text) == hexadecimal


@given(st.binary())
def test_whatever_is_made_of_bytes_has_a_digest_and_no_bytes(data: bytes) -> None:
    blob = Blob.of(PDF, data)
    assert is_digest(blob.digest)
    assert (blob.media_type, blob.size_bytes) == (PDF, len(data))
    assert encode(Publish("{}", blob)).find(data) < 0 or len(data) < 40


@pytest.mark.parametrize("limit", [0, -1, CONTENT_BYTES_LIMIT + 1])
def test_a_limit_that_is_none_is_refused(limit: int) -> None:
    with pytest.raises(BadInput, match="content_bytes_max"):
        ContentSettings(content_bytes_max=limit)


# What clients put and publish.


def test_a_publication_without_its_content_is_answered_by_what_is_missing() -> None:
    """And uses up no number: what follows waits until it has come again."""
    host = hosted()
    assert host.tell(publication(1, None), "@c") == [Accepted("/p", "a1", "a", 1)]
    assert host.tell(publication(3, None), "@c") == []
    missing, busy = host.tell(publication(2), "@c")
    assert missing == ContentMissing("/p", "a2", BLOB.digest, "a", 2)
    assert isinstance(busy, Busy)
    assert (busy.session, busy.number) == ("a", 3)
    host.put(BLOB)
    assert host.tell(publication(2), "@c") == [Accepted("/p", "a2", "a", 2)]
    assert host.tell(publication(3, None), "@c") == [Accepted("/p", "a3", "a", 3)]


def test_a_publication_by_itself_without_its_content_is_not_taken() -> None:
    host = hosted()
    (missing,) = host.tell(Publish(publication().event, BLOB), "@c")
    assert missing == ContentMissing("/p", "a1", BLOB.digest)
    assert not any(key.startswith("publishing/kept") for key in host.journal)


def test_content_counts_only_for_the_tenant_that_has_put_it() -> None:
    host = hosted()
    zeta = client_address("c", "zeta")
    host.put(BLOB, client_address("c", "acme"))
    (missing,) = host.tell(publication(), zeta)
    assert isinstance(missing, ContentMissing)
    (accepted,) = host.tell(publication(), client_address("d", "acme"))
    assert isinstance(accepted, Accepted)
    (missing,) = host.tell(publication(), zeta)
    assert isinstance(missing, ContentMissing), "nor does it when it has been published"


def test_what_was_put_may_be_published_after_a_restart_and_not_after_its_time() -> None:
    host = hosted()
    host.put(BLOB)
    host.run_s(PUT_S / 2)
    host.start()
    assert isinstance(host.tell(publication(), "@c")[0], Accepted)
    other = Blob.imagined(PDF, 5, "another map")
    host.put(other)
    host.start()
    host.run_s(PUT_S + 1)
    assert host.records(PutRecord) == []
    (accepted,) = host.tell(publication(2, other, first=2), "@c")
    assert isinstance(accepted, Accepted), "its bytes are still there"
    host.put(Blob.imagined(PDF, 5, "a third map"))
    host.run_s(PUT_S + RETENTION_S + 1)
    (missing,) = host.tell(publication(3, Blob.imagined(PDF, 5, "a third map"), first=3), "@c")
    assert isinstance(missing, ContentMissing)


def test_content_that_is_put_again_is_kept_from_then_on() -> None:
    host = hosted()
    host.put(BLOB)
    host.run_s(PUT_S - 1)
    host.put(BLOB)
    host.run_s(PUT_S - 1)
    assert len(host.records(PutRecord)) == 1
    host.run_s(2)
    assert host.records(PutRecord) == []


@pytest.mark.parametrize(
    "blob",
    [
        replace(BLOB, size_bytes=999),
        replace(BLOB, digest="x"),
        replace(BLOB, digest=BLOB.digest.upper()),
        replace(BLOB, size_bytes=1_000_001),
        replace(BLOB, size_bytes=-1),
    ],
)
def test_what_does_not_refer_to_the_content_is_refused(blob: Blob) -> None:
    host = hosted()
    host.put(BLOB)
    (refused,) = host.tell(publication(1, blob), "@c")
    assert isinstance(refused, Refused)
    assert (refused.session, refused.number) == ("a", 1)


def test_a_host_takes_no_more_than_the_limit() -> None:
    host = hosted()
    with pytest.raises(PeerMisbehaved, match="at most"):
        host.tell(ContentPut("@c", replace(BLOB, size_bytes=1_000_001)))
    with pytest.raises(PeerMisbehaved, match="only host"):
        host.tell(ContentPut("@c", BLOB), "@c")


# When content is freed.


def test_content_is_freed_when_nothing_has_referred_to_it_for_long_enough() -> None:
    host = hosted()
    host.put(BLOB)
    host.tell(publication(), "@c")
    # Nobody wants it: it is settled at once, and kept by its home and by its root for a while.
    host.run_s(RETENTION_S - 1)
    assert host.store
    host.run_s(RETENTION_S)
    host.broker.content_used(BLOB.digest, now_ns=host.now_ns)
    host.run_s(RETENTION_S - 1)
    assert host.store, "it was used since"
    host.run_s(2)
    assert host.store == {}
    assert host.content.snapshot()["held"] == 0
    assert not host.broker.has_content(BLOB.digest)


def test_what_the_host_has_and_nothing_refers_to_is_freed_after_a_restart() -> None:
    host = hosted()
    host.store[BLOB.digest] = BLOB.size_bytes
    host.start()
    host.run_s(RETENTION_S - 1)
    assert host.store
    host.run_s(2)
    assert host.store == {}


def test_what_records_refer_to_is_not_freed_after_a_restart() -> None:
    host = hosted()
    host.put(BLOB)
    host.run_s(PUT_S - RETENTION_S + 5)
    host.start()
    host.run_s(RETENTION_S - 10)
    host.tell(publication(), "@c")
    host.start()
    host.run_s(RETENTION_S - 1)
    assert host.store


@given(st.lists(st.tuples(st.sampled_from(["", "acme"]), st.booleans()), max_size=30))
def test_content_is_kept_as_long_as_anything_refers_to_it(steps: list[tuple[str, bool]]) -> None:
    """The property: as with a plain count of all references."""
    host = hosted()
    host.store[BLOB.digest] = BLOB.size_bytes
    host.tell(ContentHeld(((BLOB.digest, BLOB.size_bytes),)))
    counts = {"": 0, "acme": 0}
    for tenant, more in steps:
        turn = host.turn()
        if more:
            host.content.refer(tenant, BLOB)
            counts[tenant] += 1
        elif counts[tenant]:
            host.content.release(tenant, BLOB, turn)
            counts[tenant] -= 1
        assert (host.content.unused_ns(BLOB.digest, host.now_ns) is None) == any(counts.values())
    host.run_s(RETENTION_S + 1)
    assert bool(host.store) == any(counts.values())


# Fetching.


def test_content_is_asked_for_by_the_same_ticket_until_it_is_there() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    (first,) = host.asked(Fetch)
    assert (first.blob, first.holder) == (BLOB, ONE)
    assert host.broker.awaits(BLOB.digest)
    host.run_s(6)
    assert host.asked(Fetch) == [first]
    want(host, ONE, told, "y")
    assert host.asked(Fetch) == [], "it is fetched once"
    host.tell(Fetched(first.ticket, BLOB))
    assert told == ["", ""]
    assert host.broker.has_content(BLOB.digest)
    host.tell(Fetched(first.ticket, BLOB))
    assert told == ["", ""]


def test_an_answer_to_another_life_is_no_answer_but_the_bytes_are_there() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    (before,) = host.asked(Fetch)
    host.start()
    host.store[BLOB.digest] = BLOB.size_bytes
    host.tell(Fetched(before.ticket, BLOB))
    host.tell(FetchFailed(before.ticket, "late", lasting=True))
    assert told == []
    assert host.broker.has_content(BLOB.digest)
    host.run_s(RETENTION_S + 1)
    assert host.store == {}, "nothing refers to it"


def test_what_fails_for_now_is_tried_again_with_growing_pauses() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    waits = []
    for _ in range(7):
        (fetch,) = host.asked(Fetch)
        host.tell(FetchFailed(fetch.ticket, "busy", lasting=False))
        since_ns, host.effects = host.now_ns, []
        while not any(isinstance(effect, Fetch) for effect in host.effects):
            host.run_s(0.5)
        waits.append((host.now_ns - since_ns) / SECOND)
    assert waits == [0.5, 1, 2, 4, 8, 16, 16]
    assert told == []


def test_every_holder_is_asked_before_whoever_waits_hears_that_it_failed() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    want(host, OTHER, told, "y")
    host.run_s(0.1)
    asked = []
    while not told:
        *_, fetch = host.asked(Fetch)
        asked.append(fetch.holder)
        host.tell(FetchFailed(fetch.ticket, f"{fetch.holder} has something else", lasting=True))
        host.run_s(0.1)
    assert sorted(asked) == [ONE, OTHER]
    assert told == [f"{asked[-1]} has something else"] * 2
    assert not host.broker.awaits(BLOB.digest)


def test_a_holder_that_is_named_while_another_does_not_answer_is_asked_at_once() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    (first,) = host.asked(Fetch)
    host.tell(FetchFailed(first.ticket, "no answer", lasting=False))
    want(host, OTHER, told, "y")
    host.run_s(0.1)
    (second,) = host.asked(Fetch)
    assert second.holder == OTHER


def test_whoever_waits_is_told_when_every_holder_is_lost() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    want(host, OTHER, told, "y")
    host.asked(Fetch)
    for gone, failures in ((ONE, 0), (OTHER, 2)):
        turn = host.turn()
        host.content.members_changed(MembersChanged(gone=(gone,)), turn)
        host.do(turn.effects)
        host.run_s(0.1)
        assert len(told) == failures
    assert "lost" in told[0]


@pytest.mark.parametrize("holder", [None, OWN])
def test_content_that_nobody_can_have_is_lost(holder: str | None) -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, holder, told)
    assert told == [], "not before the turn is over"
    host.run_s(0.1)
    assert len(told) == 1
    assert told[0]


def test_what_is_larger_than_the_limit_is_not_fetched() -> None:
    host, told = hosted(), []
    large = replace(BLOB, size_bytes=1_000_001)
    turn = host.turn()
    host.content.refer("", large)
    host.content.fetch(large, ONE, turn, "x", lambda _, failure: told.append(failure))
    host.do(turn.effects)
    host.run_s(0.1)
    assert host.asked(Fetch) == []
    assert "1,000,001 bytes" in told[0]


def test_what_nobody_waits_for_any_more_is_not_fetched_for_ever() -> None:
    host, told = hosted(), []  # type: ignore[var-annotated]
    want(host, ONE, told)
    turn = host.turn()
    host.content.release("", BLOB, turn)
    host.run_s(RETENTION_S + 1)
    host.asked(Fetch)
    host.run_s(100)
    assert host.asked(Fetch) == []
    assert not host.broker.awaits(BLOB.digest)


# What moves with a client.


def test_what_was_lent_is_kept_until_every_message_that_refers_to_it_is_answered() -> None:
    host = hosted()
    host.store[BLOB.digest] = BLOB.size_bytes
    host.tell(ContentHeld(((BLOB.digest, BLOB.size_bytes),)))
    turn = host.turn()
    for _ in range(2):
        host.content.lend("", BLOB, ONE, turn)
    host.do(turn.effects)
    host.start()
    assert not host.content.idle
    for left in (1, 0):
        host.run_s(3 * RETENTION_S)
        assert host.store
        host.tell(ContentArrived(BLOB.digest), ONE)
        assert [record.count for record in host.records(LentRecord)] == [left][:left]
    host.tell(ContentArrived(BLOB.digest), ONE)
    assert host.content.idle
    host.run_s(RETENTION_S + 1)
    assert host.store == {}


def test_what_was_borrowed_is_fetched_after_a_restart_too_and_answered_once() -> None:
    host = hosted()
    turn = host.turn()
    host.content.refer("", BLOB)
    host.content.borrow(BLOB, ONE, turn)
    host.do(turn.effects)
    host.asked(Fetch)
    host.start()
    (fetch,) = host.asked(Fetch)
    assert (fetch.blob, fetch.holder) == (BLOB, ONE)
    host.tell(Fetched(fetch.ticket, BLOB))
    assert host.records(FetchRecord) == []
    sent = [decode(kept.message) for kept in host.records(Kept)]
    assert sent == [ContentArrived(BLOB.digest)]


def test_who_has_lent_what_nobody_wants_any_more_is_told() -> None:
    """It would keep that for ever, and could never leave."""
    host = hosted()
    turn = host.turn()
    host.content.refer("", BLOB)
    host.content.borrow(BLOB, ONE, turn)
    host.content.release("", BLOB, turn)
    host.do(turn.effects)
    host.run_s(RETENTION_S + 1)
    assert host.records(FetchRecord) == []
    sent = [decode(kept.message) for kept in host.records(Kept)]
    assert sent == [ContentArrived(BLOB.digest)]


# At relays.


def portion(name: str = "1") -> Portion:
    """A portion for `OWN` alone, which has somebody to serve."""
    event = f'{{"specversion":"1.0","source":"/s","type":"map","id":"{name}"}}'
    published_ns = 1_000 * SECOND
    item = Item("/s", name, 0, 1, 1, ONE, published_ns, event, PDF, 1_000, inline=False)
    nodes = (PlanNode(OWN, 1, 1.0, 1.0, (0,), (), NOTHING_BEFORE, (("s", 0),)),)
    return Portion(item, ONE, 1, PDF, PlanPart((PDF,), (0.001,), (), nodes), (BLOB,))


def test_a_portion_is_a_job_until_its_content_has_come_from_its_sender() -> None:
    host = hosted()
    host.tell(portion(), OTHER)
    (record,) = host.records(JobRecord)
    assert record == JobRecord(portion(), OTHER)
    (before,) = host.asked(Fetch)
    host.start()
    (fetch,) = host.asked(Fetch)
    assert (fetch.blob, fetch.holder) == (before.blob, before.holder) == (BLOB, OTHER)
    host.run_s(2 * RETENTION_S)
    assert host.records(JobRecord), "it refers to its content for as long as it takes"
    host.tell(Fetched(fetch.ticket, BLOB))
    assert host.records(JobRecord) == []
    assert len(host.records(Finished)) == 1


def test_a_portion_of_which_everything_is_here_is_no_job() -> None:
    host = hosted()
    host.store[BLOB.digest] = BLOB.size_bytes
    host.start()
    host.effects.clear()
    host.tell(portion(), OTHER)
    assert host.records(JobRecord) == []
    assert host.asked(Fetch) == []
    assert len(host.records(Finished)) == 1


def test_a_job_of_the_version_before_fetches_from_the_root() -> None:
    host = hosted()
    host.journal["relays/job/x"] = encode(JobRecord(portion()))
    host.start()
    (fetch,) = host.asked(Fetch)
    assert fetch.holder == ONE
