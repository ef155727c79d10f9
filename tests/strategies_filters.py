"""Filters and publications that have much to do with each other.

Few keys and few texts, which start and end with one another, make conditions meet what they
are about; numbers lie on and beside each other's bounds.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from distributary.content.attributes import AttributeValue
from distributary.content.publication import Publication

Filters = list[dict[str, Any]]

ATTRIBUTES = ("type", "subject", "level", "urgent")
POINTERS = ("/x", "/y/0", "/y/1", "/~1")
KEYS = st.sampled_from((*ATTRIBUTES, *POINTERS))
TEXTS = st.sampled_from(
    [
        "a",
        "ab",
        "aba",
        "b",
        "ba",
        "é",
        "aé",
        "éa",
        "5",
        "-1.5",
        "true",
        "TRUE",
        "007",
        "1e3",
        "\n",
        "%",
    ]
)
NUMBERS = st.sampled_from([0, 1, 5, 7, -1.5, 1000, 5.000000000000001, 4.999999999999999, 1e300])
SQL = st.sampled_from(
    [
        "type = 'ab'",
        "'ab' = type",
        "5 = level",
        "level = 5",
        "level > 4 AND type = 'a'",
        "level IN (5, 'a', TRUE)",
        "type IN ('a', 'ab', 'éa')",
        "type IN ('a', subject)",
        "type NOT IN ('a')",
        "urgent",
        "urgent = TRUE",
        "urgent AND EXISTS type",
        "EXISTS subject",
        "NOT EXISTS subject",
        "type LIKE 'a%'",
        "type LIKE '%a'",
        "type LIKE 'a%a'",
        "type LIKE 'a_%' OR subject = 'b'",
        "type LIKE '\\%'",
        "type LIKE '%'",
        "subject = 'b' OR level = 5",
        "subject = 'b' AND type = 'a' OR urgent = 'true'",
        "subject = 'b' XOR type = 'a'",
        "NOT subject = 'b'",
        "type = 'a' AND type = 'b'",
        "LENGTH(type) > 1",
        "TRUE",
        "FALSE OR subject != 'a'",
    ]
)


@st.composite
def _bounds(draw: st.DrawFn) -> dict[str, float]:
    """Draw bounds, most of which leave something between them."""
    bounds: dict[str, float] = {}
    low, high = draw(NUMBERS), draw(NUMBERS)
    if low > high and draw(st.integers(0, 9)):
        low, high = high, low
    lower = draw(st.sampled_from(["min", "min_exclusive", None]))
    upper = draw(st.sampled_from(["max", "max_exclusive", None]))
    if lower is not None:
        bounds[lower] = low
    if upper is not None:
        bounds[upper] = high
    return bounds


def _leaves() -> st.SearchStrategy[dict[str, Any]]:
    texts = st.dictionaries(KEYS, TEXTS, min_size=1, max_size=2)
    return st.one_of(
        texts.map(lambda body: {"exact": body}),
        texts.map(lambda body: {"prefix": body}),
        texts.map(lambda body: {"suffix": body}),
        st.dictionaries(KEYS, _bounds(), min_size=1, max_size=3).map(lambda body: {"range": body}),
        SQL.map(lambda body: {"sql": body}),
    )


def _nested(
    inside: st.SearchStrategy[dict[str, Any]],
) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.lists(inside, min_size=1, max_size=3)
    return st.one_of(
        arrays.map(lambda body: {"all": body}),
        arrays.map(lambda body: {"any": body}),
        inside.map(lambda body: {"not": body}),
    )


FILTERS: st.SearchStrategy[Filters] = st.lists(
    st.recursive(_leaves(), _nested, max_leaves=6), max_size=3
)


@st.composite
def publications(draw: st.DrawFn) -> Publication:
    """Draw an event that has some of the keys."""
    values: st.SearchStrategy[AttributeValue] = st.one_of(
        TEXTS.filter(lambda text: text != "\n"), st.sampled_from([5, 0, 1, -7, True, False])
    )
    attributes: dict[str, AttributeValue] = {
        "id": "1",
        "source": "s",
        "specversion": "1.0",
        **draw(st.dictionaries(st.sampled_from(ATTRIBUTES), values)),
    }
    leaf = st.one_of(TEXTS, NUMBERS, st.sampled_from([None, True]))
    data = draw(
        st.one_of(
            st.fixed_dictionaries(
                {}, optional={"x": leaf, "y": st.lists(leaf, max_size=2), "/": leaf}
            ),
            leaf,
        )
    )
    return Publication(attributes, data)
