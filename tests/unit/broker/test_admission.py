"""What a home takes at all: sources of other tenants, duplicates, and at what cost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content_worlds import SETTINGS, ContentWorld
from tests.lines_run import lines_run
from tests.publishing_homes import Home, event, numbered

import distributary.broker.publishing
from distributary.broker.addresses import HOST, client_address
from distributary.broker.client import Accepted, Advertise, Announce, Publish, Refused
from distributary.broker.dissemination.items import SettledRecord
from distributary.broker.dissemination.task import ContentRecord
from distributary.broker.host import SourceOwners
from distributary.broker.publishing.intake import Admission
from distributary.broker.publishing.publications import (
    Count,
    Kept,
    KeptRecord,
    PublicationEvent,
    Remembered,
)
from distributary.broker.settings import PublishingSettings
from distributary.errors import BadInput, PeerMisbehaved

OWNERS = (("/acme/", "acme"), ("/acme/shared/", "zeta"), ("urn:acme:", "acme"))
ACME, ZETA, NOBODY = (client_address("c", tenant) for tenant in ("acme", "zeta", ""))
MAPS = ({"exact": {"type": "map"}},)
FOLDER = Path(distributary.broker.publishing.__path__[0])


# Sources.


@pytest.mark.parametrize(
    ("source", "owner"),
    [
        ("/acme/maps", "acme"),
        ("/acme/", "acme"),
        ("/acme/shared/maps", "zeta"),
        ("/acme/sharedmaps", "acme"),
        ("urn:acme:1", "acme"),
        ("urn:acme", None),
        ("/acme", None),
        ("/acmeother/maps", None),
        ("/other/acme/maps", None),
        ("x", None),
    ],
)
def test_the_longest_prefix_says_whose_a_source_is(source: str, owner: str | None) -> None:
    admission = Admission(PublishingSettings(), 1_000)
    admission.told(OWNERS)
    for client, tenant in ((ACME, "acme"), (ZETA, "zeta"), (NOBODY, "")):
        if owner in (None, tenant):
            admission.check_source(source, client)
        else:
            with pytest.raises(BadInput, match="is another tenant's"):
                admission.check_source(source, client)


@given(
    st.text(st.sampled_from("ab/:"), min_size=1, max_size=9),
    st.dictionaries(
        st.text(st.sampled_from("ab/:"), max_size=6), st.sampled_from("xy"), max_size=6
    ),
)
def test_prefixes_are_found_as_by_trying_all(source: str, owners: dict[str, str]) -> None:
    """The property: the same owner as of the longest among all prefixes that fit."""
    given = {prefix + end: tenant for prefix, tenant in owners.items() for end in "/:"}
    fitting = [prefix for prefix in given if source.startswith(prefix)]
    expected = given[max(fitting, key=len)] if fitting else None
    admission = Admission(PublishingSettings(), 1_000)
    admission.told(given.items())
    assert admission._owner(source) == expected


def test_somebody_elses_source_is_refused_for_everything_that_names_one() -> None:
    home = Home(owners=OWNERS)
    (refused,) = home.tell(numbered(1, source="/acme/maps"), ZETA)
    assert isinstance(refused, Refused)
    assert refused.reason == "source: '/acme/maps' is another tenant's"
    assert (refused.source, refused.id, refused.number) == ("/acme/maps", "a1", 1)
    assert home.tell(numbered(2, source="/zeta/maps"), ZETA) == [
        Accepted("/zeta/maps", "a2", "a", 2)
    ]
    (refused,) = home.tell(Advertise("/acme/maps", ()), ZETA)
    assert (refused.what, refused.source) == ("advertisement", "/acme/maps")
    announced = json.loads(event("x", source="/acme/maps", subject="a"))
    (refused,) = home.tell(Announce(json.dumps(announced)), ZETA)
    assert (refused.what, refused.source, refused.id) == ("announcement", "/acme/maps", "a")
    assert home.tell(Advertise("/acme/maps", ()), ACME)[0] != refused
    assert home.tell(numbered(1, source="/acme/maps"), ACME) == [
        Accepted("/acme/maps", "a1", "a", 1)
    ]


def test_owners_can_change_and_nothing_accepted_is_refused_afterwards() -> None:
    home = Home()
    answer = home.tell(numbered(1, source="/acme/maps"), ZETA)
    home.tell(SourceOwners(OWNERS), sender=HOST)
    assert home.tell(numbered(1, source="/acme/maps"), ZETA) == answer
    (refused,) = home.tell(numbered(2, source="/acme/maps"), ZETA)
    assert isinstance(refused, Refused)
    home.tell(SourceOwners(()), sender=HOST)
    assert isinstance(home.tell(numbered(2, source="/acme/maps"), ZETA)[0], Refused)
    assert isinstance(home.tell(numbered(3, source="/acme/maps"), ZETA)[0], Accepted)


@pytest.mark.parametrize("owners", [(("/acme", "acme"),), (("", "acme"),), (("/acme/", "Acme!"),)])
def test_owners_that_make_no_sense_are_refused(owners: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(PeerMisbehaved):
        Home().tell(SourceOwners(owners), sender=HOST)


def test_only_a_host_says_whose_sources_are_whose() -> None:
    with pytest.raises(PeerMisbehaved):
        Home().tell(SourceOwners(()), sender="@c")


def test_a_tenant_cannot_use_up_what_another_publishes() -> None:
    """Its identity is another one: the owner's is kept, and not taken for known."""
    home = Home()
    home.tell(Publish(event("1")), ZETA)
    assert home.tell(Publish(event("1")), ACME) == [Accepted("/p", "1")]
    assert sorted(record.client for record in home.records(KeptRecord)) == sorted((ACME, ZETA))


# Deduplication.


def settings(dedupe_s: float) -> Any:
    changed = replace(SETTINGS.content, retention_s=20.0)
    return replace(SETTINGS, content=changed, publishing=PublishingSettings(dedupe_s=dedupe_s))


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same home", "another home"])
def test_the_same_event_is_delivered_once_although_its_content_is_gone(elsewhere: bool) -> None:
    world = ContentWorld(6, settings=settings(300.0))
    world.subscribe("s", world.members[0], MAPS)
    world.run_s(3)
    first, other = [member for member in world.members[1:] if member != world.root_of()][:2]
    received: list[object] = []

    class Client:
        def receive(self, message: object, *, sender: str, now_ns: int) -> None:
            received.append(message)

    world.world.clients["@p"] = Client()
    world.publish("map", first, media_type=None)
    world.run_s(60)
    kinds = (KeptRecord, ContentRecord)
    nodes = world.world.nodes.values()
    kept = [record for node in nodes for record in node.records().values()]
    assert not any(isinstance(record, kinds) for record in kept), "no content is kept"
    assert sum(isinstance(record, Remembered | SettledRecord) for record in kept) == 2
    deliveries = world.world.message_counts["Delivery"]
    text = event("map", source="/maps", data={"note": "map"})
    # The home of the subscriber has forgotten it by now.
    world.world.send("@p", other if elsewhere else first, Publish(text))
    world.run_s(30)
    assert received == [Accepted("/maps", "map")]
    assert world.world.message_counts["Delivery"] == deliveries
    assert world.violations() == []


def test_identities_are_forgotten_in_time() -> None:
    home = Home(settings(50.0))
    home.tell(numbered(1))
    home.run_s(25)
    assert (home.records(KeptRecord), len(home.records(Remembered))) == ([], 1)
    home.start()
    assert home.tell(numbered(1)) == [Accepted("/p", "a1", "a", 1)]
    assert home.records(KeptRecord) == []
    home.run_s(110)
    left = [key for key in home.journal if key.startswith(("publishing/", "dissemination/"))]
    assert left == []
    assert not home.part._remembered
    assert not home.part._counts


# What it costs.


def lines_of(home: Home, messages: list[Publish]) -> int:
    """How many lines of publishing are run for some publications."""

    def publish() -> None:
        for message in messages:
            home.tell(message)

    return lines_run(publish, folder=FOLDER)


def test_a_publication_costs_the_same_however_many_are_kept() -> None:
    """It used to look at everything that is kept of the same source and cell."""
    home = Home()
    messages = [numbered(number) for number in range(1, 401)]
    costs = [lines_of(home, messages[begin : begin + 100]) for begin in range(0, 400, 100)]
    assert len(home.part._kept) == 400
    assert costs[3] <= 1.1 * costs[0]


class Reference:
    """The lowest number that is not settled by a root, found by looking at all of them."""

    def __init__(self) -> None:
        self.kept: dict[int, Kept] = {}

    def first(self, root: str) -> int:
        return min(
            number
            for number, kept in self.kept.items()
            if kept.state is not kept.state.SETTLED or kept.answered_by != root
        )


@given(st.lists(st.tuples(st.sampled_from("esrcf"), st.integers(0, 30)), max_size=60))
def test_what_a_root_must_have_heard_of_is_found_as_by_looking_at_all(
    steps: list[tuple[str, int]],
) -> None:
    """The property: whatever is entered, settled, reopened, moved to another root or removed."""
    home = Home()
    home.tell(numbered(1))
    item = next(iter(home.part._kept.values())).item
    count, reference, root, last = Count(1), Reference(), "a", 0
    for step, place in steps:
        chosen = sorted(reference.kept)[place % len(reference.kept)] if reference.kept else None
        if step == "e" or chosen is None:
            last += 1
            kept = Kept("@c", item._replace(number=last), None)
            reference.kept[last] = kept
            count.enter(kept)
        elif step == "s":
            reference.kept[chosen].answered(root, PublicationEvent.SETTLED)
        elif step == "r":
            # Another root has settled it meanwhile; this one is offered it again.
            kept = reference.kept[chosen]
            kept.answered("other", PublicationEvent.SETTLED)
            kept.root_is(root)
            count.reopen(kept)
        elif step == "c":
            root = "ab"[place % 2]
            for kept in reference.kept.values():
                before = kept.state
                kept.root_is(root)
                if kept.state is not before:
                    count.reopen(kept)
        elif reference.kept[chosen].settled:
            count.remove(reference.kept.pop(chosen))
        offered = [kept for kept in reference.kept.values() if not kept.settled_by(root)]
        if offered:
            assert count.first(offered[-1], root) == reference.first(root)
