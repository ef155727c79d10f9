"""What files are called: one table for converters, clients and the console."""

from __future__ import annotations

import json
import re

import pytest

from distributary.content.file_types import (
    OTHER_SUFFIX,
    TYPE_OF_SUFFIX,
    suffix_of_type,
    type_of_name,
)
from distributary.content.media_type import MediaType
from distributary.media.formats import canonical, file_suffix
from distributary.media.registry import installed


def test_every_type_has_a_usual_suffix_that_stands_for_it() -> None:
    for suffix, essence in TYPE_OF_SUFFIX.items():
        assert re.fullmatch(r"\.[a-z0-9]+", suffix)
        assert str(MediaType.parse(essence)) == essence
        assert type_of_name(f"a{suffix_of_type(essence)}") == essence
    assert suffix_of_type("image/jpeg") == ".jpg"
    assert suffix_of_type("audio/ogg") == ".ogg"


@pytest.mark.parametrize("name", ["", "a", ".pdf", "a.exe", "a.pdf.exe", "pdf"])
def test_other_names_say_nothing(name: str) -> None:
    assert type_of_name(name) is None
    assert suffix_of_type("application/x-msdownload") == OTHER_SUFFIX


def test_case_does_not_matter() -> None:
    assert type_of_name("PHOTO.JPG") == "image/jpeg"


def test_every_format_of_a_converter_is_known_by_its_suffix() -> None:
    for name in installed().formats:
        media_type = MediaType.parse(name)
        suffix = file_suffix(media_type)
        assert suffix != OTHER_SUFFIX, name
        known = type_of_name(f"a{suffix}")
        assert known is not None
        assert canonical(MediaType.parse(known)).essence == media_type.essence


@pytest.mark.filterwarnings("ignore")  # of the web framework, which are not ours
def test_the_console_is_given_the_same_table() -> None:
    from litestar import Litestar
    from litestar.testing import TestClient

    from distributary.console.pages import PAGES

    with TestClient(Litestar(PAGES.routes())) as client:
        answer = client.get("/console/file_types.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    found = re.fullmatch(r"export const TYPE_OF_SUFFIX = (\{.*\});\n", answer.text)
    assert found is not None
    assert json.loads(found[1]) == TYPE_OF_SUFFIX
