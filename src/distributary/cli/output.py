"""Where commands write: data to a file or standard output, everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from distributary.errors import BadInput, quoted

__all__ = ["check_output", "print_warnings", "shown_path", "write_document"]

_WARNINGS_MAX = 5


def check_output(path: Path | None, option: str) -> None:
    """Raise `BadInput` if nothing can be written at `path`, before any work is done."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(option, f"{quoted(path)} is a directory")
    if not path.absolute().parent.is_dir():
        raise BadInput(option, f"directory {quoted(path.parent)} does not exist")


def write_document(document: dict[str, object], path: Path | None) -> None:
    """Write `document` as JSON to the file, whole or not at all, or to standard output."""
    from distributary.content.documents import document_text

    if path is None:
        ascii_only = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
        sys.stdout.write(document_text(document, ascii_only=ascii_only))
        sys.stdout.flush()
        return
    try:
        _replace(path.resolve(), document_text(document))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput("-o", f"{quoted(path)} cannot be written: {reason}") from None


def _replace(target: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of it."""
    if target.exists() and not target.is_file():
        # A pipe or a device: there is nothing to replace.
        target.write_text(text, encoding="utf-8")
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


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
