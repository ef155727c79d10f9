"""Formats and adaptation graphs: what content can be turned into, and at what cost."""

from distributary.content.adaptation_graph import AdaptationGraph

__all__ = ["AdaptationGraph"]
