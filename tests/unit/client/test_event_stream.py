"""Server-sent events come out whole, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference.event_stream import messages_of

from distributary.client import event_stream
from distributary.client.event_stream import EventStream, Message
from distributary.errors import PeerMisbehaved

PIECES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"data:  two",
        b"id: 7",
        b"id",
        b"id: \0",
        b"event: live",
        b": comment",
        b"retry: 20",
        b"dat",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        "data: \u2028 \x85 ü".encode(),
        b"data: \xff",
    ]
)


def fed(chunks: list[bytes]) -> list[tuple[str, str | None, str]]:
    stream = EventStream()
    return [(m.data, m.id, m.event) for chunk in chunks for m in stream.feed(chunk)]


@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 200), max_size=8))
@example([b"data: a", b"\r", b"\n", b"\r\n"], [8])
@example([b"\xef\xbb\xbf", b"data: a", b"\n\n"], [1, 2])
def test_cut_anywhere_it_says_what_the_whole_does(pieces: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(pieces)
    marks = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    chunks = [whole[begin:end] for begin, end in pairwise(marks)]
    assert fed(chunks) == messages_of(whole)
    assert fed([bytes([byte]) for byte in whole]) == messages_of(whole)


def test_a_message_without_a_number_does_not_have_that_of_the_one_before() -> None:
    messages = EventStream().feed(b"id: 4\ndata: a\n\ndata: b\n\n")
    assert messages == [Message("a", "4"), Message("b", None)]


def test_an_identifier_alone_is_no_message_and_is_remembered() -> None:
    stream = EventStream()
    assert stream.feed(b"id: 4\ndata: a\n\nid: ousted\n\n") == [Message("a", "4")]
    assert stream.last_id == "ousted"


def test_the_time_to_wait_is_remembered() -> None:
    stream = EventStream()
    stream.feed(b"retry: 1500\nretry: soon\n\n")
    assert stream.retry_ms == 1500


@pytest.mark.parametrize("line", [b"x", b"data: x\n"])
def test_a_message_that_does_not_end_is_given_up(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MESSAGE_BYTES_MAX", 100)
    with pytest.raises(PeerMisbehaved, match="more than 100 bytes"):
        fed([line] * 200)


def test_a_message_of_many_chunks_takes_time_that_grows_with_its_size() -> None:
    """Each chunk is searched once: the position of the search stands at the end of the buffer."""
    stream = EventStream()
    for _ in range(4_000):
        assert stream.feed(b"x" * 1_000) == []
    assert stream._searched == 4_000_000
    assert stream.feed(b"\n\n") == []
