"""Calibrations as documents that planners read and people can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distributary.media.calibration import Calibration, Sample

__all__ = ["calibration_document"]


def calibration_document(
    calibration: Calibration, *, machine: Mapping[str, object], command: str, made: str
) -> dict[str, object]:
    """Return a calibration as a calibrated adaptation graph, with all that was measured."""
    return {
        "formats": [
            {
                "name": item.name,
                "size": item.line.document(),
                "measured": [size.document() for size in item.measured],
                "checked": [size.document() for size in item.checked],
            }
            for item in calibration.formats
        ],
        "conversions": [
            {
                "from": item.conversion.source,
                "to": item.conversion.target,
                "cost": item.line.document(),
                "measured": [duration.document() for duration in item.measured],
                "checked": [duration.document() for duration in item.checked],
                "converter": item.conversion.converter,
            }
            for item in calibration.conversions
        ],
        "families": [
            {
                "source": family.source,
                "formats": len(family.formats),
                "conversions": len(family.conversions),
            }
            for family in calibration.families
        ],
        "failed": [
            {
                "from": failure.conversion.source,
                "to": failure.conversion.target,
                "sample": failure.sample,
                "reason": failure.reason,
            }
            for failure in calibration.failures
        ],
        "samples": _samples(calibration.samples),
        "check": _check(calibration),
        "machine": dict(machine),
        "command": command,
        "repeat": calibration.repeat,
        "seed": calibration.seed,
        "seconds": round(calibration.seconds, 1),
        "made": made,
    }


def _samples(samples: Sequence[Sample]) -> list[dict[str, object]]:
    return [
        {"name": sample.name, "format": sample.format, "mb": sample.megabytes} for sample in samples
    ]


def _check(calibration: Calibration) -> dict[str, object] | None:
    """Return how well the lines predict samples that they know nothing of, if there are any."""
    sizes, seconds = calibration.size_misses, calibration.seconds_misses
    if sizes is None or seconds is None:
        return None
    return {
        "samples": _samples(calibration.checks),
        "sizes": sizes.document(),
        "seconds": seconds.document(),
    }
