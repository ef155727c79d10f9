"""The legend of a picture: what each colour stands for, and each symbol."""

from __future__ import annotations

from distributary.drawing.drawn import DrawnTree
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, shortened, text, text_width

__all__ = ["legend_markup"]

_ROWS_MAX = 40
_NAME_CHARACTERS = 26
_SIZE = 13.0
_ROW = 21.0
_COLUMN_GAP = 16.0
_SWATCH = 30.0


def _busiest(scene: TreeScene) -> list[int]:
    """Return the kinds that fit, in the order of their indices."""
    uses = scene.carried.sum(axis=0) + scene.made.sum(axis=0) + scene.wanted.sum(axis=0)
    ranked = sorted(scene.shown_kinds, key=lambda k: (-int(uses[k]), k))
    return sorted(ranked[:_ROWS_MAX])


def legend_markup(scene: TreeScene, tree: DrawnTree) -> tuple[float, float, str]:
    """Return the width, the height and the markup of the legend, at its usual size."""
    kinds = _busiest(scene)
    names = [shortened(scene.kinds[k], _NAME_CHARACTERS) for k in kinds]
    name_width = max(text_width(name, _SIZE) for name in [*names, scene.kind_noun])
    rights = []
    right = _SWATCH + name_width
    for column, head in enumerate(scene.legend_columns):
        cells = [head, *(scene.legend_cells[k][column] for k in kinds)]
        right += _COLUMN_GAP + max(text_width(cell, _SIZE) for cell in cells)
        rights.append(right)

    y = _SIZE
    parts = [element("text", text(scene.kind_noun), class_="quiet", x=_SWATCH, y=y)]
    parts += [
        element("text", text(head), class_="quiet", x=x, y=y, text_anchor="end")
        for head, x in zip(scene.legend_columns, rights, strict=True)
    ]
    parts.append(element("path", class_="rule", d=f"M0 {y + 7:g}H{right:.0f}"))
    y += 6.0
    for k, name in zip(kinds, names, strict=True):
        y += _ROW
        row = [
            element("title", text(scene.kinds[k])),
            element("rect", y=y - 9.0, width=20.0, height=8.0, rx=2.0, fill=scene.colours[k]),
            element("text", text(name), x=_SWATCH, y=y),
        ]
        row += [
            element("text", text(cell), x=x, y=y, text_anchor="end")
            for cell, x in zip(scene.legend_cells[k], rights, strict=True)
        ]
        parts.append(element("g", "".join(row), class_=f"entry f{k}"))
    if len(kinds) < len(scene.shown_kinds):
        y += _ROW
        more = f"and {len(scene.shown_kinds) - len(kinds)} more"
        parts.append(element("text", more, class_="quiet", x=_SWATCH, y=y))
    y += 10.0
    parts.append(element("path", class_="rule", d=f"M0 {y:g}H{right:.0f}"))
    widest = right
    for symbol, meaning in tree.key:
        y += _ROW
        parts.append(element("g", symbol, transform=f"translate(-2 {y - 13.0:g})"))
        parts.append(element("text", text(meaning), class_="quiet", x=_SWATCH, y=y))
        widest = max(widest, _SWATCH + text_width(meaning, _SIZE))
    markup = element("g", "".join(parts), class_="legend", font_size=_SIZE)
    return widest, y + _ROW, markup
