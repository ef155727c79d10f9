"""Sample content of the web: the notice as a page, and water levels as JSON and XML."""

from __future__ import annotations

import json
import re
from html import escape

from distributary.errors import BadInput
from distributary.media.samples import notice_text

__all__ = ["page_html", "readings_json", "readings_xml"]

_COUNT_MAX = 100_000
_ITEM = re.compile(r"[0-9]+\. ")
_HOURS = 24


def page_html(notices: int = 1, seed: int = 0) -> bytes:
    """Return a page of the web with a notice, or with the same several times."""
    title, *paragraphs = notice_text(seed).strip().split("\n\n")
    items = [paragraph for paragraph in paragraphs if _ITEM.match(paragraph)]
    lines = [f"<h1>{escape(title)}</h1>", *_elements("p", paragraphs[:1]), "<ol>"]
    lines += _elements("li", [_ITEM.sub("", item, count=1) for item in items])
    lines += ["</ol>", *_elements("p", paragraphs[len(items) + 1 :])]
    article = "\n".join(["<article>", *lines, "</article>"])
    head = (
        f"<!doctype html>\n<html lang=en>\n<title>{escape(title)}</title>\n<meta charset=utf-8>\n"
    )
    return (head + "\n".join([article] * _checked("notices", notices)) + "\n</html>\n").encode()


def readings_json(days: int = 1, seed: int = 0) -> bytes:
    """Return water levels of so many days, by the hour, as JSON."""
    return json.dumps(
        {"gauge": "Langford Bridge", "exercise": seed, "levels": _levels(days)}
    ).encode()


def readings_xml(days: int = 1, seed: int = 0) -> bytes:
    """Return the same as XML."""
    levels = "".join(
        f'<level at="{item["at"]}" unit="m">{item["metres"]}</level>\n' for item in _levels(days)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<levels gauge="Langford Bridge" exercise="{seed}">\n{levels}</levels>\n'
    ).encode()


def _levels(days: int) -> list[dict[str, object]]:
    return [
        {"at": f"day {hour // _HOURS + 1}, {hour % _HOURS:02}:00", "metres": 2 + hour * 7 % 31 / 10}
        for hour in range(_checked("days", days) * _HOURS)
    ]


def _elements(name: str, texts: list[str]) -> list[str]:
    return [f"<{name}>{escape(text)}</{name}>" for text in texts]


def _checked(name: str, count: int) -> int:
    if not 1 <= count <= _COUNT_MAX:
        raise BadInput(name, f"must be from 1 to {_COUNT_MAX:,}, not {count}")
    return count
