"""JSON documents are read within limits and written so that people can read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distributary.content import documents
from distributary.content.documents import document_text, parse_document, place_of, read_document
from distributary.errors import BadInput


def test_a_document_is_read_from_bytes_and_from_text() -> None:
    assert parse_document(b'{"a": [1, 2.5, null, true, "\xc3\xa4"]}') == {
        "a": [1, 2.5, None, True, "ä"]
    }
    assert parse_document('{"a": 1}') == {"a": 1}


def test_a_byte_order_mark_is_no_part_of_the_document() -> None:
    assert parse_document(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_a_long_integer_is_infinite_rather_than_an_error() -> None:
    """The field's reader knows the name and the range, and complains about both."""
    assert parse_document("[" + "9" * 5000 + ", -" + "9" * 5000 + "]") == [
        float("inf"),
        float("-inf"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1, "a": 2}', "a"),
        ('{"a": [{"b": 1}, {"b": 1, "c": 2, "b": 3}]}', "a[1].b"),
        ('{"a": {"x y": 1, "x y": 2}}', "a.'x y'"),
        ('[{"a": {"b": 1, "b": 2}}]', "[0].a.b"),
        # The repeated key hides an object that has a repeated key itself.
        ('{"a": {"b": 1, "b": 2}, "a": 3}', "a"),
    ],
)
def test_a_repeated_key_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_document(text)
    assert raised.value.place == place
    assert raised.value.problem == "is given twice"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_a_literal_that_is_not_json_is_refused_with_its_place(literal: str) -> None:
    with pytest.raises(BadInput, match=rf"^a\[1\]\.b: is {literal}, which is not a number"):
        parse_document(f'{{"a": [0, {{"b": {literal}}}], "c": {literal}}}')


def test_a_document_beyond_the_limit_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "DOCUMENT_BYTES_MAX", 2**20)
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(BadInput, match=r"large\.json: document: is larger than 1 MiB$"):
        read_document(path, lambda document: document)


def test_a_path_that_cannot_exist_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot be read: embedded null byte"):
        read_document("a\0b", lambda document: document)


def test_what_the_parser_refuses_is_named_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text("{}", encoding="utf-8")

    def refuse(document: object) -> None:
        raise BadInput("tree[3]", f"is wrong in {document}", hint="look again")

    with pytest.raises(BadInput) as raised:
        read_document(path, refuse)
    assert str(raised.value) == f"{path}: tree[3]: is wrong in {{}}; hint: look again"


@pytest.mark.parametrize(
    ("parent", "key", "place"),
    [
        ("", "tree", "tree"),
        ("tree[3]", "wants", "tree[3].wants"),
        ("tree[3]", "two\nlines", "tree[3].'two\\nlines'"),
        ("", "x" * 100, "'" + "x" * 57 + "...'"),
    ],
)
def test_a_place_is_short_and_on_one_line(parent: str, key: str, place: str) -> None:
    assert place_of(parent, key) == place


def test_text_has_a_line_per_field_and_per_entry() -> None:
    document: dict[str, object] = {
        "name": "Köln",
        "none": [],
        "nodes": [{"node": "a", "wants": [1, 2]}, {"node": "b"}],
    }
    text = document_text(document)
    assert text == (
        '{"name": "Köln",\n "none": [],\n "nodes": [\n'
        '  {"node": "a", "wants": [1, 2]},\n  {"node": "b"}]}\n'
    )
    assert json.loads(text) == document
    plain = document_text(document, ascii_only=True)
    assert plain.isascii()
    assert json.loads(plain) == document


@pytest.mark.parametrize("count", [0, 2, 12, 13, 1000])
def test_text_has_a_line_per_entry_of_a_long_object(count: int) -> None:
    document: dict[str, object] = {"of": {f"ü{i}": i for i in range(count)}, "core": "mst"}
    text = document_text(document)
    assert json.loads(text) == document
    assert text.count("\n") == (2 if count <= 12 else count + 2)
    if count > 12:
        assert text.startswith('{"of": {\n  "ü0": 0,\n  "ü1": 1,\n')
        assert text.endswith(f'  "ü{count - 1}": {count - 1}}},\n "core": "mst"}}\n')


def test_text_holds_no_literal_that_is_not_json() -> None:
    with pytest.raises(ValueError):
        document_text({"cost": float("nan")})
