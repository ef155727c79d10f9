"""Calibrated graphs: every size and cost is a straight line over the content's size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distributary.content.calibrated_graph import graph_for, read_graph_for
from distributary.errors import BadInput


def calibration() -> dict[str, Any]:
    return {
        "formats": [
            {"name": "application/pdf", "size": {"fixed": 0.0, "per_mb": 1.0}},
            {"name": "image/jpeg;width=640", "size": {"fixed": 0.5, "per_mb": 0.25}, "samples": 3},
        ],
        "conversions": [
            {
                "from": "application/pdf",
                "to": "image/jpeg;width=640",
                "cost": {"fixed": 0.125, "per_mb": 0.5, "spread": 0.01},
            }
        ],
        "machine": {"processor": "two cores"},
    }


@pytest.mark.parametrize(
    ("content_bytes", "sizes", "cost"),
    [(0, [0.0, 0.5], 0.125), (1_000_000, [1.0, 0.75], 0.625), (4_000_000, [4.0, 1.5], 2.125)],
)
def test_amounts_grow_with_the_content(content_bytes: int, sizes: list[float], cost: float) -> None:
    graph = graph_for(calibration(), content_bytes)
    assert graph.names == ("application/pdf", "image/jpeg;width=640")
    assert graph.sizes.tolist() == sizes
    assert graph.costs[0, 1] == cost
    assert np.isinf(graph.costs[1, 0])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("formats", 1, "size"), 5.0, "formats[1].size: must be an object, not 5"),
        (("formats", 1, "size"), {"fixed": 1}, "formats[1].size.per_mb: is missing"),
        (
            ("conversions", 0, "cost", "per_mb"),
            -1,
            "conversions[0].cost.per_mb: must be at least 0, not -1",
        ),
        (("conversions", 0, "to"), "image/gif", "conversions[0].to: 'image/gif' is not a format"),
        (("formats",), [], "formats: is empty"),
    ],
)
def test_a_fault_in_a_calibration_is_named(
    path: tuple[Any, ...], value: object, message: str
) -> None:
    document: Any = calibration()
    entry = document
    for step in path[:-1]:
        entry = entry[step]
    entry[path[-1]] = value
    with pytest.raises(BadInput) as raised:
        graph_for(document, 1)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("content_bytes", [-1, 10**15 + 1])
def test_content_has_a_sensible_size(content_bytes: int) -> None:
    with pytest.raises(BadInput, match=r"^bytes: must be between 0 and"):
        graph_for(calibration(), content_bytes)


def test_a_calibration_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(calibration()), encoding="utf-8")
    assert read_graph_for(path, 2_000_000).sizes.tolist() == [2.0, 1.0]
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(BadInput, match=r"graph\.json: formats: is missing$"):
        read_graph_for(path, 1)
