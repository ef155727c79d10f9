"""Which part of a text is read aloud."""

from __future__ import annotations

import pytest

from distributary.media.spoken_text import first_item, numbered_item, whole_text


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


PAPER = """Flooding in small valleys

Jane Doe, John Smith
University of Northridge
jane@example.org

Abstract

We measured how fast small rivers rise, and found that they rise within an hour.

1 Introduction 1
2 Method 4

1. Introduction

Rivers rise when it rains. This has been known for a long time, and it has been written about in
many ways, none of which says how fast a small river in a narrow valley rises after a storm.

2. Method

We put gauges under four bridges and read them every minute for two years, in all weathers, and
wrote down what they said, without leaving out those readings that we would rather not have had.
"""


def test_a_document_with_chapters_gives_its_title_and_what_it_says_first() -> None:
    assert first_item(PAPER) == (
        "Flooding in small valleys. We measured how fast small rivers rise, and found that they "
        "rise within an hour."
    )


def test_a_chapter_is_read_to_the_next_by_its_number() -> None:
    chapter = numbered_item(PAPER, 2)
    assert chapter is not None
    assert chapter.startswith("Method We put gauges under four bridges")
    assert chapter.endswith("would rather not have had.")
    assert numbered_item(PAPER, 3) is None
    assert (
        numbered_item("1. The mill\n2. The harbour,\nclosed\n3. Next", 2) == "The harbour, closed"
    )
    assert numbered_item("1. One ..... 3\n2. Two ..... 9\n\n2. The harbour.", 2) == "The harbour."


def test_terms_and_notices_that_come_first_are_not_what_a_text_says() -> None:
    text = (
        "Copyright 2026 The Authors\n\nLicensed under the Apache License.\n\n"
        "https://example.org/manual\n\nOpening the gate\n\nTurn the wheel to the left."
    )
    assert first_item(text) == "Opening the gate. Turn the wheel to the left."
    assert first_item("Copyright 2026 The Authors") == "Copyright 2026 The Authors"


def test_items_far_from_the_beginning_are_not_what_a_text_is_about() -> None:
    text = "The gate opens to the left.\n\n" + "More of it. " * 500
    terms = "\n\n1. Redistributions of source code must retain this notice.\n2. No warranty."
    assert first_item(text + terms) == "The gate opens to the left."


def test_everything_is_every_paragraph_on_a_line() -> None:
    assert whole_text("A title\n\n1. One\nline\n\n---\n\nThe exam-\nple.\f") == (
        "A title\n1. One line\nThe example."
    )
    assert whole_text("") == ""
