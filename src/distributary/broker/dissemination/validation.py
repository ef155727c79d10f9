"""The form of what is said about content.

A relay does what a plan says without asking whether it can be done: it checks before that a
plan hangs together, and makes what it sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from distributary.broker.addresses import Blob
from distributary.broker.content import check_blob
from distributary.broker.core import Check, Rules
from distributary.broker.dissemination.messages import (
    ContentLost,
    ConversionLost,
    Deferred,
    Item,
    Missed,
    NextHops,
    Offer,
    Portion,
    Probe,
    ProbeAnswer,
)
from distributary.broker.plan_part import RELAY, PlanNode, PlanPart
from distributary.broker.planning import formats_of, publication_of
from distributary.content.media_type import MediaType
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import PeerMisbehaved, quoted

# Megabytes and seconds: of the largest content that there is, at any rate.
_WORK_MAX = 1e18

__all__ = [
    "CHECKS",
    "check_item",
    "check_item_blob",
]


def check_item(item: Item, rules: Rules) -> None:
    """Refuse an item that is not one event in one cell with a number."""
    _check_label(item, rules)
    _check_event(item)


def _check_event(item: Item) -> None:
    """Refuse an item with the event of another."""
    publication = publication_of(item.event)
    if publication.identity != (item.source, item.id):
        raise PeerMisbehaved(f"an item {quoted(item.id)} with the event {quoted(publication.id)}")


def _check_label(item: Item, rules: Rules) -> None:
    """Refuse an item for what can be seen without a look at its event.

    Whoever only passes an item on need not read it, which would take most of its time.
    """
    rules.brokers((item.home,))
    rules.tenants((item.tenant,))
    rules.cells((item.cell,))
    if item.number < 1:
        raise PeerMisbehaved(f"an item with the number {item.number}")
    rules.numbers((item.number, item.publisher))
    rules.times((item.series, item.published_ns))
    _check_size(item.size_bytes)


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
    # Whether its format can be planned with does not depend on its size, which is hardly ever
    # the same twice.
    formats_of(rules.settings, item, size_bytes=0)
    if not 1 <= offer.first <= item.number:
        raise PeerMisbehaved(f"item {item.number} of a series offered from {offer.first} on")
    if not 0 <= offer.settled <= item.number - offer.first:
        raise PeerMisbehaved(f"{offer.settled} items settled before item {item.number}")
    rules.brokers((offer.root, *(home for home, _ in offer.served)))


def _check_portion(portion: Portion, rules: Rules) -> None:
    """Refuse a portion that the broker cannot carry out."""
    item, part = portion.item, portion.plan
    _check_label(item, rules)
    rules.brokers((portion.root,))
    _check_tree(part, rules)
    _check_formats(part, rules)
    first = part.first
    if first.after != RELAY:
        _check_event(item)
        for k in first.wants:
            if part.formats[k] != portion.original:
                # It stands in what clients get.
                _check_media_type(part.formats[k])
    if first.broker != rules.identity:
        raise PeerMisbehaved(f"a portion for {first.broker}")
    if len(portion.blobs) != len(first.receives):
        raise PeerMisbehaved(f"{len(portion.blobs)} contents for {len(first.receives)} formats")
    for k, blob in zip(first.receives, portion.blobs, strict=True):
        if blob is not None:
            check_blob(blob)
        elif not item.inline or part.formats[k] != portion.original:
            raise PeerMisbehaved("a portion without its content")


@lru_cache(maxsize=1024)
def _check_media_type(name: str) -> None:
    """Refuse the name of a format that is no media type; there are few, and all are short."""
    MediaType.parse(name)


def _check_probe(probe: Probe, rules: Rules) -> None:
    """Refuse a probe from or to nobody."""
    rules.brokers((probe.root, *probe.homes))
    _check_steps(probe.steps, rules)


def _check_probe_answer(answer: ProbeAnswer, rules: Rules) -> None:
    """Refuse a way over nobody."""
    if not answer.steps:
        raise PeerMisbehaved("a probe that went nowhere")
    _check_steps(answer.steps, rules)


def _check_hops(message: NextHops, rules: Rules) -> None:
    """Refuse hops that lead to nobody, or away from where they are said to lead."""
    rules.brokers(hop for _, hop, _ in message.row)
    rules.amounts((message.node_cost, *(link_cost for _, _, link_cost in message.row)))
    for prefix, hop, _ in message.row:
        if not prefix or not hop.startswith(prefix):
            raise PeerMisbehaved(f"a hop to {hop} for what begins with {quoted(prefix)}")


def _check_lost(message: ConversionLost | ContentLost, rules: Rules) -> None:
    """Refuse homes that are none."""
    rules.brokers(message.homes)


def _check_deferred(message: Deferred, rules: Rules) -> None:
    """Refuse a time that is none."""
    rules.numbers((message.wait_ns,))


def _check_missed(message: Missed, rules: Rules) -> None:
    """Refuse counts and times that are none."""
    rules.numbers(count for _, count in message.registrations)
    rules.times((message.given_up_ns,))


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
    brokers = [node.broker for node in nodes]
    rules.brokers(brokers)
    if len(set(brokers)) < len(nodes):
        raise PeerMisbehaved("a plan in which a broker stands twice")
    top = depth = nodes[0].depth
    for node in nodes[1:]:
        if not top < node.depth <= depth + 1:
            raise PeerMisbehaved("a plan whose nodes are not in order")
        depth = node.depth
    serves = False
    for node in nodes:
        rules.amounts((node.link_cost, node.node_cost, node.wait_s))
        if node.after != RELAY:
            serves = True
            if min(node.after) < 0:
                series, number, _ = node.after
                raise PeerMisbehaved(f"an item after number {number} of series {series}")
        elif node.grants:
            raise PeerMisbehaved("a relay with registrations")
    if not serves:
        raise PeerMisbehaved("a plan that serves nobody")


def _check_formats(part: PlanPart, rules: Rules) -> None:
    """Refuse a plan that sends, or gives to clients, what it does not make.

    It is held against itself. What it wants converted and this broker's converters do not
    have is their affair: it fails, and the root hears of it.
    """
    count = len(part.formats)
    if len(set(part.formats)) < count or len(part.sizes) != count:
        raise PeerMisbehaved("a plan with formats that are not told apart, or without sizes")
    rules.amounts(part.sizes, _WORK_MAX)
    indices = frozenset(range(count))
    conversions: set[tuple[int, int]] = set()
    if part.conversions:
        rules.amounts([seconds for _, _, seconds in part.conversions], _WORK_MAX)
        conversions.update([(origin, target) for origin, target, _ in part.conversions])
        if not indices.issuperset(chain(*conversions)) or any(a == b for a, b in conversions):
            raise PeerMisbehaved("a plan with conversions of formats that it does not name")
    above: list[frozenset[int]] = []
    top = part.first.depth
    for node in part.nodes:
        wants = node.wants
        if not indices.issuperset(chain(wants, node.receives, *node.made)):
            raise PeerMisbehaved("a plan with formats that it does not name")
        if not conversions.issuperset(node.made):
            raise PeerMisbehaved("a plan with a conversion that there is not")
        del above[node.depth - top :]
        if above and not above[-1].issuperset(node.receives):
            raise PeerMisbehaved("a plan that sends what it does not make")
        there = _available(node)
        if not there.issuperset(wants):
            raise PeerMisbehaved("a plan that does not make what is wanted")
        above.append(there)


def _available(node: PlanNode) -> frozenset[int]:
    """Return what a node has once it has made everything."""
    if not node.made:
        return frozenset(node.receives)
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
    NextHops: _check_hops,
    ContentLost: _check_lost,
    ConversionLost: _check_lost,
    Deferred: _check_deferred,
    Missed: _check_missed,
}
"""What must hold of messages beyond the types of their fields."""
