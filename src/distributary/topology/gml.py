"""Networks in GML files, such as those of the Internet Topology Zoo.

GML is a list of keys with values, where a value is a number, a quoted string or, in
square brackets, another such list::

    graph [
      node [ id 0 label "Sydney" Longitude 151.2 Latitude -33.9 ]
      node [ id 1 label "Perth" Longitude 115.9 Latitude -32.0 ]
      edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" ]
    ]

Files in the wild are loose with it, so the reader is too: keys in any case, strings over
several lines, comments, bare words for values. Links work in both directions whatever
the file says, for that is how cables are laid.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TypeAlias

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.files import file_bytes, naming
from distributary.topology.network import Network

__all__ = ["parse_gml", "read_gml"]

Value: TypeAlias = "str | Block"
Block: TypeAlias = "list[tuple[str, Value]]"

_BYTES_MAX = 64 * 2**20
_NODES_MAX = 100_000
_LINKS_MAX = 1_000_000
_DEPTH_MAX = 32
_NAME_CHARACTERS_MAX = 200

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
      | (?P<open>\[) | (?P<close>\])
      | "(?P<string>[^"]*)"
      | (?P<word>[^\s\[\]"]+)""",
    re.VERBOSE,
)

_EARTH_RADIUS_KM = 6_371.0
# Light in glass is a third slower than in vacuum.
_SIGNAL_KM_PER_SECOND = 299_792.458 * 2.0 / 3.0

# Seconds that a link takes in a file that does not say of a single one how long it is.
_LINK_DELAY_UNKNOWN = 0.005


@checked
def read_gml(path: Path | str) -> Network:
    """Return the network in a GML file; see `parse_gml`."""
    with naming(path):
        data = file_bytes(path, bytes_max=_BYTES_MAX)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            # What the format was first written down with; every byte means something.
            text = data.decode("latin-1")
        if "\0" in text:
            raise BadInput("document", "is not text", hint="save it as UTF-8")
        return parse_gml(text)


def parse_gml(text: str) -> Network:
    """Return the network that a GML text describes, or raise `BadInput`.

    The delay of a link is the great-circle distance between its ends at two thirds of
    the speed of light. Where it is not known where both ends are, the median of the others
    stands in: a fixed guess would be most of the delay in a network of a town, and next to
    nothing in one of the world. Links from a node to itself are left out. Of several graphs in
    the text, the first is read.
    """
    graphs = [value for key, value in _blocks(text) if key == "graph" and isinstance(value, list)]
    if not graphs:
        raise BadInput("document", "has no graph")
    nodes = [value for key, value in graphs[0] if key == "node" and isinstance(value, list)]
    edges = [value for key, value in graphs[0] if key == "edge" and isinstance(value, list)]
    for what, entries, most in (("nodes", nodes, _NODES_MAX), ("edges", edges, _LINKS_MAX)):
        if len(entries) > most:
            raise BadInput("graph", f"has {len(entries):,} {what}; at most {most:,} are read")
    if not nodes:
        raise BadInput("graph", "has no nodes")
    index_of: dict[str, int] = {}
    labels: list[str] = []
    places = np.full((len(nodes), 2), np.nan)
    for index, node in enumerate(nodes):
        fields = _fields(node)
        identifier = _identifier(fields, "id", f"node {index}")
        if identifier in index_of:
            raise BadInput(
                f"node {index}.id", f"{quoted(identifier)} is also node {index_of[identifier]}"
            )
        index_of[identifier] = index
        labels.append(_label(fields, identifier))
        places[index, 0] = _angle(fields, "longitude", 180.0, f"node {index}")
        places[index, 1] = _angle(fields, "latitude", 90.0, f"node {index}")
    links: list[tuple[int, int]] = []
    for index, edge in enumerate(edges):
        fields = _fields(edge)
        ends = []
        for key in ("source", "target"):
            identifier = _identifier(fields, key, f"edge {index}")
            if identifier not in index_of:
                raise BadInput(f"edge {index}.{key}", f"{quoted(identifier)} is no node's id")
            ends.append(index_of[identifier])
        if ends[0] != ends[1]:
            links.append((ends[0], ends[1]))
    pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
    delays, guessed = _with_guesses(_link_delays(places, pairs))
    names = _distinct(labels, list(index_of))
    return Network(names, pairs, delays, guessed, np.degrees(places))


def _blocks(text: str) -> Block:
    """Return the text as keys with values, keys in lower case."""
    top: Block = []
    # Lists that are still open, with what opened them; a stack, for files can be hostile.
    opened: list[tuple[Block, int]] = [(top, 0)]
    key: str | None = None
    for kind, token, at in _tokens(text):
        block = opened[-1][0]
        if kind == "close":
            if key is not None:
                raise _fault(text, at, f"{quoted(key)} has no value")
            if len(opened) == 1:
                raise _fault(text, at, "']' closes nothing")
            opened.pop()
        elif key is None:
            if kind != "word":
                raise _fault(text, at, f"a key must stand here, not {quoted(token)}")
            key = token.lower()
        elif kind == "open":
            if len(opened) > _DEPTH_MAX:
                raise _fault(text, at, "is nested too deeply")
            inner: Block = []
            block.append((key, inner))
            opened.append((inner, at))
            key = None
        else:
            block.append((key, unescape(token) if kind == "string" else token))
            key = None
    if key is not None:
        raise _fault(text, len(text), f"{quoted(key)} has no value")
    if len(opened) > 1:
        raise _fault(text, opened[-1][1], "'[' is never closed")
    return top


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the content and the position of every token."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _fault(text, at, "a string is never closed")
        kind = match.lastgroup
        assert kind is not None
        if kind != "blank":
            yield kind, match[kind], at
        at = match.end()


def _fault(text: str, at: int, problem: str) -> BadInput:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return BadInput(f"line {line}, column {column}", f"malformed GML: {problem}")


def _fields(block: Block) -> dict[str, str]:
    """Return the plain values of a block by key, the first of each."""
    fields: dict[str, str] = {}
    for key, value in block:
        if not isinstance(value, list):
            fields.setdefault(key, value)
    return fields


def _identifier(fields: dict[str, str], key: str, place: str) -> str:
    """Return a node's identifier as it is written: usually, but not always, a number."""
    if key not in fields:
        raise BadInput(f"{place}.{key}", "is missing")
    return fields[key]


def _label(fields: dict[str, str], identifier: str) -> str:
    """Return what a node is called: its label on one line, or else its identifier."""
    words = " ".join(fields.get("label", "").split())
    words = "".join(character for character in words if character.isprintable())
    return words[:_NAME_CHARACTERS_MAX] or f"node {quoted(identifier)}"


def _distinct(labels: list[str], identifiers: list[str]) -> tuple[str, ...]:
    """Return the labels, with the identifier behind those that are given more than once."""
    counts = Counter(labels)
    taken = {label for label, count in counts.items() if count == 1}
    names = []
    for label, identifier in zip(labels, identifiers, strict=True):
        name = label
        if counts[label] > 1:
            name = f"{label} ({identifier[:40]})"
            while name in taken:
                name += "'"
            taken.add(name)
        names.append(name)
    return tuple(names)


def _angle(fields: dict[str, str], key: str, most: float, place: str) -> float:
    """Return a longitude or latitude in radians, NaN where the file has none."""
    try:
        value = float(fields.get(key, "nan"))
    except ValueError:
        return math.nan
    if abs(value) > most:
        raise BadInput(f"{place}.{key}", f"is {value:g}, and must be from -{most:g} to {most:g}")
    return math.radians(value)


def _link_delays(places: FloatArray, links: IntArray) -> FloatArray:
    """Return the delay of each link, NaN if unknown; `places` are longitudes and latitudes."""
    (east0, north0), (east1, north1) = places[links[:, 0]].T, places[links[:, 1]].T
    # The haversine form: the plain one loses all digits between neighbouring towns.
    half = (
        np.sin((north1 - north0) / 2.0) ** 2
        + np.cos(north0) * np.cos(north1) * np.sin((east1 - east0) / 2.0) ** 2
    )
    kilometres = 2.0 * _EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
    return np.asarray(kilometres / _SIGNAL_KM_PER_SECOND)


def _with_guesses(delays: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the delays with guesses for those that are unknown, and which these are."""
    unknown = np.isnan(delays)
    # Links within a town have no length on the map, and say nothing about those between towns.
    known = delays[~unknown & (delays > 0.0)]
    guess = float(np.median(known)) if len(known) else _LINK_DELAY_UNKNOWN
    return np.where(unknown, guess, delays), np.flatnonzero(unknown)
