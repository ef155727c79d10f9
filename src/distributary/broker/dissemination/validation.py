"""The form of what is said about content.

A relay does what a plan says without asking whether it can be done: it checks before that a
plan hangs together, and makes what it sends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from distributary.broker.blob import Blob
from distributary.broker.dissemination.messages import (
    ConversionLost,
    Item,
    Offer,
    Portion,
    Probe,
    ProbeAnswer,
)
from distributary.broker.formats import Formats, formats_of, publication_of
from distributary.broker.plan_part import RELAY, PlanNode, PlanPart
from distributary.broker.validation import Check, Rules
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import PeerMisbehaved, quoted

__all__ = [
    "CHECKS",
    "check_blob",
    "check_item",
    "check_item_blob",
]


def check_item(item: Item, rules: Rules) -> None:
    """Refuse an item that is not one event in one cell with a number."""
    rules.brokers((item.home,))
    rules.cells((item.cell,))
    if item.number < 1:
        raise PeerMisbehaved(f"an item with the number {item.number}")
    rules.numbers((item.number,))
    rules.times((item.series, item.published_ns))
    _check_size(item.size_bytes)
    publication = publication_of(item.event)
    if publication.identity != item.identity:
        raise PeerMisbehaved(f"an item {quoted(item.id)} with the event {quoted(publication.id)}")
    formats_of(rules.settings, item)


def check_blob(blob: Blob) -> None:
    """Refuse content that is not what its digest says: conversions are shared by digest."""
    _check_size(blob.size_bytes)
    if blob.data is not None and blob != Blob.of(blob.media_type, blob.data):
        raise PeerMisbehaved("content with the digest of other content")


def check_item_blob(item: Item, blob: Blob | None) -> None:
    """Refuse what is not the content of an item as it was published."""
    if (blob is None) is not item.inline:
        raise PeerMisbehaved("content that is in the event and beside it, or nowhere")
    if blob is None:
        return
    if (blob.media_type, blob.size_bytes) != (item.media_type, item.size_bytes):
        raise PeerMisbehaved("content of another format or size than its item")
    check_blob(blob)


def _check_offer(offer: Offer, rules: Rules) -> None:
    """Refuse an offer without its content, or one that leaves itself out."""
    item = offer.item
    check_item(item, rules)
    check_item_blob(item, offer.blob)
    if not 1 <= offer.first <= item.number:
        raise PeerMisbehaved(f"item {item.number} of a series offered from {offer.first} on")
    rules.brokers((offer.root, *(home for home, _ in offer.served)))


def _check_portion(portion: Portion, rules: Rules) -> None:
    """Refuse a portion that the broker cannot carry out."""
    item, part = portion.item, portion.plan
    check_item(item, rules)
    rules.brokers((portion.root,))
    lost = tuple(sorted({name for name, _ in portion.lost}))
    _check_tree(part, rules)
    _check_formats(part, formats_of(rules.settings, item, lost))
    if part.first.broker != rules.identity:
        raise PeerMisbehaved(f"a portion for {part.first.broker}")
    if len(portion.blobs) != len(part.first.receives):
        raise PeerMisbehaved(
            f"{len(portion.blobs)} contents for {len(part.first.receives)} formats"
        )
    if None in portion.blobs and not item.inline:
        raise PeerMisbehaved("a portion without its content")
    for blob in portion.blobs:
        if blob is not None:
            check_blob(blob)


def _check_probe(probe: Probe, rules: Rules) -> None:
    """Refuse a probe from or to nobody."""
    rules.brokers((probe.root, *probe.homes))
    _check_steps(probe.steps, rules)


def _check_probe_answer(answer: ProbeAnswer, rules: Rules) -> None:
    """Refuse a way over nobody."""
    if not answer.steps:
        raise PeerMisbehaved("a probe that went nowhere")
    _check_steps(answer.steps, rules)


def _check_conversion_lost(message: ConversionLost, rules: Rules) -> None:
    """Refuse homes that are none."""
    rules.brokers(message.homes)


def _check_size(size_bytes: int) -> None:
    if not 0 <= size_bytes <= CONTENT_BYTES_MAX:
        raise PeerMisbehaved(f"content of {size_bytes} bytes")


def _check_steps(steps: Iterable[tuple[str, float, float]], rules: Rules) -> None:
    for broker, link_cost, node_cost in steps:
        rules.brokers((broker,))
        rules.amounts((link_cost, node_cost))


def _check_tree(part: PlanPart, rules: Rules) -> None:
    """Refuse nodes that are not a tree in preorder with somebody to serve."""
    nodes = part.nodes
    if not nodes:
        raise PeerMisbehaved("a plan for nobody")
    rules.brokers(node.broker for node in nodes)
    if len({node.broker for node in nodes}) < len(nodes):
        raise PeerMisbehaved("a plan in which a broker stands twice")
    top = depth = nodes[0].depth
    for node in nodes[1:]:
        if not top < node.depth <= depth + 1:
            raise PeerMisbehaved("a plan whose nodes are not in order")
        depth = node.depth
    for node in nodes:
        rules.amounts((node.link_cost, node.node_cost, node.wait_s))
        if min(node.after) < 0 and node.after != RELAY:
            raise PeerMisbehaved(f"an item after number {node.after[1]} of series {node.after[0]}")
    if all(node.after == RELAY for node in nodes):
        raise PeerMisbehaved("a plan that serves nobody")


def _check_formats(part: PlanPart, formats: Formats) -> None:
    """Refuse a plan that sends, or gives to clients, what it does not make."""
    count = len(part.formats)
    places = [formats.places.get(name) for name in part.formats]
    if None in places or len(set(places)) < count:
        raise PeerMisbehaved("a plan with formats that its item does not have")
    indices = frozenset(range(count))
    costs = formats.graph.costs
    above: list[frozenset[int]] = []
    top = part.first.depth
    for node in part.nodes:
        if not indices.issuperset(_named(node)):
            raise PeerMisbehaved("a plan with formats that it does not name")
        for origin, target in node.made:
            if not math.isfinite(costs[places[origin], places[target]]):
                raise PeerMisbehaved("a plan with a conversion that there is not")
        del above[node.depth - top :]
        if above and not above[-1].issuperset(node.receives):
            raise PeerMisbehaved("a plan that sends what it does not make")
        there = _available(node)
        if not there.issuperset(node.wants):
            raise PeerMisbehaved("a plan that does not make what is wanted")
        above.append(there)


def _named(node: PlanNode) -> Iterator[int]:
    return chain(node.wants, node.receives, *node.made)


def _available(node: PlanNode) -> frozenset[int]:
    """Return what a node has once it has made everything."""
    there = set(node.receives)
    waiting = list(node.made)
    while waiting:
        ready = [target for origin, target in waiting if origin in there]
        if not ready:
            raise PeerMisbehaved("a plan whose conversions wait for each other")
        waiting = [(origin, target) for origin, target in waiting if origin not in there]
        there.update(ready)
    return frozenset(there)


CHECKS: Mapping[type, Check] = {
    Offer: _check_offer,
    Portion: _check_portion,
    Probe: _check_probe,
    ProbeAnswer: _check_probe_answer,
    ConversionLost: _check_conversion_lost,
}
"""What must hold of messages beyond the types of their fields."""
