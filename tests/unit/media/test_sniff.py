"""What content is: told from its first bytes, then from its name, or refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiny_media import ESSENCES, tiny

from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media.sniff import sniff

MP3_FRAME = bytes.fromhex("fffb9064") + bytes(413)
ADTS_FRAME = bytes.fromhex("fff15080 02 1ffc".replace(" ", "")) + bytes(9)


def box(brand: bytes) -> bytes:
    return b"\0\0\0\x18ftyp" + brand + bytes(12)


@pytest.mark.parametrize("essence", ESSENCES)
def test_a_real_file_of_every_type_is_known_without_its_name(essence: str) -> None:
    assert sniff(tiny(essence)).essence == essence


@pytest.mark.parametrize("essence", ESSENCES)
@pytest.mark.parametrize("name", ["a.pdf", "a.txt", "a.mp4", "a.jpg", "a", "a.unheard-of"])
def test_content_wins_over_a_name_that_says_something_else(essence: str, name: str) -> None:
    assert sniff(tiny(essence), name).essence == essence


@pytest.mark.parametrize(
    ("content", "essence"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"RF64\xff\xff\xff\xffWAVEds64", "audio/wav"),
        (b"RIFF\0\0\0\0AVI LIST", "video/x-msvideo"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a\1\0\1\0", "image/gif"),
        (b"OggS\0\2", "audio/ogg"),
        (b"FLV\x01\x05\0\0\0\x09", "video/x-flv"),
        (box(b"isom"), "video/mp4"),
        (box(b"mp42"), "video/mp4"),
        (box(b"M4V "), "video/mp4"),
        (box(b"3gp4"), "video/3gpp"),
        (box(b"3gp5"), "video/3gpp"),
        (MP3_FRAME, "audio/mpeg"),
        (MP3_FRAME * 3, "audio/mpeg"),
        (b"ID3\x03\0\0\0\0\0\x0a" + bytes(10) + MP3_FRAME, "audio/mpeg"),
        (b"ID3\x03\0\0\0\0\0\x0a" + bytes(10) + ADTS_FRAME * 2, "audio/aac"),
        (ADTS_FRAME * 3, "audio/aac"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"\0" * 1015 + b"%PDF-1.4", "application/pdf"),
    ],
)
def test_a_signature_is_enough(content: bytes, essence: str) -> None:
    assert str(sniff(content)) == essence


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 1020 + b"%PDF-1.4",
        b"RIFF\0\0\0\0OTHR",
        b"FLV\x02\x05\0\0",
        box(b"heic"),
        box(b"M4A "),
        MP3_FRAME + b"\0\0\0\0",
        ADTS_FRAME + b"\0" * 8,
        b"\xff\xfd\x90\x64" + bytes(413),
        b"ID3\x03\0\0\xff\xff\xff\xff",
        b"\xff\xfb",
        b"caf\xe9 au lait",
        b"text with a \0 in it",
        b"\xff\xfe\0\0t\0\0\0",
        b"\xff\xfea",
    ],
)
def test_what_only_resembles_a_signature_is_known_by_its_name_alone(content: bytes) -> None:
    assert str(sniff(content, "Photo.JPG")) == "image/jpeg"
    with pytest.raises(BadInput, match=r"content: does not look like .*hint: a name that ends in"):
        sniff(content)


@pytest.mark.parametrize("name", [None, "a.txt", "a.pdf", "a.unheard-of"])
@pytest.mark.parametrize(
    ("content", "essence"),
    [
        ("<!DOCTYPE html><p>Hello", "text/html"),
        ("\n <HTML lang=en>", "text/html"),
        ("<!-- a page --><html>", "text/html"),
        ('<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD" "x"><html>', "text/html"),
        ("<body onload=run()>", "text/html"),
        ("<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        ('<?xml version="1.0"?><?style x?><!-- drawn --><svg:svg xmlns:svg="x">', "image/svg+xml"),
        ("<!DOCTYPE svg [<!ENTITY a 'b'>]><svg/>", "image/svg+xml"),
        ('<?xml version="1.0" encoding="utf-8"?><feed/>', "application/xml"),
        ('{"a": 1}', "application/json"),
        (' [\n  {"a": [1]}\n]\n', "application/json"),
        ("[-1.5, true]", "application/json"),
        ("{}", "application/json"),
        ("<p>is this a page", "text/plain"),
        ("x < y and <html> later", "text/plain"),
        ("[1] A reference in a text", "text/plain"),
        ("[note] to self]", "text/plain"),
        ("{curly} words}", "text/plain"),
        ('{"a": 1', "text/plain"),
        ("12", "text/plain"),
    ],
)
def test_text_that_says_what_it_is_is_that(content: str, essence: str, name: str | None) -> None:
    assert sniff(content.encode(), name).essence == essence
    assert sniff(content.encode("utf-8-sig"), name).essence in (essence, "text/plain")


@pytest.mark.parametrize("content", ["<!doctype html>Grüße", "<?xml version='1.0'?><a>ß</a>"])
def test_markup_is_known_in_any_charset(content: str) -> None:
    kind = "text/html" if "html" in content else "application/xml"
    for charset in ("utf-8", "utf-16", "latin-1"):
        assert sniff(content.encode(charset)).essence == kind


@pytest.mark.parametrize(
    ("name", "essence"),
    [
        ("a.csv", "text/csv"),
        ("a.md", "text/markdown"),
        ("a.html", "text/html"),
        ("a.json", "application/json"),
        ("a.jsonl", "application/jsonl"),
        ("a.xml", "application/xml"),
        ("a.svg", "image/svg+xml"),
    ],
)
def test_a_name_tells_what_kind_of_text_a_text_is(name: str, essence: str) -> None:
    assert sniff(b"plain words", name).essence == essence
    assert sniff(tiny("application/pdf"), name).essence == "application/pdf"


def test_names_may_stand_for_formats_of_plug_ins() -> None:
    table = MediaType("text", "x-table")
    assert sniff(b"a b", "a.tab", format_of=lambda name: table) == table
    assert sniff(b"\xff", "a.tab", format_of=lambda name: table) == table


def test_text_names_its_character_set() -> None:
    assert str(sniff(b"plain")) == "text/plain;charset=utf-8"
    assert str(sniff("Grüße\n".encode())) == "text/plain;charset=utf-8"
    assert str(sniff("Grüße".encode("utf-8-sig"))) == "text/plain;charset=utf-8"
    assert str(sniff("Grüße".encode("utf-16"))) == "text/plain;charset=utf-16"
    assert str(sniff("\N{BYTE ORDER MARK}Grüße".encode("utf-16-be"))) == "text/plain;charset=utf-16"
    assert str(sniff("Grüße".encode("latin-1"), "notice.txt")) == "text/plain"


def test_a_character_may_lie_across_two_portions() -> None:
    """Text is decoded in portions; where one ends must not matter."""
    for shift in range(4):
        text = "a" * (65536 - shift) + "\N{ROCKET}" * 3
        assert sniff(text.encode()).essence == "text/plain"
    with pytest.raises(BadInput):
        sniff(("a" * 65534 + "\N{ROCKET}").encode()[:-1])


def test_nothing_at_all_is_known_by_its_name_or_refused() -> None:
    assert str(sniff(b"", "map.pdf")) == "application/pdf"
    with pytest.raises(BadInput, match=r"content: is empty; hint: a name that ends in"):
        sniff(b"")
    with pytest.raises(BadInput, match=r"'a\.unheard-of': is empty"):
        sniff(b"", "a.unheard-of")


def test_a_refusal_is_one_line_whatever_the_name() -> None:
    with pytest.raises(BadInput) as caught:
        sniff(b"\xff", "two\nlines" * 100)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@given(st.binary(max_size=64), st.sampled_from(["", *(tiny(each)[:16].hex() for each in ESSENCES)]))
def test_any_bytes_get_a_format_or_a_refusal(rest: bytes, start: str) -> None:
    try:
        found = sniff(bytes.fromhex(start) + rest)
    except BadInput:
        return
    assert found.essence in (*ESSENCES, "image/svg+xml")
