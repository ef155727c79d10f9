"""`cells` never leaves out a cell in which a filter matches, and adds none for plain ones."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filter_pairs import NUMBERS, TEXTS, any_filter, events
from tests.reference.filters import matches

from distributary.content.attributes import AttributeValue
from distributary.content.content_space import ContentSpace
from distributary.content.publication import Publication
from distributary.filters.cells import cells, cells_batch
from distributary.filters.filter import Filter

RANDOMS = st.randoms(use_true_random=False)
SPACES: dict[tuple[str, ...], list[dict[str, Any]]] = {
    ("kind", "/price"): [
        {"name": "/price", "edges": [0, 1.5, 5]},
        {"name": "kind", "buckets": 3},
    ],
    ("kind", "/name"): [
        {"name": "kind", "values": ["a", "ab", "5", "true", "nowhere"]},
        {"name": "/name", "values": ["b", "ba"]},
    ],
    ("level", "/name"): [
        {"name": "level", "edges": [-1, 0, 5]},
        {"name": "/name", "buckets": 2},
        {"name": "level", "buckets": 2},
    ],
}


@cache
def space_of(keys: tuple[str, ...]) -> ContentSpace:
    return ContentSpace.parse({"dimensions": SPACES[keys]})


@cache
def publications(keys: tuple[str, ...]) -> list[tuple[Publication, int]]:
    """Return publications with every combination of interesting values, and their cells."""
    space = space_of(keys)
    found = []
    for event in events(keys):
        data = {
            pointer[1:]: leaf for pointer, leaf in (*event.numbers.items(), *event.texts.items())
        }
        publication = Publication(event.attributes, data)
        found.append((publication, space.cell_of(publication)))
    return found


def matched_cells(filter_: Filter, keys: tuple[str, ...]) -> set[int]:
    return {cell for publication, cell in publications(keys) if filter_.matches(publication)}


def plain_filter(random: Random, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return exact texts, sets and ranges on some keys, or a choice among such filters."""

    def condition(key: str) -> dict[str, Any]:
        # Texts of any bucket read as numbers of a range, so ranges are for the other key.
        if key == "kind" or random.random() < 0.3:
            return {"exact": {key: random.choice(TEXTS)}}
        low, high = sorted(random.sample(NUMBERS, 2))
        bounds = {random.choice(("min", "min_exclusive")): low}
        if random.random() < 0.8:
            bounds[random.choice(("max", "max_exclusive"))] = high
        return {"range": {key: bounds}}

    def conjunction() -> list[dict[str, Any]]:
        chosen = random.sample(keys, random.randint(1, len(keys)))
        return [
            {"any": [condition(key) for _ in range(random.randint(1, 3))]}
            if random.random() < 0.4
            else condition(key)
            for key in chosen
        ]

    if random.random() < 0.5:
        return conjunction()
    return [{"any": [{"all": conjunction()} for _ in range(2)]}]


@settings(max_examples=60)
@given(RANDOMS, st.sampled_from(sorted(SPACES)))
def test_no_cell_is_left_out_in_which_a_publication_matches(
    random: Random, keys: tuple[str, ...]
) -> None:
    filter_ = Filter.parse([any_filter(random, keys) for _ in range(random.randint(1, 2))])
    found = cells(filter_, space_of(keys))
    assert sorted(set(found.tolist())) == found.tolist()
    assert matched_cells(filter_, keys) <= set(found.tolist())


@settings(max_examples=60)
@given(RANDOMS)
def test_exact_texts_sets_and_ranges_get_no_cell_too_many(random: Random) -> None:
    """In every cell that is given, some publication matches."""
    keys = ("kind", "/price")
    filter_ = Filter.parse(plain_filter(random, keys))
    assert set(cells(filter_, space_of(keys)).tolist()) == matched_cells(filter_, keys)


@settings(max_examples=60)
@given(RANDOMS, st.sampled_from(["kind", "/name"]))
def test_a_text_with_a_cell_of_its_own_is_there_when_the_filter_matches_it(
    random: Random, key: str
) -> None:
    """Whatever the form of the filter, if it is about that key alone; no cell too many."""
    values = ("a", "ab", "b", "ba", "5", "true", "azc")
    space = ContentSpace.parse({"dimensions": [{"name": key, "values": list(values)}]})
    filters = [any_filter(random, (key,)) for _ in range(random.randint(1, 2))]
    found = set(cells(filters, space).tolist())
    # An attribute is text, or an Integer or a Boolean of that text.
    twins: dict[str, list[AttributeValue]] = {} if key[0] == "/" else {"5": [5], "true": [True]}
    for number, text in enumerate(values, start=1):
        written = [text, *twins.get(text, [])]
        matched = [matches(filters, _holding(key, value)) for value in written]
        assert (number in found) >= any(matched)
        if len(written) == 1:
            assert (number in found) == matched[0]
    # Where the others are left out, no text that has no cell of its own matches.
    if len(values) + 1 not in found:
        others = [text for text in (*TEXTS, "z", "zab", "bb", "a z", "ABC") if text not in values]
        assert not any(matches(filters, _holding(key, text)) for text in others)


def _holding(key: str, value: AttributeValue) -> Publication:
    required: dict[str, AttributeValue] = {"id": "1", "source": "/s", "type": "t"}
    if key.startswith("/"):
        return Publication(required, {key[1:]: value})
    return Publication({**required, key: value})


@given(RANDOMS)
def test_a_table_has_the_cells_of_its_rows(random: Random) -> None:
    keys = random.choice(sorted(SPACES))
    filters = [plain_filter(random, keys) for _ in range(3)]
    filters += [[any_filter(random, keys)], filters[0], []]
    table = pa.table(
        {
            "subscription_id": [f"s{number}" for number in range(len(filters))],
            "filters": [json.dumps(entry) for entry in filters],
        }
    )
    lists = cells_batch(table, space_of(keys))
    assert len(lists.offsets) - 1 <= len(filters) - 1
    for row, entry in enumerate(filters):
        assert np.array_equal(lists.of_row(row), cells(entry, space_of(keys)))
