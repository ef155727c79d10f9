"""Hubs on a plane with points around them: who belongs where, and what flows between hubs.

A hub is a square, larger the more it carries, in a ring that fills up as it does. Points
have the colour of their hub and a faint line to it; one that stands for several is larger and has
their number. Lines between hubs are as wide as what they carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.palette import colours
from distributary.drawing.picture import Picture
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.drawing.svg import element, named, number, text

__all__ = [
    "COLOURED_HUBS_MAX",
    "OTHER_COLOUR",
    "Plane",
    "draw_plane",
    "heaviest_links",
    "plane_picture",
]

COLOURED_HUBS_MAX = 120
"""Beyond so many hubs with points, the rest share one colour: nobody tells more apart."""
OTHER_COLOUR = "#7d868f"

_SIDE = 1000.0
_MARGIN = 44.0
_HUB_MIN, _HUB_GROWTH = 4.5, 12.0
_FLOW_WIDTH_MIN, _FLOW_WIDTH_MAX = 0.7, 13.0
_NAMED_HUBS_MAX = 24
_FEW_POINTS = 100
_BADGE_SIZE = 11.0


@dataclass(frozen=True, eq=False)
class Plane:
    """Hubs, the points that belong to them, and links between hubs.

    Attributes
    ----------
    hub_noun, point_noun
        What a hub and a point are called, in the singular.
    hubs, points
        Their names, as somebody wrote them: nothing in here is trusted.
    hub_places, point_places
        Where they are; shapes (hubs, 2) and (points, 2).
    hub_of
        The hub of each point, shape (points,).
    sizes
        How much each hub carries beside the one that carries most, from 0 to 1.
    fills
        How full each hub is, from 0 to 1; NaN for a hub without limit.
    full_noun
        What a ring shows that is full.
    counts
        How many each point stands for, shape (points,).
    badges
        A few characters that are written on each hub, most often none.
    badge_noun
        What they say.
    ranks
        The hubs that have points, the most important first: they get the best colours.
    hub_details, point_details
        The figures of each, as words.
    links
        Pairs of hubs, shape (links, 2).
    link_sizes
        What each link carries beside the one that carries most, from 0 to 1.
    legend_columns, legend_cells
        What the legend says about each hub in `ranks`: heads, and cells per hub.
    """

    title: str
    subtitle: str
    hub_noun: str
    point_noun: str
    full_noun: str
    hubs: tuple[str, ...]
    points: tuple[str, ...] = field(repr=False)
    hub_places: FloatArray = field(repr=False)
    point_places: FloatArray = field(repr=False)
    hub_of: IntArray = field(repr=False)
    counts: IntArray = field(repr=False)
    sizes: FloatArray = field(repr=False)
    fills: FloatArray = field(repr=False)
    ranks: IntArray = field(repr=False)
    hub_details: tuple[tuple[str, ...], ...] = field(repr=False)
    point_details: tuple[tuple[str, ...], ...] = field(repr=False)
    links: IntArray = field(repr=False)
    link_sizes: FloatArray = field(repr=False)
    link_details: tuple[tuple[str, ...], ...] = field(repr=False)
    legend_columns: tuple[str, ...]
    legend_cells: tuple[tuple[str, ...], ...] = field(repr=False)
    badges: tuple[str, ...] = field(default=(), repr=False)
    badge_noun: str = ""

    def __post_init__(self) -> None:
        assert self.hub_places.shape == (len(self.hubs), 2)
        assert self.point_places.shape == (len(self.points), 2)
        assert self.hub_of.shape == self.counts.shape == (len(self.points),)
        assert len(self.badges) in (0, len(self.hubs))
        assert self.sizes.shape == self.fills.shape == (len(self.hubs),)
        assert len(self.hub_details) == len(self.hubs)
        assert len(self.point_details) == len(self.points)
        assert len(self.links) == len(self.link_sizes) == len(self.link_details)
        assert len(self.legend_cells) == len(self.ranks)

    @property
    def kind_of_hub(self) -> IntArray:
        """The kind (colour and entry of the legend) of each hub; -1 without points.

        Hubs beyond `COLOURED_HUBS_MAX` share the last kind.
        """
        kinds = np.full(len(self.hubs), -1, dtype=np.int64)
        kinds[self.ranks] = np.minimum(np.arange(len(self.ranks)), COLOURED_HUBS_MAX)
        return kinds

    def link_name(self, at: int) -> str:
        """Return the names of the two hubs of a link."""
        one, other = self.links[at].tolist()
        return f"{self.hubs[one]} \u2013 {self.hubs[other]}"


def hub_colours(plane: Plane) -> tuple[str, ...]:
    """Return a colour per kind, see `Plane.kind_of_hub`."""
    chosen = colours(min(len(plane.ranks), COLOURED_HUBS_MAX))
    return chosen if len(plane.ranks) <= COLOURED_HUBS_MAX else (*chosen, OTHER_COLOUR)


def heaviest_links(between: FloatArray, most: int) -> IntArray:
    """Return the pairs of hubs with something between them, those with most of it only."""
    one, other = np.nonzero(between > 0.0)
    heaviest = np.argsort(-between[one, other], kind="stable")[:most]
    return np.column_stack([one[heaviest], other[heaviest]]).astype(np.int64)


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


def draw_plane(plane: Plane, *, size: tuple[float, float] = (_SIDE, _SIDE)) -> DrawnTree:
    """Draw hubs, points and what flows, in about this width and height."""
    hubs, points, width, height = _fitted(plane.hub_places, plane.point_places, size)
    halves = _HUB_MIN + _HUB_GROWTH * np.sqrt(plane.sizes)
    # The more points there are the smaller each: a cloud should look like one.
    radius = float(np.clip(90.0 / math.sqrt(max(len(points), 1)), 1.6, 4.0))
    radii = np.where(plane.counts > 1, np.minimum(7.0 + 1.2 * np.sqrt(plane.counts), 20.0), radius)
    faint = "0.5" if len(points) <= _FEW_POINTS else "0.22"
    kinds = plane.kind_of_hub
    palette = hub_colours(plane)
    parts = [element("g", _flows(plane, hubs), class_="strands flows", stroke="#8b949e")]
    by_kind = kinds[plane.hub_of]
    for kind, colour in enumerate(palette):
        chosen = np.flatnonzero(by_kind == kind).tolist()
        spokes = "".join(
            f'<path d="M{_at(points[i])}L{_at(hubs[int(plane.hub_of[i])])}"/>' for i in chosen
        )
        parts.append(
            element(
                "g",
                spokes,
                class_=f"strands f{kind}",
                stroke=colour,
                stroke_width=0.7,
                stroke_opacity=faint,
            )
        )
    for kind, colour in enumerate(palette):
        dots = "".join(
            f'<circle cx="{number(points[i, 0])}" cy="{number(points[i, 1])}" '
            f'r="{number(radii[i])}">{_title(plane.points[i], plane.point_details[i])}</circle>'
            for i in np.flatnonzero(by_kind == kind).tolist()
        )
        parts.append(element("g", dots, class_=f"made f{kind}", fill=colour))
    parts.append(element("g", _numbers(plane, points), class_="badges"))
    idle = np.flatnonzero(kinds < 0).tolist()
    parts.append(
        element(
            "g",
            "".join(_hub(plane, hubs, halves, b, "none") for b in idle),
            class_="idle-hubs hubs",
        )
    )
    for kind, colour in enumerate(palette):
        squares = "".join(
            _hub(plane, hubs, halves, b, colour) for b in np.flatnonzero(kinds == kind).tolist()
        )
        parts.append(element("g", squares, class_=f"made hubs f{kind}", fill=colour))
    parts.append(element("g", _badges(plane, hubs), class_="badges"))
    labels = (
        (plane.hubs[b], float(hubs[b, 0] + halves[b] * 1.5) + 5.0, float(hubs[b, 1]))
        for b in plane.ranks.tolist()
    )
    right, names = named(labels, 13.0, most=_NAMED_HUBS_MAX, apart=1.3, bold=True)
    parts.append(element("g", names, class_="names"))
    left, top = -_MARGIN, -_MARGIN
    width, height = max(width, right) + 2.0 * _MARGIN, height + 2.0 * _MARGIN
    return DrawnTree(
        markup="".join(parts),
        left=left,
        top=top,
        width=width,
        height=height,
        scale=1.0,
        xs=np.concatenate([hubs[:, 0], points[:, 0]]),
        ys=np.concatenate([hubs[:, 1], points[:, 1]]),
        radii=np.concatenate([halves, radii]),
        key=_key(plane, bool(idle)),
    )


def _fitted(
    hubs: FloatArray, points: FloatArray, size: tuple[float, float]
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return both in coordinates of the picture, and the size of the picture."""
    places = np.concatenate([hubs, points])
    low, high = places.min(axis=0), places.max(axis=0)
    extent = float(((high - low) / size).max())
    scale = 1.0 / extent if extent > 0.0 else 1.0
    width, height = ((high - low) * scale).tolist()
    flip = np.array([1.0, -1.0])
    origin = np.array([low[0], high[1]])
    # Upwards on paper is where y grows.
    return (hubs - origin) * scale * flip, (points - origin) * scale * flip, width, height


def _numbers(plane: Plane, points: FloatArray) -> str:
    """Return how many each point stands for, where that is more than one."""
    return "".join(
        _written(f"{int(plane.counts[i]):,}", points[i])
        for i in np.flatnonzero(plane.counts > 1).tolist()
    )


def _badges(plane: Plane, hubs: FloatArray) -> str:
    return "".join(_written(badge, hubs[b]) for b, badge in enumerate(plane.badges) if badge)


def _written(words: str, place: FloatArray) -> str:
    x, y = place.tolist()
    size = _BADGE_SIZE if len(words) < 4 else _BADGE_SIZE - 2.0
    return element(
        "text", text(words), x=x, y=y + 0.35 * size, font_size=size, text_anchor="middle"
    )


def _at(place: FloatArray) -> str:
    return f"{number(float(place[0]))} {number(float(place[1]))}"


def _title(name: str, details: tuple[str, ...]) -> str:
    return element("title", text(" · ".join((name, *details))))


def _flows(plane: Plane, hubs: FloatArray) -> str:
    """Return a line per link, the widest first so that narrow ones stay visible."""
    drawn = []
    for at in np.argsort(-plane.link_sizes, kind="stable").tolist():
        one, other = plane.links[at].tolist()
        width = max(_FLOW_WIDTH_MIN, _FLOW_WIDTH_MAX * float(plane.link_sizes[at]))
        title = _title(plane.link_name(at), plane.link_details[at])
        drawn.append(
            element(
                "path",
                title,
                data_v=str(at),
                d=f"M{_at(hubs[one])}L{_at(hubs[other])}",
                stroke_width=width,
                stroke_opacity=f"{0.35 + 0.4 * float(plane.link_sizes[at]):.2f}",
            )
        )
    return "".join(drawn)


def _hub(plane: Plane, hubs: FloatArray, halves: FloatArray, b: int, colour: str) -> str:
    """Return the square of a hub, in a ring that shows how full it is."""
    (x, y), half, fill = hubs[b].tolist(), float(halves[b]), float(plane.fills[b])
    square = element(
        "rect",
        _title(plane.hubs[b], plane.hub_details[b]),
        x=x - half,
        y=y - half,
        width=2.0 * half,
        height=2.0 * half,
        rx=2.0,
        class_="hub",
    )
    if math.isnan(fill):
        return square
    radius = half * math.sqrt(2.0) + 3.0
    ring = element("circle", cx=x, cy=y, r=radius, class_="capacity")
    if fill <= 0.0:
        return ring + square
    if fill > 0.999:
        full = element("circle", cx=x, cy=y, r=radius, class_="used", style=f"stroke:{colour}")
        return ring + full + square
    angle = 2.0 * math.pi * fill
    end = f"{number(x + radius * math.sin(angle))} {number(y - radius * math.cos(angle))}"
    arc = element(
        "path",
        class_="used",
        style=f"stroke:{colour}",
        d=f"M{number(x)} {number(y - radius)}A{number(radius)} {number(radius)} 0 "
        f"{int(fill > 0.5)} 1 {end}",
    )
    return ring + arc + square


def _key(plane: Plane, idle: bool) -> tuple[tuple[str, str], ...]:
    noun = plane.hub_noun
    entries = [
        (
            '<rect class="sample-fill" x="7" y="3" width="10" height="10" rx="2"/>',
            f"{noun}: larger with more traffic",
        ),
        (
            '<circle class="sample-fill" cx="8" cy="6" r="2"/>'
            '<circle class="sample-fill" cx="15" cy="10" r="2"/>',
            f"{plane.point_noun}: in the colour of its {noun}",
        ),
    ]
    if (plane.counts > 1).any():
        entries.append(
            (
                '<circle class="sample-fill" cx="12" cy="8" r="8"/>'
                '<text class="paper" x="12" y="12" font-size="10" text-anchor="middle">7</text>',
                f"several {plane.point_noun}s in one place",
            )
        )
    if any(plane.badges):
        entries.append(
            (
                '<rect class="sample-fill" x="4" y="0" width="16" height="16" rx="2"/>'
                '<text class="paper" x="12" y="12" font-size="10" text-anchor="middle">9</text>',
                plane.badge_noun,
            )
        )
    if not np.isnan(plane.fills).all():
        entries.append(
            (
                '<circle class="capacity" cx="12" cy="8" r="6"/>'
                '<path class="sample" fill="none" d="M12 2A6 6 0 0 1 12 14"/>',
                f"ring: {plane.full_noun}",
            )
        )
    if len(plane.links):
        entries += [
            (
                '<path class="sample" d="M1 8H23" style="stroke-width:7"/>',
                "wide line: most traffic",
            ),
            (
                '<path class="sample" d="M1 8H23" style="stroke-width:1"/>',
                f"between two {noun}s: some traffic",
            ),
        ]
    if idle:
        entries.append(
            (
                '<g class="idle-hubs"><rect class="hub" x="8" y="4" width="8" height="8"/></g>',
                f"{noun} without {plane.point_noun}s",
            )
        )
    return tuple(entries)
