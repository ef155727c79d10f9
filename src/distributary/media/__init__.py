"""Real conversions between formats, run where hostile input can do no harm.

A `Pool` converts in worker processes, `installed` says what can be converted, `calibrate` measures
it, and a `Converter` is what plug-ins are made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand

if TYPE_CHECKING:
    from distributary.media.cache import Cache
    from distributary.media.calibration import Calibration, Sample, calibrate
    from distributary.media.converter import Converter
    from distributary.media.failure import ConversionFailed, Unconvertible
    from distributary.media.isolation import Isolation
    from distributary.media.limits import Limits
    from distributary.media.pool import Pool, shared_pool
    from distributary.media.registry import Conversion, Registry, installed
    from distributary.media.result import ConversionResult

__all__ = [
    "Cache",
    "Calibration",
    "Conversion",
    "ConversionFailed",
    "ConversionResult",
    "Converter",
    "Isolation",
    "Limits",
    "Pool",
    "Registry",
    "Sample",
    "Unconvertible",
    "calibrate",
    "installed",
    "shared_pool",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "cache": ("Cache",),
        "calibration": ("Calibration", "Sample", "calibrate"),
        "converter": ("Converter",),
        "failure": ("ConversionFailed", "Unconvertible"),
        "isolation": ("Isolation",),
        "limits": ("Limits",),
        "pool": ("Pool", "shared_pool"),
        "registry": ("Conversion", "Registry", "installed"),
        "result": ("ConversionResult",),
    },
)
