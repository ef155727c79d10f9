"""The best tree by writing down every choice of parents; for about five servers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tests.reference.fidelity_loss import Instance, Parents, Result, one_tree


def every_tree(given: Instance) -> Iterator[Parents]:
    """Yield every tree: every choice of a parent for each server that leads to the source."""
    servers = given.servers
    nodes = [given.source, *servers]
    for chosen in itertools.product(*([k for k in nodes if k != i] for i in servers)):
        parents = dict(zip(servers, chosen, strict=True))
        if all(leads_to_source(given, parents, i) for i in servers):
            yield parents


def leads_to_source(given: Instance, parents: Parents, i: str) -> bool:
    """Follow the parents of a server for as many steps as there are servers."""
    at = i
    for _ in parents:
        at = parents.get(at, at)
    return at == given.source


def best(given: Instance) -> Result:
    """Return the least average loss; when all are infinite, the smallest largest load."""
    return min(
        (one_tree(given, parents) for parents in every_tree(given)),
        key=lambda result: (result.average, max(result.loads.values())),
    )
