"""What changes about the members of an overlay."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MembersChanged"]


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """What has changed about the brokers of the overlay, as far as this one knows.

    Attributes
    ----------
    came
        Brokers that are there now and were not, or were down or have started anew.
    down
        Brokers that do not answer any more, and may come back.
    gone
        Brokers that have left, or are lost for ever; the own one when it leaves.
    """

    came: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
