"""Where a worker may write on Linux: in its own directory alone (Landlock).

Reading is left alone. What fonts, tables of codecs and time zones a library reads, and
from where, differs between systems; whatever it reads cannot leave without a network but
in the converted content.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

__all__ = ["restrict_writes"]

# Numbers that all machines share.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_WRITE_FILE, _REMOVE_DIRECTORY = 1 << 1, 1 << 4
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
# Since which version of Landlock the kernel knows them; the rest came with the first.
_LATER = ((2, _REFER), (3, _TRUNCATE))


def restrict_writes(library: ctypes.CDLL, directory: Path) -> bool:
    """Let this process write below one directory alone, and say whether that is in force.

    Other processes are out of its reach too: the kernel lets nobody in a Landlock domain look
    into the memory of somebody outside. Needs no privileges, but the promise to gain
    none (no_new_privs) beforehand.
    """
    version = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION)
    if version < 1:
        return False
    handled = _WRITE_FILE | _REMOVE_AND_MAKE
    for since, right in _LATER:
        if version >= since:
            handled |= right
    ruleset = library.syscall(_CREATE_RULESET, struct.pack("=Q", handled), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        on_files = _WRITE_FILE | (_TRUNCATE & handled)
        return (
            _permit(library, ruleset, directory, handled)
            # It removes its directory itself when its caller is no more. This permits to
            # remove others beside it as well, but empty ones alone.
            and _permit(library, ruleset, directory.parent, _REMOVE_DIRECTORY)
            # Programs write to it to write nowhere.
            and _permit(library, ruleset, Path(os.devnull), on_files)
            and library.syscall(_RESTRICT_SELF, ruleset, 0) == 0
        )
    finally:
        os.close(ruleset)


def _permit(library: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> bool:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, place)
        return bool(library.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0) == 0)
    finally:
        os.close(place)
