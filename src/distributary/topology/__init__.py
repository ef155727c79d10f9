"""Brokers, links and trees, and how a message finds its way between them."""

from distributary.topology.identifiers import (
    DIGIT_BASE,
    IDENTIFIER_DIGITS,
    key_identifier,
    random_identifiers,
    shared_prefix_length,
)
from distributary.topology.overlay import Overlay
from distributary.topology.prefix_routing import RoutingTable, RoutingTables, root_among
from distributary.topology.tree import DisseminationTree, TreeNode

__all__ = [
    "DIGIT_BASE",
    "IDENTIFIER_DIGITS",
    "DisseminationTree",
    "Overlay",
    "RoutingTable",
    "RoutingTables",
    "TreeNode",
    "key_identifier",
    "random_identifiers",
    "root_among",
    "shared_prefix_length",
]
