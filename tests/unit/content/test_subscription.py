"""Subscriptions keep their filters as data, and say where a document goes wrong."""

from __future__ import annotations

import pytest

from distributary.content.subscription import Subscription
from distributary.errors import BadInput

WHOLE = {
    "id": "s1",
    "filters": [{"exact": {"type": "quote"}}, {"range": {"/price": {"min": 1.5}}}],
    "user": "ann",
    "profile": {"accept": ["image/*;q=0.5"], "screen": {"width": 390, "height": 844}},
    "tolerance": {"value": "/price", "divergence": "absolute", "amount": 0.5},
}


def test_a_subscription_survives_being_written_and_read() -> None:
    subscription = Subscription.parse(WHOLE)
    assert subscription.document() == WHOLE
    assert Subscription.parse(subscription.document()) == subscription


def test_everything_but_id_and_filters_may_be_left_out_or_null() -> None:
    bare = Subscription.parse({"id": "s", "filters": [], "profile": None, "sink": "x:y"})
    assert bare == Subscription("s")
    assert bare.document() == {"id": "s", "filters": []}


@pytest.mark.parametrize(
    ("change", "place", "problem"),
    [
        ({"id": ""}, "id", "must not be empty"),
        ({"id": 5}, "id", "must be a string, not 5"),
        ({"filters": {}}, "filters", "must be a list, not an object"),
        ({"filters": [{"exact": {"type": "x" * 2**20}}]}, "filters", "at most 1,048,576 are read"),
        ({"filters": [float("inf")]}, "filters", "is not a number that a double can hold"),
        ({"user": 5}, "user", "must be a string, not 5"),
        ({"profile": {"accept": "x"}}, "profile.accept[0]", "'x' is not a media type"),
        (
            {"tolerance": {"value": "price", "divergence": "age", "amount": 1}},
            "tolerance.value",
            "'price' is not a JSON Pointer",
        ),
        (
            {"tolerance": {"value": "/p", "divergence": "absolut", "amount": 1}},
            "tolerance.divergence",
            "'absolut' is not a divergence",
        ),
        (
            {"tolerance": {"value": "/p", "divergence": "age", "amount": 0}},
            "tolerance.amount",
            "must be greater than 0, not 0",
        ),
        (
            {"tolerance": {"value": "/p", "divergence": "age", "amount": 1, "unit": "s"}},
            "tolerance.unit",
            "is not a field of a tolerance",
        ),
    ],
)
def test_a_bad_subscription_is_refused(change: dict[str, object], place: str, problem: str) -> None:
    with pytest.raises(BadInput) as raised:
        Subscription.parse(WHOLE | change)
    assert raised.value.place == place
    assert problem in raised.value.problem


def test_filters_must_be_said_even_if_there_are_none() -> None:
    with pytest.raises(BadInput, match=r"^filters: is missing$"):
        Subscription.parse({"id": "s"})
