"""Text for every charset and every ear: what holds for whatever people write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from distributary.content.media_type import MediaType
from distributary.media.converters.text_encoding import decoded, encoded
from distributary.media.formats import TEXT, TEXT_FORMATS
from distributary.media.spoken_text import first_item

# All that UTF-8 can say but NUL, which no text holds, and the mark that a text may begin with.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=200)
lines = st.lists(
    st.one_of(
        st.sampled_from(["", " ", "1.", "2.", "(1)", "[3]", "4 -", "1.5", "***", "\u00ad"]),
        st.from_regex(r"(?:[1-3][.)] |\([12]\) )?[a-c-]{1,4}", fullmatch=True),
    ),
    max_size=12,
)


@given(texts, st.sampled_from(["utf-8", "utf-16", "utf-16le", "utf-16be"]))
def test_unicode_survives_every_encoding_of_it(text: str, charset: str) -> None:
    target = MediaType("text", "plain", {"charset": charset})
    assert decoded(encoded(text, target), target) == text


@given(texts, st.sampled_from(["us-ascii", "iso-8859-1", "windows-1252"]))
def test_a_small_charset_takes_every_text_and_gives_back_what_it_took(
    text: str, charset: str
) -> None:
    target = MediaType("text", "plain", {"charset": charset})
    content = encoded(text, target)
    assert encoded(decoded(content, target), target) == content


@given(st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=200))
def test_what_a_charset_has_is_not_touched(text: str) -> None:
    latin = TEXT_FORMATS[2]
    assert encoded(text, latin) == text.encode("iso-8859-1")
    assert decoded(encoded(text, TEXT), TEXT) == text


@given(lines)
def test_an_item_is_one_line_made_of_lines_that_follow_each_other(lines: list[str]) -> None:
    """It holds something to say whenever the text does, and adds nothing to it."""
    item = first_item("\n".join(lines))
    assert "\n" not in item
    assert item == item.strip()
    assert bool(item) == any(character.isalnum() for line in lines for character in line)
    letters = "".join(lines).replace("-", "").replace(" ", "").replace("\u00ad", "")
    assert item.replace("-", "").replace(" ", "") in letters


@given(lines, st.sampled_from(["\r\n", "\r", "\u2028"]))
def test_line_ends_of_other_systems_make_no_difference(lines: list[str], end: str) -> None:
    assert first_item(end.join(lines)) == first_item("\n".join(lines))
