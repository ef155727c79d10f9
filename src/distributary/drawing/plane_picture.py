"""A plane of hubs and points as a picture: its hubs become the kinds of a scene."""

from __future__ import annotations

import numpy as np

from distributary.drawing.picture import Picture
from distributary.drawing.plane import COLOURED_HUBS_MAX, Plane, draw_plane, hub_colours
from distributary.drawing.scene import NOT_MADE, TreeScene

__all__ = ["plane_picture"]


def plane_picture(plane: Plane) -> Picture:
    """Draw a plane; its hubs are what the legend explains."""
    return Picture(_scene(plane), draw_plane(plane))


def _scene(plane: Plane) -> TreeScene:
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
    return TreeScene(
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
