"""The adaptation graph that jobs plan with: a calibration, or those that were shipped."""

from __future__ import annotations

from pathlib import Path

from distributary.content.calibrated_graph import graph_for
from distributary.content.documents import read_document
from distributary.errors import BadInput
from distributary.media.graphs import joined_graphs

__all__ = ["calibration"]


def calibration(path: Path | str | None = None) -> dict[str, object]:
    """Return a calibrated graph as a document, for `content.calibrated_graph.graph_for`.

    A file is one that `distributary calibrate` wrote. Without one, the graphs that come with
    distributary stand side by side in one: no format is in two of them.
    """
    if path is not None:
        return read_document(path, _checked)
    return joined_graphs()


def _checked(document: object) -> dict[str, object]:
    graph_for(document, 0)
    if not isinstance(document, dict):
        raise BadInput("graph", "must be an object")
    return document
