"""Adaptation graphs to plan on: the papers' two scenarios, and random ones of any size."""

from __future__ import annotations

import numpy as np

from distributary.arguments import check_within
from distributary.content import AdaptationGraph
from distributary.errors import BadInput

__all__ = [
    "MAP_SOURCE",
    "VIDEO_SOURCE",
    "annotated_map_graph",
    "random_graph",
    "video_graph",
]

MAP_SOURCE = "pdf"
VIDEO_SOURCE = "mp4-4"

_VIDEO_CONVERSIONS = 210

# How large a container's files are beside the same pictures in mp4.
_VIDEO_CONTAINERS = {"3gp": 0.85, "avi": 1.1, "flv": 0.95, "mp4": 1.0}

# Megabytes of the four steps of frame size and bit rate, the smallest first.
_VIDEO_STEPS = (2.0, 6.0, 14.0, 25.0)

# Seconds to read and to write one megabyte of video; writing is the harder work.
_VIDEO_DECODING = 0.6
_VIDEO_ENCODING = 1.2

_RANDOM_SIZE_MAX = 30
_RANDOM_COST_MAX = 60


def annotated_map_graph() -> AdaptationGraph:
    """Return the four formats of an annotated map (CCD, first scenario).

    A map published as PDF is turned into an image or into its text, and the text into
    speech; voice can only be made from text. The papers measured the costs but their
    figure did not survive, so the numbers here are ours: megabytes and seconds of the
    order one meets, with text far smaller than what is made from it.
    """
    return AdaptationGraph.from_conversions(
        [(MAP_SOURCE, 3.0), ("jpeg", 1.2), ("text", 0.02), ("voice", 0.9)],
        [(MAP_SOURCE, "jpeg", 1.1), (MAP_SOURCE, "text", 0.4), ("text", "voice", 0.6)],
    )


def video_graph(rng: np.random.Generator) -> AdaptationGraph:
    """Return sixteen formats of a video (CCD, second scenario).

    Four containers, each in four steps of frame size and bit rate, and 210 of the 240
    conversions between them, as in the papers; sizes stay within [0, 30] and costs within
    [0, 60]. The thirty conversions that are impossible are drawn from those that would
    enlarge the picture: every format can be made directly from the source, the best mp4.

    A conversion costs what it takes to read its input and to write its output, give or
    take a tenth; sizes vary by a twentieth.
    """
    sizes = {
        f"{container}-{step}": bytes_factor * megabytes * rng.uniform(0.95, 1.05)
        for container, bytes_factor in _VIDEO_CONTAINERS.items()
        for step, megabytes in enumerate(_VIDEO_STEPS, start=1)
    }
    pairs = [(one, other) for one in sizes for other in sizes if one != other]
    enlarging = [
        place
        for place, (one, other) in enumerate(pairs)
        if int(one.rpartition("-")[2]) < int(other.rpartition("-")[2])
    ]
    impossible = {
        int(place)
        for place in rng.choice(enlarging, len(pairs) - _VIDEO_CONVERSIONS, replace=False)
    }
    return AdaptationGraph.from_conversions(
        sizes.items(),
        [
            (
                one,
                other,
                (_VIDEO_DECODING * sizes[one] + _VIDEO_ENCODING * sizes[other])
                * rng.uniform(0.9, 1.1),
            )
            for place, (one, other) in enumerate(pairs)
            if place not in impossible
        ],
    )


def random_graph(
    format_count: int,
    *,
    out_degree: float,
    rng: np.random.Generator,
    integer_costs: bool = False,
) -> AdaptationGraph:
    """Return a random graph in which every format can be made from the first.

    The formats are `f0`, `f1` and so on, padded with zeros to sort by number. A random
    tree from the first format through all the others comes first; conversions drawn
    uniformly from the rest bring the total to `out_degree` times the number of formats.
    Sizes are uniform in [1, 30] and costs in [1, 60], independent of each other.

    With `integer_costs` sizes and costs are whole numbers, as in published Steiner instances.
    """
    if format_count < 2:
        raise BadInput("formats", f"is {format_count}, and must be at least 2")
    check_within("out_degree", out_degree, 1, format_count - 1)
    possible = np.zeros((format_count, format_count), dtype=np.bool_)
    joined = np.concatenate([[0], 1 + rng.permutation(format_count - 1)])
    for place in range(1, format_count):
        possible[joined[rng.integers(place)], joined[place]] = True
    count = max(format_count - 1, round(out_degree * format_count))
    rest = np.flatnonzero(~possible & ~np.eye(format_count, dtype=np.bool_))
    chosen = rng.choice(rest, count - (format_count - 1), replace=False)
    possible.flat[chosen] = True
    conversions = np.argwhere(possible)
    if integer_costs:
        sizes = rng.integers(1, _RANDOM_SIZE_MAX + 1, size=format_count).astype(np.float64)
        costs = rng.integers(1, _RANDOM_COST_MAX + 1, size=count).astype(np.float64)
    else:
        sizes = rng.uniform(1.0, _RANDOM_SIZE_MAX, size=format_count)
        costs = rng.uniform(1.0, _RANDOM_COST_MAX, size=count)
    width = len(str(format_count - 1))
    names = [f"f{k:0{width}}" for k in range(format_count)]
    return AdaptationGraph.from_conversions(
        zip(names, sizes.tolist(), strict=True),
        [
            (names[i], names[j], cost)
            for (i, j), cost in zip(conversions.tolist(), costs.tolist(), strict=True)
        ],
    )
