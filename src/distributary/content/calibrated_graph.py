"""Calibrated adaptation graphs: sizes and costs that grow with the content.

A calibration measures real conversions and writes what it found as a straight line
per format and per conversion, over the megabytes of the source content::

    {"formats": [{"name": "application/pdf", "size": {"fixed": 0.0, "per_mb": 1.0}},
                 {"name": "image/jpeg", "size": {"fixed": 0.02, "per_mb": 0.4}}],
     "conversions": [{"from": "application/pdf", "to": "image/jpeg",
                      "cost": {"fixed": 0.01, "per_mb": 0.35}}],
     "machine": {"processor": "..."}}

Sizes are in MB (a million bytes), costs in seconds. Other fields, such as the machine
and the spread of the measurements, are for people and are not read here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from distributary.arguments import checked
from distributary.content.adaptation_graph import AdaptationGraph
from distributary.content.documents import read_document
from distributary.content.fields import Record
from distributary.content.graph_file import graph_from
from distributary.content.payload import CONTENT_BYTES_MAX
from distributary.errors import BadInput

__all__ = ["graph_for", "graph_text", "read_graph_for"]

_MEGABYTE = 1e6


@checked
def graph_for(document: object, content_bytes: int) -> AdaptationGraph:
    """Return the adaptation graph of a calibration document for content of this many bytes.

    Every size and every cost is `fixed + per_mb * MB`.
    """
    if not 0 <= content_bytes <= CONTENT_BYTES_MAX:
        raise BadInput("bytes", f"must be between 0 and {CONTENT_BYTES_MAX}, not {content_bytes}")
    megabytes = content_bytes / _MEGABYTE

    def amount(entry: Record, key: str) -> float:
        line = entry.record(key)
        return line.number("fixed") + line.number("per_mb") * megabytes

    return graph_from(Record(document), amount=amount)


def read_graph_for(path: Path | str, content_bytes: int) -> AdaptationGraph:
    """Return the adaptation graph of the calibration in a file; see `graph_for`."""
    return read_document(path, lambda document: graph_for(document, content_bytes))


@checked
def graph_text(document: Mapping[str, Any], kept: Collection[str] | None = None) -> str:
    """Return a calibration as JSON, without what is in it for people.

    Of the formats only those that are `kept`, all unless given, and what leads from one to another.
    """
    formats, conversions = document["formats"], document["conversions"]
    names = {entry["name"] for entry in formats} if kept is None else set(kept)
    return json.dumps(
        {
            "formats": [
                {"name": entry["name"], "size": entry["size"]}
                for entry in formats
                if entry["name"] in names
            ],
            "conversions": [
                {"from": entry["from"], "to": entry["to"], "cost": entry["cost"]}
                for entry in conversions
                if {entry["from"], entry["to"]} <= names
            ],
        }
    )
