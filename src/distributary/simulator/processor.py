"""Processors: what a broker does takes time, one thing after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from distributary.broker.addresses import Address

if TYPE_CHECKING:
    from distributary.simulator.world import World

__all__ = ["Job", "Processor"]

Job: TypeAlias = int | tuple[Address, object]
"""What waits for a processor: a ticket, or a message with its sender."""


class Processor:
    """The processor of one node.

    It does one thing at a time and takes jobs in the order in which they come. While it takes
    time over one, whatever else the broker wants done waits behind it: effects are carried out
    in order.

    Attributes
    ----------
    service_ns
        The mean time of each kind of work, by its name.
    measured_ns
        (count, sum) of the times that each kind of work has taken in the present window.
    message_ns
        The mean time of taking a message; with 0 messages do not wait for the processor.
    slowness
        A factor on all times.
    life
        How often it has forgotten everything.
    busy
        Whether it takes time over something.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.service_ns: dict[str, float] = {}
        self.measured_ns: dict[str, tuple[int, int]] = {}
        self._mean_s: dict[str, float] = {}
        self.message_ns = 0.0
        self.slowness = 1.0
        self.life = 0
        self.busy = False
        self._waiting: deque[tuple[Callable[..., None] | None, tuple[Any, ...]]] = deque()
        self._jobs: deque[Job] = deque()

    def do(self, job: Job) -> None:
        """Do a job whose turn has come."""
        raise NotImplementedError

    def forget(self) -> None:
        """Lose all that waits, as in a crash; what was begun before ends without effect."""
        self.life += 1
        self.busy = False
        self._waiting.clear()
        self._jobs.clear()

    def behind(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call something when what was asked for before is done."""
        if self.busy:
            self._waiting.append((call, arguments))
        else:
            call(*arguments)

    def spend(self, works: Sequence[str]) -> None:
        """Take time over kinds of work."""
        if self.busy:
            self._waiting.append((None, tuple(works)))
            return
        spent_ns = self._spent_ns(works)
        if spent_ns > 0:
            self.busy = True
            self.world.at(self.world.now_ns + spent_ns, self._go_on, self.life)

    def queue(self, job: Job) -> None:
        """Have a job wait for its turn."""
        self._jobs.append(job)
        if not self.busy and len(self._jobs) == 1:
            self.world.at(self.world.now_ns, self._next_job, self.life)

    def measured_s(self, work: str) -> float:
        """Return the mean time of a kind of work in the window that ends now.

        Where nothing of the kind was done, it is that of the last window in which it was.
        """
        count, sum_ns = self.measured_ns.pop(work, (0, 0))
        if count:
            self._mean_s[work] = sum_ns / count / 1e9
        return self._mean_s.get(work, 0.0)

    def drawn_ns(self, mean_ns: float) -> int:
        """Return an exponential time, as in the papers' queueing model."""
        if mean_ns <= 0.0:
            return 0
        return round(self.world.times.expovariate(1.0) * mean_ns * self.slowness)

    def _spent_ns(self, works: Sequence[str]) -> int:
        total_ns = 0
        for work in works:
            spent_ns = self.drawn_ns(self.service_ns.get(work, 0.0))
            count, sum_ns = self.measured_ns.get(work, (0, 0))
            self.measured_ns[work] = (count + 1, sum_ns + spent_ns)
            total_ns += spent_ns
        return total_ns

    def _go_on(self, life: int) -> None:
        """Go on with what waits behind the work that is done now."""
        if self.life != life:
            return
        waiting = self._waiting
        while waiting:
            call, arguments = waiting.popleft()
            if call is not None:
                call(*arguments)
                continue
            spent_ns = self._spent_ns(arguments)
            if spent_ns > 0:
                self.world.at(self.world.now_ns + spent_ns, self._go_on, life)
                return
        self.busy = False
        if self._jobs:
            self.world.at(self.world.now_ns, self._next_job, life)

    def _next_job(self, life: int) -> None:
        if self.life != life or self.busy or not self._jobs:
            return
        job = self._jobs.popleft()
        if isinstance(job, int):
            self.do(job)
            if self.life == life and not self.busy and self._jobs:
                self.world.at(self.world.now_ns, self._next_job, life)
        else:
            self.busy = True
            self.world.at(
                self.world.now_ns + self.drawn_ns(self.message_ns), self._taken, life, job
            )

    def _taken(self, life: int, job: Job) -> None:
        """Hand over a message over which the processor has taken its time."""
        if self.life == life:
            # What waited behind it was asked for before.
            self._go_on(life)
            self.do(job)
