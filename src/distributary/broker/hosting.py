"""Hosting: what a driver needs of whoever runs a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from distributary.broker.addresses import Address
from distributary.broker.blob import Blob
from distributary.broker.broker import Broker
from distributary.broker.planning import PlanningProblem

__all__ = ["Host"]


class Host(Protocol):
    """What a driver needs of whoever runs a broker.

    A host calls `Driver.start` once, then `receive` for every message, `wake` when it is time,
    `serve` for every ticket, one after the other. Nothing here calls the driver back before it
    returns; what is to be answered is answered later.
    """

    def now_ns(self) -> int:
        """Return the time by the host's clock.

        It may be set back: a broker goes by a time of its own that never does.
        """

    def restore(self) -> Broker:
        """Return a broker as its journal has it, by `Broker.restore`, that is not started.

        It is called again after a failure. What an earlier broker asked for may
        be forgotten with it; who answers all the same does no harm.
        """

    def first(self) -> Sequence[object]:
        """Return what a broker is told before it starts: where it stands, and what it must know.

        Nothing that the host has said stays with a broker that is restored. It is told
        here what its content store has (`ContentHeld`), as no journal says it.
        """

    def commit(self, writes: Mapping[str, bytes | None]) -> bool:
        """Make records durable, all or none: bytes by key; None erases what is there.

        Return whether it is done. If not, the host calls `Driver.committed` once it is, or
        `Driver.commit_failed`. There is never more than one commit under way. One that fails
        at once raises. A host that still has hope tries again before it says so, because
        a broker whose commit has failed loses a message.
        """

    def send(self, to: Address, message: object) -> None:
        """Send a message, which may get lost, behind those that were sent before.

        To another broker it is encoded in `Broker.version`.
        """

    def convert(self, ticket: int, blob: Blob, target: str, data: bytes | None) -> None:
        """Convert content; `receive` the answer, `Converted` or `ConversionRefused`.

        The same ticket comes again while there is no answer, and is not begun a second time.
        The bytes are in the host's content store, or in `data`; those of the result are durable
        in the store before the answer is given.
        """

    def fetch(self, ticket: int, blob: Blob, holder: str) -> None:
        """Get bytes from the host of another broker; `receive` `Fetched` or `FetchFailed`.

        Likewise. They are durable in the store before `Fetched` is given. A host that is asked
        for bytes which it does not have says so for good, unless its own broker is still to get
        them (`Broker.awaits`). It tells its broker of those that it has given away
        (`ContentUsed`).
        """

    def free(self, digest: str) -> None:
        """Delete bytes from the content store, if they are there."""

    def make_plan(self, ticket: int, problem: PlanningProblem) -> None:
        """Solve a problem beside the broker; `receive` the answer, `PlanMade`, likewise."""

    def serve(self, ticket: int) -> None:
        """Call `Driver.serve` with the ticket when the processor gets round to it."""

    def spend(self, works: Sequence[str]) -> None:
        """Take the time that kinds of work need before carrying out what follows.

        Where work takes its time by itself there is nothing to do.
        """

    def report(self, record: object) -> None:
        """Tell whoever watches."""

    def wake_at(self, at_ns: int) -> None:
        """Call `Driver.wake` when the host's clock shows this; it replaces a later one."""

    def failed(self, error: Exception, message: object | None) -> None:
        """Write down that a turn failed, with the message that it was about, if it was about one.

        The broker is restored afterwards. A host that is there to find faults raises.
        """

    def left(self) -> None:
        """Hear that the broker has left the overlay in good order, and may be stopped."""

    def stopped(self, reason: str) -> None:
        """Hear that the broker is stopped for good because it fails again and again."""
