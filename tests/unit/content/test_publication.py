"""What CloudEvents forbids is refused in one sentence that names the attribute."""

from __future__ import annotations

import json
import math

import pytest

from distributary.content.attributes import ATTRIBUTE_CHARACTERS_MAX, ATTRIBUTES_MAX
from distributary.content.binary_mode import binary_message, parse_binary
from distributary.content.json_pointer import POINTER_CHARACTERS_MAX, checked_pointer, leaves
from distributary.content.payload import DEPTH_MAX
from distributary.content.publication import Publication, delivered, parse_event
from distributary.errors import BadInput

REQUIRED: dict[str, object] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def refusal(**fields: object) -> BadInput:
    with pytest.raises(BadInput) as raised:
        Publication.parse(REQUIRED | fields)
    return raised.value


@pytest.mark.parametrize("name", sorted(REQUIRED))
@pytest.mark.parametrize("missing", ["absent", "null", "empty"])
def test_a_required_attribute_must_be_there_and_not_be_empty(name: str, missing: str) -> None:
    document = dict(REQUIRED)
    del document[name]
    if missing != "absent":
        document[name] = None if missing == "null" else ""
    with pytest.raises(BadInput) as raised:
        Publication.parse(document)
    assert raised.value.place == name


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("specversion", "0.3", "must be '1.0', not '0.3'"),
        ("id", 7, "must be a string, not 7"),
        ("type", True, "must be a string, not true"),
        ("source", "a b", "'a b' is not a URI reference"),
        ("source", "/caf\u00e9", "'/caf\u00e9' is not a URI reference"),
        ("source", "/a%2", "'/a%2' is not a URI reference"),
        ("dataschema", "/relative", "'/relative' is not an absolute URI"),
        ("datacontenttype", "json", "'json' is not a media type"),
        ("datacontenttype", "image/*", "'image/*' names many types, not one"),
        ("subject", "", "must not be empty"),
        ("count", 2**31, "is an integer beyond 32 bits"),
        ("count", -(2**31) - 1, "is an integer beyond 32 bits"),
        ("ratio", 0.5, "must be a string, an integer or a boolean, not 0.5"),
        ("tags", ["a"], "must be a string, an integer or a boolean"),
        ("note", "a\nb", "has the code point U+000A, which CloudEvents does not allow"),
        ("note", "\x9f", "has the code point U+009F, which CloudEvents does not allow"),
        ("note", "\ufdd0", "has the code point U+FDD0, which CloudEvents does not allow"),
        ("note", "\U0001ffff", "has the code point U+1FFFF, which CloudEvents does not allow"),
        ("note", "\ud800", "has the code point U+D800, which CloudEvents does not allow"),
    ],
)
def test_a_bad_attribute_is_refused_by_name(name: str, value: object, problem: str) -> None:
    error = refusal(**{name: value})
    assert (error.place, error.problem) == (name, problem)


@pytest.mark.parametrize("name", ["Upper", "with_underscore", "with-dash", "", "\u00e9"])
def test_a_name_that_is_not_lower_case_letters_and_digits_is_refused(name: str) -> None:
    assert refusal(**{name: "x"}).problem == "is not the name of an attribute"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2026-01-31T12:00:00", "has no offset from UTC"),
        ("2026-01-31 12:00:00Z", "is not an RFC 3339 timestamp"),
        ("2026-02-30T12:00:00Z", "is not a time that exists"),
        ("2026-01-31T24:00:00Z", "is not a time that exists"),
        ("2026-01-31T12:00:00+24:00", "is not a time that exists"),
        ("0001-01-01T00:00:00+01:00", "is not a time that exists"),
        ("2026-01-31T12:00:60Z", "is not a time that exists"),
        ("2026-01-30T23:59:60Z", "is not a time that exists"),
        ("2026-01-31T23:59:60+01:00", "is not a time that exists"),
        ("2026-01-31T23:59:61Z", "is not a time that exists"),
        ("9999-12-31T23:59:60Z", "is not a time that exists"),
        ("2026-01-31T12:00:00.1234567891Z", "is finer than a nanosecond"),
        ("yesterday", "is not an RFC 3339 timestamp"),
        (5, "is not an RFC 3339 timestamp"),
    ],
)
def test_a_time_without_an_offset_or_that_does_not_exist_is_refused(
    text: object, problem: str
) -> None:
    error = refusal(time=text)
    assert error.place == "time"
    assert problem in error.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2016-12-31T23:59:60.75Z", "2017-01-01T00:00:00Z"),
        ("2015-06-30T16:59:60-07:00", "2015-07-01T00:00:00Z"),
        ("2024-02-29T23:59:60Z", "2024-03-01T00:00:00Z"),
    ],
)
def test_a_leap_second_is_the_start_of_the_second_after_it(text: str, expected: str) -> None:
    """Whatever its fraction, so that it is after none of what follows."""
    assert Publication.parse(REQUIRED | {"time": text}).time == expected


def test_time_is_stored_in_utc_with_its_nanoseconds() -> None:
    publication = Publication.parse(REQUIRED | {"time": "2026-01-31T01:00:00.120000030+02:00"})
    assert publication.time == "2026-01-30T23:00:00.12000003Z"
    assert publication.time_ns == 1_769_814_000_120_000_030


@pytest.mark.parametrize(
    ("fields", "place", "problem"),
    [
        ({"data": 1, "data_base64": "AA=="}, "data_base64", "cannot be given together"),
        ({"data_base64": "*"}, "data_base64", "is not Base64"),
        ({"data_base64": 5}, "data_base64", "must be a string"),
        ({"data": {}, "datacontenttype": "text/plain"}, "data", "must be a string"),
        (
            {"data": "x", "datacontenttype": "text/plain;charset=idna"},
            "data",
            "cannot be read as text in 'idna'",
        ),
        ({"data": "\u20ac", "datacontenttype": "text/plain;charset=latin1"}, "data", "character 1"),
        ({"data_base64": "ew==", "datacontenttype": "text/json"}, "data: line 1", "malformed JSON"),
        ({"data": {"a": float("nan")}}, "data at '/a'", "is not a number that a double can hold"),
        ({"data": [10**400]}, "data at '/0'", "is not a number that a double can hold"),
        ({"data": {"a": "\ud800"}}, "data at '/a'", "half of a surrogate pair"),
        ({"data": {1: 2}}, "data", "has a key that is not a string"),
        ({"data": [0, {"\ud800": 2}]}, "data at '/1'", "has a key with half of a surrogate pair"),
        ({"data": object()}, "data", "is not a JSON value"),
    ],
)
def test_bad_data_is_refused(fields: dict[str, object], place: str, problem: str) -> None:
    error = refusal(**fields)
    assert error.place.startswith(place)
    assert problem in error.problem


def test_limits_hold() -> None:
    with pytest.raises(BadInput, match="event: is larger than 10 bytes"):
        parse_event(json.dumps(REQUIRED), bytes_max=10)
    many = {f"a{n}": n for n in range(ATTRIBUTES_MAX)}
    assert "more than 256 attributes" in refusal(**many).problem
    assert "characters" in refusal(note="x" * (ATTRIBUTE_CHARACTERS_MAX + 1)).problem
    deep: object = 0
    for _ in range(DEPTH_MAX):
        deep = [deep]
    assert Publication.parse(REQUIRED | {"data": deep}).data == deep
    assert "nested more than 64 deep" in refusal(data=[deep]).problem


def test_the_first_fault_of_the_data_is_named_with_its_place() -> None:
    error = refusal(data={"a": [1, [2], {"b": [math.inf]}], "c": math.nan})
    assert error.place == "data at '/a/2/b/0'"


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "1", "id": "2"}',
        '{"data": {"a": 1, "a": 2}}',
        "[" * 100_000,
        '{"data": NaN}',
        "",
        '"text"',
        b"\xff",
    ],
)
def test_what_is_not_one_json_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(BadInput):
        parse_event(text)


def test_the_media_type_decides_whether_data_is_json() -> None:
    """A JSON string stays a string, and is not parsed again; other text is its bytes."""
    json_string = Publication.parse(REQUIRED | {"data": '{"a": 1}'})
    assert json_string.data == '{"a": 1}'
    assert json_string.texts == {"": '{"a": 1}'}
    text = Publication.parse(REQUIRED | {"data": "5", "datacontenttype": "text/plain"})
    assert text.data == b"5"
    assert not text.numbers
    assert text.document()["data"] == "5"
    coded = Publication.parse(
        REQUIRED | {"data_base64": "eyJhIjoxfQ==", "datacontenttype": "application/vnd.x+json"}
    )
    assert coded.numbers == {"/a": 1.0}
    raw = Publication.parse(REQUIRED | {"data_base64": "AAE="})
    assert (raw.data, raw.media_type) == (b"\x00\x01", "application/octet-stream")


def test_booleans_and_null_are_no_leaves_and_escapes_are_those_of_the_standard() -> None:
    numbers, texts = leaves({"a/b": {"m~n": 1}, "": "x", "t": True, "n": None, "big": 10**400})
    assert numbers == {"/a~1b/m~0n": 1.0}
    assert texts == {"/": "x"}


def test_a_long_key_is_not_repeated_for_every_leaf_below_it() -> None:
    data = {"k" * (POINTER_CHARACTERS_MAX + 1): ["x"] * 100, "a": "y"}
    assert leaves(data) == ({}, {"/a": "y"})


@pytest.mark.parametrize("pointer", ["price", "/a~2", "/a~", "/" + "x" * 1024, 5])
def test_what_is_not_a_pointer_is_refused(pointer: object) -> None:
    with pytest.raises(BadInput):
        checked_pointer("value", pointer)


def test_the_original_format_is_named_however_many_conversions_there_are() -> None:
    original = Publication.parse(
        REQUIRED
        | {"datacontenttype": "application/pdf", "data_base64": "AA==", "dataschema": "x:y"}
    )
    once = delivered(original, "image/jpeg;width=640", b"\x01")
    twice = delivered(once, "application/json", b'{"a": [1]}')
    assert once.document() == REQUIRED | {
        "datacontenttype": "image/jpeg;width=640",
        "originaltype": "application/pdf",
        "data_base64": "AQ==",
    }
    assert twice.attributes["originaltype"] == "application/pdf"
    assert twice.numbers == {"/a/0": 1.0}
    with pytest.raises(BadInput, match="must be bytes"):
        delivered(original, "image/png", {"a": 1})


def test_the_extension_names_the_publisher_and_otherwise_the_source_does() -> None:
    assert Publication.parse(REQUIRED).publisher == "/s"
    assert Publication.parse(REQUIRED | {"publisher": "ann"}).publisher == "ann"
    assert Publication.parse(REQUIRED | {"publisher": 7}).publisher == "7"


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({"data": "x"}, 3),
        ({"dataref": "s3://b/video", "datasize": 20_000_000}, 20_000_000),
        ({"dataref": "s3://b/video", "datasize": "3000000000"}, 3_000_000_000),
        ({"dataref": "s3://b/video", "datasize": "0"}, 0),
        ({"dataref": "s3://b/video", "datasize": str(10**15)}, 10**15),
        # The reference itself is not the content, and who says nothing has declared nothing.
        ({"dataref": "s3://b/video", "datasize": 12, "data": "s3://b/video"}, 12),
        ({"dataref": "s3://b/video"}, 0),
        ({"dataref": "s3://b/video", "data": "s3://b/video"}, 14),
        # Without a reference the word may mean anything.
        ({"datasize": "large", "data": "x"}, 3),
    ],
)
def test_content_that_is_kept_elsewhere_has_the_size_that_is_declared(
    fields: dict[str, object], size: int
) -> None:
    assert Publication.parse(REQUIRED | fields).content_bytes == size


@pytest.mark.parametrize("size", ["-1", -1, "", "1.5", "1e3", "ten", True, "+5", " 5", 10**15 + 1])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    declared = str(size) if size == 10**15 + 1 else size
    error = refusal(dataref="s3://b/video", datasize=declared)
    assert error.place == "datasize"
    assert "must be a number of bytes from 0 to 1,000,000,000,000,000" in error.problem


def test_what_is_converted_does_not_refer_to_the_original() -> None:
    fields = {"datacontenttype": "video/mp4", "dataref": "s3://b/video", "datasize": 20}
    sent = delivered(Publication.parse(REQUIRED | fields), "text/plain", b"Bridge closed")
    assert not {"dataref", "datasize"} & set(sent.attributes)
    assert sent.content_bytes == len(b"Bridge closed")


def test_binary_mode_unquotes_and_decodes_percents_once() -> None:
    headers = {
        "CE-SpecVersion": "1.0",
        "ce-id": '"a \\"b\\""',
        "ce-source": "/s",
        "ce-type": "Euro%20%E2%82%AC%20%2520 100%",
        "Content-Type": "application/json",
        "X-Other": "ignored",
    }
    publication = parse_binary(headers, b'{"a": 1}')
    assert publication.id == 'a "b"'
    assert publication.type == "Euro \u20ac %20 100%"
    assert publication.numbers == {"/a": 1.0}
    assert binary_message(publication)[0]["ce-type"] == "Euro%20%E2%82%AC%20%2520%20100%25"


@pytest.mark.parametrize(
    ("extra", "body", "place"),
    [
        ([("ce-type", "u"), ("CE-Type", "v")], b"", "'ce-type'"),
        ([("ce-note", "%C0%A0")], b"", "'ce-note'"),
        ([("ce-data", "x")], b"", "'ce-data'"),
        ([("content-type", "a/b"), ("ce-datacontenttype", "a/b")], b"", "'ce-datacontenttype'"),
        ([("content-type", "text/json")], b"{", "data: line 1, column 2"),
        ([], b"x" * 20, "data"),
    ],
)
def test_bad_headers_are_refused(extra: list[tuple[str, str]], body: bytes, place: str) -> None:
    headers = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), *extra]
    if not any(name.lower() == "ce-type" for name, _ in extra):
        headers.append(("ce-type", "t"))
    with pytest.raises(BadInput) as raised:
        parse_binary(headers, body, bytes_max=10)
    assert raised.value.place == place
