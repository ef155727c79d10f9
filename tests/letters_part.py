"""A part that only sends letters, to see what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.core import Core, Handler, Part
from distributary.broker.encoding import encodable
from distributary.broker.host import Turn
from distributary.broker.links.messages import Step
from distributary.errors import PeerMisbehaved


@encodable(60_000)
@dataclass(frozen=True, slots=True)
class Note:
    text: str


@encodable(60_001)
@dataclass(frozen=True, slots=True)
class Post:
    """Tell a broker to send notes, to a peer or to the root of a key."""

    to: str
    texts: tuple[str, ...]
    routed: bool = False


@encodable(60_002)
@dataclass(frozen=True, slots=True)
class NoteRecord:
    count: int


class Letters(Part):
    """Keeps how often each note has come from whom."""

    name = "letters"

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.received: dict[tuple[Address, str], int] = {}
        self.paths: dict[str, tuple[Step, ...]] = {}
        self.returned: list[tuple[str, str]] = []

    def handlers(self) -> Mapping[type, Handler]:
        return {Note: self._note, Post: self._post}

    def load(self, key: str, record: Any) -> None:
        sender, text = key.split("/")
        assert isinstance(record, NoteRecord)
        self.received[sender, text] = record.count

    def undeliverable(self, message: Any, peer: Address, turn: Turn) -> None:
        self.returned.append((message.text, peer))

    def _note(self, message: Note, sender: Address, turn: Turn) -> None:
        if message.text == "rude":
            raise PeerMisbehaved("a rude note")
        count = self.received[sender, message.text] = (
            self.received.get((sender, message.text), 0) + 1
        )
        self.paths[message.text] = self.core.links.path
        turn.persist(f"letters/{sender}/{message.text}", NoteRecord(count))

    def _post(self, message: Post, sender: Address, turn: Turn) -> None:
        for text in message.texts:
            if message.routed:
                self.core.links.route(message.to, Note(text), turn)
            else:
                self.core.links.send(message.to, Note(text), turn)
