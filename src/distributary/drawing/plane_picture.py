"""A plane of hubs and points as a finished file: its hubs become the kinds of a scene."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from distributary.drawing.frame import framed_html, framed_svg, write_framed
from distributary.drawing.plane import COLOURED_HUBS_MAX, Plane, draw_plane, hub_colours
from distributary.drawing.scene import NOT_MADE, TreeScene

__all__ = ["plane_html", "plane_svg", "write_plane"]


def plane_svg(plane: Plane) -> str:
    """Return `plane` as a standalone SVG document with title and legend."""
    return framed_svg(_scene(plane), draw_plane(plane))


def plane_html(plane: Plane) -> str:
    """Return `plane` as an HTML page that needs nothing but a browser."""
    return framed_html(_scene(plane), draw_plane(plane))


def write_plane(plane: Plane, path: Path | str, *, option: str, stem: str) -> None:
    """Write `plane` to `path`, as its suffix says, whole or not at all.

    Parameters
    ----------
    plane
        What to draw.
    path
        Where to; ends in `.svg` or `.html`.
    option
        What the caller calls `path`, for the error message.
    stem
        What such a file may be named, for the error message.
    """
    write_framed(_scene(plane), draw_plane(plane), path, option=option, stem=stem)


@dataclass(frozen=True, eq=False)
class _Hubs(TreeScene):
    """A scene whose kinds are hubs, for the legend and the page."""

    palette: tuple[str, ...] = ()

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """A colour per hub."""
        return self.palette


def _scene(plane: Plane) -> _Hubs:
    """Return the hubs as the kinds of a scene, for the legend and the page."""
    shown = plane.ranks[:COLOURED_HUBS_MAX]
    kinds = [plane.hubs[b] for b in shown.tolist()]
    cells = list(plane.legend_cells[:COLOURED_HUBS_MAX])
    rest = len(plane.ranks) - len(shown)
    if rest:
        kinds.append(f"{rest:,} other {plane.hub_noun}{'s' if rest > 1 else ''}")
        cells.append(tuple("" for _ in plane.legend_columns))
    count = len(plane.hubs) + len(plane.points)
    wanted = np.zeros((count, len(kinds)), dtype=np.bool_)
    of_points = plane.kind_of_hub[plane.hub_of]
    wanted[len(plane.hubs) + np.arange(len(plane.points)), of_points] = True
    nothing = np.zeros_like(wanted)
    links = tuple((plane.link_name(at), *details) for at, details in enumerate(plane.link_details))
    return _Hubs(
        title=plane.title,
        subtitle=plane.subtitle,
        nodes=plane.hubs + plane.points,
        parents=np.concatenate([np.full(len(plane.hubs), -1), plane.hub_of]).astype(np.int64),
        kind_noun=plane.hub_noun,
        kinds=tuple(kinds),
        carried=nothing,
        made_from=np.full(wanted.shape, NOT_MADE, dtype=np.int64),
        wanted=wanted,
        # Hubs none of whose points is drawn are in the legend all the same.
        held=np.ones(len(kinds), dtype=np.bool_),
        link_costs=np.zeros(count),
        node_costs=np.zeros(count),
        legend_columns=plane.legend_columns,
        legend_cells=tuple(cells),
        details=plane.hub_details + plane.point_details,
        links=links,
        palette=hub_colours(plane),
    )
