"""Events come back as they went out, through every form, and through the official SDK."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import content as reference
from tests.strategies_content import JSON_VALUES, event_documents, publications

from distributary.content.attributes import attribute_text
from distributary.content.binary_mode import binary_message, parse_binary
from distributary.content.json_pointer import LEAVES_MAX, leaves
from distributary.content.publication import Publication, delivered, parse_event
from distributary.content.timestamps import parse_timestamp, timestamp_ns
from distributary.errors import BadInput


def texts_of(publication: Publication) -> dict[str, str]:
    """Return the attributes as binary mode carries them: texts, with the type implied."""
    found = {name: attribute_text(value) for name, value in publication.attributes.items()}
    if publication.media_type is not None:
        found["datacontenttype"] = publication.media_type
    return found


@given(event_documents())
def test_an_event_survives_being_written_and_read(document: dict[str, object]) -> None:
    publication = Publication.parse(document)
    written = publication.document()
    assert repr(Publication.parse(written)) == repr(publication)
    assert repr(parse_event(json.dumps(written))) == repr(publication)
    assert repr(parse_event(json.dumps(written, ensure_ascii=False).encode())) == repr(publication)


@given(publications())
def test_an_event_survives_binary_mode_but_for_the_types_of_its_attributes(
    publication: Publication,
) -> None:
    headers, body = binary_message(publication)
    assert all(value.isascii() for value in headers.values())
    arrived = parse_binary(headers, body)
    assert arrived.content == publication.content
    assert arrived.attributes == texts_of(publication)
    if publication.data is not None:
        assert repr(arrived.data) == repr(publication.data)


@given(publications())
def test_the_official_sdk_reads_what_we_write_and_writes_what_we_read(
    publication: Publication,
) -> None:
    pytest.importorskip("cloudevents")
    from cloudevents.core.bindings import http
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    from distributary.content.cloudevents_sdk import from_sdk, to_sdk

    ours = json.dumps(publication.document()).encode()
    theirs = JSONFormat().read(CloudEvent, ours)
    assert (theirs.get_source(), theirs.get_id()) == publication.identity
    headers, body = binary_message(publication)
    message = http.HTTPMessage(headers, body)
    assert http.from_binary(message, JSONFormat()).get_type() == publication.type

    # The SDK keeps microseconds; we keep what came.
    back = from_sdk(to_sdk(publication))
    assert back.identity == publication.identity
    assert (back.time is None) == (publication.time is None)
    assert back.content == publication.content
    # The SDK takes `+JSON` in capitals for another type than `+json`.
    if "+JSON" not in (publication.media_type or ""):
        rewritten = parse_event(JSONFormat().write(to_sdk(publication)))
        assert rewritten.content == publication.content


@given(JSON_VALUES)
def test_leaves_are_the_numbers_and_texts_of_the_document_in_its_order(data: object) -> None:
    numbers, texts = leaves(data)
    every = list(reference.all_leaves(data))
    assert list(texts.items()) == [(p, v) for p, v in every if isinstance(v, str)]
    assert list(numbers.items()) == [
        (p, float(v)) for p, v in every if isinstance(v, int | float) and not isinstance(v, bool)
    ]


@given(st.integers(0, 600), st.integers(0, 600))
def test_only_the_first_leaves_of_each_kind_are_kept(number_count: int, text_count: int) -> None:
    data = {"texts": [str(n) for n in range(text_count)], "numbers": list(range(number_count))}
    numbers, texts = leaves(data)
    assert list(texts) == [f"/texts/{n}" for n in range(min(text_count, LEAVES_MAX))]
    assert list(numbers) == [f"/numbers/{n}" for n in range(min(number_count, LEAVES_MAX))]


@given(publications(), JSON_VALUES)
def test_a_delivered_event_keeps_what_identifies_it(publication: Publication, data: object) -> None:
    got = delivered(publication, "application/json", data)
    for name in ("id", "source", "type", "time"):
        assert got.attributes.get(name) == publication.attributes.get(name)
    assert got.attributes["datacontenttype"] == "application/json"
    assert got.attributes.get("originaltype") == publication.media_type
    again = delivered(got, "text/plain", b"hi")
    assert again.attributes.get("originaltype", "application/json") == (
        publication.media_type or "application/json"
    )
    assert repr(Publication.parse(again.document())) == repr(again)


@given(st.datetimes(), st.integers(-1439, 1439), st.text("0123456789", max_size=9))
def test_equal_instants_have_equal_texts(moment: datetime, minutes: int, digits: str) -> None:
    """Whatever the offset in which a time is written."""
    whole = moment.replace(microsecond=0, tzinfo=UTC)
    fraction = f".{digits}" if digits else ""
    try:
        shifted = whole.astimezone(timezone(timedelta(minutes=minutes)))
    except OverflowError:
        return
    clock, offset = shifted.isoformat()[:19], shifted.isoformat()[19:]
    plain = parse_timestamp("time", f"{whole.isoformat()[:19]}{fraction}Z")
    assert parse_timestamp("time", f"{clock}{fraction}{offset}") == plain
    seconds = (whole - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    assert timestamp_ns(plain) == seconds * 10**9 + int(digits.ljust(9, "0"))


KEYS = st.sampled_from(
    ["id", "source", "type", "specversion", "time", "data", "data_base64", "datacontenttype", "é"]
)
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.sampled_from(["", "1.0", "a", "text/plain", "\x00"]),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=10,
)


@given(DOCUMENTS)
def test_whatever_the_document_the_answer_is_an_event_or_one_sentence(document: object) -> None:
    try:
        publication = parse_event(json.dumps(document))
    except BadInput as error:
        said = str(error)
    else:
        said = publication.id
    assert said
    assert "\n" not in said
