"""A rehearsal: what brokers do, done once before they are forked.

Each would otherwise load the same compiled loops for itself when its first publication comes, which
takes seconds and memory. What is loaded here is shared.
"""

from __future__ import annotations

import json
import random

from distributary.broker.addresses import HOST, client_address
from distributary.broker.broker import Broker
from distributary.broker.client import Delivery, Publish, Subscribe
from distributary.broker.driver import load_compiled
from distributary.broker.host import Effect, Send, Surroundings
from distributary.broker.settings import Settings

__all__ = ["rehearse"]

_OWN = "00000000"
_END_NS = 10**9


def rehearse() -> None:
    """Have a broker that is alone take a subscription and a publication."""
    # All that its driver loads. The first time it is compiled, which takes a minute where several
    # brokers do it at once.
    load_compiled(Settings())
    broker = Broker(_OWN, Settings(), rng=random.Random(0))
    broker.receive(Surroundings((), members=(_OWN,)), sender=HOST, now_ns=0)
    broker.start(now_ns=0)
    client = client_address("rehearsal")
    event = {"specversion": "1.0", "id": "1", "source": "/", "type": "a", "data": {"x": 1}}
    subscription = {"id": "s", "filters": [{"exact": {"type": "a"}}]}
    said: list[Effect] = []
    for message in (
        Subscribe(json.dumps(subscription)),
        Publish(json.dumps(event), None, "rehearsal", 1, 1),
    ):
        said += broker.receive(message, sender=client, now_ns=1)
    while (at_ns := broker.wake_at_ns()) is not None and at_ns < _END_NS:
        said += broker.wake(now_ns=at_ns)
    assert any(isinstance(one, Send) and isinstance(one.message, Delivery) for one in said)
