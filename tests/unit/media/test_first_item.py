"""Which part of a text is read aloud."""

from __future__ import annotations

import pytest

from distributary.media.first_item import first_item


@pytest.mark.parametrize("mark", ["1.", "1)", "(1)", "[1]", "1 -", "1 \u2013", "1  \u2014", "  1."])
def test_the_first_numbered_item_is_found_however_it_is_numbered(mark: str) -> None:
    other = mark.replace("1", "2")
    text = f"Map of the harbour\n\n{mark} The old mill.\n{other} The lighthouse.\n"
    assert first_item(text) == "The old mill."


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\x85"])
def test_an_item_goes_on_over_line_breaks_to_the_next_item(end: str) -> None:
    text = end.join(["Title", "1. The old mill", "  by the   river,", "built in 1790", "2. Next"])
    assert first_item(text) == "The old mill by the river, built in 1790"


@pytest.mark.parametrize("end", ["\n\n", "\n \t\n", "\f", "\n\f\n", "\u2029"])
def test_an_item_ends_at_a_blank_line_and_where_a_page_does(end: str) -> None:
    assert first_item(f"1. The old mill\nby the river{end}Published by the town.") == (
        "The old mill by the river"
    )


def test_a_number_may_stand_on_a_line_by_itself() -> None:
    assert first_item("1.\nThe old mill\n2.\nThe lighthouse") == "The old mill"


def test_numbers_inside_of_lines_and_decimal_numbers_are_no_items() -> None:
    text = "The way of\n1.5 km takes 2. steps\n12:30 to 1.\u20092 hours\n\nMore"
    assert first_item(text) == "The way of 1.5 km takes 2. steps 12:30 to 1. 2 hours"


def test_item_one_comes_before_a_line_that_begins_with_another_number() -> None:
    text = "Open from\n12. March to\n14. April\n\n1. The old mill\n2. The lighthouse"
    assert first_item(text) == "The old mill"


def test_a_list_that_begins_with_another_number_has_a_first_item_too() -> None:
    assert first_item("Continued\n\n7) The old mill\n8) The lighthouse") == "The old mill"


def test_an_item_goes_on_over_lines_numbered_in_another_way() -> None:
    assert first_item("1. Turn left\n(2) means closed\n2. Turn right") == (
        "Turn left (2) means closed"
    )


@pytest.mark.parametrize(
    ("text", "paragraph"),
    [
        ("One line", "One line"),
        ("\n\n  First\nparagraph. \n\nSecond.", "First paragraph."),
        ("* * *\n\n-----\n\nWords at last", "Words at last"),
        ("1.\n\nThe old mill", "1."),
        ("", ""),
        (" \n\t\n\f", ""),
        ("... !? --\n\n***", ""),
    ],
)
def test_a_text_without_items_gives_its_first_paragraph(text: str, paragraph: str) -> None:
    assert first_item(text) == paragraph


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("an exam-\nple", "an example"),
        ("the Rhine-\nMain area", "the Rhine- Main area"),
        ("pages 3-\nto 5", "pages 3- to 5"),
        ("a soft\u00ad\nhyphen in soft\u00adware", "a softhyphen in software"),
    ],
)
def test_words_that_were_broken_between_lines_are_whole_again(text: str, joined: str) -> None:
    assert first_item(text) == joined


def test_finding_nothing_in_a_long_text_takes_no_longer_than_reading_it() -> None:
    """A list of empty items is the worst case; with a look ahead for each it would not end."""
    assert first_item("1.\n" * 50_000 + "\nwords") == "1. " * 49_999 + "1."
