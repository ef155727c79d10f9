"""Plain text in other charsets: what both have stays, what one lacks has a stand-in."""

from __future__ import annotations

import codecs

import pytest

from distributary.content.media_type import MediaType
from distributary.media.converters.text_encoding import TextEncodings
from distributary.media.failure import Unconvertible
from distributary.media.formats import TEXT_FORMATS
from distributary.media.limits import Limits


def plain(charset: str | None) -> MediaType:
    return MediaType("text", "plain", {} if charset is None else {"charset": charset})


def converted(content: bytes, source: str | None, target: str | None) -> bytes:
    assert TextEncodings().converts(plain(source), plain(target))
    return TextEncodings().convert(content, plain(source), plain(target), Limits())


def refusal(content: bytes, source: str | None) -> Unconvertible:
    with pytest.raises(Unconvertible) as raised:
        converted(content, source, "us-ascii" if source != "us-ascii" else "utf-8")
    assert raised.value.kind == "damaged"
    return raised.value


def test_every_pair_of_listed_charsets_is_listed() -> None:
    listed = list(TextEncodings().conversions())
    assert len({(str(source), str(target)) for source, target in listed}) == len(listed) == 12
    assert {item for pair in listed for item in map(str, pair)} == set(map(str, TEXT_FORMATS))
    assert all(TextEncodings().converts(source, target) for source, target in listed)


@pytest.mark.parametrize(("source", "target"), list(TextEncodings().conversions()), ids=str)
def test_text_that_both_charsets_have_survives(source: MediaType, target: MediaType) -> None:
    text = "The ferry leaves at 7:15.\nBring a coat.\r\n\tPier 3"
    if "us-ascii" not in (source.parameters["charset"], target.parameters["charset"]):
        text += " \u00e9t\u00e9 \u00bd \u00df"
    content = text.encode(source.parameters["charset"])
    if source.parameters["charset"] == "utf-16":
        content = codecs.BOM_UTF16_BE + text.encode("utf-16-be")
    result = TextEncodings().convert(content, source, target, Limits())
    assert result.decode(target.parameters["charset"]) == text
    assert TextEncodings().convert(content, source, target, Limits()) == result


@pytest.mark.parametrize(
    ("text", "ascii_text"),
    [
        ("\u201cquoted\u201d \u2018so\u2019", "\"quoted\" 'so'"),
        ("1990\u20132000 \u2014 \u2026 \u2212 5", "1990-2000 - ... - 5"),
        ("Stra\u00dfe, \u00c6sir, \u0141\u00f3d\u017a, S\u00f8rby", "Strasse, AEsir, Lodz, Sorby"),
        ("caf\u00e9 and cafe\u0301", "cafe and cafe"),
        ("\ufb01re \u2460 \u2122 \u33a1", "fire 1 TM m2"),
        ("\u00bd \u20ac 5", "1/2 EUR 5"),
        ("\ud55c\uae00 \u6f22 \U0001f600", "?? ? ?"),
        ("\u200bzero\u200d width\ufe0f", "zero width"),
        ("one\u00a0space", "one space"),
        ("\u01c4", "DZ"),
        ("\u2260", "/="),
    ],
)
def test_what_ascii_lacks_is_written_by_its_nearest_relative(text: str, ascii_text: str) -> None:
    assert converted(text.encode(), "utf-8", "us-ascii") == ascii_text.encode("ascii")


def test_a_letter_that_the_charset_has_is_kept_however_it_was_composed() -> None:
    text = "caf\u00e9 cafe\u0301 \u201c\u0141\u00f3d\u017a\u201d \u20ac"
    assert converted(text.encode(), "utf-8", "iso-8859-1").decode("latin1") == (
        'caf\u00e9 caf\u00e9 "L\u00f3dz" EUR'
    )
    assert converted(text.encode(), "utf-8", "windows-1252").decode("cp1252") == (
        "caf\u00e9 caf\u00e9 \u201cL\u00f3dz\u201d \u20ac"
    )


@pytest.mark.parametrize(
    ("content", "charset", "text"),
    [
        (codecs.BOM_UTF8 + b"abc", None, "abc"),
        (codecs.BOM_UTF8 + b"abc", "utf-8", "abc"),
        (codecs.BOM_UTF16_LE + "ab\u20ac".encode("utf-16-le"), None, "ab\u20ac"),
        (codecs.BOM_UTF16_BE + "ab\u20ac".encode("utf-16-be"), None, "ab\u20ac"),
        (codecs.BOM_UTF16_LE + "ab\u20ac".encode("utf-16-le"), "UTF-16", "ab\u20ac"),
        ("ab\u20ac".encode("utf-16-be"), "utf-16", "ab\u20ac"),
        ("ab\u20ac".encode("utf-16-le"), "utf-16le", "ab\u20ac"),
        (b"\x80 5", "windows-1252", "\u20ac 5"),
        (b"\xff\xfe\xe9", "iso-8859-1", "\u00ff\u00fe\u00e9"),
        (b"", None, ""),
    ],
)
def test_a_mark_of_byte_order_decides_and_is_no_part_of_the_text(
    content: bytes, charset: str | None, text: str
) -> None:
    target = "utf-8" if charset != "utf-8" else "utf-16"
    assert converted(content, charset, target).decode(target) == text


def test_utf_16_is_little_endian_with_a_mark_wherever_it_is_made() -> None:
    assert converted(b"ab", "us-ascii", "utf-16") == b"\xff\xfea\0b\0"


@pytest.mark.parametrize(
    ("content", "charset", "reason"),
    [
        (b"abc\xff", "utf-8", "byte 4 is not utf-8 text: invalid start byte"),
        (b"abc\xc3", None, "byte 4 is not utf-8 text: unexpected end of data"),
        (b"caf\xe9", "us-ascii", "byte 4 is not ascii text: ordinal not in range(128)"),
        (b"\xff\xfea", "utf-16", "byte 3 is not utf-16-le text: truncated data"),
        (b"\xff\xfe\x00\xd8a\0", None, "byte 3 is not utf-16-le text: illegal UTF-16 surrogate"),
        (b"\xed\xa0\x80", "utf-8", "byte 1 is not utf-8 text: invalid continuation byte"),
        (b"\x81", "windows-1252", "byte 1 is not cp1252 text: character maps to <undefined>"),
        (b"a\0b\0", "utf-8", "it holds NUL characters, so it is not utf-8 text"),
        (
            b"\x89PNG\r\n\x1a\n\0\0",
            "iso-8859-1",
            "it holds NUL characters, so it is not iso-8859-1",
        ),
    ],
)
def test_content_that_is_not_text_of_its_charset_is_damaged(
    content: bytes, charset: str | None, reason: str
) -> None:
    assert refusal(content, charset).reason.startswith(reason)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("text/plain;charset=utf-8", "text/plain;charset=utf-8"),
        ("text/plain", "text/plain"),
        ("text/plain;charset=utf-8", "text/plain;charset=utf-7"),
        ("text/plain;charset=rot13", "text/plain;charset=utf-8"),
        ("text/plain;charset=utf-8", "text/plain;charset=base64"),
        ("text/plain", "text/plain;charset=utf-8;format=flowed"),
        ("text/html", "text/plain;charset=utf-8"),
        ("text/plain", "text/html;charset=utf-16"),
    ],
)
def test_other_text_conversions_do_not_exist(source: str, target: str) -> None:
    assert not TextEncodings().converts(MediaType.parse(source), MediaType.parse(target))


def test_a_target_that_names_no_charset_is_utf_8() -> None:
    for charset in ("utf-8", "utf-16", "iso-8859-1"):
        content = "Grüße".encode(charset)
        assert converted(content, charset, None) == "Grüße".encode()
