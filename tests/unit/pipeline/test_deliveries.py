"""The job `match`: the same answers as asking every filter and every profile, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline_tables import (
    MEDIA,
    publications,
    put,
    sorted_rows,
    subscriptions_table,
    users_table,
)
from tests.reference import pipeline as reference

from distributary.content.calibrated_graph import graph_for
from distributary.content.format_choice import FormatChoice, choose_format
from distributary.content.profile import DeviceProfile
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.graph import calibration
from distributary.pipeline.jobs import match as jobs
from distributary.pipeline.transforms import deliveries as transform
from distributary.pipeline.transforms.format_choices import FormatChoices
from distributary.pipeline.transforms.recipients import recipients

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

CALIBRATION = calibration()
PROFILES: list[dict[str, Any] | None] = [
    None,
    {"accept": ["*/*"]},
    {"accept": ["image/webp", "video/*;q=0.5", "application/json;q=0.1"], "screen": "390x844"},
    {"accept": ["audio/*", "video/3gpp;q=0.5", "text/plain;q=0.2"], "bandwidth_kbps": 300},
    {"accept": ["text/html"]},
]
FILTERS: list[list[dict[str, Any]]] = [
    [],
    [{"exact": {"type": "t1"}}],
    [{"range": {"/x": {"min": 0.25, "max": 0.75}}}],
    [{"sql": "level > 2 AND source LIKE '%1'"}],
    [{"any": [{"suffix": {"/place": "2"}}, {"not": {"prefix": {"type": "t"}}}]}],
    [{"exact": {"type": "t2"}}, {"sql": "LENGTH(type) * level = 6"}],
]
SUBSCRIPTIONS = [
    {
        "id": f"s{number}",
        "user": f"u{number % 7}",
        "filters": FILTERS[number % len(FILTERS)],
        "profile": PROFILES[number % len(PROFILES)],
    }
    for number in range(30)
]
HOMES: dict[str, str | None] = {"u0": "b0", "u1": "b1", "u2": None, "u3": "b0", "u4": "b2"}


def test_deliveries_are_those_of_every_filter_and_every_profile(store: Store) -> None:
    """And the report counts all rows, those that nobody can use among them."""
    events = publications(150, seed=5)
    put(store, "publications", to_arrow(events), files=3)
    put(store, "subscriptions", subscriptions_table(SUBSCRIPTIONS), files=2)
    put(store, "users", users_table(HOMES))
    report = jobs.match(store, store)
    expected = reference.deliveries(events, SUBSCRIPTIONS, HOMES, CALIBRATION)
    found = sorted_rows(store.frame("deliveries"))
    assert found == sorted(expected, key=lambda row: [(value is not None, value) for value in row])
    assert len({row[5] for row in found}) > 6
    assert report.document() | {"seconds": 0} == {
        "job": "match",
        "rows_in": 180,
        "rows_out": len(expected),
        "seconds": 0,
        "tables_in": {"publications": 150, "subscriptions": 30},
        "tables_out": {"deliveries": len(expected)},
        "days": ["2026-01-05", None],
        "without_format": sum(row[5] is None for row in expected),
        "without_broker": sum(row[4] is None for row in expected),
    }


def test_without_users_nobody_has_a_home_and_without_matches_there_are_no_rows(
    store: Store,
) -> None:
    put(store, "publications", to_arrow(publications(20, seed=1)))
    put(store, "subscriptions", subscriptions_table(SUBSCRIPTIONS[:1]))
    frame = jobs.frames(store)["deliveries"]
    assert {row.broker for row in frame.collect()} == {None}
    put(store, "subscriptions", subscriptions_table([]))
    report = jobs.match(store, store)
    assert dict(report.rows_out) == {"deliveries": 0}
    assert store.frame("deliveries").count() == 0


def test_what_a_popular_batch_yields_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    events = publications(40, seed=2)
    everybody = recipients(subscriptions_table(SUBSCRIPTIONS), None, CALIBRATION)
    whole = pa.Table.from_batches(transform.deliveries_in(to_arrow(events), everybody))
    monkeypatch.setattr(transform, "_ROWS_MAX", 7)
    pieces = list(transform.deliveries_in(to_arrow(events), everybody))
    assert max(piece.num_rows for piece in pieces) == 7
    assert pa.Table.from_batches(pieces).equals(whole)


CHOICES = FormatChoices(
    CALIBRATION, [None if item is None else DeviceProfile.parse(item) for item in PROFILES]
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*MEDIA, "text/plain", "application/json", "x/y", "not a type", None]),
            st.integers(0, 10**7),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(deadline=None, max_examples=40)
def test_formats_are_those_of_the_graph_for_each_size(
    events: list[tuple[str | None, int]],
) -> None:
    """A table of choices by kind of publication says what `choose_format` says of each."""
    types = pa.array([kind for kind, _ in events], pa.string())
    kinds = CHOICES.kinds(types, pa.array([size for _, size in events]).to_numpy())
    pairs = [(row, profile) for row in range(len(events)) for profile in range(len(PROFILES))]
    rows, profiles = (pa.array(side).to_numpy() for side in zip(*pairs, strict=True))
    found = CHOICES.chosen(profiles, rows, kinds).to_pylist()
    graphs = [graph_for(CALIBRATION, size) for _, size in events]
    for (row, profile), name in zip(pairs, found, strict=True):
        kind = events[row][0]
        if kind is None:
            assert name is None
            continue
        document = PROFILES[profile]
        device = None if document is None else DeviceProfile.parse(document)
        choice = choose_format(device, graphs[row], kind)
        assert name == (choice.name if isinstance(choice, FormatChoice) else None)


def test_the_order_of_sizes_decides_to_the_byte() -> None:
    """Two formats whose lines cross: the larger one is another on either side."""
    lines = {"image/png": (0.0, 2.0), "image/webp": (1.0, 1.0), "image/bmp": (0.0, 1.0)}
    document: dict[str, object] = {
        "formats": [
            {"name": name, "size": {"fixed": fixed, "per_mb": per_mb}}
            for name, (fixed, per_mb) in lines.items()
        ],
        "conversions": [
            {"from": "image/bmp", "to": name, "cost": {"fixed": 1.0, "per_mb": 0.0}}
            for name in ("image/png", "image/webp")
        ],
    }
    choices = FormatChoices(document, [DeviceProfile.parse({"accept": ["image/*"]})])
    sizes = pa.array([0, 999_999, 1_000_000, 1_000_001]).to_numpy()
    kinds = choices.kinds(pa.array(["image/bmp"] * 4), sizes)
    found = choices.chosen(sizes * 0, pa.array(range(4)).to_numpy(), kinds).to_pylist()
    assert found == ["image/webp", "image/webp", "image/png", "image/png"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"profile": {"accept": []}}, "subscription 's3'.*accept"),
        ({"filters": [{"sql": "1 +"}]}, "subscription 's3'.*sql"),
        ({"id": "s1"}, "subscription: 's1' is there already"),
    ],
)
def test_a_subscription_that_breaks_the_rules_is_named(
    store: Store, change: dict[str, Any], message: str
) -> None:
    rows = [dict(row) for row in SUBSCRIPTIONS[:5]]
    rows[3].update(change)
    put(store, "subscriptions", subscriptions_table(rows))
    with pytest.raises(BadInput, match=message) as raised:
        jobs.recipients_in(store)
    assert store.path("subscriptions") in str(raised.value)


def test_half_a_file_of_subscriptions_is_named(store: Store) -> None:
    put(store, "subscriptions", subscriptions_table(SUBSCRIPTIONS), files=2)
    half = Path(store.path("subscriptions")) / "part-00001.parquet"
    half.write_bytes(half.read_bytes()[:-20])
    with pytest.raises(BadInput, match="half of"):
        jobs.recipients_in(store)


def test_a_graph_that_is_none_is_refused(store: Store, tmp_path: Path) -> None:
    graph = tmp_path / "graph.json"
    graph.write_text('{"formats": []}')
    with pytest.raises(BadInput, match=r"graph\.json: formats: is empty"):
        jobs.recipients_in(store, graph=graph)


def test_an_event_without_content_is_delivered_as_it_is() -> None:
    event = Publication({"specversion": "1.0", "id": "1", "source": "/s", "type": "t1"})
    everybody = recipients(subscriptions_table(SUBSCRIPTIONS), None, CALIBRATION)
    (batch,) = transform.deliveries_in(to_arrow([event]), everybody)
    assert batch.num_rows > len(PROFILES)
    assert batch.column("media_type").null_count == batch.num_rows
