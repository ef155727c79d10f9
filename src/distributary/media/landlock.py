"""Where a worker may write and whom it may signal on Linux (Landlock): itself alone.

Reading is left alone but for devices: a disk has the files of everybody, and what is read from a
terminal is gone for whom it was typed. What fonts, tables of codecs and time zones a library
reads, and from where, differs between systems; whatever it reads cannot leave without a network
but in the converted content.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

__all__ = ["Restriction", "restrict"]

# Numbers that all machines share.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_BIND_AND_CONNECT = 1 << 0 | 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
# Since which version of Landlock the kernel knows them; the rest came with the first.
_REFER_SINCE, _TRUNCATE_SINCE, _NETWORK_SINCE, _SCOPES_SINCE = 2, 3, 4, 6


_DEVICES = Path("/dev")
_HARMLESS_DEVICES = ("null", "zero", "full", "random", "urandom")


class Restriction(NamedTuple):
    """What is in force.

    It writes below one directory alone, and sends signals to itself alone, by whatever way.
    """

    writes: bool = False
    signals: bool = False


def restrict(
    library: ctypes.CDLL, directory: Path, *, version_max: int | None = None
) -> Restriction:
    """Let this process write below one directory and signal itself alone, as far as it goes.

    Other processes are out of its reach too: the kernel lets nobody in a Landlock domain look
    into the memory of somebody outside. Needs no privileges, but the promise to gain
    none (no_new_privs) beforehand. Of a kernel that knows more, `version_max` uses no more than
    an older one had.
    """
    version = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION)
    if version_max is not None:
        version = min(version, version_max)
    if version < 1:
        return Restriction()
    handled = _WRITE_FILE | _REMOVE_AND_MAKE
    handled |= _REFER if version >= _REFER_SINCE else 0
    handled |= _TRUNCATE if version >= _TRUNCATE_SINCE else 0
    # Where places to read from cannot be told, all are.
    for reading in (_READ_FILE, 0):
        if _restricted(library, directory, handled | reading, version):
            return Restriction(writes=True, signals=version >= _SCOPES_SINCE)
    return Restriction()


def _restricted(library: ctypes.CDLL, directory: Path, handled: int, version: int) -> bool:
    attributes = [handled]
    if version >= _NETWORK_SINCE:
        attributes.append(_BIND_AND_CONNECT)
    if version >= _SCOPES_SINCE:
        attributes.append(_ABSTRACT_SOCKETS | _SIGNALS)
    written = struct.pack(f"={len(attributes)}Q", *attributes)
    ruleset = library.syscall(_CREATE_RULESET, written, ctypes.c_size_t(len(written)), 0)
    if ruleset < 0:
        return False
    try:
        return (
            _permit(library, ruleset, directory, handled)
            # Programs write to it to write nowhere.
            and _permit(library, ruleset, Path(os.devnull), _WRITE_FILE | (_TRUNCATE & handled))
            and (
                not handled & _READ_FILE
                or all(_permit(library, ruleset, place, _READ_FILE) for place in _readable())
            )
            and bool(library.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
        )
    except OSError:
        return False
    finally:
        os.close(ruleset)


def _readable() -> Iterator[Path]:
    """Yield everything but devices, and those that everybody reads."""
    places = (place for place in Path("/").iterdir() if place != _DEVICES)
    devices = (_DEVICES / name for name in _HARMLESS_DEVICES)
    return (place for place in chain(places, devices) if place.exists())


def _permit(library: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> bool:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, place)
        return bool(library.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0) == 0)
    finally:
        os.close(place)
