"""Text and numbers as they go into a picture, and the colours of its kinds."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from distributary.drawing.palette import SAFE_COLOUR_COUNT, colours
from distributary.drawing.svg import element, number, shortened, text, text_width


def test_markup_and_quotes_in_text_are_escaped() -> None:
    assert text("<a href=\"x\">'&'") == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;&#x27;"


@pytest.mark.parametrize("forbidden", ["\x00", "\x1f", "\x7f", "\ud800", "\uffff", "\u202e"])
def test_what_xml_forbids_or_reorders_text_is_replaced(forbidden: str) -> None:
    assert text(f"a{forbidden}b") == "a\ufffdb"


def test_attribute_values_survive_the_way_through_a_parser() -> None:
    value = "\" onload='x' <&>"
    markup = element("g", data_name=value, class_="a b", x=1.25)
    part = ElementTree.fromstring(markup)  # noqa: S314 (our own output)
    assert part.attrib == {"data-name": value, "class": "a b", "x": "1.2"}


def test_long_names_keep_both_ends_and_the_length_asked_for() -> None:
    name = "video/mp4;codecs=h264;size=720p"
    cut = shortened(name, 20)
    assert len(cut) == 20
    assert cut.startswith("video/mp4")
    assert cut.endswith("size=720p")
    assert shortened("short", 20) == "short"


@pytest.mark.parametrize(
    ("value", "written"), [(0.0, "0"), (-0.04, "0"), (2.0, "2"), (-1.26, "-1.3"), (10.0, "10")]
)
def test_coordinates_are_short(value: float, written: str) -> None:
    assert number(value) == written


def test_wide_characters_take_more_room_than_narrow_ones() -> None:
    assert text_width("iiii", 10.0) < text_width("aaaa", 10.0) < text_width("日本日本", 10.0)
    assert text_width("aaaa", 10.0) < text_width("aaaa", 10.0, bold=True)


def test_colours_are_distinct_and_the_safe_ones_come_first() -> None:
    many = colours(60)
    assert len(set(many)) == 60
    assert many[:SAFE_COLOUR_COUNT] == colours(SAFE_COLOUR_COUNT)
    assert colours(3) == many[:3]


def test_safe_colours_contrast_with_white_and_with_the_dark_page() -> None:
    def luminance(colour: str) -> float:
        channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for colour in colours(SAFE_COLOUR_COUNT):
        assert 1.05 / (luminance(colour) + 0.05) >= 2.0
        assert (luminance(colour) + 0.05) / (luminance("#16191e") + 0.05) >= 2.0
