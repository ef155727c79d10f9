"""A placement plan for every publication of a batch, as executors make them.

The tree of a publication is the union of the routes from the rendezvous broker of its cell
to the home brokers of those who get it, and a broker wants the formats that its subscribers
get.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.content.content_space import ContentSpace
from distributary.errors import BadInput, DistributaryError, quoted
from distributary.pipeline.overlay import BrokerOverlay
from distributary.pipeline.transforms.calibrated_formats import CalibratedFormats
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.cost import cost
from distributary.placement.plan_file import plan_document
from distributary.placement.planner import METHODS, place
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode
from distributary.topology.prefix_routing import RoutingTables

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KEY", "LINK_COSTS", "PlanOptions", "PublicationPlanner", "group_starts"]

KEY = ("day", "source", "event_id")
"""What tells publications apart: the identifiers of events are their own within a day."""

# No day that anything happened on.
_NO_DAY = -(2**31)
_TEXTS = ("source", "event_id", "method", "plan", "failure")
_COLUMNS = (
    "source",
    "event_id",
    "broker_count",
    "method",
    "transmission_cost",
    "conversion_cost",
    "total_cost",
    "lower_bound",
    "gap",
    "all_in_root",
    "all_in_leaves",
    "single_format",
    "plan",
    "failure",
    "day",
)

LINK_COSTS = ("equal", "delay")
"""What a link costs: 1, or its delay as a multiple of the mean between two brokers."""


@dataclass(frozen=True)
class PlanOptions:
    """How publications are planned.

    The seed is the same for each publication; `alpha` and `beta` are what a unit of
    transmission and a unit of conversion are worth.
    """

    method: str = "auto"
    seed: int = 0
    alpha: float = 1.0
    beta: float = 1.0
    link_cost: str = "equal"

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("--method", self.method, METHODS),
            ("--link-cost", self.link_cost, LINK_COSTS),
        ):
            if value not in choices:
                raise BadInput(name, f"{quoted(value)} is none of {', '.join(choices)}")
        for name, weight in (("--alpha", self.alpha), ("--beta", self.beta)):
            if not (math.isfinite(weight) and weight >= 0.0):
                raise BadInput(name, f"must be a finite number of at least 0, not {weight:g}")


class PublicationPlanner:
    """Plans publications; made on the driver, sent to every executor once."""

    def __init__(
        self,
        brokers: BrokerOverlay,
        space: ContentSpace,
        document: object,
        options: PlanOptions | None = None,
    ) -> None:
        self.options = options or PlanOptions()
        self.brokers = brokers.brokers
        self._tables: RoutingTables = brokers.overlay.tables
        self._name_of = dict(zip(self._tables.identifiers, self.brokers, strict=True))
        self._roots = _rendezvous(self._tables, space)
        self._formats = CalibratedFormats(document)
        # By index of parent and child; thousands of brokers have millions of delays, which
        # travel to executors only when links differ.
        self._link_costs = (
            _relative_delays(brokers.overlay.delays) if self.options.link_cost == "delay" else None
        )

    def plans(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the plans of some publications, in their order.

        Of each publication there is first its own row, with `cell` and `bytes`, then those who
        get it, with `broker`. All rows of a publication are there.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        starts = group_starts(rows)
        ends = [*starts[1:].tolist(), rows.num_rows]
        homes = rows.column("broker")
        brokers = np.asarray(pc.index_in(homes, value_set=pa.array(self.brokers)).fill_null(-1))
        # Whoever has no home is left out; who has one that the overlay lacks is not.
        lost = (brokers < 0) & np.asarray(homes.is_valid())
        encoded = rows.column("media_type").dictionary_encode()
        formats = np.asarray(encoded.indices.fill_null(-1))
        names = encoded.dictionary.to_pylist()
        cells = np.asarray(rows.column("cell").fill_null(-1))
        sizes = np.asarray(rows.column("bytes").fill_null(0))
        planned: list[dict[str, Any]] = []
        for start, end in zip(starts.tolist(), ends, strict=True):
            is_delivery = cells[start:end] < 0
            if not is_delivery.any():
                continue
            key = {name: rows.column(name)[start].as_py() for name in KEY}
            try:
                if is_delivery[0]:
                    raise BadInput("publication", "is not in the table publications")
                if lost[start:end].any():
                    name = homes[start + int(np.argmax(lost[start:end]))].as_py()
                    raise BadInput(f"broker {quoted(name)}", "is not in the overlay")
                if formats[start] < 0:
                    raise BadInput("publication", "has no content")
                served = is_delivery & (brokers[start:end] >= 0) & (formats[start:end] >= 0)
                if not served.any():
                    raise BadInput("deliveries", "go to nobody with a home broker and a format")
                wishes = np.unique(
                    brokers[start:end][served].astype(np.int64) * len(names)
                    + formats[start:end][served]
                )
                problem = self.problem(
                    cell=int(cells[start]),
                    media_type=names[formats[start]],
                    content_bytes=int(sizes[start]),
                    brokers=wishes // len(names),
                    wants=[names[code] for code in (wishes % len(names)).tolist()],
                )
                planned.append(key | self._planned(problem))
            except (DistributaryError, MemoryError) as error:
                planned.append(key | {"failure": str(error) or "does not fit into memory"})
        return pa.RecordBatch.from_pylist(planned, schema=_schema())

    def problem(
        self,
        *,
        cell: int,
        media_type: str,
        content_bytes: int,
        brokers: IntArray,
        wants: list[str],
    ) -> PlacementProblem:
        """Return the placement problem of a publication.

        `brokers` are indices, and `wants` is what each of them wants, entry by entry.
        """
        made = self._formats.graph(media_type, content_bytes)
        tree = self._tree(int(self._roots[cell]), brokers)
        position = {name: v for v, name in enumerate(tree.names)}
        wanted = np.zeros((tree.node_count, made.graph.format_count), dtype=np.bool_)
        for broker, name in zip(brokers.tolist(), wants, strict=True):
            if name not in made.index_of:
                known = name in self._formats.names
                raise BadInput(
                    f"broker {quoted(self.brokers[broker])}",
                    f"wants {quoted(name)}, which "
                    + ("cannot be made from " if known else "is no format that can be made from ")
                    + quoted(media_type),
                )
            wanted[position[self.brokers[broker]], made.index_of[name]] = True
        held = np.zeros(made.graph.format_count, dtype=np.bool_)
        held[made.source] = True
        options = self.options
        return PlacementProblem(made.graph, tree, wanted, held, options.alpha, options.beta)

    def _tree(self, root: int, brokers: IntArray) -> DisseminationTree:
        identifiers, name_of = self._tables.identifiers, self._name_of
        members = [identifiers[broker] for broker in np.unique(brokers).tolist()]
        parents = self._tables.tree_of(identifiers[root], members)
        return DisseminationTree.from_nodes(
            TreeNode(
                name_of[broker],
                None if parent is None else name_of[parent],
                self._link_cost(parent, broker),
            )
            for broker, parent in parents.items()
        )

    def _link_cost(self, parent: str | None, broker: str) -> float:
        if parent is None or self._link_costs is None:
            return 1.0
        index_of = self._tables.index_of
        return float(self._link_costs[index_of(parent), index_of(broker)])

    def _planned(self, problem: PlacementProblem) -> dict[str, Any]:
        """Return the plan and its costs, beside those of the three baselines."""
        placement = place(problem, method=self.options.method, seed=self.options.seed)
        conversion_planner = ConversionPlanner(problem.graph.costs)
        document = plan_document(problem, placement)
        # Whatever else is in a table is the same on every machine and in every run.
        del document["seconds"]
        return {
            "broker_count": problem.node_count,
            "method": placement.chosen or placement.method,
            "transmission_cost": placement.transmission_cost,
            "conversion_cost": placement.conversion_cost,
            "total_cost": placement.total_cost,
            "lower_bound": placement.lower_bound,
            "gap": placement.gap,
            "all_in_root": cost(problem, all_in_root(problem, conversion_planner)).total,
            "all_in_leaves": cost(problem, all_in_leaves(problem, conversion_planner)).total,
            "single_format": cost(problem, single_format(problem, conversion_planner)).total,
            "plan": json.dumps(document, ensure_ascii=False, separators=(",", ":")),
        }


def group_starts(rows: pa.RecordBatch) -> IntArray:
    """Return where the rows of each publication begin; those of one stand together."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if rows.num_rows == 0:
        return np.empty(0, dtype=np.int64)
    differs = np.zeros(rows.num_rows - 1, dtype=np.bool_)
    for name in KEY:
        column = rows.column(name)
        if name == "day":
            column = column.cast(pa.int32()).fill_null(_NO_DAY)
        differs |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    return np.concatenate([[0], np.flatnonzero(differs) + 1])


def _schema() -> pa.Schema:
    """Return the columns of `plans` in Arrow; executors cannot read Spark's declaration."""
    import pyarrow as pa

    kinds = {"broker_count": pa.int32(), "day": pa.date32()} | dict.fromkeys(_TEXTS, pa.string())
    return pa.schema([(name, kinds.get(name, pa.float64())) for name in _COLUMNS])


def _rendezvous(tables: RoutingTables, space: ContentSpace) -> IntArray:
    """Return the index of the rendezvous broker of every cell: the root of the cell's key.

    A key is as good as random already; its first digits are its identifier.
    """
    digits = len(tables.identifiers[0])
    roots = (tables.root_of_key(space.key(cell).hex()[:digits]) for cell in range(space.cell_count))
    return np.array([tables.index_of(root) for root in roots], dtype=np.int64)


def _relative_delays(delays: FloatArray) -> FloatArray:
    """Return delays as multiples of their mean, shape (brokers, brokers)."""
    count = len(delays)
    total = float(delays.sum() - np.trace(delays))
    return np.asarray(delays * (count * (count - 1) / total)) if total > 0.0 else delays
