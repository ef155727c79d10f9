"""The hosts on which the contract is tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract.hosts import HOSTS, HostUnderTest


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Iterator[HostUnderTest]:
    """A host with one broker that is up."""
    host = HOSTS[request.param]()
    yield host
    host.close()
