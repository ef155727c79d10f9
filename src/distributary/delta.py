"""Opening a Delta table: what cannot be read is refused, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from distributary.errors import BadInput, MissingPackage, first_line

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["open_table"]

# What others may use that changes nothing for those who read.
_HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})


def open_table(
    place: str, version: int | None = None, storage_options: Mapping[str, str] | None = None
) -> DeltaTable | None:
    """Return the table in a folder, as it is or was at a version; None when there is none.

    Raises `BadInput` when it has no such version, a log that cannot be read, or uses what is not
    implemented here, such as deletion vectors: rows that are gone would be read.
    """
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise MissingPackage("deltalake", extra="spark", purpose="a table") from None
    options = dict(storage_options or {}) or None
    try:
        table = DeltaTable(place, version=version, storage_options=options)
    except TableNotFoundError:
        return None
    except DeltaError as error:
        if version is not None:
            latest = open_table(place, None, storage_options)
            if latest is not None and latest.version() < version:
                raise BadInput(place, f"has no version {version}") from None
        raise BadInput(place, f"has a log that cannot be read: {first_line(error)}") from None
    unread = set(table.protocol().reader_features or ()) - _HARMLESS
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        unread.add("columnMapping")
    if unread:
        raise BadInput(
            place,
            f"uses {', '.join(sorted(unread))} of Delta Lake, which is not read here",
            hint="have whoever writes it switch that off",
        )
    return table
