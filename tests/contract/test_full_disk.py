"""A disk that is full keeps what it has, and takes more when there is room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract.bench import do
from tests.contract.hosts import bench_of, kept, said
from tests.contract.network_host import HostOnNats

from distributary.broker.client import Busy, Publish, Refused

EVENT = '{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}'


@pytest.fixture
def host() -> Iterator[HostOnNats]:
    host = HostOnNats()
    yield host
    host.close()


def test_a_commit_waits_for_room_and_nothing_is_said_before(host: HostOnNats) -> None:
    host.tell(do("persist:a=1", "say:1"))
    host.fill(True)
    host.tell(do("persist:a=2", "say:2"))
    host.tell(do("persist:b=2", "say:3"))
    host.run(20)
    assert said(host) == ["1"]
    assert kept(host) == {"a": "1"}
    assert host.failures == host.stopped == []
    host.fill(False)
    host.run(1)
    assert said(host) == ["1", "2", "3"]
    assert kept(host) == bench_of(host).values == {"a": "2", "b": "2"}


def test_publications_are_refused_with_the_reason_while_there_is_no_room(host: HostOnNats) -> None:
    host.fill(True)
    host.tell(do("persist:a=1"))
    host.run(2)
    host.fill(False)
    host.tell(Publish(EVENT))
    host.run(0.8)
    refused = [one for _, one in host.sent if isinstance(one, Busy | Refused)]
    assert len(refused) == 1
    assert "disk" in refused[0].reason or "storage" in refused[0].reason
