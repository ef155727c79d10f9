"""Large trees: rings around the root, colour instead of words.

A link is a thin strand per kind it carries. A node's core says what it makes (a grey
dot makes nothing), the ring around it what is wanted there. Trunks are drawn heavier
than twigs, so that the picture still reads when the whole of it fits a screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.layout import node_depths, radial_layout, subtree_leaves
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, named, number

__all__ = ["draw_rings"]

_RELAY_RADIUS = 1.7
_IDLE_RADIUS = 1.1
_CORE_RADIUS = 3.6
_WANT_WIDTH = 2.2
_NODE_GAP = 2.0
_RING_GAP = 22.0
_OUTER_MIN = 400.0
_STRAND_WIDTH = 1.2
# Between the middles of two strands, in widths of a strand.
_STRAND_PITCH = 1.15
_MARGIN = 24.0
# The whole picture is meant to fit about this many pixels.
_SCREEN_WIDTH = 1000.0
_NAMED_NODES_MAX = 14


def _arc(x: float, y: float, radius: float, begin: float, end: float) -> str:
    """Return the path data of a piece of a circle."""
    x0, y0 = x + radius * math.cos(begin), y + radius * math.sin(begin)
    x1, y1 = x + radius * math.cos(end), y + radius * math.sin(end)
    return (
        f"M{number(x0)} {number(y0)}A{number(radius)} {number(radius)} 0 "
        f"{int(end - begin > math.pi)} 1 {number(x1)} {number(y1)}"
    )


def _wedge(x: float, y: float, radius: float, begin: float, end: float) -> str:
    """Return the path data of a slice of a disc."""
    return f"M{number(x)} {number(y)}L{_arc(x, y, radius, begin, end)[1:]}Z"


def _pieces(count: int, gap: float) -> list[tuple[float, float]]:
    """Cut a circle into `count` pieces from the top, `gap` radians between them."""
    step = 2.0 * math.pi / count
    top = -math.pi / 2.0
    return [(top + j * step + gap / 2.0, top + (j + 1) * step - gap / 2.0) for j in range(count)]


class _Rings:
    """The geometry of one picture: where nodes stand and how large they are."""

    def __init__(self, scene: TreeScene) -> None:
        self.scene = scene
        makes, wants = scene.made.any(axis=1), scene.wanted.any(axis=1)
        base = np.where(scene.reached, _RELAY_RADIUS, _IDLE_RADIUS)
        base = np.where(makes | wants, _CORE_RADIUS, base)
        halo = np.where(wants, _WANT_WIDTH * 1.4, 0.0)
        self.leaves: IntArray = subtree_leaves(scene.parents)
        strands = scene.carried.sum(axis=1)
        bundles = strands * (_STRAND_WIDTH * _STRAND_PITCH)
        self.radii, self.angles, arcs = radial_layout(
            scene.parents,
            diameters=np.maximum(2.0 * (base + halo), bundles) + _NODE_GAP,
            ring_gap=max(_RING_GAP, _OUTER_MIN / int(node_depths(scene.parents).max(initial=1))),
        )
        self.outer = float(self.radii.max())
        # Start at the top rather than at the right.
        self.angles = self.angles - math.pi / 2.0
        self.xs: FloatArray = self.radii * np.cos(self.angles)
        self.ys: FloatArray = self.radii * np.sin(self.angles)
        share = np.sqrt(self.leaves / self.leaves[0])
        # Trunks and their converters grow with what hangs below them, as far as the
        # arc of their own subtree and the step to the ring inside allow.
        step = self.radii - self.radii[np.maximum(scene.parents, 0)]
        step[0] = step[min(1, len(step) - 1)]  # Node 1 is always a child of the root.
        room = np.minimum(arcs * self.radii / 2.0, step * 0.3)
        room[0] = max(_CORE_RADIUS, min(self.outer / 60.0, step[0] * 0.3))
        grown = np.minimum(_CORE_RADIUS + self.outer / 45.0 * share, room - halo)
        heavy = np.minimum(self.outer * share / 130.0, step * 0.1)
        heavy += _STRAND_WIDTH + self.outer / 4000.0
        self.widths: FloatArray = np.maximum(
            _STRAND_WIDTH, np.minimum(heavy, arcs * self.radii * 0.7 / np.maximum(strands, 1))
        )
        # A node covers the blunt end of the bundle that reaches it.
        bundle = np.where(strands > 1, 0.6 * _STRAND_PITCH * strands * self.widths, 0.0)
        self.cores: FloatArray = np.where(makes, np.maximum(base, grown), base)
        self.cores = np.maximum(self.cores, np.minimum(bundle, room - halo))
        self.cores[0] = room[0]

    def link(self, v: int, offset: float) -> str:
        """Return the path data of the link into `v`, shifted sideways by `offset`."""
        parent = int(self.scene.parents[v])
        r1, a1 = float(self.radii[v]), float(self.angles[v])
        r0 = float(self.radii[parent])
        a0 = float(self.angles[parent]) if r0 > 0.0 else a1
        c0, s0, c1, s1 = math.cos(a0), math.sin(a0), math.cos(a1), math.sin(a1)
        middle = (r0 + r1) / 2.0
        x0, y0, x1, y1 = -offset * s0, offset * c0, -offset * s1, offset * c1
        start = f"M{number(r0 * c0 + x0)} {number(r0 * s0 + y0)}"
        end = f"{number(r1 * c1 + x1)} {number(r1 * s1 + y1)}"
        if a0 == a1:
            return f"{start}L{end}"
        return (
            f"{start}C{number(middle * c0 + x0)} {number(middle * s0 + y0)} "
            f"{number(middle * c1 + x1)} {number(middle * s1 + y1)} {end}"
        )

    def strands(self) -> list[list[str]]:
        """Return, per kind, a path for every link that carries it."""
        drawn: list[list[str]] = [[] for _ in self.scene.kinds]
        for v in np.flatnonzero(self.scene.carried.any(axis=1)).tolist():
            kinds = np.flatnonzero(self.scene.carried[v]).tolist()
            width = float(self.widths[v])
            for j, k in enumerate(kinds):
                path = self.link(v, (j - (len(kinds) - 1) / 2.0) * width * _STRAND_PITCH)
                drawn[k].append(f'<path data-v="{v}" stroke-width="{number(width)}" d="{path}"/>')
        return drawn

    def cores_made(self) -> list[list[str]]:
        """Return, per kind, a disc or a slice of one for every node that makes it."""
        return self._shared(self.scene.made, self.cores, _wedge, gap=0.0)

    def rings_wanted(self) -> list[list[str]]:
        """Return, per kind, a ring or a piece of one for every node that wants it."""
        # A ring around a core stands a little off it; without one it closes up.
        cored: BoolArray = np.array(self.scene.made.any(axis=1))
        cored[0] = True
        radii = self.cores + np.where(cored, _WANT_WIDTH * 0.9, -0.4)
        return self._shared(self.scene.wanted, radii, _arc, gap=0.35)

    def _shared(
        self,
        chosen: BoolArray,
        radii: FloatArray,
        piece: Callable[[float, float, float, float, float], str],
        *,
        gap: float,
    ) -> list[list[str]]:
        """Return, per kind, a circle at the nodes that have it alone, or a piece of one."""
        drawn: list[list[str]] = [[] for _ in self.scene.kinds]
        for v in np.flatnonzero(chosen.any(axis=1)).tolist():
            kinds = np.flatnonzero(chosen[v]).tolist()
            x, y, radius = float(self.xs[v]), float(self.ys[v]), float(radii[v])
            if len(kinds) == 1:
                drawn[kinds[0]].append(
                    f'<circle data-v="{v}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>'
                )
                continue
            for k, (begin, end) in zip(kinds, _pieces(len(kinds), gap), strict=True):
                drawn[k].append(f'<path data-v="{v}" d="{piece(x, y, radius, begin, end)}"/>')
        return drawn

    def dots(self, chosen: IntArray) -> str:
        """Return a small dot for every chosen node."""
        return "".join(
            f'<circle cx="{number(float(self.xs[v]))}" cy="{number(float(self.ys[v]))}" '
            f'r="{number(float(self.cores[v]))}"/>'
            for v in chosen.tolist()
        )

    def root(self) -> str:
        """Return the circle that marks the root, outside whatever else is drawn there."""
        width = max(2.0, self.outer / 300.0)
        radius = float(self.cores[0]) + 2.0 * width
        return f'<circle r="{number(radius)}" stroke-width="{number(width)}"/>'

    def names(self, scale: float) -> tuple[float, str]:
        """Return the names of the root and of the converters with most below them.

        These are the ones that one asks about first.
        """
        converters = np.flatnonzero(self.scene.made.any(axis=1) & (self.leaves > 1))
        heaviest = converters[np.lexsort((converters, -self.leaves[converters]))]
        places = (
            (
                self.scene.nodes[v],
                float(self.xs[v] + self.cores[v]) + (12.0 if v == 0 else 4.0) * scale,
                float(self.ys[v]),
            )
            for v in [0, *(v for v in heaviest.tolist() if v != 0)]
        )
        return named(places, 12.0 * scale, most=_NAMED_NODES_MAX)


def draw_rings(scene: TreeScene) -> DrawnTree:
    """Draw a tree of hundreds or thousands of nodes as rings around its root."""
    rings = _Rings(scene)
    made, wanted = scene.made.any(axis=1), scene.wanted.any(axis=1)
    idle = np.flatnonzero(~scene.reached)
    relays = np.flatnonzero(scene.reached & ~made & ~wanted)
    left = float((rings.xs - rings.cores).min()) - _MARGIN
    top = float((rings.ys - rings.cores).min()) - _MARGIN
    width = float((rings.xs + rings.cores).max()) + _MARGIN - left
    height = float((rings.ys + rings.cores).max()) + _MARGIN - top
    scale = max(1.0, max(width, height) / _SCREEN_WIDTH)

    names_right, names = rings.names(scale)
    width = max(width, names_right + _MARGIN - left)

    links = "".join(f'<path data-v="{v}" d="{rings.link(v, 0.0)}"/>' for v in idle.tolist())
    parts = [
        element("g", links, class_="idle-links"),
        element("g", rings.dots(idle), class_="idle-nodes"),
    ]
    for k, strands in enumerate(rings.strands()):
        if strands:
            parts.append(
                element("g", "".join(strands), class_=f"strands f{k}", stroke=scene.colours[k])
            )
    parts.append(element("g", rings.dots(relays[relays > 0]), class_="relays"))
    parts.append(element("g", rings.root(), class_="root"))
    parts.append(element("g", rings.dots(np.flatnonzero(wanted & ~made)), class_="hollows"))
    for k, circles in enumerate(rings.rings_wanted()):
        if circles:
            parts.append(
                element(
                    "g",
                    "".join(circles),
                    class_=f"wanted f{k}",
                    stroke=scene.colours[k],
                    stroke_width=_WANT_WIDTH,
                )
            )
    for k, cores in enumerate(rings.cores_made()):
        if cores:
            parts.append(element("g", "".join(cores), class_=f"made f{k}", fill=scene.colours[k]))
    parts.append(element("g", names, class_="names"))
    return DrawnTree(
        markup="".join(parts),
        left=left,
        top=top,
        width=width,
        height=height,
        scale=scale,
        xs=rings.xs,
        ys=rings.ys,
        radii=rings.cores,
        key=_KEY,
    )


_KEY = (
    ('<path class="sample" d="M1 5H23M1 11H23"/>', "sent over a link"),
    ('<circle class="sample-fill" cx="12" cy="8" r="6"/>', "converts: coloured by what it makes"),
    ('<circle class="sample" cx="12" cy="8" r="5" fill="none"/>', "ring: wanted there"),
    ('<g class="relays"><circle cx="12" cy="8" r="2.5"/></g>', "passes on, nothing else"),
    ('<path class="sample idle-links" d="M1 8H23"/>', "receives nothing"),
)
