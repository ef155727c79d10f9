"""The address of a client says whose client it is, and cannot be another's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.broker.addresses import client_address, is_client, tenant_of
from distributary.errors import BadInput

NAMES = st.text(min_size=1, max_size=200).filter(lambda name: "@" not in name)
TENANTS = st.text("abcxyz019-", max_size=64)


@given(NAMES, TENANTS, NAMES, TENANTS)
def test_addresses_differ_when_name_or_tenant_does(
    name: str, tenant: str, other_name: str, other_tenant: str
) -> None:
    one = client_address(name, tenant)
    other = client_address(other_name, other_tenant)
    assert (one == other) is ((name, tenant) == (other_name, other_tenant))
    assert is_client(one)
    assert tenant_of(one) == tenant


@pytest.mark.parametrize(
    ("name", "tenant"), [("", ""), ("a@b", ""), ("x" * 201, ""), ("c", "Acme"), ("c", "a@b")]
)
def test_what_cannot_be_told_apart_is_refused(name: str, tenant: str) -> None:
    with pytest.raises(BadInput, match="must have"):
        client_address(name, tenant)
