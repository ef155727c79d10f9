"""What a caller gives is checked before anything is sent."""

# What these tests do is what a type checker would not let pass.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from distributary.client.connection import Connection, connect
from distributary.client.here import Address
from distributary.content import Publication
from distributary.errors import BadInput


class Slow:
    """A publisher who stores each event only after a while."""

    def __init__(self) -> None:
        self.stored: list[object] = []

    async def publish(self, event: Publication) -> None:
        await asyncio.sleep(0.01)
        self.stored.append(event.data)


@pytest.fixture
def publisher() -> Slow:
    return Slow()


@pytest.fixture
def connection(publisher: Slow) -> Connection:
    """One that is open, to no gateway."""
    made = Connection(Address("http://127.0.0.1:9", None), patience_s=1.0)
    made._open = cast(Any, (None, publisher))
    return made


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ({"filters": {"range": {"/x": {"min": math.inf}}}}, "filters at '/0/range/~1x/min'"),
        ({"filters": {"exact": {"time": datetime.now(UTC)}}}, "filters at '/0/exact/time'"),
        ({"filters": "type = '\ud800'"}, "filters at '/0/sql'"),
        ({"tolerance": {"amount": math.nan}}, "tolerance at '/amount'"),
        ({"tolerance": 3}, "tolerance"),
        ({"config": {"expires": datetime.now(UTC)}}, "config at '/expires'"),
        ({"config": [1]}, "config"),
        ({"accept": 3}, "accept"),
        ({"id": 3}, "id"),
        ({"id": ""}, "id"),
    ],
)
def test_a_subscription_that_cannot_be_sent_is_named(
    connection: Connection, wanted: dict[str, Any], place: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        connection.subscribe(**wanted)
    assert refusal.value.place == place


@pytest.mark.parametrize("argument", ["url", "token"])
def test_where_and_who_are_texts(argument: str) -> None:
    with pytest.raises(BadInput, match=f"{argument}: must be a string"):
        connect(**{argument: 3})


def test_many_are_no_number_and_no_text(connection: Connection) -> None:
    """The letters of a text are not what somebody means to publish one by one."""
    for items in (3, "abc"):
        with pytest.raises(BadInput, match="items: must be an iterable"):
            asyncio.run(connection.publish_all(items, type="t"))


def test_those_before_one_that_cannot_be_published_are_stored(
    connection: Connection, publisher: Slow
) -> None:
    with pytest.raises(BadInput, match="item 3: data: is not a number"):
        asyncio.run(connection.publish_all([1, 2, math.nan, 4], type="t"))
    assert publisher.stored == [1, 2]
