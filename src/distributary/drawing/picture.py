"""A drawing as a finished file: a standalone SVG picture, or an HTML page to explore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from distributary.drawing.drawn import DrawnTree
from distributary.drawing.legend import legend_markup
from distributary.drawing.page import page
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, number, text, text_width
from distributary.errors import BadInput, quoted
from distributary.files import replacing

__all__ = ["MARGIN", "Picture", "is_svg", "svg_file", "svg_rules", "titled_svg", "write_picture"]

_TITLE_SIZE = 20.0
_SUBTITLE_SIZE = 13.0
_HEAD_HEIGHT = 76.0
MARGIN = 20.0
_RULES = files("distributary.drawing").joinpath("picture.css")


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawing with a title and a legend."""

    scene: TreeScene
    tree: DrawnTree

    def svg(self) -> str:
        """Return a standalone SVG document."""
        scene, tree = self.scene, self.tree
        legend_width, legend_height, legend = legend_markup(scene, tree)
        scale, margin = tree.scale, MARGIN * tree.scale
        head = _HEAD_HEIGHT * scale
        body = max(tree.height, legend_height * scale)
        head_width = max(
            text_width(scene.title, _TITLE_SIZE, bold=True),
            text_width(scene.subtitle, _SUBTITLE_SIZE),
        )
        width = max(tree.width + margin + legend_width * scale, head_width * scale) + 2.0 * margin
        height = head + body + margin
        # A picture of a legend beside two nodes should not hang from the top of the legend.
        drop = (body - tree.height) / 2.0 if tree.height < legend_height * scale / 2.0 else 0.0
        inside = (
            element(
                "g",
                tree.markup,
                class_="tree",
                transform=_placed(margin - tree.left, head - tree.top + drop),
            ),
            element("g", legend, transform=_placed(2.0 * margin + tree.width, head, scale)),
        )
        return svg_file(
            titled_svg(scene.title, scene.subtitle, inside, width=width, height=height, scale=scale)
        )

    def html(self) -> str:
        """Return an HTML page that needs nothing but a browser."""
        return page(self.scene, self.tree, svg_rules())

    def write(self, path: Path | str, *, option: str, stem: str) -> None:
        """Write the picture to a file, as its suffix says, whole or not at all.

        `option` is what the caller calls `path`, and `stem` what such a file may be named: both
        are for the error message.
        """
        svg = is_svg(path, option=option, stem=stem)
        write_picture(self.svg() if svg else self.html(), path, option=option)


def is_svg(path: Path | str, *, option: str, stem: str = "picture") -> bool:
    """Return whether a picture at a path is to be SVG; else it is HTML, and nothing else.

    `option` is what the caller calls `path`, and `stem` what such a file may be named: both are
    for the error message.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".svg", ".html"):
        raise BadInput(
            option,
            f"{quoted(path)} ends in neither .svg nor .html",
            hint=f"name the file after the picture you want, as in {stem}.svg or {stem}.html",
        )
    return suffix == ".svg"


def titled_svg(
    title: str,
    subtitle: str,
    inside: Sequence[str],
    *,
    width: float,
    height: float,
    scale: float = 1.0,
) -> str:
    """Return an SVG element: a title and a line below it, then what is inside.

    What is inside leaves room for the title, which is larger than usual by `scale`.
    """
    words = element(
        "text", text(title), class_="title", y=_TITLE_SIZE, font_size=_TITLE_SIZE
    ) + element(
        "text", text(subtitle), class_="quiet", y=_TITLE_SIZE + 22.0, font_size=_SUBTITLE_SIZE
    )
    parts = (
        element("title", text(f"{title}. {subtitle}")),
        element("style", svg_rules()),
        element("rect", class_="paper", width=width, height=height),
        element("g", words, transform=_placed(MARGIN * scale, MARGIN * scale, scale)),
        *inside,
    )
    return element(
        "svg",
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width / scale,
        height=height / scale,
    )


def svg_rules() -> str:
    """Return what pictures look like, as a style sheet."""
    return _RULES.read_text(encoding="utf-8")


def svg_file(svg: str) -> str:
    """Return an SVG element as a document of its own."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{svg}\n'


def write_picture(content: str, path: Path | str, *, option: str) -> None:
    """Write a finished picture to a file, whole or not at all.

    `option` is what the caller calls `path`, for the error message.
    """
    with replacing(path, option) as draft:
        draft.write_text(content, encoding="utf-8", newline="\n")


def _placed(x: float, y: float, scale: float | None = None) -> str:
    moved = f"translate({number(x)} {number(y)})"
    return moved if scale is None else f"{moved} scale({scale:.4g})"
