"""What the index can look up of a `LIKE` pattern."""

from __future__ import annotations

import pytest

from distributary.filters.like_pattern import LikePattern


@pytest.mark.parametrize(
    ("pattern", "exact", "prefix", "suffix", "is_prefix", "is_suffix"),
    [
        ("", "", "", "", False, False),
        ("abc", "abc", "abc", "abc", False, False),
        ("abc%", None, "abc", "", True, False),
        ("%abc", None, "", "abc", False, True),
        ("%", None, "", "", True, True),
        ("%%", None, "", "", True, True),
        ("a%c", None, "a", "c", False, False),
        ("%b%", None, "", "", False, False),
        ("a%%", None, "a", "", True, False),
        ("%%c", None, "", "c", False, True),
        ("a_c", None, "a", "c", False, False),
        ("a_%", None, "a", "", False, False),
        ("%_c", None, "", "c", False, False),
        ("_", None, "", "", False, False),
        ("_a", None, "", "a", False, False),
        ("a\\%", "a%", "a%", "a%", False, False),
        ("a\\%%", None, "a%", "", True, False),
        ("a\\\\%", "a\\%", "a\\%", "a\\%", False, False),
        ("a\\", "a\\", "a\\", "a\\", False, False),
        ("a\\b", "a\\b", "a\\b", "a\\b", False, False),
    ],
)
def test_a_pattern_knows_what_its_matches_have_in_common(
    pattern: str, exact: str | None, prefix: str, suffix: str, is_prefix: bool, is_suffix: bool
) -> None:
    compiled = LikePattern.parse(pattern)
    assert compiled.exact == exact
    assert (compiled.prefix, compiled.suffix) == (prefix, suffix)
    assert (compiled.is_prefix, compiled.is_suffix) == (is_prefix, is_suffix)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("%a_b%", "aab", True),
        ("%a_b%", "ab", False),
        ("%a_b%", "xx" + "a" * 100 + "xb", True),
        ("%a_b%", "a" * 100, False),
        ("%a_b%", "a" * 18, False),
        ("%a_b%c", "a" * 30 + "abc", True),
        ("%a_b%c", "a" * 30 + "ac", False),
        ("%_%", "", False),
        ("%_%", "x", True),
        ("%___%", "ab", False),
        ("%é_🜁%", "é" * 30 + "\ud800🜁", True),
        ("%a_b%a_b%", "a" * 40 + "xbaxb", True),
        ("%a_b%a_b%", "a" * 40 + "xbxb", False),
        ("ab%ba", "aba", False),
        ("ab%ba", "abba", True),
    ],
)
def test_segments_between_wildcards_take_the_leftmost_place(
    pattern: str, text: str, matches: bool
) -> None:
    assert LikePattern.parse(pattern).matches(text) is matches
