"""Pictures of trees: layouts, colours, and writing them as SVG and HTML.

A planner describes what it decided as a `TreeScene`; nothing here knows the planner.
"""

from distributary.drawing.picture import html_picture, svg_picture, write_picture
from distributary.drawing.scene import TreeScene

__all__ = ["TreeScene", "html_picture", "svg_picture", "write_picture"]
