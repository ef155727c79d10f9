"""Everything that can be encoded comes back the same, and nothing else is accepted."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.wire_strategies import import_all_kinds, instances

from distributary.broker.encoding import (
    OLDEST,
    VERSION,
    decode,
    encode,
    kind_name,
    kinds,
    speaker_of,
)
from distributary.errors import PeerMisbehaved

import_all_kinds()

_KINDS = {number: cls for number, cls in kinds().items() if number < 10_000}
_MESSAGES = st.sampled_from(sorted(_KINDS)).flatmap(lambda number: instances(_KINDS[number]))


@pytest.mark.parametrize("number", _KINDS, ids=lambda number: _KINDS[number].__name__)
@given(st.data())
@settings(max_examples=10)
def test_every_kind_comes_back_the_same(number: int, data: st.DataObject) -> None:
    message = data.draw(instances(_KINDS[number]))
    encoded = encode(message)
    decoded = decode(encoded)
    assert type(decoded) is _KINDS[number]
    assert decoded == message
    assert encode(decoded) == encoded
    assert kind_name(message) == _KINDS[number].__name__


def test_durable_records_are_numbered_apart_from_messages() -> None:
    messages = {number for number, cls in _KINDS.items() if speaker_of(cls) is not None}
    assert max(messages) < 500 < min(_KINDS.keys() - messages)
    assert max(_KINDS) < 740


@given(_MESSAGES, st.data())
def test_a_message_cut_short_is_refused(message: object, data: st.DataObject) -> None:
    encoded = encode(message)
    length = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(PeerMisbehaved):
        decode(encoded[:length])


@given(_MESSAGES, st.binary(min_size=1, max_size=8))
def test_a_message_with_something_behind_it_is_refused(message: object, rest: bytes) -> None:
    with pytest.raises(PeerMisbehaved):
        decode(encode(message) + rest)


@given(_MESSAGES, st.integers(0, 255).filter(lambda version: not OLDEST <= version <= VERSION))
def test_another_version_is_refused(message: object, version: int) -> None:
    with pytest.raises(PeerMisbehaved, match="version"):
        decode(bytes([version]) + encode(message)[1:])


@given(_MESSAGES, st.integers(0, 2**16 - 1).filter(lambda number: number not in kinds()))
def test_an_unknown_kind_is_refused(message: object, number: int) -> None:
    encoded = encode(message)
    with pytest.raises(PeerMisbehaved, match="unknown kind"):
        decode(encoded[:1] + number.to_bytes(2, "big") + encoded[3:])


@given(_MESSAGES, st.sampled_from(sorted(_KINDS)))
def test_the_fields_of_another_kind_are_that_kind_or_refused(message: object, number: int) -> None:
    encoded = encode(message)
    try:
        decoded = decode(encoded[:1] + number.to_bytes(2, "big") + encoded[3:])
    except PeerMisbehaved:
        return
    assert type(decoded) is _KINDS[number]
    assert decode(encode(decoded)) == decoded


@given(_MESSAGES, st.data())
def test_a_changed_byte_gives_a_message_or_is_refused(message: object, data: st.DataObject) -> None:
    encoded = bytearray(encode(message))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    try:
        decoded = decode(bytes(encoded))
    except PeerMisbehaved:
        return
    assert type(decoded) in set(kinds().values())


@given(st.sampled_from(sorted(_KINDS)), st.binary(max_size=64))
@example(1, b"\x91" * 5000)
@example(1, b"")
@example(1, b"\xdd\xff\xff\xff\xff")
def test_random_bytes_give_a_message_or_are_refused(number: int, body: bytes) -> None:
    try:
        decoded = decode(bytes([VERSION]) + number.to_bytes(2, "big") + body)
    except PeerMisbehaved:
        return
    assert type(decoded) is _KINDS[number]


@given(st.binary(max_size=64))
def test_random_bytes_without_a_head_are_a_message_or_refused(data: bytes) -> None:
    try:
        decoded = decode(data)
    except PeerMisbehaved:
        return
    assert type(decoded) in set(kinds().values())
