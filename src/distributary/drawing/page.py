"""An HTML page around a drawn tree: legend, search, tooltips, zoom.

The page loads nothing: its style and its script stand in it, and a content security
policy lets the browser run exactly that script. What the script shows comes as JSON
and goes into the page as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files

import numpy as np

from distributary.arrays import BoolArray
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.drawing.svg import element, number, readable, text

__all__ = ["page"]

_HERE = files("distributary.drawing")


def _lists(chosen: BoolArray) -> list[list[int]]:
    """Return, per row, the columns that are set."""
    rows: list[list[int]] = [[] for _ in range(len(chosen))]
    for v, k in np.argwhere(chosen).tolist():
        rows[v].append(k)
    return rows


def _facts(scene: TreeScene, tree: DrawnTree) -> dict[str, object]:
    """Return what the script needs to know, one array per question."""
    made = [
        [[int(scene.made_from[v, k]), k] for k in kinds]
        for v, kinds in enumerate(_lists(scene.made_from != NOT_MADE))
    ]
    total = float(scene.link_costs.sum() + scene.node_costs.sum())
    facts: dict[str, object] = {
        "nodes": [readable(name) for name in scene.nodes],
        "parents": scene.parents.tolist(),
        "kinds": [readable(name) for name in scene.kinds],
        "colours": list(scene.colours),
        "carried": _lists(scene.carried),
        "made": made,
        "wanted": _lists(scene.wanted),
        "held": np.flatnonzero(scene.held).tolist(),
        "linkCosts": [_short(value) for value in scene.link_costs.tolist()],
        "nodeCosts": [_short(value) for value in scene.node_costs.tolist()],
        "totalCost": total,
        "xs": [round(x, 1) for x in tree.xs.tolist()],
        "ys": [round(y, 1) for y in tree.ys.tolist()],
        "radii": [round(radius, 1) for radius in tree.radii.tolist()],
        "box": [round(side, 1) for side in (tree.left, tree.top, tree.width, tree.height)],
    }
    if scene.details is not None:
        facts["details"] = [[readable(line) for line in lines] for lines in scene.details]
    if scene.links is not None:
        facts["links"] = [[readable(line) for line in lines] for lines in scene.links]
    return facts


def _short(value: float) -> float:
    """Return a cost to six significant digits, which is what a tooltip can use."""
    return float(f"{value:.6g}")


def _script_text(facts: dict[str, object]) -> str:
    """Return JSON that cannot end the script element it stands in."""
    written = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    return written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _script(scene: TreeScene) -> str:
    """Return the script of the page, with the tooltips that suit the scene."""
    tips = "tips_kinds.js" if scene.details is None else "tips_figures.js"
    frame = _HERE.joinpath("page.js").read_text(encoding="utf-8")
    return frame.replace("@@tips@@", _HERE.joinpath(tips).read_text(encoding="utf-8"))


def _legend(scene: TreeScene) -> str:
    heads = "".join(element("th", text(head), class_="figure") for head in scene.legend_columns)
    noun = element("th", text(scene.kind_noun))
    rows = [element("tr", f'<th class="swatch"></th>{noun}{heads}')]
    for k in scene.shown_kinds:
        swatch = element("span", "", style=f"background:{scene.colours[k]}")
        button = element(
            "button",
            text(scene.kinds[k]),
            type="button",
            data_kind=str(k),
            aria_pressed="false",
            title=scene.kinds[k],
        )
        cells = "".join(
            element("td", text(cell), class_="figure") for cell in scene.legend_cells[k]
        )
        rows.append(
            element(
                "tr", f'<td class="swatch">{swatch}</td><td>{button}</td>{cells}', class_="entry"
            )
        )
    return element("table", "".join(rows))


def _key(tree: DrawnTree) -> str:
    return "".join(
        element("p", element("svg", symbol, viewBox="0 0 24 16", width=24, height=16) + text(words))
        for symbol, words in tree.key
    )


def page(scene: TreeScene, tree: DrawnTree, picture_rules: str) -> str:
    """Return a self-contained HTML document that shows `tree`."""
    rules = picture_rules + _HERE.joinpath("page.css").read_text(encoding="utf-8")
    script = _script(scene)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    svg = element(
        "svg",
        element("g", tree.markup, class_="tree") + '<g id="found"></g><g id="named"></g>',
        id="picture",
        viewBox=f"{number(tree.left)} {number(tree.top)} "
        f"{number(tree.width)} {number(tree.height)}",
        role="img",
        aria_label=scene.title,
        tabindex="0",
    )
    frame = _HERE.joinpath("page.html").read_text(encoding="utf-8")
    filled = {
        "policy": text(policy),
        "title": text(scene.title),
        "subtitle": text(scene.subtitle),
        "rules": rules,
        "picture": svg,
        "noun": text(scene.kind_noun),
        "legend": _legend(scene),
        "key": _key(tree),
        "facts": _script_text(_facts(scene, tree)),
        "script": script,
    }
    # One pass over the frame: what is filled in is never looked at again.
    pieces = frame.split("@@")
    pieces[1::2] = [filled[name] for name in pieces[1::2]]
    return "".join(pieces)
