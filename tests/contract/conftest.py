"""The hosts on which the contract is tried."""

from __future__ import annotations

import pytest
from tests.contract.hosts import HOSTS, HostUnderTest


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> HostUnderTest:
    """A host with one broker that is up."""
    return HOSTS[request.param]()
