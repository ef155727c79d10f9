"""What measurements were made on: enough to compare them, nothing that names a place."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from distributary.cores import available_cores
from distributary.media.registry import Registry

__all__ = ["machine_document"]

_CPU_INFO = Path("/proc/cpuinfo")


def machine_document(registry: Registry) -> dict[str, object]:
    """Return processor, cores, system and versions, also of what the converters use."""
    return {
        "processor": _processor(),
        "cores": available_cores(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": _package_versions(registry),
    }


def _processor() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name" and model.strip():
                return " ".join(model.split())
    return platform.processor() or "unknown"


def _package_versions(registry: Registry) -> dict[str, str]:
    """Return the version of every package that a converter needs, by its name."""
    modules = {
        module.partition(".")[0]
        for converter in registry.converters.values()
        for module, _ in converter.packages
    }
    distributions = packages_distributions()
    names = {"distributary"}.union(*(distributions.get(module, ()) for module in modules))
    versions = {}
    for name in sorted(names):
        try:
            versions[name.lower()] = version(name)
        except PackageNotFoundError:
            continue
    return versions
