"""A network of one's own: the options that all commands share, and what they give."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.arrays import IntArray
    from distributary.topology.sites import Sites

__all__ = ["At", "NetworkOptions", "chosen_sites", "print_notes"]

At = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PLACE",
        help="Put a broker at this place of the network; once for each, the root first.",
        show_default="at random",
    ),
]


@dataclass(frozen=True)
class NetworkOptions:
    """Which network it is, if any."""

    topology: Annotated[
        Path | None,
        typer.Option(metavar="FILE.gml", help="Take places and delays from this network."),
    ] = None
    delays: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take places and delays from this matrix."),
    ] = None
    unit: Annotated[
        Literal["s", "ms", "us"] | None, typer.Option(help="Unit of --delays.", show_default="ms")
    ] = None
    round_trip: Annotated[
        bool, typer.Option("--round-trip", help="Halve --delays: they are there and back.")
    ] = False

    def sites(self) -> Sites | None:
        """Return the places of the network that the options name, or None if they name none."""
        if self.topology is not None and self.delays is not None:
            raise BadInput("--delays", "cannot be combined with --topology")
        if self.delays is None and (self.round_trip or self.unit is not None):
            raise BadInput("--round-trip" if self.round_trip else "--unit", "needs --delays")
        from distributary.topology.sites import gml_sites, matrix_sites

        if self.topology is not None:
            return gml_sites(self.topology)
        if self.delays is not None:
            return matrix_sites(self.delays, unit=self.unit or "ms", round_trip=self.round_trip)
        return None


def chosen_sites(
    sites: Sites | None, at: list[str] | None, count: int | None, option: str
) -> IntArray | None:
    """Return the places that --at names, or None if it names none.

    `option` is the one that counts brokers, and `count` what it says.
    """
    if not at:
        return None
    if sites is None:
        raise BadInput("--at", "needs --topology or --delays")
    if count is not None:
        raise BadInput(option, "cannot be combined with --at")
    return sites.indices(at, "--at")


def print_notes(sites: Sites | None) -> None:
    """Tell people what the file of a network does not say."""
    if sites is not None:
        for note in sites.notes:
            print(f"note: {sites.file}: {note}", file=sys.stderr)
