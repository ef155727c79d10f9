"""Publications as an Arrow batch: the columns of the table, types and all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from distributary.content.publication import Publication
from distributary.content.publication_table import publications_schema, to_arrow
from distributary.errors import BadInput

pytest.importorskip("pyarrow")

EVENT = Publication.parse(
    {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "t",
        "time": "2026-01-31T12:00:00.0000019Z",
        "urgent": True,
        "level": -3,
        "data": {"price": 2.5, "name": "x"},
    }
)
BARE = Publication.parse({"specversion": "1.0", "id": "2", "source": "/s", "type": "t"})


def test_every_column_holds_what_the_table_says() -> None:
    batch = to_arrow([EVENT, BARE], publishers=["ann", None])
    assert batch.schema.equals(publications_schema(), check_metadata=True)
    first, second = batch.to_pylist()
    assert dict(first["attributes"])["urgent"] == {"type": "Boolean", "text": "true"}
    assert dict(first["attributes"])["level"] == {"type": "Integer", "text": "-3"}
    assert dict(first["attributes"])["id"] == {"type": "String", "text": "1"}
    assert first["time"] == datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)
    assert (first["numbers"], first["texts"]) == ([("/price", 2.5)], [("/name", "x")])
    assert (first["source"], first["event_id"], first["publisher"]) == ("/s", "1", "ann")
    assert (first["media_type"], first["bytes"]) == ("application/json", len(EVENT.content))
    assert (second["time"], second["publisher"], second["media_type"]) == (None, None, None)
    assert (second["numbers"], second["bytes"]) == ([], 0)


def test_without_publishers_the_source_stands_in() -> None:
    assert to_arrow([EVENT]).column("publisher").to_pylist() == ["/s"]
    named = Publication({**EVENT.attributes, "publisher": "ann"}, EVENT.data)
    assert to_arrow([named]).column("publisher").to_pylist() == ["ann"]


def test_content_by_reference_counts_with_its_declared_size() -> None:
    elsewhere = {**EVENT.attributes, "dataref": "s3://b/video", "datasize": "3000000000"}
    assert to_arrow([Publication(elsewhere)]).column("bytes").to_pylist() == [3_000_000_000]
    assert to_arrow([]).num_rows == 0


def test_publishers_must_be_as_many_as_publications() -> None:
    with pytest.raises(BadInput, match="publishers: has 1 entries for 2 publications"):
        to_arrow([EVENT, BARE], publishers=["ann"])
