"""Names become subjects and are read back, and nothing else is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.broker.addresses import client_address
from distributary.errors import BadInput, PeerMisbehaved
from distributary.network.subjects import Subjects

SUBJECTS = Subjects("main")
HOME = "0000000a"

names = st.text(min_size=1, max_size=200).filter(lambda name: "@" not in name)
tenants = st.text(alphabet="abc-019", max_size=8)


@given(name=names, tenant=tenants)
def test_a_client_is_read_back_from_its_subject(name: str, tenant: str) -> None:
    client = client_address(name, tenant)
    for subject, kind in (
        (SUBJECTS.to_home(HOME, client), "c"),
        (SUBJECTS.presence(HOME, client), "p"),
    ):
        assert SUBJECTS.sender(subject) == (kind, client)
        assert re.fullmatch(r"[A-Za-z0-9_=.-]+", subject)
        assert len(subject.split(".")) == 7
        assert "" not in subject.split(".")


@given(one=names, other=names, tenants=st.tuples(tenants, tenants))
def test_two_clients_have_two_subjects(one: str, other: str, tenants: tuple[str, str]) -> None:
    a, b = client_address(one, tenants[0]), client_address(other, tenants[1])
    assert (SUBJECTS.to_client(a, HOME) == SUBJECTS.to_client(b, HOME)) == (a == b)


@given(st.text(alphabet="abz=20.e/@", max_size=12))
def test_what_is_no_client_is_refused_and_what_is_has_one_subject(rest: str) -> None:
    subject = f"d.main.c.{HOME}.{rest}"
    try:
        _, client = SUBJECTS.sender(subject)
    except PeerMisbehaved:
        return
    assert SUBJECTS.to_home(HOME, client) == subject


def test_what_no_text_can_be_written_with_is_in_no_name() -> None:
    """Half a surrogate pair can be in a string of Python, and in nothing that is sent or kept."""
    with pytest.raises(BadInput, match="Unicode"):
        client_address("a\ud800")
    with pytest.raises(PeerMisbehaved):
        SUBJECTS.sender(f"d.main.c.{HOME}.=.gateway.a=ed=a0=80")


def test_a_gateway_speaks_for_its_own() -> None:
    assert SUBJECTS.may_speak_for("gateway", "@gateway/me")
    assert SUBJECTS.may_speak_for("gateway", "@tenant@gateway/me/too")
    for client in ("@me", "@gateway", "@gateway2/me", "@other/gateway/me", "@gateway@me/x", ""):
        assert not SUBJECTS.may_speak_for("gateway", client)


def test_brokers_are_as_they_are() -> None:
    assert SUBJECTS.sender(SUBJECTS.to_broker(HOME, "ffff")) == ("b", "ffff")
    assert SUBJECTS.sender(SUBJECTS.to_host(HOME, "operator")) == ("h", "operator")
    for subject in ("d.main.b.a.b.c", "d.main.b.a.@b", "d.main.x.a.b", "d.main.c.a.b"):
        with pytest.raises(PeerMisbehaved):
            SUBJECTS.sender(subject)


@pytest.mark.parametrize("name", ["", "a.b", "A", "a b", "-a", "*", "a" * 33])
def test_an_overlay_has_a_plain_name(name: str) -> None:
    with pytest.raises(BadInput, match="small letters"):
        Subjects(name)
