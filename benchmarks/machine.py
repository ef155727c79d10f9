"""What the numbers were measured on: enough to compare, nothing that names a place."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from distributary.cores import available_cores

__all__ = ["provenance"]

_ROOT = Path(__file__).parents[1]
_CPU_INFO = Path("/proc/cpuinfo")
_PACKAGES = ("distributary", "numpy", "numba", "highspy")
# What a run writes itself does not make its commit a different one.
_OWN_OUTPUT = ":(exclude)docs/benchmarks*"


def provenance() -> dict[str, object]:
    """Return machine, versions, commit and date as a JSON object."""
    return {
        "machine": {
            "cpu": _cpu_model(),
            "cores": available_cores(),
            "memory_gib": _memory_gib(),
            "system": f"{platform.system()} {platform.machine()}",
            "load": round(os.getloadavg()[0], 1),
        },
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _cpu_model() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name" and model.strip():
                return " ".join(model.split())
    return platform.processor() or "unknown"


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _commit() -> str:
    """Return the commit, and whether the files differ from it; "none" outside a repository."""
    head = _git("rev-parse", "--short=10", "--verify", "--quiet", "HEAD")
    if not head:
        return "none"
    changed = _git("status", "--porcelain", "--", ".", _OWN_OUTPUT)
    return f"{head} with changes" if changed else head


def _git(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", *arguments], cwd=_ROOT, capture_output=True, encoding="utf-8", check=False
        )
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
