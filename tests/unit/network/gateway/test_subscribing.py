"""What a subscription may say, and that nothing else is taken in silence."""

from __future__ import annotations

from typing import Any

import pytest

from distributary.content import Subscription
from distributary.errors import BadInput
from distributary.network.gateway.subscribing import checked

SIZED: dict[str, Any] = {"width": 640, "height": 480}


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("filter", [], "filter"),
        ("config", {"expire": 1}, "config.expire"),
        ("profile", {"accept": ["a/b"], "bandwidth": 1}, "profile.bandwidth"),
        ("profile", {"accept": ["a/b"], "screen": {**SIZED, "depth": 8}}, "profile.screen.depth"),
        ("tolerance", {"amount": 1, "off": 2}, "tolerance.off"),
    ],
)
def test_a_field_that_there_is_not_is_named(field: str, value: object, place: str) -> None:
    with pytest.raises(BadInput, match="is not a field of") as caught:
        checked({"filters": [], field: value}, "s")
    assert caught.value.place == place


@pytest.mark.parametrize("screen", ["640x480", SIZED, None])
def test_a_screen_is_a_size_in_either_way(screen: object) -> None:
    checked({"filters": [], "profile": {"accept": ["a/b"], "screen": screen}}, "s")


def test_a_journal_may_have_a_screen_with_more() -> None:
    """It was let in before, and the broker must start."""
    profile = {"accept": ["a/b"], "screen": {**SIZED, "depth": 8}}
    assert Subscription.parse({"id": "s", "filters": [], "profile": profile}).profile is not None
