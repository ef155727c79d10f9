"""Brokers, links and trees, and how a message finds its way between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand

if TYPE_CHECKING:
    from distributary.topology.delay_matrix import DelayMatrix, read_delays
    from distributary.topology.gml import read_gml
    from distributary.topology.identifiers import random_identifiers, shared_prefix_length
    from distributary.topology.network import Network
    from distributary.topology.overlay import Overlay
    from distributary.topology.prefix_routing import RoutingTables, root_among
    from distributary.topology.sites import Sites, gml_sites, matrix_sites
    from distributary.topology.tree import DisseminationTree, TreeNode

__all__ = [
    "DelayMatrix",
    "DisseminationTree",
    "Network",
    "Overlay",
    "RoutingTables",
    "Sites",
    "TreeNode",
    "gml_sites",
    "matrix_sites",
    "random_identifiers",
    "read_delays",
    "read_gml",
    "root_among",
    "shared_prefix_length",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "delay_matrix": ("DelayMatrix", "read_delays"),
        "gml": ("read_gml",),
        "identifiers": ("random_identifiers", "shared_prefix_length"),
        "network": ("Network",),
        "overlay": ("Overlay",),
        "prefix_routing": ("RoutingTables", "root_among"),
        "sites": ("Sites", "gml_sites", "matrix_sites"),
        "tree": ("DisseminationTree", "TreeNode"),
    },
)
