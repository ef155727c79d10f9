"""What a host counts and remembers for those who watch."""

from __future__ import annotations

from itertools import count

import pytest

from distributary.broker.addresses import Blob
from distributary.broker.links.messages import Hop, HopAck
from distributary.broker.telemetry import Adapted, Delivered, TreeLinked
from distributary.network.host_metrics import METRICS, HostMetrics
from distributary.network.witness import Witness

PEER, OTHER = "a" * 4, "b" * 4


def told(figures: HostMetrics, figure: str) -> dict[tuple[str, ...], float]:
    """All values of a figure by its labels."""
    rows = list(figures.rows({"Planned": 3}))
    assert {row["figure"] for row in rows} <= METRICS.keys()
    found = [row for row in rows if row["figure"] == figure]
    assert {len(row["labels"]) for row in found} <= {len(METRICS[figure].labels)}
    return {tuple(row["labels"]): row["value"] for row in found}


@pytest.fixture
def witness() -> Witness:
    """One whose clock goes on by a second whenever it is looked at."""
    return Witness(count(0, 10**9).__next__)


def test_messages_between_brokers_are_counted_and_those_sent_again(witness: Witness) -> None:
    for number in (1, 2, 2, 1, 3):
        witness.sent(PEER, Hop(number, 1, b"..."), 100)
    witness.sent(OTHER, Hop(1, 1, b"..."), 10)
    witness.sent(OTHER, HopAck(1), 5)
    assert told(witness.metrics, "messages") == {(PEER,): 5, (OTHER,): 2}
    assert told(witness.metrics, "message_bytes") == {(PEER,): 500, (OTHER,): 15}
    assert told(witness.metrics, "resends") == {(PEER,): 2, (OTHER,): 0}


def test_conversions_and_commits_are_counted_with_their_seconds(witness: Witness) -> None:
    page, picture = Blob.of("application/pdf", b"page"), Blob.of("image/jpeg", b"picture")
    witness.converted(-(10**9), page, "image/jpeg", picture)
    witness.converted(10**9, page, "image/jpeg", None)
    witness.metrics.committed(0.5)
    witness.metrics.committed(0.25)
    witness.metrics.fetched(PEER, page, 4)
    witness.metrics.fetched(PEER, page, 4)
    pair = ("application/pdf", "image/jpeg")
    assert told(witness.metrics, "conversions") == {(*pair, "done"): 1, (*pair, "failed"): 1}
    assert told(witness.metrics, "conversion_seconds") == {(*pair, "done"): 1, (*pair, "failed"): 1}
    assert told(witness.metrics, "commits") == {(): 2}
    assert told(witness.metrics, "commit_seconds") == {(): 0.75}
    assert told(witness.metrics, "content_bytes") == {(PEER, "application/pdf"): 8}
    assert told(witness.metrics, "reports") == {("Planned",): 3}


def test_no_publisher_makes_figures_without_end(witness: Witness) -> None:
    for number in range(1_000):
        witness.reported(Delivered("@one", "all", 1, "/s", "1", f"text/x-{number}"))
    delivered = told(witness.metrics, "deliveries")
    assert sum(delivered.values()) == 1_000
    assert len(delivered) <= 201
    assert delivered["other",] == 800


def test_changes_of_trees_are_remembered_with_whose_they_are(witness: Witness) -> None:
    witness.reported(TreeLinked("/prices wheat", PEER))
    witness.reported(Adapted(" north /prices wheat", "promotion", 0.1))
    assert [(one["what"], one["tenant"]) for one in witness.moves] == [
        ("linked", ""),
        ("adapted", "north"),
    ]
    assert witness.moves[0]["parent"] == PEER
    assert (witness.moves[1]["move"], witness.moves[1]["gain"]) == ("promotion", 0.1)
    assert told(witness.metrics, "moves") == {("promotion",): 1}
    for _ in range(1_000):
        witness.reported(TreeLinked("/prices wheat", None))
    assert len(witness.moves) == 200
