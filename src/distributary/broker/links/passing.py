"""Passing: messages that a broker only hands on, and does not store.

Content passes brokers that have nothing to do with it. Were each of them to write it to its disk
before it acknowledges, a publication would be written once for every hop. So such a broker
acknowledges a message when all those have whom it has handed it on to: an acknowledgement says
that somebody from here on has stored it. What follows from that:

- A broker that crashes has lost what was passing. Nobody had heard that it arrived, so that it
  is sent again, and handed on again, under other numbers. Those further on may get it twice, and
  tell by what is in it that they had it: only such messages pass.
- While a message is passing it comes again if the way is long. It is not handed on again, as the
  links from here on do that themselves, and not acknowledged either. Who sends it waits longer
  where there are more hops to go.
- When the next broker goes down, a message to the root of a key takes another way, still for the
  one that came. Content does not: the root of its item hears of it too, and plans around it. Then
  nothing is left to wait for, and the message is acknowledged. To keep it until that broker is
  back would fill the window of the link on which it came, for a whole outage, for nothing.
- No message waits for room in a window while another waits for it. Three brokers could else wait
  for each other in a circle, each with a full window towards the next. What cannot leave at once
  is stored, and acknowledged, like any other. So is what passes a broker for the second time, as
  brokers do not agree on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Passage", "Passages"]


@dataclass(eq=False, slots=True)
class Passage:
    """A message that passes.

    Attributes
    ----------
    sender, number, sent_ns, lowest
        As in its `Hop`.
    came_ns
        When it came first.
    left
        To how many it was handed on who have not acknowledged it.
    """

    sender: str
    number: int
    sent_ns: int
    lowest: int
    came_ns: int
    left: int = 0


class Passages:
    """The messages that pass one broker."""

    def __init__(self) -> None:
        self._passing: dict[tuple[str, int], Passage] = {}

    def __len__(self) -> int:
        return len(self._passing)

    def add(self, passage: Passage) -> None:
        """Note that a message is passing."""
        self._passing[passage.sender, passage.number] = passage

    def __contains__(self, sending: tuple[str, int]) -> bool:
        """Whether the message of a sender with a number is passing.

        That it comes again changes nothing. It was the first sending that arrived, and its
        sender learns by that how long the way is.
        """
        return sending in self._passing

    def is_over(self, passage: Passage) -> bool:
        """Note that one more has a message; return whether that was the last."""
        passage.left -= 1
        if passage.left:
            return False
        return self._passing.pop((passage.sender, passage.number), None) is not None
