from __future__ import annotations

import numpy as np
import pytest

from distributary.content import AdaptationGraph
from distributary.errors import BadInput
from distributary.placement.scenarios import (
    MAP_SOURCE,
    VIDEO_SOURCE,
    annotated_map_graph,
    random_graph,
    video_graph,
)

STEPS = (1, 2, 3, 4)
CONTAINERS = ("3gp", "avi", "flv", "mp4")


def makeable_from(graph: AdaptationGraph, source: str) -> list[str]:
    row = graph.makeable[graph.names.index(source)]
    return [name for name, makeable in zip(graph.names, row, strict=True) if makeable]


@pytest.fixture(params=range(5))
def video(request: pytest.FixtureRequest) -> AdaptationGraph:
    return video_graph(np.random.default_rng(request.param))


def test_a_map_has_four_formats_and_three_conversions() -> None:
    graph = annotated_map_graph()
    assert graph.names == ("jpeg", "pdf", "text", "voice")
    possible = {(graph.names[i], graph.names[j]) for i, j in np.argwhere(np.isfinite(graph.costs))}
    assert possible == {("pdf", "jpeg"), ("pdf", "text"), ("text", "voice")}
    assert makeable_from(graph, MAP_SOURCE) == list(graph.names)


def test_text_is_the_smallest_format_of_a_map() -> None:
    graph = annotated_map_graph()
    assert graph.names[int(np.argmin(graph.sizes))] == "text"


def test_a_video_has_sixteen_formats_and_210_conversions(video: AdaptationGraph) -> None:
    assert video.names == tuple(f"{name}-{step}" for name in CONTAINERS for step in STEPS)
    assert video.conversion_count == 210


def test_every_format_of_a_video_is_made_directly_from_the_best_mp4(
    video: AdaptationGraph,
) -> None:
    row = np.delete(video.costs[video.names.index(VIDEO_SOURCE)], video.names.index(VIDEO_SOURCE))
    assert np.isfinite(row).all()


def test_sizes_of_a_video_are_in_range_and_grow_with_the_step(video: AdaptationGraph) -> None:
    assert video.sizes.min() > 0.0
    assert video.sizes.max() <= 30.0
    assert (np.diff(video.sizes.reshape(4, 4), axis=1) > 0.0).all()


def test_costs_of_a_video_are_in_range_and_higher_for_larger_inputs_and_outputs(
    video: AdaptationGraph,
) -> None:
    possible = np.isfinite(video.costs)
    assert video.costs[possible].min() > 0.0
    assert video.costs[possible].max() <= 60.0
    source, target = np.nonzero(possible)
    costs = video.costs[possible]
    for sizes in (video.sizes[source], video.sizes[target]):
        large = sizes > np.median(video.sizes)
        assert costs[large].mean() > costs[~large].mean()


def test_only_conversions_that_enlarge_a_video_are_impossible(video: AdaptationGraph) -> None:
    impossible = ~np.isfinite(video.costs) & ~np.eye(16, dtype=np.bool_)
    assert impossible.sum() == 30
    for i, j in np.argwhere(impossible):
        assert int(video.names[i][-1]) < int(video.names[j][-1])


def test_a_video_repeats_with_the_seed_and_changes_with_it() -> None:
    one, same, other = (video_graph(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.costs, same.costs)
    assert np.array_equal(one.sizes, same.sizes)
    assert not np.array_equal(one.costs, other.costs)


@pytest.mark.parametrize("format_count", [2, 5, 64, 120])
@pytest.mark.parametrize("out_degree", [1.0, 1.5, 4.0, 40.0])
def test_a_random_graph_has_the_conversions_asked_for_and_makes_every_format(
    format_count: int, out_degree: float
) -> None:
    out_degree = min(out_degree, format_count - 1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        graph = random_graph(format_count, out_degree=out_degree, rng=rng)
        assert graph.conversion_count == round(out_degree * format_count)
        assert makeable_from(graph, graph.names[0]) == list(graph.names)


def test_formats_of_a_random_graph_sort_by_number() -> None:
    graph = random_graph(101, out_degree=1.0, rng=np.random.default_rng(0))
    assert [int(name.removeprefix("f")) for name in graph.names] == list(range(101))
    assert graph.names[0] == "f000"


def test_a_complete_random_graph_has_every_conversion() -> None:
    graph = random_graph(7, out_degree=6.0, rng=np.random.default_rng(0))
    assert graph.conversion_count == 42


def test_whole_costs_are_whole_and_positive() -> None:
    graph = random_graph(60, out_degree=4.0, rng=np.random.default_rng(0), integer_costs=True)
    costs = graph.costs[np.isfinite(graph.costs)]
    for values in (costs, graph.sizes):
        assert np.array_equal(values, np.round(values))
        assert values.min() >= 1.0
    assert len(np.unique(costs)) > 20


@pytest.mark.parametrize(
    ("format_count", "out_degree", "place"),
    [(1, 1.0, "formats"), (5, 0.5, "out_degree"), (5, 4.5, "out_degree"), (5, np.nan, "out_")],
)
def test_a_random_graph_that_cannot_be_is_refused(
    format_count: int, out_degree: float, place: str
) -> None:
    with pytest.raises(BadInput, match=place):
        random_graph(format_count, out_degree=out_degree, rng=np.random.default_rng(0))
