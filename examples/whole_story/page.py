"""The report: one HTML file that needs nothing but a browser."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

__all__ = [
    "Bar",
    "Chapter",
    "Received",
    "Tile",
    "bars",
    "figure",
    "line_chart",
    "paragraph",
    "table",
    "write_page",
]

_CSS = (files("examples.whole_story") / "page.css").read_text()


@dataclass(frozen=True)
class Tile:
    """A figure that is worth a second look."""

    figure: str
    words: str


@dataclass(frozen=True)
class Bar:
    """One way of doing something, and what it costs."""

    name: str
    amount: float
    planned: bool = False


@dataclass(frozen=True)
class Chapter:
    """A heading and what stands below it, as markup."""

    title: str
    body: str


@dataclass(frozen=True)
class Received:
    """What one subscriber was sent.

    Attributes
    ----------
    who, device
        The subscriber, and what it can use.
    media_type, content
        What arrived.
    way
        How it came there, in words.
    """

    who: str
    device: str
    media_type: str
    content: bytes
    way: str

    def card(self) -> str:
        """Return it as markup: a picture to look at, a text to read, speech to listen to."""
        address = f"data:{self.media_type.partition(';')[0]};base64,"
        address += base64.b64encode(self.content).decode()
        kind = self.media_type.partition("/")[0]
        if kind == "image":
            shown = f'<img src="{address}" alt="The map that {escape(self.who)} received">'
        elif kind == "audio":
            shown = f'<audio controls src="{address}"></audio>'
        else:
            shown = f"<pre>{escape(self.content.decode(errors='replace')[:1500])}</pre>"
        return (
            f'<div class="card"><h3>{escape(self.who)}</h3>'
            f'<p class="soft">{escape(self.device)}</p>{shown}'
            f"<p><code>{escape(self.media_type)}</code>, {len(self.content):,} bytes. "
            f"{escape(self.way)}</p></div>"
        )


def paragraph(words: str) -> str:
    """Return a paragraph of plain words."""
    return f"<p>{escape(words)}</p>"


def figure(picture: str, caption: str) -> str:
    """Return a picture, which is markup already, with words below it."""
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def bars(rows: Sequence[Bar], *, digits: int = 0) -> str:
    """Return costs as bars, in the order given; the longest fills the width."""
    most = max(row.amount for row in rows)
    cells = "".join(
        f"<span>{escape(row.name)}</span>"
        f'<span><div class="bar{" planned" if row.planned else ""}" '
        f'style="width:{100.0 * row.amount / most:.2f}%"></div></span>'
        f"<span>{row.amount:,.{digits}f}</span>"
        for row in rows
    )
    return f'<div class="bars">{cells}</div>'


def line_chart(series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return lines over seconds, the first in grey and the last in colour, with their names."""
    width, height, left, bottom = 900.0, 300.0, 70.0, 40.0
    points = [point for line in series.values() for point in line]
    end, most = max(at for at, _ in points), max(value for _, value in points)

    def place(at: float, value: float) -> str:
        x = left + at / end * (width - left - 20.0)
        y = height - bottom - value / most * (height - bottom - 20.0)
        return f"{x:.1f},{y:.1f}"

    shown = []
    for share in (0.0, 0.5, 1.0):
        y = height - bottom - share * (height - bottom - 20.0)
        shown.append(
            f'<line x1="{left}" x2="{width - 20.0}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d7dee6"/>'
            f'<text x="{left - 8.0}" y="{y + 4.0:.1f}" text-anchor="end">{share * most:.2%}</text>'
        )
        x = left + share * (width - left - 20.0)
        shown.append(
            f'<text x="{x:.1f}" y="{height - 14.0}" text-anchor="middle">{share * end:.0f} s</text>'
        )
    colours = ["#8a97a3"] * (len(series) - 1) + ["#0b7a75"]
    for number, ((name, line), colour) in enumerate(zip(series.items(), colours, strict=True)):
        way = " ".join(place(at, value) for at, value in line)
        shown.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        shown.append(
            # As a style: rules of other pictures on the page win over an attribute.
            f'<text x="{left + 20.0}" y="{30.0 + 20.0 * number}" '
            f'style="fill:{colour};font-weight:bold">{escape(name)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {width} {height}" font-size="13" font-family="sans-serif" '
        f'fill="#5d6b7a" role="img">{"".join(shown)}</svg>'
    )


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    """Return a table; the columns in `numbers` are set to the right."""

    def cell(kind: str, column: int, words: str) -> str:
        style = ' class="number"' if column in numbers else ""
        return f"<{kind}{style}>{escape(words)}</{kind}>"

    written = "".join(cell("th", column, words) for column, words in enumerate(head))
    lines = "".join(
        "<tr>" + "".join(cell("td", column, words) for column, words in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{written}</tr></thead><tbody>{lines}</tbody></table>"


def write_page(
    path: Path, *, title: str, lead: str, tiles: Sequence[Tile], chapters: Sequence[Chapter]
) -> None:
    """Write the report.

    Parameters
    ----------
    path
        Where to.
    title, lead
        What it is about, in a few words and in a few more.
    tiles
        The figures at the top.
    chapters
        What follows.
    """
    shown = "".join(
        f'<div class="tile"><b>{escape(tile.figure)}</b>{escape(tile.words)}</div>'
        for tile in tiles
    )
    body = "".join(
        f"<section><h2>{escape(chapter.title)}</h2>{chapter.body}</section>" for chapter in chapters
    )
    # Nothing is loaded and nothing runs; pictures and sound are part of the file.
    policy = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{escape(lead)}</p>"
        f'<div class="tiles">{shown}</div>{body}</body></html>\n',
        encoding="utf-8",
    )
