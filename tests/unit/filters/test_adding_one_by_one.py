"""Subscriptions that come one by one are entered together, and nobody can tell."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from distributary.content import Publication
from distributary.errors import BadInput, WrongType
from distributary.filters import Filter, Index
from distributary.filters.subscription_store import KEYS_MAX, SubscriptionStore


def wants(kind: str, key: str = "type") -> Filter:
    return Filter.parse([{"exact": {key: kind}}])


def event(kind: str) -> Publication:
    return Publication.parse({"specversion": "1.0", "id": "1", "source": "/", "type": kind})


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many subscriptions were entered each time; the work is done all the same."""
    seen: list[int] = []
    place = SubscriptionStore.place

    def counting(store: SubscriptionStore) -> None:
        seen.append(store.unplaced)
        place(store)

    monkeypatch.setattr(SubscriptionStore, "place", counting)
    return seen


def test_a_loop_enters_a_thousand_at_a_time(placed: list[int]) -> None:
    index = Index()
    for number in range(3000):
        index.add_filter(f"s{number}", wants(f"t{number % 7}"))
    assert len(index) == 3000
    assert "s2999" in index
    assert "s3000" not in index
    assert placed == [1024, 1024]
    assert len(index.match(event("t3"))) == 429
    assert placed == [1024, 1024, 3000 - 2048]
    index.match(event("t3"))
    assert len(placed) == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda index: index.match(event("a")) == ["one"],
        lambda index: list(index.match_each([event("a")])) == [["one"]],
        lambda index: index.remove("one") is None and len(index) == 0,
        lambda index: index.ids().to_pylist() == ["one"],
        lambda index: pickle.loads(pickle.dumps(index)).match(event("a")) == ["one"],  # noqa: S301
        lambda index: (
            index.add_all([("two", wants("a"))]) is None
            and index.match(event("a")) == ["one", "two"]
        ),
    ],
)
def test_whoever_asks_sees_what_was_added_last(ask: Callable[[Index], bool]) -> None:
    index = Index()
    index.add_filter("one", wants("a"))
    assert ask(index)


def test_what_is_wrong_is_refused_at_once_and_changes_nothing() -> None:
    index = Index()
    index.add_filter("one", wants("a"))
    with pytest.raises(BadInput, match="'one' is there already"):
        index.add_filter("one", wants("b"))
    with pytest.raises(BadInput, match="'one' is there already"):
        index.add_all([("two", wants("a")), ("one", wants("b"))])
    with pytest.raises(BadInput, match="must have an id"):
        index.add_filter("", wants("b"))
    with pytest.raises(WrongType, match="filter_"):
        index.add_filter("three", [{"exact": {"type": "a"}}])  # type: ignore[arg-type]
    assert len(index) == 1
    assert index.match(event("a")) == ["one"]
    index.remove("one")
    index.add_filter("one", wants("b"))
    assert index.match(event("b")) == ["one"]


def test_one_key_too_many_is_refused_and_the_others_stay() -> None:
    """The index may read so many keys and no more, whether they wait or not."""
    index = Index()
    index.add_all((f"s{number}", wants("a", f"/k{number}")) for number in range(KEYS_MAX - 1))
    index.add_filter("last", wants("a"))
    with pytest.raises(BadInput, match="different keys"):
        index.add_filter("more", wants("a", "/more"))
    assert "more" not in index
    index.add_filter("same", wants("a", "/k7"))
    assert index.match(event("a")) == ["last"]
    # A key that nobody reads any more makes room.
    index.remove("s5")
    with pytest.raises(BadInput, match="different keys"):
        index.add_filter("more", wants("a", "/more"))
    index.add_filter("more", wants("a", "/more"))
    assert len(index) == KEYS_MAX + 1


def test_threads_may_ask_at_the_same_time() -> None:
    index = Index()
    for number in range(500):
        index.add_filter(f"s{number}", wants("a"))
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: len(index.match(event("a"))), range(32)))
    assert answers == [500] * 32
