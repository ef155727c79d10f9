"""Where results go that may be one JSON file or a folder of Parquet tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from distributary.cli.output import check_output, output_name
from distributary.errors import BadInput, quoted
from distributary.files import writing

__all__ = ["tables_folder", "tables_option", "writing_tables"]


def tables_option(noun: str) -> Any:
    """Return the option that says where a result goes which may be a file or a folder."""
    return typer.Option(
        "-o",
        "--output",
        metavar=f"{noun}.json|DIR/",
        parser=output_name,
        help="Write here, not to standard output; Parquet tables into a directory.",
    )


def tables_folder(output: str | None, *, prefer_tables: bool = False) -> Path | None:
    """Return the folder that tables go to, or None if the result is a JSON document.

    Tables are asked for by a name that ends with a slash or is that of a folder. Raises
    `BadInput` if nothing can be written there, before any work is done.

    `output` is what the user gave, with the slash that a `Path` would lose. With `prefer_tables` a
    name that says nothing, having no suffix `.json`, means a folder too.
    """
    if output is None:
        return None
    path = Path(output)
    slash = output.endswith((os.sep, "/"))
    if path.is_dir() or slash or (prefer_tables and path.suffix != ".json" and not path.exists()):
        if path.exists() and not path.is_dir():
            raise BadInput("-o", f"{quoted(path)} is not a directory")
        if not path.absolute().parent.is_dir():
            raise BadInput("-o", f"directory {quoted(path.parent)} does not exist")
        return path
    check_output(path, "-o")
    return None


@contextmanager
def writing_tables(folder: Path) -> Iterator[None]:
    """Turn a failure to write into the `folder` into a `BadInput` about -o."""
    with writing(folder, "-o"):
        try:
            yield
        except BadInput as error:
            raise error.within("-o") from None
