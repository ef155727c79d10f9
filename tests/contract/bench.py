"""A part that does what it is told, to see what a host makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import Address, Blob
from distributary.broker.core import Core, Handler, Part
from distributary.broker.encoding import encodable
from distributary.broker.host import ConversionRefused, Converted, Turn

CLIENT = "@c"
CONTENT = Blob.imagined("a/a", 1_000_000, "x")


@encodable(60_021)
@dataclass(frozen=True, slots=True)
class Do:
    """Do something in one turn: `verb:what` each."""

    steps: tuple[str, ...]


@encodable(60_022)
@dataclass(frozen=True, slots=True)
class Said:
    """What the part says to a client, and when by its clock."""

    text: str
    clock_ns: int


@encodable(60_023)
@dataclass(frozen=True, slots=True)
class Value:
    """What the part keeps under a name."""

    text: str


def do(*steps: str) -> Do:
    return Do(steps)


class Bench(Part):
    """Turns words into effects.

    Attributes
    ----------
    handled
        The messages that this life of the broker has handled.
    values
        What it keeps, as its memory has it.
    """

    name = "bench"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.handled: list[Do] = []
        self.values: dict[str, str] = {}

    def handlers(self) -> Mapping[type, Handler]:
        return {Do: self._do, Said: lambda *_: None}

    def load(self, key: str, record: Any) -> None:
        assert isinstance(record, Value)
        self.values[key] = record.text

    def start(self, turn: Turn) -> None:
        """Go on with a conversion that was asked for."""
        if "broken" in self.values:
            raise AssertionError("the bench cannot start")
        if "wanted" in self.values:
            self.core.convert(turn, CONTENT, self.values["wanted"], self._converted)

    def _do(self, message: Do, sender: Address, turn: Turn) -> None:
        self.handled.append(message)
        for step in message.steps:
            self._step(turn, step)

    def _step(self, turn: Turn, step: str) -> None:
        verb, _, rest = step.partition(":")
        match verb:
            case "persist":
                key, _, text = rest.partition("=")
                self.values[key] = text
                turn.persist(f"bench/{key}", Value(text))
            case "erase":
                self.values.pop(rest, None)
                turn.erase(f"bench/{rest}")
            case "say":
                turn.send(CLIENT, Said(rest, turn.now_ns))
            case "report":
                turn.report(Value(rest))
            case "convert":
                self.core.convert(turn, CONTENT, rest, self._converted)
            case "serve":
                self.core.serve(turn, self._step, rest)
            case "later":
                seconds, _, then = rest.partition(" ")
                self.core.timers.at(turn.now_ns + round(float(seconds) * 1e9), self._step, then)
            case "fail":
                raise AssertionError(f"the bench breaks over {rest}")

    def _converted(self, turn: Turn, answer: Converted | ConversionRefused) -> None:
        words = answer.reason if isinstance(answer, ConversionRefused) else answer.blob.media_type
        turn.send(CLIENT, Said(words, turn.now_ns))
