"""Files from strangers get plain names in one folder, and replace nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distributary.client.file_names import draft_in, file_name, put_in_place
from distributary.content.publication import Publication

RESERVED = {"con", "prn", "aux", "nul", "com1", "lpt9", "com¹"}


def named(subject: str | None, *, name: str = "1", media_type: str | None = "image/jpeg") -> str:
    attributes = {"id": name, "source": "/s", "type": "t"}
    if subject is not None:
        attributes["subject"] = subject
    if media_type is not None:
        attributes["datacontenttype"] = media_type
    return file_name(Publication(attributes))


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("map.pdf", "map.jpg"),
        ("north/map.pdf", "map.jpg"),
        ("../../etc/passwd", "passwd.jpg"),
        ("..\\..\\boot.ini", "boot.jpg"),
        ("..", "1.jpg"),
        ("/", "1.jpg"),
        ("", "1.jpg"),
        (None, "1.jpg"),
        (".bashrc", "1.jpg"),
        ("-rf", "rf.jpg"),
        ("CON", "file-CON.jpg"),
        ("nul.tar.gz", "file-nul.tar.jpg"),
        ("a\x00b\nc\u202egnp.exe", "a-b-c-gnp.jpg"),
        ("$(reboot) `id`", "reboot-id.jpg"),
        ("Lageplan Süd.pdf", "Lageplan-Süd.jpg"),
        ("map.", "map.jpg"),
        ("C:evil", "C-evil.jpg"),
    ],
)
def test_a_subject_becomes_a_plain_name(subject: str | None, name: str) -> None:
    assert named(subject) == name


@pytest.mark.parametrize(
    ("media_type", "ending"),
    [
        ("image/jpeg;width=640", ".jpg"),
        ("text/plain;charset=utf-8", ".txt"),
        ("audio/mpeg", ".mp3"),
        ("application/x-sh", ".bin"),
        ("not a type", ".bin"),
        (None, ".bin"),
    ],
)
def test_the_ending_is_that_of_the_type_and_never_of_the_publisher(
    media_type: str | None, ending: str
) -> None:
    assert named("setup.exe", media_type=media_type) == f"setup{ending}"


@given(st.text(max_size=300), st.text(min_size=1, max_size=300))
@example("../" * 50, "..")
@example("ü" * 300, "x")
@example("con", "con")
@example("nul.a.b", "x")
def test_no_text_leaves_the_folder(subject: str, identifier: str) -> None:
    name = named(subject, name=identifier)
    stem = name.partition(".")[0]
    assert name == os.path.basename(name)  # noqa: PTH119, as text
    assert name[0] not in ".-"
    assert stem.lower() not in RESERVED
    assert len(os.fsencode(name)) <= 200
    assert name.isprintable()
    assert not set(name) & set('\\/:*?"<>| ')


def test_no_file_is_replaced(tmp_path: Path) -> None:
    names = []
    for text in ("one", "two", "three"):
        draft = draft_in(tmp_path)
        draft.write_text(text)
        names.append(put_in_place(draft, "map.jpg").name)
    assert names == ["map.jpg", "map-2.jpg", "map-3.jpg"]
    assert (tmp_path / "map.jpg").read_text() == "one"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_link_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "map.jpg").symlink_to(tmp_path / "precious")
    draft = draft_in(tmp_path)
    draft.write_text("new")
    assert put_in_place(draft, "map.jpg").name == "map-2.jpg"
    assert not (tmp_path / "precious").exists()


def test_a_folder_without_links_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    test_no_file_is_replaced(tmp_path)


def test_many_files_of_one_name_do_not_take_longer_and_longer(tmp_path: Path) -> None:
    tried = []
    for number in range(1, 105):
        draft = draft_in(tmp_path)
        draft.write_text(str(number))
        tried.append(put_in_place(draft, "map.jpg"))
    assert len(set(tried)) == 104
    assert tried[99].name == "map-100.jpg"
    assert len(tried[-1].stem) > len("map-104")
