"""Pictures of trees: layouts, colours, and writing them as SVG and HTML.

A planner describes what it decided as a `TreeScene`; nothing here knows the planner. `Charts` have
bars and lines with labelled axes.
"""

from distributary.drawing.chart import Bars, Charts, Lines
from distributary.drawing.scene import TreeScene
from distributary.drawing.tree_picture import tree_picture

__all__ = ["Bars", "Charts", "Lines", "TreeScene", "tree_picture"]
