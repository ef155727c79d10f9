"""Names for files whose events came from strangers.

An attribute is whatever its publisher wrote: `../../.bashrc`, `CON`, a name of a megabyte, or one
that hides its ending behind a character that turns the direction of writing. What is left of it
here is a plain name in one folder, and never that of a file that is there.
"""

from __future__ import annotations

import os
import re
import unicodedata
from itertools import count
from pathlib import Path

from distributary.content.file_types import OTHER_SUFFIX, suffix_of_type
from distributary.content.media_type import MediaType
from distributary.content.publication import Publication
from distributary.errors import BadInput

__all__ = ["draft_in", "file_name", "put_in_place"]

# In bytes; systems have 255, and there must be room for a number and an ending.
_STEM_BYTES_MAX = 120
# Devices of Windows, with any ending; a folder may be shared with one.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)", re.I)
_UNSAFE = re.compile(r'[\\/:*?"<>|%$&;`\'!~{}\[\]()#^=+,@\s]+')
_NAMELESS = "event"
# Trying them one by one takes longer the more there are.
_NUMBERS_MAX = 100


def file_name(publication: Publication) -> str:
    """Return a plain name for the content of an event: its subject's, with the ending of its type.

    Without a subject that leaves something, the `id` names it.
    """
    subject = str(publication.attributes.get("subject", ""))
    last = re.split(r"[\\/]", subject)[-1]
    stem, dot, _ = last.rpartition(".")
    name = _plain(stem if dot else last) or _plain(publication.id) or _NAMELESS
    return name + _ending(publication.media_type)


def _plain(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    # Controls, halves of pairs, and what is written without being seen.
    seen = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in composed)
    # A dot first hides a file, a dash first makes it an option, and Windows drops dots at the end.
    plain = _UNSAFE.sub("-", seen).strip(".-_")
    while len(plain.encode()) > _STEM_BYTES_MAX:
        plain = plain[:-1].rstrip(".-_")
    return f"file-{plain}" if _RESERVED.fullmatch(plain.partition(".")[0]) else plain


def _ending(media_type: str | None) -> str:
    if media_type is None:
        return OTHER_SUFFIX
    try:
        return suffix_of_type(MediaType.parse(media_type).essence)
    except BadInput:
        return OTHER_SUFFIX


def draft_in(folder: Path) -> Path:
    """Return where to write what gets its name when it is complete."""
    return folder / f".{os.getpid():x}-{os.urandom(6).hex()}.part"


def put_in_place(draft: Path, name: str) -> Path:
    """Give a complete draft its name, or that name with a number; return where it is.

    Whoever looks into the folder sees whole files, and no file that is there is replaced, by two
    of us at once neither.
    """
    stem, dot, ending = name.rpartition(".")
    for number in count(1):
        mark = number if number <= _NUMBERS_MAX else os.urandom(6).hex()
        path = draft.with_name(name if number == 1 else f"{stem}-{mark}{dot}{ending}")
        try:
            _take(draft, path)
        except FileExistsError:
            continue
        return path
    raise AssertionError("numbers do not end")


def _take(draft: Path, path: Path) -> None:
    """Move a draft to a path, unless there is something."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links: for a moment an empty file holds the name.
        path.touch(exist_ok=False)
        draft.replace(path)
    else:
        draft.unlink()
