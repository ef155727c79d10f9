"""Streams: publishers of values that change, and followers that tolerate some divergence."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from distributary.broker import client as messages
from distributary.broker.settings import ns
from distributary.content import Publication, Version
from distributary.simulator.checkers.fidelity import Fidelity
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.workload.device import Device
from distributary.simulator.workload.interests import EPOCH_NS
from distributary.simulator.workload.subscriber import Subscriber
from distributary.simulator.world import World

__all__ = ["NUMBER", "TEXT", "StreamFollower", "StreamObject", "StreamPublisher", "Walk"]

_REVERSION = 0.05
_WORDS = ("calm", "rising", "falling", "sharp", "flat", "volatile", "steady", "thin")


class Walk:
    """One value, a number and a text that comments it, changing by jumps.

    Parameters
    ----------
    mean
        Where the number is drawn to.
    jump
        The standard deviation of a jump.
    """

    def __init__(self, mean: float, jump: float, rng: random.Random) -> None:
        self._mean = mean
        self._jump = jump
        self._rng = rng
        self.number = mean
        self.text = _WORDS[0]

    def step(self) -> None:
        """Move by a random jump and back towards the mean, and say something else."""
        pull = _REVERSION * (self._mean - self.number)
        self.number += pull + self._rng.gauss(0.0, self._jump)
        self.text = " ".join(self._rng.choices(_WORDS, k=3))


NUMBER = "/value"
TEXT = "/text"

# A change is not acknowledged; what a home missed while it was down comes with this.
_RETELL_S = 10.0


@dataclass(eq=False)
class StreamObject:
    """A value that changes.

    Attributes
    ----------
    rate
        Changes per second.
    sequence
        How often it has changed.
    """

    source: str
    subject: str
    type: str
    rate: float
    walk: Walk
    sequence: int = 0

    @property
    def identity(self) -> tuple[str, str]:
        """(`source`, `subject`)."""
        return self.source, self.subject

    def event(self) -> Publication:
        """Return what its versions have in common."""
        return Publication.parse(
            {
                "specversion": "1.0",
                "id": self.subject,
                "source": self.source,
                "subject": self.subject,
                "type": self.type,
            }
        )


class StreamPublisher(Device):
    """A client that announces objects and tells of every change.

    Parameters
    ----------
    fidelities
        Who is told of every change.

    Attributes
    ----------
    rate_factor
        On the rates of all objects.
    """

    def __init__(
        self,
        world: World,
        name: str,
        home: str,
        source: str,
        *,
        fidelities: tuple[Fidelity, ...],
        rng: random.Random,
    ) -> None:
        super().__init__(world, name, home)
        self.source = source
        self.rate_factor = 1.0
        self._fidelities = fidelities
        self._rng = rng
        self._end_ns = 0
        self.handle(messages.Announced, lambda m: self.answered("announce", m.subject))
        self.handle(messages.Refused, self._refused)

    def begin(self, objects: list[StreamObject], end_ns: int) -> None:
        """Announce objects, and change them until a time."""
        self._end_ns = end_ns
        for thing in objects:
            text = json.dumps(thing.event().document(), separators=(",", ":"))
            self.request(messages.Announce(text), "announce", thing.subject)
            self._tell(thing)
            self._later(thing)

    def _refused(self, message: messages.Refused) -> None:
        # A version may overtake the announcement, which is repeated when it gets lost.
        announcing = any(kind == "announce" for kind, *_ in self._open)
        assert announcing, f"{self.address} was refused {message.what}: {message.reason}"

    def _later(self, thing: StreamObject) -> None:
        rate = thing.rate * self.rate_factor
        if rate > 0.0:
            at_ns = self.world.now_ns + ns(self._rng.expovariate(rate))
            if at_ns < self._end_ns:
                self.world.at(at_ns, self._change, thing)

    def _change(self, thing: StreamObject) -> None:
        thing.walk.step()
        self._tell(thing)
        self._later(thing)

    def _tell(self, thing: StreamObject) -> None:
        thing.sequence += 1
        now_ns = self.world.now_ns
        versions = {
            NUMBER: Version(thing.walk.number, thing.sequence, EPOCH_NS + now_ns),
            TEXT: Version(thing.walk.text, thing.sequence, EPOCH_NS + now_ns),
        }
        for fidelity in self._fidelities:
            fidelity.changed(thing.identity, thing.sequence, versions, now_ns)
        values: tuple[tuple[str, float | str | None], ...] = tuple(
            sorted((pointer, version.value) for pointer, version in versions.items())
        )
        self._send_version(
            thing,
            messages.Changed(
                thing.source, thing.subject, thing.sequence, EPOCH_NS + now_ns, values
            ),
        )

    def _send_version(self, thing: StreamObject, version: messages.Changed) -> None:
        """Send a version, again and again until there is a newer one."""
        if version.sequence == thing.sequence:
            self.send(version)
            at_ns = self.world.now_ns + ns(_RETELL_S)
            self.world.at(at_ns, self._send_version, thing, version)


class StreamFollower(Subscriber):
    """A client that follows objects with a tolerance.

    Parameters
    ----------
    copies
        Who is told of every copy that the client gets.
    """

    def __init__(
        self, world: World, name: str, home: str, ledger: Ledger, copies: Fidelity
    ) -> None:
        super().__init__(world, name, home, ledger)
        self._copies = copies
        self.handle(messages.Updated, self._updated)

    def _updated(self, message: messages.Updated) -> None:
        self._copies.copied(
            message.subscription,
            (message.source, message.subject),
            message.sequence,
            self.world.now_ns,
        )
