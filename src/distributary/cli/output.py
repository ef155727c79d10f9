"""Where commands write: data to a file or standard output, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from distributary.errors import BadInput, quoted
from distributary.files import replacing

__all__ = [
    "ascii_only",
    "check_output",
    "output_name",
    "print_aligned",
    "print_warnings",
    "print_written",
    "readable_path",
    "shown_path",
    "write_document",
    "write_documents",
]

_WARNINGS_MAX = 5


def output_name(given: str) -> str | None:
    """Return where -o says that the result goes; None is standard output, which `-` is too."""
    if not given:
        raise typer.BadParameter("it is empty; - is standard output")
    return None if given == "-" else given


def check_output(path: Path | None, option: str) -> None:
    """Raise `BadInput` if nothing can be written at `path`, before any work is done."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(option, f"{quoted(path)} is a directory")
    if not path.absolute().parent.is_dir():
        raise BadInput(option, f"directory {quoted(path.parent)} does not exist")


def ascii_only() -> bool:
    """Whether standard output takes no other characters than those of ASCII."""
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"


def write_document(document: dict[str, object], path: Path | None) -> None:
    """Write `document` as JSON to the file, whole or not at all, or to standard output."""
    from distributary.content.documents import document_text

    if path is None:
        sys.stdout.write(document_text(document, ascii_only=ascii_only()))
        sys.stdout.flush()
        return
    with replacing(path, "-o") as draft:
        draft.write_text(document_text(document), encoding="utf-8")


def write_documents(documents: Sequence[dict[str, object]]) -> None:
    """Write a list of documents as JSON to standard output, a line for each."""
    lines = [json.dumps(item, ensure_ascii=ascii_only(), allow_nan=False) for item in documents]
    sys.stdout.write("[" + ",\n ".join(lines) + "]\n")
    sys.stdout.flush()


def print_aligned(rows: Sequence[Sequence[str]]) -> None:
    """Print rows as columns, as wide as what is in them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def print_written(summary: str, output: Path | str | None) -> None:
    """Print what was written to a file, for people; what went to standard output they see."""
    if output is not None:
        print(f"{summary}; written to {output}", file=sys.stderr)


def print_warnings(path: Path, warnings: Sequence[str]) -> None:
    """Print the warnings about a file, a line each, the first few only."""
    shown = list(warnings)
    if len(shown) > _WARNINGS_MAX:
        shown[_WARNINGS_MAX - 1 :] = [f"{len(shown) - _WARNINGS_MAX + 1:,} more keys are ignored"]
    for warning in shown:
        print(f"warning: {shown_path(path)}: {warning}", file=sys.stderr)


def shown_path(path: Path) -> str:
    """Return what messages call a file that was named on the command line."""
    return "standard input" if str(path) == "-" else str(path)


def readable_path(path: Path) -> Path:
    """Return a file that was named on the command line as one to open: `-` is standard input."""
    return Path("/dev/stdin") if str(path) == "-" else path
