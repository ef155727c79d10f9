"""The job `traffic`: the quantities of the wiring problem, and the heaviest partners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline_tables import put, sorted_rows, subscriptions_table, users_table
from tests.reference import pipeline as reference

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput, TooLarge
from distributary.pipeline.jobs import channels as channel_jobs
from distributary.pipeline.jobs import traffic as jobs
from distributary.pipeline.jobs.match import match
from distributary.pipeline.sample import SampleSizes, network
from distributary.pipeline.sample.publications import publications_block
from distributary.pipeline.sample.subscriptions import subscriptions_block
from distributary.pipeline.transforms import traffic as transforms
from distributary.pipeline.transforms._partner_kernels import heaviest
from distributary.pipeline.transforms.exchange import exchange_of, population
from distributary.wiring.cost import cost
from distributary.wiring.problem_tables import read_problem_tables

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

Rates = dict[tuple[int, int], float]
Wants = set[tuple[int, int]]


def rates_table(rates: Rates) -> pa.Table:
    return pa.table(
        {
            "user": pa.array([f"u{user}" for user, _ in rates], pa.string()),
            "cell": pa.array([cell for _, cell in rates], pa.int64()),
            "bytes_per_second": pa.array(list(rates.values()), pa.float64()),
        }
    )


def interests_table(wants: Wants) -> pa.Table:
    pairs = sorted(wants)
    return pa.table(
        {
            "user": pa.array([f"u{user}" for user, _ in pairs], pa.string()),
            "cell": pa.array([cell for _, cell in pairs], pa.int64()),
        }
    )


USERS, CELLS = 9, 5
PAIRS = st.tuples(st.integers(0, USERS - 1), st.integers(0, CELLS - 1))


@given(
    # Eighths add up exactly, in any order.
    st.dictionaries(PAIRS, st.integers(0, 40).map(lambda eighths: eighths / 8), max_size=30),
    st.sets(PAIRS, max_size=30),
    st.integers(1, 4),
    st.integers(0, USERS),
)
@settings(deadline=None)
def test_the_heaviest_partners_are_those_of_all_pairs(
    rates: Rates, wants: Wants, most: int, cut: int
) -> None:
    """Wherever users are divided among tasks; of equal partners the smaller name comes first."""
    everybody = users_table({f"u{user}": None for user in range(USERS)})
    problem = population(rates_table(rates), interests_table(wants), everybody).problem
    exchange = exchange_of(problem)
    expected = reference.partners(rates, wants, USERS, most)
    for first, end in ((0, cut), (cut, USERS)):
        found, amounts, counts = heaviest(exchange, first, end, most)
        for row, user in enumerate(exchange.member[first:end].tolist()):
            partners = list(zip(amounts[row].tolist(), found[row].tolist(), strict=True))
            assert partners[: counts[row]] == expected[user]


def test_everything_from_a_sample_agrees_with_the_wiring_code(store: Store) -> None:
    """Traffic and flows are those of the problem that `wire` reads from the same folder."""
    sizes = SampleSizes(publications=400, subscriptions=120, users=40, brokers=6)
    blocks: dict[str, Any] = {
        "publications": (publications_block, 400),
        "subscriptions": (subscriptions_block, 120),
        "access_costs": (network.access_costs_block, 40),
        "core_costs": (network.core_costs_block, 6),
        "brokers": (network.brokers_block, 6),
    }
    for name, (block, count) in blocks.items():
        put(store, name, block(sizes, 1, np.arange(count)), files=2)
    names = network.users_block(sizes, 1, np.arange(40)).column("user").to_pylist()
    brokers = network.brokers_block(sizes, 1, np.arange(6)).column("broker").to_pylist()
    homes = {name: brokers[number % 6] for number, name in enumerate(names)}
    put(store, "users", users_table(homes))
    channel_jobs.channels(store, store, channel_jobs.SpaceWish("default").chosen(store))
    report = jobs.traffic(store, store, partners=3)
    problem = read_problem_tables(Path(store.path(""))).problem
    rows = sorted_rows(store.frame("traffic"))
    assert [row[0] for row in rows] == list(problem.users)
    both = np.array([[row[1], row[2]] for row in rows])
    np.testing.assert_allclose(both.sum(axis=1), problem.demands, rtol=1e-12)
    np.testing.assert_allclose(both[:, 1], problem.publishes.sum(axis=1), rtol=1e-12)
    at = np.array([problem.brokers.index(homes[user]) for user in problem.users])
    place = {broker: index for index, broker in enumerate(problem.brokers)}
    links = store.frame("broker_traffic").collect()
    core = sum(
        row.bytes_per_second * problem.core_prices[place[row.broker], place[row.other]]
        for row in links
    )
    assert core > 0.0
    assert core == pytest.approx(cost(problem, at).core, rel=1e-12)
    assert all(row.broker < row.other for row in links)
    said = problem.publishes @ problem.subscribes.T
    exchanged = said + said.T
    np.fill_diagonal(exchanged, 0.0)
    heavy = -np.sort(-exchanged, axis=1)[:, :3]
    user_at = {user: index for index, user in enumerate(problem.users)}
    found = np.zeros((len(problem.users), 3))
    for row in store.frame("partners").collect():
        found[user_at[row.user], row.rank - 1] = row.bytes_per_second
        assert row.bytes_per_second == pytest.approx(
            exchanged[user_at[row.user], user_at[row.partner]], rel=1e-12
        )
    np.testing.assert_allclose(found, heavy, rtol=1e-12)
    assert report.rows_out["partners"] == np.count_nonzero(heavy)
    assert report.figures["without_broker"] == 0
    assert report.rows_in["users"] == 40


TYPES = 200


def many_types(store: Store) -> tuple[list[Publication], list[dict[str, Any]]]:
    """Put tables with more types than the default space has buckets; users want few of them."""
    rng = np.random.default_rng(8)
    events = [
        Publication(
            {
                "id": str(number),
                "source": "/s",
                "type": f"com.example.kind{int(rng.integers(TYPES))}",
                "time": f"2026-01-05T00:{number % 60:02d}:00Z",
            },
            bytes(int(rng.integers(1, 2_000))),
        )
        for number in range(600)
    ]
    subscriptions: list[dict[str, Any]] = [
        {"id": f"s{number}", "user": f"u{number % 40}", "filters": [{"exact": {"type": wanted}}]}
        for number in range(120)
        for wanted in [f"com.example.kind{int(rng.integers(TYPES))}"]
    ]
    # Two subscriptions of one user to one thing, and one to something that has no type.
    subscriptions.append(subscriptions[0] | {"id": "again"})
    subscriptions.append({"id": "wide", "user": "u1", "filters": [{"suffix": {"type": "7"}}]})
    publishers = [f"u{int(rng.integers(50))}" for _ in events]
    put(store, "publications", to_arrow(events, publishers=publishers), files=2)
    put(store, "subscriptions", subscriptions_table(subscriptions))
    match(store, store)
    return events, subscriptions


@pytest.mark.parametrize("asked", ["default", "types"])
def test_bytes_in_are_those_of_deliveries_however_types_share_cells(
    store: Store, asked: str
) -> None:
    """Each publication counts once for each user; cells never expect less."""
    events, subscriptions = many_types(store)
    channel_jobs.channels(store, store, channel_jobs.SpaceWish(asked).chosen(store))
    report = jobs.traffic(store, store)
    expected = reference.received(events, subscriptions)
    rows = {row.user: row for row in store.frame("traffic").collect()}
    assert {user: row.bytes_in for user, row in rows.items() if row.bytes_in} == pytest.approx(
        expected, rel=1e-12
    )
    assert all(row.bytes_in_by_cells >= row.bytes_in * (1 - 1e-12) for row in rows.values())
    assert report.figures["bytes_per_second_received"] == pytest.approx(sum(expected.values()))
    by_cells = sum(row.bytes_in_by_cells for row in rows.values())
    over = by_cells / sum(expected.values())
    assert report.figures["over_count"] == pytest.approx(over)
    worst = max(row.bytes_in_by_cells / row.bytes_in for row in rows.values() if row.bytes_in)
    assert report.figures["over_count_worst"] == pytest.approx(worst)
    if asked == "types":
        # The one filter that lists no types wants the others, and there are none.
        assert worst == pytest.approx(1.0)
    else:
        assert over > 2.0


def test_without_deliveries_bytes_in_are_expected_by_cells_and_the_report_says_so(
    store: Store,
) -> None:
    put(store, "rates_published", rates_table(RATES))
    put(store, "interests", interests_table(WANTS))
    report = jobs.traffic(store, store)
    assert report.figures["over_count"] == "needs deliveries and publications"
    assert "over_count_worst" not in report.figures
    # What u1 and u2 publish themselves is left out of in, as wiring does, and expected by cells.
    assert sorted_rows(store.frame("traffic")) == [
        ("u0", 10.0, 4.0, 10.0),
        ("u1", 4.0, 3.0, 5.0),
        ("u2", 7.0, 8.0, 15.0),
    ]


def test_whoever_received_something_is_in_the_table(store: Store) -> None:
    """Even if nobody knows the user any more; what is undeliverable counts as well."""
    put(store, "rates_published", rates_table(RATES))
    put(store, "interests", interests_table(WANTS))
    event = Publication({"id": "1", "source": "/s", "type": "t"}, bytes(100))
    put(store, "publications", to_arrow([event]))
    rows = [("s1", "gone", "video/mp4"), ("s2", "gone", None), ("s3", "u0", None)]
    put(
        store,
        "deliveries",
        pa.table(
            {
                "source": ["/s"] * 3,
                "event_id": ["1"] * 3,
                "subscription_id": [row[0] for row in rows],
                "user": [row[1] for row in rows],
                "broker": pa.nulls(3, pa.string()),
                "media_type": pa.array([row[2] for row in rows], pa.string()),
                "bytes": pa.array([100] * 3, pa.int64()),
            }
        ),
    )
    report = jobs.traffic(store, store)
    assert [row[:2] for row in sorted_rows(store.frame("traffic"))] == [
        ("gone", 100.0),
        ("u0", 100.0),
        ("u1", 0.0),
        ("u2", 0.0),
    ]
    # Only users who received something can have been expected to receive too much.
    assert report.figures["over_count_worst"] == 0.1
    assert report.rows_in["deliveries"] == 3


RATES: Rates = {(0, 7): 4.0, (1, 7): 1.0, (1, 9): 2.0, (2, 9): 8.0}
WANTS: Wants = {(0, 9), (1, 7), (2, 7), (2, 9)}
HOMES: dict[str, str | None] = {"u0": "x", "u1": "y", "u3": "x"}


def test_who_has_no_home_counts_for_users_but_not_for_brokers(store: Store) -> None:
    """Worked out by hand: cells 7 and 9, brokers x and y, and u2 at home nowhere."""
    put(store, "rates_published", rates_table(RATES))
    put(store, "interests", interests_table(WANTS))
    put(store, "users", users_table(HOMES))
    put(store, "brokers", pa.table({"broker": ["y", "x"], "capacity": [None, 1.0]}))
    costs = pa.table({"broker": ["x", "y"], "costs": [[2.0, 0.0], [0.0, 2.0]]})
    put(store, "core_costs", costs)
    report = jobs.traffic(store, store, partners=1)
    assert sorted_rows(store.frame("traffic")) == [
        ("u0", 10.0, 4.0, 10.0),
        ("u1", 4.0, 3.0, 5.0),
        ("u2", 7.0, 8.0, 15.0),
        ("u3", 0.0, 0.0, 0.0),
    ]
    # u0's 4 go from x to y, u1's 2 from y to x, u1's 1 stays at y; u2 is nowhere.
    assert sorted_rows(store.frame("broker_traffic")) == [("x", "y", 6.0)]
    assert sorted_rows(store.frame("partners")) == [
        ("u0", 1, "u2", 12.0),
        ("u1", 1, "u0", 6.0),
        ("u2", 1, "u0", 12.0),
    ]
    assert report.figures["without_broker"] == 1


def test_without_prices_there_is_no_table_of_brokers_and_the_report_says_so(
    store: Store,
) -> None:
    put(store, "rates_published", rates_table({}))
    put(store, "interests", interests_table(set()))
    report = jobs.traffic(store, store)
    assert dict(report.rows_out) == {"traffic": 0, "partners": 0}
    assert report.figures["broker_traffic"] == "needs brokers and core_costs"


def test_more_than_the_driver_can_hold_is_refused_before_it_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "rates_published", rates_table(RATES))
    put(store, "interests", interests_table(WANTS))
    rows = len(RATES) + len(WANTS)
    monkeypatch.setattr(jobs, "ROWS_MAX", rows - 1)
    with pytest.raises(
        TooLarge, match=f"{rows} rows .* it takes at most {rows - 1}; hint: "
    ) as told:
        jobs.traffic(store, store)
    assert told.value.memory_bytes == 110 * rows
    assert not store.has("traffic")


@pytest.mark.parametrize(
    ("rates", "wants", "message"),
    [
        ([("u1", 1, 1.0), ("u1", 1, 2.0)], [], "has user 'u1' and cell 1 twice"),
        ([("u1", 1, -1.0)], [], "a rate that is not a number of at least 0"),
        ([], [("u1", 1), ("u2", 1), ("u1", 1)], "interests: has user 'u1' and cell 1 twice"),
    ],
)
def test_rows_that_cannot_be_are_refused(
    rates: list[tuple[str, int, float]], wants: list[tuple[str, int]], message: str
) -> None:
    published = pa.Table.from_pylist(
        [{"user": u, "cell": c, "bytes_per_second": r} for u, c, r in rates],
        rates_table({}).schema,
    )
    wanted = pa.Table.from_pylist(
        [{"user": u, "cell": c} for u, c in wants], interests_table(set()).schema
    )
    with pytest.raises(BadInput, match=message):
        population(published, wanted, None)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"x": [0.0, 1.0]}, "must have 2 costs for broker 'y'"),
        ({"x": [0.0, 1.0], "y": [1.0]}, "must have 2 costs for broker 'y'"),
        ({"x": [0.0, 1.0], "y": [2.0, 0.0]}, "the way back"),
        ({"x": [0.0, -1.0], "y": [-1.0, 0.0]}, "not a number of at least 0"),
    ],
)
def test_prices_that_cannot_be_are_refused(costs: dict[str, list[float]], message: str) -> None:
    brokers = pa.table({"broker": ["x", "y"], "capacity": pa.nulls(2, pa.float64())})
    given_costs = pa.table({"broker": list(costs), "costs": list(costs.values())})
    with pytest.raises(BadInput, match=message):
        transforms.core_prices_of(brokers, given_costs)


def test_a_home_that_is_no_broker_and_too_many_partners_are_refused(store: Store) -> None:
    everybody = population(rates_table(RATES), interests_table(WANTS), users_table(HOMES))
    with pytest.raises(BadInput, match="at home at 'y', which is not in brokers"):
        transforms.broker_traffic(
            store.spark, everybody, transforms.CorePrices(("x",), np.zeros((1, 1)))
        )
    with pytest.raises(BadInput, match="--partners: must be between 1 and 1,000, not 0"):
        transforms.partners(store.spark, everybody, 0)
