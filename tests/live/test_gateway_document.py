"""The document of the interface says what there is: every answer is one that it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.live.gateways import Http
from tests.live.overlays import RunningOverlay, running_overlay

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Answers that do not end, and what would take the only broker away.
LEFT_OUT = ("/live", "/subscriptions/{name}/events", "/brokers/{broker}/drain")


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("document") / "state", brokers=1) as overlay:
        yield overlay
        assert "Traceback" not in overlay.log("gateway")


@pytest.fixture(scope="module")
def http(overlay: RunningOverlay) -> Iterator[Http]:
    with Http(overlay.line["gateway"], overlay.line["token"]) as http:
        yield http


@pytest.mark.parametrize("count", [4, pytest.param(150, marks=pytest.mark.full)])
def test_every_answer_is_documented(http: Http, count: int) -> None:
    made = http.post(
        "/tokens",
        json={
            "name": f"d{count}",
            "tenant": "document",
            "scopes": ["publish", "subscribe", "admin"],
        },
    ).json()
    headers = {"authorization": f"Bearer {made['token']}"}
    schema = schemathesis.openapi.from_url(f"{http.url}/openapi.json")
    tried = 0
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.path in LEFT_OUT:
            continue
        tried += 1
        _try(operation, headers, count)
    assert tried >= 20


def _try(operation: Any, headers: dict[str, str], count: int) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(operation.as_strategy(), _wrong(operation)))
    def ask(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    ask()


def _wrong(operation: Any) -> Any:
    """What does not fit the document."""
    mode = schemathesis.GenerationMode.NEGATIVE
    return operation.as_strategy(generation_mode=mode)
