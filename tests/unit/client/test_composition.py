"""What a caller gives becomes an event, or one sentence that says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from tests.strategies_content import publications

from distributary.client.composition import SOURCE, compose
from distributary.content.publication import Publication
from distributary.errors import BadInput


def composed(data: object, media_type: str | None = None, **attributes: object) -> Publication:
    publication, file = compose(data, {"type": "t", "datacontenttype": media_type, **attributes})
    assert file is None
    return publication


@pytest.mark.parametrize(
    ("data", "media_type", "declared", "held"),
    [
        (None, None, None, None),
        (b"\xff", None, "application/octet-stream", b"\xff"),
        (bytearray(b"x"), "image/png", "image/png", b"x"),
        ("grüß", None, "text/plain;charset=utf-8", "grüß".encode()),
        ("é", "text/plain;charset=iso-8859-1", "text/plain;charset=iso-8859-1", b"\xe9"),
        ("x", "application/json", "application/json", "x"),
        (b'{"a": 1}', "application/json", "application/json", {"a": 1}),
        ({"a": [1, True]}, None, "application/json", {"a": [1, True]}),
        (0, None, "application/json", 0),
    ],
)
def test_the_media_type_follows_from_the_data(
    data: object, media_type: str | None, declared: str | None, held: object
) -> None:
    publication = composed(data, media_type)
    assert publication.attributes.get("datacontenttype") == declared
    assert publication.data == held
    assert Publication.parse(publication.document()) == publication


@pytest.mark.parametrize(
    ("data", "media_type", "attributes", "place"),
    [
        ({1: 2}, None, {}, "data"),
        (float("nan"), None, {}, "data"),
        (object(), None, {}, "data"),
        ({"a": 1}, "image/png", {}, "data"),
        (b"{", "application/json", {}, "data"),
        (b"", "nonsense", {}, "datacontenttype"),
        (b"", None, {"Region": "north"}, "'Region'"),
        (b"", None, {"price": 1.5}, "price"),
        (b"", None, {"time": "yesterday"}, "time"),
        (b"", None, {"source": "a b"}, "source"),
        ("\ud800", None, {}, "data"),
        (b"", None, {"id": ""}, "id"),
        (b"", None, {"data_base64": "x"}, "'data_base64'"),
        (b"", None, {"specversion": "0.3"}, "specversion"),
    ],
)
def test_what_is_wrong_is_named(
    data: object, media_type: str | None, attributes: dict[str, object], place: str
) -> None:
    with pytest.raises(BadInput) as caught:
        composed(data, media_type, **attributes)
    assert caught.value.place.startswith(place)


def test_every_event_has_an_identity_of_its_own() -> None:
    assert len({composed(None).id for _ in range(100)}) == 100
    assert composed(None).source == SOURCE
    assert composed(None, id="mine", source="/maps").identity == ("/maps", "mine")


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("map.pdf", "application/pdf"),
        ("a.JPG", "image/jpeg"),
        ("notes.txt", "text/plain;charset=utf-8"),
        ("a.wav", "audio/wav"),
        ("a.tar.gz", "application/octet-stream"),
        ("unknown", "application/octet-stream"),
    ],
)
def test_a_file_is_named_and_typed_by_its_name(name: str, media_type: str) -> None:
    path = Path("folder") / name
    publication, file = compose(path, {"type": "t"})
    assert file == path
    assert publication.media_type == media_type
    assert publication.attributes["subject"] == name


def test_a_name_that_no_attribute_can_have_is_left_out() -> None:
    path = Path("bad\udcff\n.pdf")
    publication, _ = compose(path, {"type": "t"})
    assert "subject" not in publication.attributes


@given(publications())
def test_a_whole_event_stands_for_itself(publication: Publication) -> None:
    same, file = compose(publication, {"type": None})
    assert same == publication
    assert file is None


def test_data_is_no_attribute() -> None:
    with pytest.raises(BadInput, match="data: is not an attribute"):
        compose(b"", {"type": "t", "data": "x"})


def test_an_event_without_a_type_or_with_two_is_refused() -> None:
    with pytest.raises(BadInput, match="type: is missing"):
        compose(b"", {"type": None})
    with pytest.raises(BadInput, match="attributes already"):
        compose(composed(None), {"type": "t"})
