"""Results as frames: columns by name as a table of pandas, Polars or Arrow.

None of the three is needed, and none is loaded before somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from distributary.arguments import check_choice
from distributary.errors import MissingPackage

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LIBRARIES", "frame", "frame_of_table"]

LIBRARIES = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
"""What a frame can be, and the package that makes it; the extra has the name of the frame."""


def frame_of_table(table: pa.Table, library: str = "pandas") -> Any:
    """Return an Arrow table as a frame, as `frame` does."""
    module = _module(library)
    if library == "arrow":
        return table
    if library == "polars":
        return module.from_arrow(table)
    return table.to_pandas(maps_as_pydicts="strict")


def frame(columns: Mapping[str, Sequence[object]], library: str = "pandas") -> Any:
    """Return columns of one length as a `DataFrame` of pandas or Polars, or an Arrow `Table`.

    Raises
    ------
    BadInput
        When the library is none of `LIBRARIES`.
    MissingPackage
        When it is not installed; says how to install it.
    """
    module = _module(library)
    made = module.table if library == "arrow" else module.DataFrame
    return made(dict(columns))


def _module(library: str) -> Any:
    """Return the module that makes frames of this kind."""
    check_choice("library", library, LIBRARIES)
    package = LIBRARIES[library]
    try:
        return import_module(package)
    except ImportError:
        purpose = f"a frame of {library}"
        raise MissingPackage(package, extra=library, purpose=purpose) from None
