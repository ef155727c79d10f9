"""Studies of the tree builder, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.fidelity import move_speed, tree_256, tree_large, tree_objects, tree_small

__all__ = ["STUDIES"]

STUDIES = (
    tree_small.STUDY,
    tree_256.STUDY,
    tree_objects.STUDY,
    move_speed.STUDY,
    tree_large.STUDY,
)
