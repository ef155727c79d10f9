"""What jobs of the pipeline compute, the slow and obvious way: row by row in Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.reference.content import cell_of
from tests.reference.filters import matches

from distributary.content.calibrated_graph import graph_for
from distributary.content.content_space import ContentSpace
from distributary.content.format_choice import FormatChoice, choose_format
from distributary.content.profile import DeviceProfile
from distributary.content.publication import Publication
from distributary.filters.cells import cells


def deliveries(
    publications: Sequence[Publication],
    subscriptions: Sequence[Mapping[str, Any]],
    homes: Mapping[str, str | None],
    calibration: object,
) -> list[tuple[str | int | None, ...]]:
    """Return the rows of the table `deliveries`."""
    rows: list[tuple[str | int | None, ...]] = []
    for event in publications:
        graph = graph_for(calibration, len(event.content))
        for entry in subscriptions:
            if not matches(entry["filters"], event):
                continue
            profile = entry.get("profile")
            media_type = None
            if event.media_type is not None:
                choice = choose_format(
                    None if profile is None else DeviceProfile.parse(profile),
                    graph,
                    event.media_type,
                )
                media_type = choice.name if isinstance(choice, FormatChoice) else None
            user = entry["user"]
            size = len(event.content)
            rows.append(
                (event.source, event.id, entry["id"], user, homes.get(user), media_type, size)
            )
    return rows


def received(
    publications: Sequence[Publication], subscriptions: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the bytes per second that each user receives, of each publication once."""
    volumes: dict[str, int] = defaultdict(int)
    for event in publications:
        for user in {e["user"] for e in subscriptions if matches(e["filters"], event)}:
            volumes[user] += len(event.content)
    seconds = _span(publications)
    return {user: float(volume / seconds) for user, volume in volumes.items()}


def rates_published(
    publications: Sequence[Publication], publishers: Sequence[str | None], space: ContentSpace
) -> list[tuple[str, int, float]]:
    """Return the rows of the table `rates_published`."""
    volumes: dict[tuple[str, int], int] = defaultdict(int)
    for event, publisher in zip(publications, publishers, strict=True):
        if publisher is not None:
            volumes[publisher, cell_of(space, event)] += len(event.content)
    seconds = _span(publications)
    return [(*key, float(volume / seconds)) for key, volume in sorted(volumes.items())]


def _span(publications: Sequence[Publication]) -> Fraction:
    """Return the seconds from the first publication to the last; one if that is no time."""
    times = [event.time_ns // 1000 for event in publications if event.time_ns is not None]
    span = Fraction(max(times) - min(times), 10**6) if times else Fraction(0)
    return span or Fraction(1)


def interests(
    subscriptions: Sequence[Mapping[str, Any]], space: ContentSpace
) -> list[tuple[str, int]]:
    """Return the rows of the table `interests`."""
    found = {
        (entry["user"], cell)
        for entry in subscriptions
        for cell in cells(entry["filters"], space).tolist()
    }
    return sorted(found)


def partners(
    rates: Mapping[tuple[int, int], float], wants: set[tuple[int, int]], users: int, most: int
) -> list[list[tuple[float, int]]]:
    """Return with whom each user has most traffic, as (traffic, user), heaviest first.

    Parameters
    ----------
    rates
        What a user publishes in a cell, by user and cell.
    wants
        Pairs of users and cells.
    users
        How many users there are.
    most
        How many partners each may have.
    """

    def said(one: int, other: int) -> float:
        return sum(
            rate for (user, cell), rate in rates.items() if user == one and (other, cell) in wants
        )

    found = []
    for one in range(users):
        pairs = [
            (said(one, other) + said(other, one), other) for other in range(users) if other != one
        ]
        heavy = sorted(
            (pair for pair in pairs if pair[0] > 0), key=lambda pair: (-pair[0], pair[1])
        )
        found.append(heavy[:most])
    return found
