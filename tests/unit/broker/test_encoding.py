"""Messages as bytes: what the bytes are, and what is refused."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from distributary.broker.addresses import Blob
from distributary.broker.client import Announced, Publish, Unsubscribe
from distributary.broker.deliveries.finished import Finished
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import (
    DECODED_BYTES_MAX,
    decode,
    encodable,
    encode,
    kind_name,
    kinds,
)
from distributary.broker.host import Leave
from distributary.broker.membership.roster import Gossip, MemberStatus, News
from distributary.errors import PeerMisbehaved


def packed(number: int, fields: object) -> bytes:
    return b"\x01" + number.to_bytes(2, "big") + msgspec.msgpack.encode(fields)


def test_a_message_is_a_version_a_kind_and_its_fields() -> None:
    assert encode(Announced("a", "b")) == b"\x02\x00\xd6" + b"\x92" + b"\xa1a" + b"\xa1b"


def test_one_field_and_none_are_lists_too() -> None:
    assert encode(Unsubscribe("x")) == b"\x02\x00\xcc" + b"\x91" + b"\xa1x"
    assert encode(Leave()) == b"\x02\x00\x04" + b"\x90"


def test_what_is_nested_comes_back_with_its_types() -> None:
    message = Publish("{}", Blob.of("text/plain", b"hello"))
    assert decode(encode(message)) == message
    gossip = Gossip((News("0123", 4, MemberStatus.SUSPECT),))
    assert decode(encode(gossip)) == gossip


def test_kinds_are_listed_with_their_numbers_and_names() -> None:
    assert kinds()[214] is Announced
    assert kind_name(Announced("a", "b")) == "Announced"


def test_no_number_and_no_name_is_given_twice() -> None:
    other = dataclasses.make_dataclass("Unheard", ["field"], frozen=True)
    with pytest.raises(AssertionError, match="214 is Announced already"):
        encodable(214)(other)
    same = dataclasses.make_dataclass("Announced", ["field"], frozen=True)
    with pytest.raises(AssertionError, match="Announced is the name of another"):
        encodable(60_100)(same)
    assert other not in kinds().values()
    assert 60_100 not in kinds()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cut short"),
        (b"\x01\x00", "cut short"),
        (b"\x03" + encode(Leave())[1:], "version 3"),
        (b"\x00" + encode(Leave())[1:], "version 0"),
        (b"\x01\xff\xfe\x90", "unknown kind 65534"),
        (b"\x01\x00\x00\x90", "unknown kind 0"),
        (packed(214, ["a"]), "broken Announced"),
        (packed(214, ["a", "b", "c"]), "broken Announced"),
        (packed(214, ["a", 1]), "broken Announced"),
        (packed(214, ["a", None]), "broken Announced"),
        (packed(214, {"source": "a", "subject": "b"}), "broken Announced"),
        (packed(214, "ab"), "broken Announced"),
        (packed(4, [1]), "broken Leave"),
        (packed(16, [[{"identity": "0", "incarnation": 0, "status": 9}]]), "broken Gossip"),
        (packed(16, [[{"identity": "0", "incarnation": 0.5, "status": 1}]]), "broken Gossip"),
        (packed(16, [[{"identity": "0", "incarnation": 0}]]), "broken Gossip"),
        (b"\x01\x00\xd6\x92\xa1\xff\xa1b", "broken Announced"),
        (b"\x01\x00\xd6\xc1", "broken Announced"),
        (b"\x01\x00\xd6" + b"\x91" * 100_000, "broken Announced"),
    ],
)
def test_what_is_not_a_message_is_refused_with_the_reason(data: bytes, problem: str) -> None:
    with pytest.raises(PeerMisbehaved, match=problem):
        decode(data)


def test_a_message_that_is_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(PeerMisbehaved, match="at most"):
        decode(bytes(DECODED_BYTES_MAX + 1))


def test_what_has_no_number_cannot_be_encoded() -> None:
    with pytest.raises(KeyError):
        encode(News("0123", 0, MemberStatus.ALIVE))


def test_what_is_made_of_a_declaration_is_as_it_was_declared() -> None:
    """Fields, defaults, equality, methods and errors are those of the dataclass."""
    message = News("a1", 3, MemberStatus.ALIVE)
    finished = Finished(ItemId("", "/s", "1"), 2, 7, 3, 4, "b2", 1, ("x",))
    assert (message.identity, message.incarnation, message.status) == ("a1", 3, MemberStatus.ALIVE)
    assert (finished.done, finished.served) == (False, ())
    assert finished.sequence == ("", 7, 2, 3)
    assert finished == dataclasses.replace(finished) != dataclasses.replace(finished, number=5)
    assert hash(finished) == hash(dataclasses.replace(finished))
    assert [field.name for field in dataclasses.fields(Finished)][:2] == ["identity", "cell"]
    assert repr(Unsubscribe("s")) == "Unsubscribe(id='s')"
    assert all(issubclass(kind, msgspec.Struct) for kind in kinds().values())
    with pytest.raises(AttributeError):
        finished.number = 7  # type: ignore[misc]
    with pytest.raises(TypeError):
        Unsubscribe()  # type: ignore[call-arg]
