"""Requests that are wrong in every way we could think of, from one seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.live.rubbish import TEXTS, Rubbish

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
    "/console",
    "/console/nowhere",
)
# Out of where something is served from; what is there must not be.
_WAYS_OUT = (
    "/../../../../etc/passwd",
    "/..%2f..%2f..%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/....//....//etc/passwd",
    "/%252e%252e%252fetc%252fpasswd",
    "/..%5c..%5cetc%5cpasswd",
    "//etc/passwd",
    "/%00/../etc/passwd",
    "/..;/tokens",
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


class Malformed:
    """Draws requests.

    Parameters
    ----------
    host, token
        Of the gateway, and one that is valid there.
    subscription
        One of that token, so that connections for it are accepted.
    """

    def __init__(self, seed: int, host: str, token: str, subscription: str) -> None:
        self._random = random.Random(seed)
        self._rubbish = Rubbish(self._random)
        self._host = host
        self._token = token
        self._subscription = subscription
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
            self._socket,
            self._way_out,
            self._huge,
            self._deep,
            self._smuggled,
        ]

    def draw(self) -> bytes:
        """The bytes of the next one."""
        return self._random.choice(self._kinds)()

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
            given[name] = draw.choice(TEXTS)
        if draw.random() < 0.05:
            given.pop(draw.choice(tuple(given)))
        if draw.random() < 0.1:
            more = ("last-event-id", "range", "accept", "cookie", "origin", "expect", "upgrade")
            given[draw.choice(more)] = draw.choice((*TEXTS, "bytes=5-1", "100-continue", "h2c"))
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
        body = (
            self._rubbish.text(self._rubbish.value())
            if draw.random() < 0.8
            else draw.randbytes(200)
        )
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
                "data": self._rubbish.value(),
            }
            names = (*event, "time", "datacontenttype", "dataref", "data_base64", "sequence", "Bad")
            for _ in range(draw.randrange(1, 4)):
                event[draw.choice(names)] = self._rubbish.value()
            if draw.random() < 0.3:
                event.pop(draw.choice(tuple(event)))
            events.append(event)
        batch = draw.random() < 0.4
        kind = f"application/cloudevents{'-batch' if batch else ''}+json"
        body = self._rubbish.text(events if batch else events[0])
        return self._request("POST", "/events", {"content-type": kind}, body)

    def _broken_subscription(self) -> bytes:
        draw = self._random
        document: dict[str, object] = {"filters": [{"exact": {"type": "never"}}]}
        choices: tuple[object, ...] = (
            [{"sql": draw.choice(("a =", "1/0", "(" * 500, "type LIKE '%", "x" * 5000))}],
            [{"all": [{"any": [{"not": {"exact": {}}}]}]}],
            [{"range": {"x": self._rubbish.value()}}],
            [{draw.choice(TEXTS): self._rubbish.value()}],
            self._rubbish.value(),
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
        return self._request(method, path, headers, self._rubbish.text(document))

    def _broken_binary(self) -> bytes:
        draw = self._random
        headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/fuzz", "ce-type": "t"}
        for _ in range(draw.randrange(1, 4)):
            name = draw.choice(
                (*headers, "ce-time", "ce-", "ce-ABC", "ce-data", "ce-x y", "ce-dataref")
            )
            headers[name] = draw.choice(TEXTS)
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

    def _way_out(self) -> bytes:
        draw = self._random
        path = draw.choice(("", "/console", "/content", "/docs", "/login")) + draw.choice(_WAYS_OUT)
        return self._request(draw.choice(("GET", "PUT", "DELETE")), path, {}, b"")

    def _huge(self) -> bytes:
        """More before the body than anybody needs."""
        draw = self._random
        kind = draw.randrange(4)
        if kind == 0:
            return self._request("GET", "/health", {"x": "y" * draw.choice((9_000, 70_000))}, b"")
        if kind == 1:
            many = {f"x-{place}": "y" for place in range(draw.choice((200, 300, 2_000)))}
            return self._request("POST", "/events", many, b"")
        if kind == 2:
            return self._request(
                "GET", f"/plans?source={'s' * draw.choice((9_000, 70_000))}", {}, b""
            )
        attributes = {f"ce-{'a' * place}": "b" * 60 for place in range(1, draw.choice((30, 200)))}
        headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/f", "ce-type": "t"}
        return self._request("POST", "/events", {**headers, **attributes}, b"")

    def _deep(self) -> bytes:
        """JSON that is nested, to where one has to be."""
        draw = self._random
        depth = draw.choice((60, 500, 5_000, 30_000))
        opened, closed = draw.choice(
            (
                (b"[", b"]"),
                (b'{"a":', b"}"),
                (b'{"all":[', b"]}"),
                (b'{"not":', b"}"),
                (b'[{"data":', b"}]"),
            )
        )
        nested = opened * depth + b"1" + closed * depth
        kind, path, field = draw.choice(
            (
                ("application/json", "/subscriptions", b"filters"),
                ("application/json", "/subscriptions/check", b"config"),
                ("application/json", "/objects", b"source"),
                ("application/json", "/tokens", b"scopes"),
                ("application/cloudevents+json", "/events", b"data"),
            )
        )
        body = nested if draw.random() < 0.5 else b'{"%s":%s}' % (field, nested)
        method = "PUT" if path == "/objects" else "POST"
        return self._request(method, path, {"content-type": kind}, body)

    def _smuggled(self) -> bytes:
        """What two readers might understand differently, or what is not HTTP/1.1."""
        draw = self._random
        inner = self._request("DELETE", "/tokens/x", {}, b"")
        whole = self._request("POST", "/events", {"transfer-encoding": "chunked"}, b"0\r\n\r\n")
        kinds: tuple[bytes, ...] = (
            whole + inner,
            whole.replace(b"chunked", b"chunked, identity") + inner,
            whole.replace(b"chunked", b"\x0bchunked") + inner,
            whole.replace(b"\r\n", b"\n") + inner,
            whole.replace(b"host:", b"host :", 1),
            whole.replace(b"\r\nhost", b"\r\n folded\r\nhost", 1),
            inner.replace(b"/tokens", b"http://evil.example/tokens"),
            inner.replace(b"HTTP/1.1", b"HTTP/1.0"),
            inner.replace(b"HTTP/1.1", b"HTTP/9.9"),
            b"GET /tokens\r\n\r\n" + inner,
            b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\n\r\n" + inner,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + draw.randbytes(40),
            b"\x16\x03\x01\x02\x00\x01" + draw.randbytes(60),
            inner.replace(b"content-length: 0", b"content-length: +0"),
            inner.replace(b"content-length: 0", b"content-length: 0, 5") + b"hello",
            inner.replace(b"content-length: 0", b"content-length: 5000000000"),
        )
        return draw.choice(kinds)

    # WebSockets.

    def _socket(self) -> bytes:
        """A WebSocket that says something wrong at once."""
        draw = self._random
        headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            "sec-websocket-protocol": "cloudevents.json",
        }
        if draw.random() < 0.2:
            headers[draw.choice(tuple(headers))] = draw.choice(("8", "x", "", ",", "keep-alive"))
        own = f"/subscriptions/{self._subscription}/events"
        path = draw.choice(("/publish", own, own, "/subscriptions/x/events", "/events", "/live"))
        head = self._request("GET", path, headers, b"").replace(b"content-length: 0\r\n", b"")
        return head + b"".join(self._frame() for _ in range(draw.randrange(1, 6)))

    def _frame(self) -> bytes:
        """A frame in or out of order: continued, never begun, not masked, too long, not text."""
        draw = self._random
        first = draw.choice(
            (0x81, 0x81, 0x01, 0x80, 0x00, 0x82, 0x88, 0x89, 0x8A, 0x83, 0xF1, 0x09)
        )
        said = draw.choice(
            (
                b"",
                b"x",
                b"\xff\xfe",
                b'{"ack":1}',
                b'{"ack":-1}',
                b'{"ack":1e400}',
                b'{"ack":99999999999999999999999}',
                b"[" * 3_000,
                b"\x03\xe7no such code",
                b"z" * 200,
                self._rubbish.text(self._rubbish.value()),
                json.dumps(
                    {
                        "specversion": "1.0",
                        "id": "1",
                        "source": "/f",
                        "type": "t",
                        "x": self._rubbish.value(),
                    }
                ).encode(),
            )
        )
        if draw.random() < 0.1:
            # More is promised than comes, or than anybody may send.
            return bytes((first, 0xFF)) + draw.choice((2**16, 2**31, 2**63)).to_bytes(8, "big")
        size = len(said)
        length = bytes((size,)) if size < 126 else b"\x7e" + (size % 2**16).to_bytes(2, "big")
        if draw.random() < 0.1:
            return bytes((first,)) + length + said
        mask = draw.randbytes(4)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(said))
        return bytes((first, length[0] | 0x80)) + length[1:] + mask + masked
