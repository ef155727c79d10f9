"""A device gets the best format that it accepts, can show, and that can be made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.format_choice import (
    FormatChoice,
    NoFormat,
    choices,
    choose_format,
    format_index,
    with_format,
)
from distributary.content.media_type import MediaType
from distributary.content.profile import DeviceProfile
from distributary.errors import BadInput

GRAPH = AdaptationGraph.from_conversions(
    [
        ("application/pdf", 5.0),
        ("audio/wav", 3.0),
        ("image/jpeg", 2.5),
        ("image/jpeg;width=320", 0.5),
        ("image/jpeg;width=640", 1.0),
        ("image/jpeg;width=1280", 2.0),
        ("image/png;width=640", 1.5),
        ("text/plain;charset=utf-8", 0.1),
        ("video/mp4;width=320;bitrate=200k", 4.0),
        ("video/mp4;width=640;bitrate=1M", 8.0),
        ("radio", 1.0),
    ],
    [
        ("application/pdf", "image/jpeg", 1.0),
        ("application/pdf", "image/png;width=640", 1.0),
        ("application/pdf", "text/plain;charset=utf-8", 1.0),
        ("image/jpeg", "image/jpeg;width=1280", 1.0),
        ("image/jpeg;width=1280", "image/jpeg;width=640", 1.0),
        ("image/jpeg;width=640", "image/jpeg;width=320", 1.0),
        ("text/plain;charset=utf-8", "audio/wav", 1.0),
        ("video/mp4;width=640;bitrate=1M", "video/mp4;width=320;bitrate=200k", 1.0),
        ("application/pdf", "radio", 1.0),
    ],
)


TEXTS = {"text/html": 1.0, "text/plain;charset=utf-16": 2.0, "text/plain;charset=utf-8": 1.0}


def found_with(graph: AdaptationGraph, held: str, size: float) -> tuple[AdaptationGraph, int]:
    found = with_format(graph, held, size)
    assert found is not None
    return found


def names(accept: object, held: str = "application/pdf", **limits: object) -> list[str]:
    profile = DeviceProfile.parse({"accept": accept, **limits})
    return [choice.name for choice in choices(profile, GRAPH, held)]


def test_entries_are_tried_by_weight_and_then_by_position() -> None:
    accept = ["text/plain;q=0.5", "audio/*;q=0.9", "application/pdf;q=0.9", "font/ttf"]
    assert names(accept) == ["audio/wav", "application/pdf", "text/plain;charset=utf-8"]


def test_an_entry_takes_the_largest_format_that_fits_the_screen() -> None:
    assert names(["image/jpeg"], screen="700x500") == ["image/jpeg;width=640"]
    assert names(["image/*"], screen={"width": 700, "height": 500}) == ["image/png;width=640"]
    assert names(["image/jpeg"], screen="320x100") == ["image/jpeg;width=320"]
    assert names(["image/jpeg"]) == ["image/jpeg"]


def test_a_picture_of_unknown_width_is_better_than_none() -> None:
    assert names(["image/jpeg"], screen="100x100") == ["image/jpeg"]


def test_a_video_must_fit_the_bandwidth() -> None:
    held = "video/mp4;width=640;bitrate=1M"
    assert names(["video/*"], held) == [held]
    assert names(["video/*"], held, bandwidth_kbps=1000) == [held]
    assert names(["video/*"], held, bandwidth_kbps=999) == ["video/mp4;width=320;bitrate=200k"]
    assert names(["video/*"], held, bandwidth_kbps=100) == []


def test_every_listed_parameter_must_agree() -> None:
    assert names(["image/jpeg;width=320"]) == ["image/jpeg;width=320"]
    assert names(["image/jpeg;width=321"]) == []
    assert names(['TEXT/Plain;Charset="UTF-8"']) == ["text/plain;charset=utf-8"]


def test_fall_backs_do_not_repeat_what_was_tried() -> None:
    """When the second entry matches only what the first one chose, it takes its next best."""
    assert names(["image/png", "image/*;q=0.5"]) == ["image/png;width=640", "image/jpeg"]


def test_a_weight_of_zero_refuses_what_it_names_most_narrowly() -> None:
    assert names(["image/*", "image/jpeg;q=0"]) == ["image/png;width=640"]
    assert names(["*/*;q=0", "text/*"]) == ["text/plain;charset=utf-8"]
    assert names(["image/*", "image/*;q=0"]) == ["image/jpeg"]


def test_nothing_that_cannot_be_made_is_chosen() -> None:
    """A picture is never made larger, and a name that is no media type matches nothing."""
    assert names(["image/jpeg;width=1280"], "image/jpeg;width=640") == []
    assert "radio" not in names(["*/*", "*/*;q=0.5", "*/*;q=0.4", "*/*;q=0.3"])


def test_without_a_profile_the_original_is_taken() -> None:
    pdf = GRAPH.names.index("application/pdf")
    assert choose_format(None, GRAPH, "application/pdf") == FormatChoice(
        "application/pdf", pdf, None
    )
    assert choose_format(None, GRAPH, "x/unknown") == FormatChoice("x/unknown", None, None)


def test_a_format_that_the_graph_lacks_can_only_be_taken_as_it_is() -> None:
    assert names(["*/*"], "model/stl") == ["model/stl"]
    profile = DeviceProfile.parse({"accept": "text/plain, image/*;q=0.1"})
    assert choose_format(profile, GRAPH, "model/stl") == NoFormat(
        "nothing the device accepts (text/plain, image/*;q=0.1) and can show can be made "
        "from model/stl"
    )


def test_text_comes_in_utf_8_unless_another_charset_is_asked_for() -> None:
    graph = AdaptationGraph.from_conversions(
        TEXTS.items(),
        [("text/html", name, 1.0) for name in TEXTS if name != "text/html"],
    )

    def first(*accept: str) -> str:
        found = choose_format(DeviceProfile.parse({"accept": list(accept)}), graph, "text/html")
        assert isinstance(found, FormatChoice)
        return found.name

    assert first("text/plain") == "text/plain;charset=utf-8"
    assert first("text/plain;charset=utf-16") == "text/plain;charset=utf-16"


def test_a_format_of_any_size_becomes_what_the_largest_below_it_can() -> None:
    sized = GRAPH.restricted_to([k for k, name in enumerate(GRAPH.names) if name != "image/jpeg"])
    wide, at = found_with(sized, "image/jpeg;width=1000", 1.8)
    assert wide.names[at] == "image/jpeg;width=1000"
    made = {wide.names[k] for k in np.flatnonzero(wide.makeable[at])} - {wide.names[at]}
    assert made == {"image/jpeg;width=640", "image/jpeg;width=320"}
    plain, at = found_with(GRAPH, "video/mp4", 3.0)
    made = {plain.names[k] for k in np.flatnonzero(plain.makeable[at])} - {plain.names[at]}
    assert made == {name for name in GRAPH.names if name.startswith("video/mp4")}
    # Nothing that is made smaller counts as larger.
    assert all(plain.sizes[k] <= 3.0 for k in np.flatnonzero(plain.makeable[at]))
    assert plain.names[:-1] == GRAPH.names


@pytest.mark.parametrize(
    "held", ["image/webp", "text/plain;charset=koi8-r", "video/mp4;width=100", "not a type", "*/*"]
)
def test_a_format_with_nothing_like_it_becomes_nothing(held: str) -> None:
    assert with_format(GRAPH, held, 1.0) is None


def test_a_media_type_finds_its_format_in_the_graph() -> None:
    """The same text first; then the narrowest format that it is one of."""
    assert format_index(GRAPH, "radio") == GRAPH.names.index("radio")
    assert format_index(GRAPH, "image/jpeg; width=640; quality=80") == GRAPH.names.index(
        "image/jpeg;width=640"
    )
    assert format_index(GRAPH, "APPLICATION/PDF") == GRAPH.names.index("application/pdf")
    assert format_index(GRAPH, "image/webp") is None
    assert format_index(GRAPH, "not a type") is None


@pytest.mark.parametrize(
    ("document", "place", "problem"),
    [
        ({}, "profile.accept", "is missing"),
        ({"accept": []}, "profile.accept", "accepts nothing"),
        ({"accept": ["a/b;q=0"]}, "profile.accept", "accepts nothing"),
        ({"accept": ["a"]}, "profile.accept[0]", "'a' is not a media type"),
        ({"accept": ["*/x"]}, "profile.accept[0]", "'*/x' has a subtype of no type"),
        ({"accept": [5]}, "profile.accept[0]", "must be a media type, such as 'image/jpeg'"),
        ({"accept": "a/b;q=2"}, "profile.accept[0]", "q must be between 0 and 1"),
        ({"accept": "a/b;q=0.1234"}, "profile.accept[0]", "q must be between 0 and 1"),
        ({"accept": 'a/b;c="'}, "profile.accept", "has a quoted string that does not end"),
        ({"accept": "a/b," * 65}, "profile.accept", "has more than 64 entries"),
        ({"accept": ["a/b"] * 65}, "profile.accept", "has 65 entries; at most 64 are read"),
        ({"accept": ["a/b"], "screen": "wide"}, "profile.screen", "'wide' is not a size"),
        ({"accept": ["a/b"], "screen": {"width": 1}}, "profile.screen.height", "is missing"),
        (
            {"accept": ["a/b"], "screen": {"width": 1.5, "height": 2}},
            "profile.screen.width",
            "must be a whole number between 1 and 1,000,000",
        ),
        (
            {"accept": ["a/b"], "bandwidth_kbps": 0},
            "profile.bandwidth_kbps",
            "must be greater than 0, not 0",
        ),
        ({"accept": ["a/b"], "color": 1}, "profile.color", "is not a field of a profile"),
        ([], "profile", "must be an object, not a list"),
    ],
)
def test_a_bad_profile_is_refused(document: object, place: str, problem: str) -> None:
    with pytest.raises(BadInput) as raised:
        DeviceProfile.parse(document)
    assert raised.value.place == place
    assert problem in raised.value.problem


def test_a_profile_survives_being_written_and_read() -> None:
    profile = DeviceProfile.parse(
        {
            "accept": 'image/*;q=0.125, text/plain;title="a, \\"b\\"", */*;q=0',
            "screen": "390x844",
            "bandwidth_kbps": 12.5,
        }
    )
    assert [str(entry) for entry in profile.accept] == [
        "image/*;q=0.125",
        'text/plain;title="a, \\"b\\""',
        "*/*;q=0",
    ]
    assert DeviceProfile.parse(profile.document()) == profile


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8),
        max_size=3,
    )
)
def test_a_media_type_survives_being_written_and_read(parameters: dict[str, str]) -> None:
    written = str(MediaType("a", "b", parameters))
    assert MediaType.parse(written) == MediaType("a", "b", parameters)


@pytest.mark.parametrize(
    "text",
    ["", "a", "a/", "/b", "a b/c", "a/b;c", "a/b;c=", "a/b c=d", 'a/b;c="d', "a/b;c=1;C=2", 5],
)
def test_what_is_not_a_media_type_is_refused(text: object) -> None:
    with pytest.raises(BadInput):
        MediaType.parse(text)


def test_a_choice_can_always_be_made_from_what_is_held() -> None:
    everything = DeviceProfile.parse({"accept": ["*/*"] * 12})
    for k, held in enumerate(GRAPH.names):
        for choice in choices(everything, GRAPH, held):
            assert choice.index is not None
            assert np.isfinite(GRAPH.chain_costs[k, choice.index])
