"""Known hops: where other brokers pass messages on to, as they have told a root.

A root estimates the way to a home: as its registration came, in reverse. But brokers pass a
message to the nearest one that has a further digit of its goal right, and on the way back that
is hardly ever the one on which it came. A relay that finds a plan wrong for this reason plans its
own subtree anew, and tells the root the row of its routing table that the plan should have
followed. So the next plan is right, for all homes behind that row and not only for those of
the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.broker.dissemination.messages import NextHops
from distributary.broker.plan_part import Route, Step
from distributary.topology import shared_prefix_length

__all__ = ["KnownHops"]

# So many are known. In a large overlay a root hears of as many as there are brokers, or some more.
_HOPS_MAX = 65_536


class KnownHops:
    """The next hops of other brokers, as far as one root knows them.

    What a broker has told is true until its routes change. Then it finds the next plan wrong,
    and tells anew.
    """

    def __init__(self) -> None:
        self._hops: dict[tuple[str, str], tuple[str, float]] = {}
        self._node_costs: dict[str, float] = {}

    def learn(self, broker: str, told: NextHops) -> bool:
        """Take what a broker tells; return whether any of it is new."""
        if len(self._hops) + len(told.row) > _HOPS_MAX:
            self._hops.clear()
            self._node_costs.clear()
        row = {(broker, prefix): (hop, link_cost) for prefix, hop, link_cost in told.row}
        is_new = (
            self._node_costs.get(broker) != told.node_cost or not row.items() <= self._hops.items()
        )
        self._node_costs[broker] = told.node_cost
        self._hops.update(row)
        return is_new

    def way(
        self,
        estimate: Route,
        first: Step,
        node_costs: Mapping[str, float],
        is_alive: Callable[[str], bool],
    ) -> Route:
        """Return the way to a home: as brokers have told, and from there on as it is estimated.

        Parameters
        ----------
        estimate
            The way as far as nothing else is known, which ends at the home.
        first
            Where it begins.
        node_costs
            What converting costs where it is known from estimates.
        is_alive
            Whether a broker is there.
        """
        home = estimate[-1][0]
        found = [first]
        passed = {first[0]}
        at = first[0]
        while at != home:
            known = self._hops.get((at, home[: shared_prefix_length(at, home) + 1]))
            if known is None or known[0] in passed or not is_alive(known[0]):
                # Behind a broker that is not on the estimated way nothing but its end is known.
                after = [k + 1 for k, step in enumerate(estimate) if step[0] == at]
                return (*found, *estimate[after[0] if after else -1 :])
            at, link_cost = known
            node_cost = self._node_costs.get(at, node_costs.get(at, 1.0))
            found.append((at, link_cost, node_cost))
            passed.add(at)
        return tuple(found)
