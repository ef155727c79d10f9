"""The text of pages: what a browser shows, and nothing that it would have to run or load."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.content.media_type import MediaType
from distributary.media.converters.html_text import HtmlToText
from distributary.media.converters.plain_text import PlainText
from distributary.media.failure import Unconvertible
from distributary.media.formats import HTML, JSON, SVG, TEXT, XML, canonical
from distributary.media.limits import Limits


def text(page: str | bytes, source: str = "text/html") -> str:
    content = page.encode() if isinstance(page, str) else page
    return HtmlToText().convert(content, MediaType.parse(source), TEXT, Limits()).decode()


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<p>One</p><p>Two  words\n here</p>", "One\n\nTwo words here"),
        ("<h1>Title</h1>Text<br>next", "Title\n\nText\nnext"),
        ("<ol><li>One<li>Two</ol>", "1. One\n2. Two"),
        ("<ol start=7><li>a<li value=9>b<li>c</ol>", "7. a\n9. b\n10. c"),
        ("<ul><li>One</li><li>Two</li></ul>", "- One\n- Two"),
        ("<table><tr><td>a<td>b<tr><th>c<th>d</table>", "a\tb\nc\td"),
        ("<pre>  two\n    four</pre>", "  two\n    four"),
        ("a<b>b</b>c <i>d</i>", "abc d"),
        ("&lt;b&gt; &amp; &#8364; &eacute; &xyzzy;", "<b> & \u20ac \u00e9 &xyzzy;"),
        ("<img src=x alt='The mill'> here", "The mill here"),
        ("<title>no</title><style>p{}</style><script>var a='<p>no</p>'</script>yes", "yes"),
        ("<div hidden>no</div><p hidden>yes", "yes"),
        ("<svg><title>no</title><svg></svg><text>no</text></svg>yes", "yes"),
        ("<!-- no --><![CDATA[no]]>yes<!doctype html>", "yes"),
        ("<p>unclosed <b>all over", "unclosed all over"),
        ("</ol></p></li></pre>ends without beginnings", "ends without beginnings"),
        ("<p>a\x01b\x9bc", "abc"),
        ("<br/><div/><p/>x", "x"),
    ],
)
def test_text_is_what_a_browser_shows(page: str, shown: str) -> None:
    assert text(page).rstrip("\n") == shown


@pytest.mark.parametrize("page", ["", "<script>only</script>", "<p> \n </p>", "<title>t</title>"])
def test_a_page_without_text_is_refused(page: str) -> None:
    with pytest.raises(Unconvertible, match="no text") as raised:
        text(page)
    assert raised.value.kind == "damaged"


@pytest.mark.parametrize(
    ("content", "source"),
    [
        ("<p>Grüße €".encode(), "text/html"),
        ("<p>Grüße €".encode("utf-8-sig"), "text/html"),
        ("<p>Grüße €".encode("utf-16"), "text/html"),
        ("<p>Grüße €".encode("cp1252"), "text/html"),
        ("<p>Grüße €".encode("cp1252"), "text/html;charset=iso-8859-1"),
        ("<meta charset='windows-1252'><p>Grüße €".encode("cp1252"), "text/html"),
        ("<?xml version='1.0' encoding='utf-8'?><p>Grüße €".encode(), "text/html"),
        ("<meta charset=utf-16><p>Grüße €".encode(), "text/html"),
    ],
)
def test_characters_are_what_the_page_or_its_format_says(content: bytes, source: str) -> None:
    assert text(content, source) == "Grüße €\n"


def test_other_charsets_of_the_web_are_known_and_codecs_that_are_none_are_not() -> None:
    assert text("<meta charset=shift_jis>受付".encode("shift_jis")) == "受付\n"
    for charset in ("zip", "rot13", "idna", "unicode_escape", "x" * 100):
        with pytest.raises(Unconvertible, match="unknown here"):
            text(b"<p>a", f"text/html;charset={charset}")


def test_nothing_outside_of_a_page_is_read() -> None:
    """Entities are the text that they stand as; only those of the standard mean something."""
    page = '<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>&x;<object data=/etc/hosts>'
    assert text(page) == "]>\n\n&x;\n"


@given(st.text(alphabet="<>/!&;'\"= -[]abpreol\n", max_size=80))
def test_any_markup_gives_text_or_a_refusal(page: str) -> None:
    try:
        found = text(page)
    except Unconvertible:
        return
    assert found.strip()


def test_text_of_other_types_is_handed_on_as_it_stands() -> None:
    converter = PlainText()
    for source in (
        "application/json",
        "application/xml",
        "text/csv",
        "text/markdown",
        "application/geo+json",
        "application/atom+xml",
        "application/jsonl",
    ):
        kind = canonical(MediaType.parse(source))
        assert converter.converts(kind, TEXT)
        for content in (b'{"a": "\xc3\xa9"}', b"<a>&x;</a>"):
            assert converter.convert(content, kind, TEXT, Limits()) == content
    latin = '<?xml version="1.0" encoding="iso-8859-1"?><a>Mühle</a>'
    assert converter.convert(latin.encode("latin-1"), XML, TEXT, Limits()) == latin.encode()
    assert converter.convert("é".encode("utf-16"), JSON, TEXT, Limits()) == "é".encode()
    for other in (TEXT, HTML, SVG, MediaType("image", "png"), MediaType("application", "pdf")):
        assert not converter.converts(other, TEXT)
    with pytest.raises(Unconvertible, match="NUL"):
        converter.convert(b'{"a": "\0"}', JSON, TEXT, Limits())
