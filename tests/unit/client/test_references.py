"""Content is fetched from the gateway and from nowhere else, whatever an event refers to."""

from __future__ import annotations

import asyncio

import pytest

from distributary.client.content import content_path
from distributary.client.gateway import Gateway
from distributary.client.here import Address
from distributary.content.publication import Publication
from distributary.errors import BadInput

DIGEST = "0123456789abcdef" * 4


def found(url: str, reference: str, data: object = None) -> str | None:
    async def find() -> str | None:
        gateway = Gateway(Address(url, "token"), patience_s=1.0)
        try:
            attributes = {"id": "1", "source": "/s", "type": "t", "dataref": reference}
            return content_path(gateway, Publication(attributes, data))
        finally:
            await gateway.close()

    return asyncio.run(find())


@pytest.mark.parametrize("url", ["http://127.0.0.1:8480", "https://gateway.example/below"])
def test_a_reference_of_the_gateway_is_its_path(url: str) -> None:
    assert found(url, f"/content/{DIGEST}") == f"/content/{DIGEST}"
    assert found(url, f"{url}/content/{DIGEST}") == f"/content/{DIGEST}"
    assert found(url, f"/content/{DIGEST}", b"here") is None


@pytest.mark.parametrize(
    "reference",
    [
        f"http://elsewhere.example/content/{DIGEST}",
        f"//elsewhere.example/content/{DIGEST}",
        f"http://127.0.0.1:8480.elsewhere.example/content/{DIGEST}",
        f"http://127.0.0.1:8480@elsewhere.example/content/{DIGEST}",
        f"/content/{DIGEST}/../../tokens",
        f"/content/{DIGEST}?x=1",
        f"/content/{DIGEST.upper()}",
        f"/content/{DIGEST}\n",
        f"\\\\elsewhere\\content\\{DIGEST}",
        "/subscriptions",
        "file:///etc/passwd",
        "",
    ],
)
def test_any_other_reference_is_refused(reference: str) -> None:
    with pytest.raises(BadInput, match="is not with this gateway"):
        found("http://127.0.0.1:8480", reference)
