"""Formats and conversions as tables for people, with what is alike on one line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from distributary.content.media_type import MediaType

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "conversion_groups",
    "format_groups",
    "number",
    "number_range",
    "print_table",
    "reading_order",
    "table",
]

_FIGURES = 3
_DECIMALS_MAX = 7
# A file has no width: a table in it is as wide as it needs to be.
_FILE_WIDTH = 200


def format_groups(names: Iterable[str], *, every: bool) -> dict[str, list[str]]:
    """Return the formats that one line can stand for, by what the line calls them.

    Videos of one width and bit rate are one line: it is the bit rate that makes their
    size, whatever the container.

    With `every`, each has a line of its own instead.
    """
    if every:
        return {name: [name] for name in sorted(names, key=reading_order)}
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names, key=reading_order):
        parsed = MediaType.parse(name)
        video = parsed.type == "video"
        key = (f"{parsed.type}/*", name.partition(";")[2]) if video else (name, "")
        groups.setdefault(key, []).append(name)
    return {
        found[0] if len(found) == 1 else ";".join(filter(None, key)): found
        for key, found in groups.items()
    }


def conversion_groups(
    pairs: Iterable[tuple[str, str]], *, every: bool
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the conversions that one line can stand for, by what it calls source and target.

    Those into one type are alike, from whatever picture or video they start: writing
    takes longer than reading.

    With `every`, each has a line of its own instead.
    """
    if every:
        order = sorted(pairs, key=lambda pair: (*reading_order(pair[0]), *reading_order(pair[1])))
        return {pair: [pair] for pair in order}
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for source, target in sorted(pairs):
        key = (MediaType.parse(source).type, MediaType.parse(target).essence)
        groups.setdefault(key, []).append((source, target))
    named = {}
    for (kind, target), found in groups.items():
        essences = {MediaType.parse(source).essence for source, _ in found}
        named[essences.pop() if len(essences) == 1 else f"{kind}/*", target] = found
    return named


def reading_order(name: str) -> tuple[str, int, str]:
    """Return what formats are sorted by for people: by type, the widest first."""
    parsed = MediaType.parse(name)
    width = parsed.parameters.get("width", "")
    return parsed.essence, -int(width) if width.isdecimal() else 0, name


def number(amount: float) -> str:
    """Return an amount, at least 0, with three figures and no exponent."""
    if amount < 10.0**-_DECIMALS_MAX:
        return "0"
    decimals = _FIGURES - 1 - math.floor(math.log10(amount))
    return f"{amount:,.{min(max(decimals, 0), _DECIMALS_MAX)}f}"


def number_range(amounts: Sequence[float]) -> str:
    """Return the least and the greatest amount, or the only one; a dash if there is none."""
    if not amounts:
        return "-"
    least, greatest = number(min(amounts)), number(max(amounts))
    return least if least == greatest else f"{least} - {greatest}"


def table(names: Sequence[str], figures: Sequence[str]) -> Table:
    """Return an empty table, with columns of names and then columns of figures."""
    from rich import box
    from rich.table import Table

    empty = Table(box=box.SIMPLE_HEAD)
    for heading in names:
        empty.add_column(heading, overflow="fold")
    for heading in figures:
        empty.add_column(heading, justify="right")
    return empty


def print_table(filled: Table) -> None:
    """Print a table on standard output."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    console.print(filled)
