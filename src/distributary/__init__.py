"""distributary: publish once, and every subscriber gets what it asked for.

The network itself decides who attaches to which broker, which tree each stream
follows, and at which broker each format conversion runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributary.client import connect, connect_sync

__all__ = ["__version__", "connect", "connect_sync"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Whoever plans needs no client, and loads none.
    if name in ("connect", "connect_sync"):
        return getattr(import_module("distributary.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
