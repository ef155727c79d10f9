"""Requests that are wrong in every way we could think of, from one seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

__all__ = ["Malformed"]

_PATHS = (
    "/events",
    "/subscriptions",
    "/subscriptions/x",
    "/subscriptions/x/events",
    "/subscriptions/x/acks",
    "/objects",
    "/content/" + "0" * 64,
    "/content/x",
    "/plans",
    "/trees",
    "/streams",
    "/brokers",
    "/brokers/x/drain",
    "/live",
    "/tokens",
    "/tokens/x",
    "/tenants/x",
    "/session",
    "/login",
    "/login/x",
    "/publish",
    "/health",
    "/ready",
    "/metrics",
    "/docs",
    "/openapi.json",
    "/",
    "*",
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "X")
_TYPES = (
    "application/json",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "application/cloudevents+avro",
    "application/cloudevents+json; charset=utf-16",
    "text/plain",
    "multipart/form-data",
    "application/x-www-form-urlencoded",
    "",
    ";;",
    "a" * 300,
)
_TEXTS = (
    "",
    "x",
    "\x00",
    "\ud800",
    "é" * 100,
    "../../etc/passwd",
    "%00",
    "a" * 5000,
    "🙂",
    "-1",
    "null",
    "2020-13-45T99:99:99Z",
    "1" * 400,
)


class Malformed:
    """Draws requests.

    Parameters
    ----------
    host, token
        Of the gateway, and one that is valid there.
    """

    def __init__(self, seed: int, host: str, token: str) -> None:
        self._random = random.Random(seed)
        self._host = host
        self._token = token
        self._kinds: list[Callable[[], bytes]] = [
            self._noise,
            self._whole,
            self._whole,
            self._whole,
            self._broken_event,
            self._broken_event,
            self._broken_subscription,
            self._broken_subscription,
            self._broken_binary,
            self._mutated,
            self._mutated,
            self._chunks,
            self._socket,
        ]

    def draw(self) -> bytes:
        """The bytes of the next one."""
        return self._random.choice(self._kinds)()

    # Values.

    def _value(self, depth: int = 0) -> object:
        draw = self._random
        kind = draw.randrange(9 if depth < 4 else 6)
        if kind == 0:
            return draw.choice((None, True, False))
        if kind == 1:
            return draw.choice((0, -1, 2**31, 2**63, 10**30, -(10**400)))
        if kind == 2:
            return draw.choice((0.5, -0.0, 1e308, 5e-324))
        if kind < 6:
            return draw.choice(_TEXTS)
        if kind == 6:
            return [self._value(depth + 1) for _ in range(draw.randrange(4))]
        return {draw.choice(_TEXTS): self._value(depth + 1) for _ in range(draw.randrange(4))}

    def _text(self, document: object) -> bytes:
        draw = self._random
        data = json.dumps(document).encode()
        kind = draw.randrange(12)
        if kind == 0:
            return data[: draw.randrange(len(data) + 1)]
        if kind == 1:
            return b"[" * 5000 + data
        if kind == 2:
            return data.replace(b'"', b"'")
        if kind == 3:
            return b"\xff\xfe" + data
        if kind == 4:
            return data.replace(b":", b":NaN,", 1)
        if kind == 5:
            return data + data
        return data

    # Requests.

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        draw = self._random
        given = {
            "host": self._host,
            "authorization": f"Bearer {self._token}",
            "connection": "close",
            "content-length": str(len(body)),
            **headers,
        }
        if draw.random() < 0.1:
            name = draw.choice(("authorization", "host", "content-length", "content-type"))
            given[name] = draw.choice(_TEXTS)
        if draw.random() < 0.05:
            given.pop(draw.choice(tuple(given)))
        if draw.random() < 0.1:
            more = ("last-event-id", "range", "accept", "cookie", "origin", "expect", "upgrade")
            given[draw.choice(more)] = draw.choice((*_TEXTS, "bytes=5-1", "100-continue", "h2c"))
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in given.items()),
        ]
        head = "\r\n".join(lines).encode("utf-8", "surrogatepass")
        return head + b"\r\n\r\n" + body

    def _whole(self) -> bytes:
        """Any route with any body."""
        draw = self._random
        path = draw.choice(_PATHS)
        if draw.random() < 0.3:
            path += draw.choice(
                ("?ack=", "?source=%ff&id=", "?tenant=", "?", "%", "//", "/%2e%2e/")
            )
            path += draw.choice(("x", "%zz", "a" * 200, "%00", ""))
        kind = draw.choice(_TYPES)
        body = self._text(self._value()) if draw.random() < 0.8 else draw.randbytes(200)
        return self._request(draw.choice(_METHODS), path, {"content-type": kind}, body)

    def _broken_event(self) -> bytes:
        draw = self._random
        events = []
        for _ in range(draw.choice((1, 1, 1, 3))):
            event: dict[str, object] = {
                "specversion": "1.0",
                "id": str(draw.randrange(10)),
                "source": "/fuzz",
                "type": "fuzz",
                "data": self._value(),
            }
            names = (*event, "time", "datacontenttype", "dataref", "data_base64", "sequence", "Bad")
            for _ in range(draw.randrange(1, 4)):
                event[draw.choice(names)] = self._value()
            if draw.random() < 0.3:
                event.pop(draw.choice(tuple(event)))
            events.append(event)
        batch = draw.random() < 0.4
        kind = f"application/cloudevents{'-batch' if batch else ''}+json"
        body = self._text(events if batch else events[0])
        return self._request("POST", "/events", {"content-type": kind}, body)

    def _broken_subscription(self) -> bytes:
        draw = self._random
        document: dict[str, object] = {"filters": [{"exact": {"type": "never"}}]}
        choices: tuple[object, ...] = (
            [{"sql": draw.choice(("a =", "1/0", "(" * 500, "type LIKE '%", "x" * 5000))}],
            [{"all": [{"any": [{"not": {"exact": {}}}]}]}],
            [{"range": {"x": self._value()}}],
            [{draw.choice(_TEXTS): self._value()}],
            self._value(),
        )
        for _ in range(draw.randrange(1, 4)):
            name = draw.choice(
                ("filters", "types", "source", "config", "profile", "tolerance", "z")
            )
            document[name] = draw.choice(choices)
        method, path = draw.choice(
            (("POST", "/subscriptions"), ("PUT", "/subscriptions/x"), ("PATCH", "/subscriptions/x"))
        )
        headers = {"content-type": "application/json"}
        return self._request(method, path, headers, self._text(document))

    def _broken_binary(self) -> bytes:
        draw = self._random
        headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/fuzz", "ce-type": "t"}
        for _ in range(draw.randrange(1, 4)):
            name = draw.choice(
                (*headers, "ce-time", "ce-", "ce-ABC", "ce-data", "ce-x y", "ce-dataref")
            )
            headers[name] = draw.choice(_TEXTS)
        if draw.random() < 0.3:
            headers.pop("ce-id")
        headers["content-type"] = draw.choice(_TYPES)
        return self._request("POST", "/events", headers, draw.randbytes(draw.randrange(300)))

    # Bytes.

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.randrange(1, 400)) + b"\r\n\r\n"

    def _mutated(self) -> bytes:
        """A request of another kind with some of its bytes changed, doubled or gone."""
        draw = self._random
        data = bytearray(draw.choice((self._whole, self._broken_event, self._broken_binary))())
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data))
            kind = draw.randrange(3)
            if kind == 0:
                data[at] = draw.randrange(256)
            elif kind == 1:
                del data[at : at + draw.randrange(1, 20)]
            else:
                data[at:at] = data[at : at + draw.randrange(1, 20)]
        return bytes(data)

    def _chunks(self) -> bytes:
        draw = self._random
        head = self._request("POST", "/events", {"transfer-encoding": "chunked"}, b"")
        head = head.replace(b"content-length: 0\r\n", b"")
        sizes = (b"0", b"5", b"-1", b"fffffffffffffffff", b"5;x=y", b"", b"zz", b"0x5")
        body = b"".join(draw.choice(sizes) + b"\r\nhello\r\n" for _ in range(draw.randrange(3)))
        return head + body + draw.choice((b"0\r\n\r\n", b"0\r\nx: y\r\n\r\n", b"\r\n"))

    def _socket(self) -> bytes:
        """A WebSocket that says something wrong at once."""
        draw = self._random
        headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": draw.choice(("13", "13", "8", "x")),
            "sec-websocket-key": draw.choice(("dGhlIHNhbXBsZSBub25jZQ==", "x", "")),
            "sec-websocket-protocol": draw.choice(("cloudevents.json", "x", ",")),
        }
        path = draw.choice(("/publish", "/subscriptions/x/events", "/events", "/live", "/x"))
        head = self._request("GET", path, headers, b"").replace(b"content-length: 0\r\n", b"")
        frames = (
            b"\x81\x85abcdhello",
            b"\x81\xfe\xff\xff",
            b"\xff" * 20,
            b"\x88\x80abcd",
            b"\x81\x01x",
        )
        return head + draw.choice(frames) + draw.choice(frames)
