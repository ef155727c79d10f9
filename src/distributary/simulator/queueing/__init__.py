"""The queueing model of streams in trees, in compiled code.

`simulate` runs a `FidelityProblem` through a `Forest` and measures delays, losses and loads,
while nodes slow down, links and rates change, and the trees are adapted.
"""

from distributary.simulator.queueing.adapting import Adapting
from distributary.simulator.queueing.change import Change, first_servers, slowed
from distributary.simulator.queueing.result import QueueingRun, Round
from distributary.simulator.queueing.run import simulate

__all__ = [
    "Adapting",
    "Change",
    "QueueingRun",
    "Round",
    "first_servers",
    "simulate",
    "slowed",
]
