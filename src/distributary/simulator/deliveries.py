"""Deliveries of a run as a table: who got what, in which format, from where, when, at what cost."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TypeAlias

from distributary.arguments import checked
from distributary.broker.addresses import tenant_of
from distributary.broker.dissemination.messages import ItemId
from distributary.errors import BadInput, quoted
from distributary.files import replacing
from distributary.simulator.checkers.ledger import Receipt
from distributary.simulator.conversions import ConversionStep
from distributary.simulator.simulation import Simulation
from distributary.wiring.columns import arrow

__all__ = [
    "SUFFIXES",
    "DeliveryRow",
    "FetchStep",
    "Journeys",
    "Step",
    "check_deliveries_path",
    "deliveries_of",
    "write_deliveries",
]

# Journeys: the way of content from its publisher to a client, step by step.
#
# A step is a fetch from one broker's host to another's, or a conversion at one. Several deliveries
# may have a step in common: what it costs is shared among them.

_BYTES_PER_SIZE = 1e6


@dataclass(frozen=True, slots=True)
class FetchStep:
    """Content that went from the host of one broker to that of another."""

    holder: str
    broker: str
    digest: str
    size_bytes: int


Step: TypeAlias = "FetchStep | ConversionStep"


class Journeys:
    """The ways that content took in a run that is over."""

    def __init__(self, simulation: Simulation) -> None:
        self._places = simulation.places
        self._content = simulation.scenario.settings.content
        self._index = {name: k for k, name in enumerate(simulation.places.identifiers)}
        self._made: dict[tuple[str, str], ConversionStep] = {}
        for conversion in simulation.world.conversions:
            self._made.setdefault((conversion.broker, conversion.made.digest), conversion)
        self._fetched: dict[tuple[str, str], FetchStep] = {}
        for (holder, broker, digest), size in simulation.world.transfers.fetched_bytes.items():
            self._fetched.setdefault((broker, digest), FetchStep(holder, broker, digest, size))

    def steps(self, receipt: Receipt) -> list[Step]:
        """Return the steps to a delivery, the last one first; none for an event alone.

        What a broker both made and fetched it is taken to have made.
        """
        found: list[Step] = []
        here = (receipt.home, receipt.digest)
        seen = set()
        while here not in seen:
            seen.add(here)
            broker, digest = here
            if here in self._made:
                conversion = self._made[here]
                found.append(conversion)
                here = (broker, conversion.origin.digest)
            elif here in self._fetched:
                fetch = self._fetched[here]
                found.append(fetch)
                here = (fetch.holder, digest)
        return found

    def weights(self, journeys: Iterable[list[Step]]) -> list[float]:
        """Return what each of some journeys cost, a step in common shared by all that have it."""
        journeys = list(journeys)
        uses = Counter(step for steps in journeys for step in steps)
        return [sum(self._cost(step) / uses[step] for step in steps) for steps in journeys]

    def _cost(self, step: Step) -> float:
        if isinstance(step, ConversionStep):
            # A slow broker takes longer by its factor, which is what makes it dear.
            return self._content.beta * step.seconds
        factor = self._places.link_costs[self._index[step.holder], self._index[step.broker]]
        return self._content.alpha * float(factor) * step.size_bytes / _BYTES_PER_SIZE


SUFFIXES = (".parquet", ".csv")
"""How the name of a file of deliveries may end."""

_NS_PER_SECOND = 1e9
_BETWEEN = "; "


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One delivery.

    Attributes
    ----------
    tenant, client, subscription
        Who.
    source, id
        What.
    format
        The format of its content; empty when it was undeliverable.
    home
        The broker that delivered it.
    converted, converted_at
        The conversions on its way, the first one first, and the brokers that ran them.
    published_s, delivered_s, delay_s
        When the publisher first sent it, when the client got it, and what lies between.
    cost
        Its share of what the plans for the publication cost.
    undeliverable
        Why the client was told that it cannot have it; empty otherwise.
    """

    tenant: str
    client: str
    subscription: str
    source: str
    id: str
    format: str
    home: str
    converted: str
    converted_at: str
    published_s: float
    delivered_s: float
    delay_s: float
    cost: float
    undeliverable: str


@checked
def deliveries_of(simulation: Simulation) -> list[DeliveryRow]:
    """Return every delivery of a run that is over, in the order of time.

    The cost of the plans for a publication is shared among its deliveries, in proportion to what
    the fetches and conversions on their ways cost; so the costs of all rows add up to the
    total of the report, but for plans that led to no delivery.
    """
    journeys = Journeys(simulation)
    planned = _planned_costs(simulation)
    names = dict(zip(simulation.places.identifiers, simulation.places.names, strict=True))
    by_item: dict[ItemId, list[Receipt]] = {}
    for receipt in simulation.ledger.got.values():
        by_item.setdefault(receipt.published.identity, []).append(receipt)
    rows = []
    for item, receipts in by_item.items():
        ways = [journeys.steps(receipt) for receipt in receipts]
        weights = journeys.weights(ways)
        total = sum(weights)
        for receipt, steps, weight in zip(receipts, ways, weights, strict=True):
            share = weight / total if total > 0.0 else 1.0 / len(receipts)
            rows.append(_row(receipt, steps, share * planned.get(item, 0.0), names))
    return sorted(rows, key=lambda row: (row.delivered_s, row.tenant, row.client, row.id))


def check_deliveries_path(path: Path, option: str) -> None:
    """Raise `BadInput` about an option unless a name says how deliveries are to be written."""
    if path.suffix not in SUFFIXES:
        raise BadInput(option, f"{quoted(path)} ends in neither {' nor '.join(SUFFIXES)}")
    if path.suffix == ".parquet":
        arrow("writing a Parquet file")


@checked
def write_deliveries(simulation: Simulation, path: Path | str) -> None:
    """Write the deliveries of a run to a file, as its suffix says, whole or not at all."""
    path = Path(path)
    check_deliveries_path(path, "--deliveries")
    names = [field.name for field in fields(DeliveryRow)]
    rows = [astuple(row) for row in deliveries_of(simulation)]
    with replacing(path, "--deliveries") as draft:
        if path.suffix == ".csv":
            with draft.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(names)
                writer.writerows(rows)
            return
        pa = arrow("writing a Parquet file")
        kinds = {"str": pa.string(), "float": pa.float64()}
        schema = pa.schema([(field.name, kinds[str(field.type)]) for field in fields(DeliveryRow)])
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
        pa.parquet.write_table(pa.table(columns, schema=schema), draft)


def _planned_costs(simulation: Simulation) -> dict[ItemId, float]:
    """Return what the plans for each publication cost together, weighted."""
    content = simulation.scenario.settings.content
    costs: dict[ItemId, float] = {}
    for plan in simulation.planned:
        item = ItemId(plan.tenant, plan.source, plan.id)
        cost = content.alpha * plan.worth.transmission + content.beta * plan.worth.conversion
        costs[item] = costs.get(item, 0.0) + cost
    return costs


def _row(receipt: Receipt, steps: list[Step], cost: float, names: dict[str, str]) -> DeliveryRow:
    published, client = receipt.published, receipt.wish.client
    conversions = [step for step in reversed(steps) if isinstance(step, ConversionStep)]
    tenant = tenant_of(client)
    return DeliveryRow(
        tenant=tenant,
        client=client.rpartition("@")[2],
        subscription=receipt.wish.subscription.id,
        source=published.publication.source,
        id=published.publication.id,
        format=receipt.media_type or "",
        home=names[receipt.home],
        converted=_BETWEEN.join(
            f"{step.origin.media_type} > {step.made.media_type}" for step in conversions
        ),
        converted_at=_BETWEEN.join(names[step.broker] for step in conversions),
        published_s=published.sent_ns / _NS_PER_SECOND,
        delivered_s=receipt.at_ns / _NS_PER_SECOND,
        delay_s=(receipt.at_ns - published.sent_ns) / _NS_PER_SECOND,
        cost=cost,
        undeliverable=receipt.reason if receipt.media_type is None else "",
    )
