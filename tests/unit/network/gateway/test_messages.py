"""Events in the bodies of requests cost no more than their size lets one expect."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from distributary.errors import BadInput
from distributary.network.gateway.messages import BATCH, STRUCTURED, Outbound, read_events
from distributary.network.gateway.problems import Problem
from distributary.network.gateway.spool import Spool

MANY = 1_200_000


def read(folder: Path, kind: str, body: bytes) -> list[Outbound]:
    spool = Spool(folder)
    spool.write(body)
    try:
        return asyncio.run(read_events([("content-type", kind)], spool, "localhost"))
    finally:
        spool.close()


def event(data: bytes) -> bytes:
    return b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":%s}' % data


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1", b'"\\"[,"'])
@pytest.mark.parametrize("kind", [STRUCTURED, BATCH])
def test_a_document_of_very_many_values_is_refused_before_it_is_read(
    tmp_path: Path, kind: str, value: bytes
) -> None:
    """Sixty megabytes of empty lists would take nearly two gigabytes."""
    values = b"[" + b",".join([value] * MANY) + b"]"
    with pytest.raises(Problem, match="more than 1,000,000 values") as caught:
        read(tmp_path, kind, event(values) if kind == STRUCTURED else values)
    assert caught.value.status == 413


DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("reference", "digest"),
    [
        (f"/content/{DIGEST}", DIGEST),
        (f"http://localhost/content/{DIGEST}", DIGEST),
        (f"http://elsewhere/content/{DIGEST}", None),
        ("http://elsewhere/content/1", None),
        ("/other/1", None),
    ],
)
def test_a_reference_is_ours_or_nobodys_business(
    tmp_path: Path, reference: str, digest: str | None
) -> None:
    (one,) = read(tmp_path, STRUCTURED, event(b'null,"dataref":"%s"' % reference.encode()))
    assert one.reference == digest


@pytest.mark.parametrize("name", [DIGEST.upper(), DIGEST[1:], "", "map.pdf"])
@pytest.mark.parametrize("host", ["", "http://localhost"])
def test_a_reference_of_ours_that_names_nothing_is_refused(
    tmp_path: Path, host: str, name: str
) -> None:
    """Whoever gets the event would look for it in vain."""
    reference = f"{host}/content/{name}".encode()
    with pytest.raises(BadInput, match="dataref: names content by 64"):
        read(tmp_path, STRUCTURED, event(b'null,"dataref":"%s"' % reference))


@pytest.mark.parametrize("kind", [STRUCTURED, "image/png"])
def test_a_body_that_is_compressed_is_not_taken_for_what_is_in_it(
    tmp_path: Path, kind: str
) -> None:
    spool = Spool(tmp_path)
    spool.write(gzip.compress(event(b"1")))
    said = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    headers = [(f"ce-{name}", value) for name, value in said.items()]
    headers += [("content-type", kind), ("content-encoding", "gzip")]
    with pytest.raises(Problem, match="Content-Encoding: 'gzip'") as caught:
        asyncio.run(read_events(headers, spool, "localhost"))
    assert caught.value.status == 415


def test_what_a_text_has_is_no_value(tmp_path: Path) -> None:
    table = 'a,"b",[1,2],{}\\\n' * (MANY // 4)
    (one,) = read(tmp_path, STRUCTURED, event(json.dumps(table).encode()))
    assert isinstance(one.content, bytes)
    assert json.loads(one.content) == table


@pytest.mark.parametrize("data", [b"[1,2", b"[" + b"1," * MANY + b"1]"], ids=["broken", "many"])
def test_a_body_that_is_refused_is_forgotten_at_once(tmp_path: Path, data: bytes) -> None:
    """Not only when somebody looks for garbage: a few large ones would be much."""
    body = event(data)[:-1] + b" " * 10_000_000
    kept: list[Exception] = []
    gc.disable()
    tracemalloc.start()
    try:
        try:
            read(tmp_path, STRUCTURED, body)
        except (BadInput, Problem) as error:
            kept.append(error)
        assert kept
        assert tracemalloc.get_traced_memory()[0] < len(body) // 2
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("end", [b"", b"\\", b'\\"', b'"'])
def test_a_text_that_does_not_end_is_refused_soon(tmp_path: Path, end: bytes) -> None:
    with pytest.raises((BadInput, Problem)):
        read(tmp_path, STRUCTURED, event(b'"' + b"[,\\\\" * MANY + end)[:-1])
