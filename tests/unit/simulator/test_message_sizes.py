"""What messages are counted as, and what their content takes."""

from __future__ import annotations

from distributary.broker.blob import Blob
from distributary.broker.client import Accepted, Publish
from distributary.broker.encoding import encode
from distributary.broker.links.messages import Hop, HopAck, Routed
from distributary.simulator.message_sizes import weigh

CONTENT = Publish("{}", Blob.imagined("a/a", 1_000_000, "x"))


def test_content_without_bytes_counts_with_its_size() -> None:
    assert weigh(CONTENT) == ("Publish", 1_000_000)


def test_content_with_bytes_is_in_the_message_already() -> None:
    assert weigh(Publish("{}", Blob.of("a/a", b"abc"))) == ("Publish", 0)
    assert weigh(Publish("{}")) == ("Publish", 0)
    assert weigh(Accepted("/p", "1")) == ("Accepted", 0)


def test_a_message_that_carries_another_counts_as_that_one() -> None:
    routed = Routed("00", "aa", encode(CONTENT), ())
    assert weigh(Hop(1, 1, encode(routed))) == ("Publish", 1_000_000)
    assert weigh(HopAck(1)) == ("HopAck", 0)
