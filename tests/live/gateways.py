"""Clients of a gateway for tests: plain HTTP, and server-sent events read as a browser does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

__all__ = ["WAIT_S", "Http", "Sent", "Stream", "event", "problem"]

WAIT_S = 60.0
"""How long somebody who asks waits for the next byte, also on a busy machine."""


def event(source: str, number: int, kind: str, **more: Any) -> dict[str, Any]:
    """An event in structured mode."""
    return {"specversion": "1.0", "id": str(number), "source": source, "type": kind, **more}


def problem(answer: httpx.Response, status: int) -> str:
    """What a problem says, which is one sentence."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    detail: str = body["detail"]
    assert "\n" not in detail
    return detail


@dataclass
class Sent:
    """One server-sent event."""

    id: str
    kind: str
    data: str

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.data)
        return found


class Stream:
    """Server-sent events of one connection."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.last = ""
        self._events = self._read()

    def _read(self) -> Iterator[Sent]:
        data: list[str] = []
        kind = ""
        for line in self.response.iter_lines():
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line:
                if data:
                    yield Sent(self.last, kind, "\n".join(data))
                data, kind = [], ""
            elif field == "data":
                data.append(value)
            elif field == "id":
                self.last = value
            elif field == "event":
                kind = value

    def take(self, count: int) -> list[Sent]:
        """The next ones."""
        return [next(self._events) for _ in range(count)]

    def rest(self) -> list[Sent]:
        """All that comes until the connection ends."""
        return list(self._events)


class Http:
    """Whoever has a token of a gateway."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self._client = httpx.Client(base_url=url, timeout=WAIT_S)

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def request(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        token = self.token if token is None else token
        headers = {**options.pop("headers", {})}
        if token:
            headers["authorization"] = f"Bearer {token}"
        return self._client.request(method, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def publish(self, events: Any) -> httpx.Response:
        """Publish one event, or a batch."""
        kind = "cloudevents-batch" if isinstance(events, list) else "cloudevents"
        headers = {"content-type": f"application/{kind}+json"}
        return self.post("/events", content=json.dumps(events), headers=headers)

    def subscribe(self, document: dict[str, Any]) -> str:
        """Subscribe; return the id."""
        answer = self.post("/subscriptions", json=document)
        assert answer.status_code == 201, answer.text
        name: str = answer.json()["id"]
        assert answer.headers["location"] == f"/subscriptions/{name}"
        return name

    @contextmanager
    def events(self, name: str, last: str | None = None, query: str = "") -> Iterator[Stream]:
        """Server-sent events of a subscription."""
        with self.stream(f"/subscriptions/{name}/events{query}", last) as stream:
            yield stream

    @contextmanager
    def stream(self, path: str, last: str | None = None) -> Iterator[Stream]:
        """Server-sent events of a path."""
        headers = {"authorization": f"Bearer {self.token}", "accept": "text/event-stream"}
        if last is not None:
            headers["last-event-id"] = last
        with self._client.stream("GET", path, headers=headers) as response:
            if response.status_code == 200:
                assert response.headers["content-type"].startswith("text/event-stream")
            yield Stream(response)
