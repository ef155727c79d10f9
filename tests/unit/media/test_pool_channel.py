"""What one end of a channel sends arrives at the other; anything else does no harm."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.media.channel import (
    ChannelClosed,
    ChannelTimeout,
    Malformed,
    receive,
    send,
)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 16) + 1, 5 << 20])
def test_a_frame_arrives_as_it_was_sent(
    ends: tuple[socket.socket, socket.socket], size: int
) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    sender = threading.Thread(target=send, args=(ends[0], {"name": "ä"}, body))
    sender.start()
    frame = receive(ends[1], body_bytes_max=size)
    sender.join()
    assert frame.header == {"name": "ä"}
    assert frame.body == body


def test_a_body_that_is_longer_than_agreed_is_not_read(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    send(ends[0], {}, b"four")
    with pytest.raises(Malformed):
        receive(ends[1], body_bytes_max=3)


def test_a_header_nested_beyond_reason_is_malformed(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    deep = b"[" * 60_000
    ends[0].sendall(len(deep).to_bytes(4) + bytes(8) + deep)
    with pytest.raises(Malformed):
        receive(ends[1], body_bytes_max=0)


def test_waiting_ends_at_the_deadline(ends: tuple[socket.socket, socket.socket]) -> None:
    begun = time.monotonic()
    with pytest.raises(ChannelTimeout):
        receive(ends[0], body_bytes_max=0, deadline=begun + 0.05)
    with pytest.raises(ChannelTimeout):
        send(ends[0], {}, bytes(50 << 20), deadline=begun + 0.1)
    assert time.monotonic() - begun >= 0.1


def test_an_end_that_trickles_is_late_all_the_same(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    over = threading.Event()

    def trickle() -> None:
        ends[0].sendall((2).to_bytes(4) + (1 << 40).to_bytes(8) + b"{}")
        while not over.wait(0.005):
            ends[0].sendall(b"x")

    trickling = threading.Thread(target=trickle)
    trickling.start()
    with pytest.raises(ChannelTimeout):
        receive(ends[1], body_bytes_max=1 << 40, deadline=time.monotonic() + 0.1)
    over.set()
    trickling.join()


def test_a_closed_end_is_noticed_on_both_ways(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ends[0].close()
    with pytest.raises(ChannelClosed):
        receive(ends[1], body_bytes_max=0)
    with pytest.raises(ChannelClosed):
        send(ends[1], {}, bytes(1 << 20))


@given(st.binary(max_size=200), st.booleans())
def test_whatever_bytes_arrive_make_a_frame_or_a_known_error(
    noise: bytes, with_lengths: bool
) -> None:
    if with_lengths:
        noise = len(noise).to_bytes(4) + bytes(8) + noise
    one, other = socket.socketpair()
    with one, other:
        one.sendall(noise)
        one.shutdown(socket.SHUT_WR)
        try:
            frame = receive(other, body_bytes_max=1000)
        except (ChannelClosed, Malformed):
            return
        assert json.loads(json.dumps(dict(frame.header))) == frame.header
