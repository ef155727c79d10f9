"""Errors say what they say on the other side of a process, too."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from distributary import errors
from distributary.client import failure as client_failure
from distributary.errors import DistributaryError
from distributary.media import failure as media_failure

ERRORS = sorted(
    {
        kind
        for module in (errors, client_failure, media_failure)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, DistributaryError)
    },
    key=lambda kind: kind.__name__,
)


def made(kind: type[DistributaryError]) -> DistributaryError:
    """Return an error made from something for all that it asks for."""
    try:
        asked = list(inspect.signature(kind).parameters.values())
    except ValueError:
        return kind("some text")
    given: dict[str, Any] = {
        one.name: 7 if str(one.annotation).split(" ")[0] in ("int", "float") else f"some {one.name}"
        for one in asked
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    return kind(**given) if given else kind("some text")


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_it_was_pickled(kind: type[DistributaryError]) -> None:
    error = made(kind)
    found = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(found) is kind
    assert str(found) == str(error) != ""
    assert found.__dict__ == error.__dict__
