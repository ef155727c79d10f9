"""Clients that have gone are remembered, but not without end."""

from __future__ import annotations

import pytest
from tests.contract.network_host import HostOnNats

from distributary.network import host as network_host


def test_so_many_are_known_to_be_gone_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_host, "_ABSENT_MAX", 10)
    under_test = HostOnNats()
    try:
        for number in range(30):
            under_test.host._presence(f"@c{number}", present=False)
            under_test.run(0.01)
        assert {*under_test.host._absent} == {f"@c{number}" for number in range(20, 30)}
        under_test.host._presence("@c25", present=True)
        under_test.run(0.01)
        assert len(under_test.host._absent) == 9
    finally:
        under_test.close()
