"""Calibrations as documents that planners read and people can check."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.media.calibration import Calibration

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
            }
            for item in calibration.formats
        ],
        "conversions": [
            {
                "from": item.conversion.source,
                "to": item.conversion.target,
                "cost": item.line.document(),
                "measured": [duration.document() for duration in item.measured],
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
        "samples": [
            {"name": sample.name, "format": sample.format, "mb": sample.megabytes}
            for sample in calibration.samples
        ],
        "machine": dict(machine),
        "command": command,
        "repeat": calibration.repeat,
        "seed": calibration.seed,
        "seconds": round(calibration.seconds, 1),
        "made": made,
    }
