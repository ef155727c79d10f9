"""Names of a package that are loaded when somebody first asks for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["on_demand"]


def on_demand(
    package: str, names: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package, given its names by module.

    A process that only reads a media type should start at once, and completion offers everything
    all the same.
    """
    homes = {name: module for module, found in names.items() for name in found}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get, lambda: sorted(sys.modules[package].__all__)
