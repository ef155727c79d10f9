"""What a gateway says is told in the words of whoever has a client."""

from __future__ import annotations

import pytest

from distributary.client.failure import RequestRefused


@pytest.mark.parametrize(
    "said", ["there is no token; hint: send Authorization: Bearer TOKEN", "the token is not valid"]
)
def test_without_a_token_one_is_told_where_it_goes(said: str) -> None:
    reason = RequestRefused(401, said).reason
    assert reason == f"{said.partition(';')[0]}; hint: set DISTRIBUTARY_TOKEN"
    assert RequestRefused(403, said).reason == said
