"""What messages are counted as, and what a client gets beside them."""

from __future__ import annotations

from distributary.broker.addresses import Blob
from distributary.broker.client import Accepted, Delivery, Publish
from distributary.broker.encoding import encode
from distributary.broker.links.messages import Hop, HopAck, Routed
from distributary.simulator.message_sizes import weigh

BLOB = Blob.imagined("a/a", 1_000_000, "x")


def test_a_client_gets_content_with_its_delivery() -> None:
    assert weigh(Delivery("s", 1, "{}", BLOB)) == ("Delivery", 1_000_000)
    assert weigh(Delivery("s", 1, "{}")) == ("Delivery", 0)


def test_what_only_refers_to_content_does_not_weigh_it() -> None:
    assert weigh(Publish("{}", BLOB)) == ("Publish", 0)
    assert weigh(Accepted("/p", "1")) == ("Accepted", 0)


def test_a_message_that_carries_another_counts_as_that_one() -> None:
    routed = Routed("00", "aa", encode(Publish("{}", BLOB)), ())
    assert weigh(Hop(1, 1, encode(routed))) == ("Publish", 0)
    assert weigh(HopAck(1)) == ("HopAck", 0)
