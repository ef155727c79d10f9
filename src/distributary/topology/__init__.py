"""Brokers, links and trees, and how a message finds its way between them."""

from distributary.topology.identifiers import random_identifiers, shared_prefix_length
from distributary.topology.overlay import Overlay
from distributary.topology.prefix_routing import RoutingTables, root_among
from distributary.topology.tree import DisseminationTree, TreeNode

__all__ = [
    "DisseminationTree",
    "Overlay",
    "RoutingTables",
    "TreeNode",
    "random_identifiers",
    "root_among",
    "shared_prefix_length",
]
