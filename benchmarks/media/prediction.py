"""How well lines through measured clips predict clips that they were not drawn through."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from examples.sample_content import clip_mp4 as drawn_clip

from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    result_hash,
)
from distributary.content.media_type import MediaType
from distributary.media.calibration import (
    Calibration,
    FormatSize,
    MeasuredConversion,
    Sample,
    calibrate,
)
from distributary.media.converters.video import Video
from distributary.media.formats import VIDEO_FORMATS
from distributary.media.pool import Pool
from distributary.media.registry import Registry
from distributary.media.samples import clip_mp4

__all__ = ["STUDY"]

_Item = TypeVar("_Item", FormatSize, MeasuredConversion)

_SOURCE = "video/mp4;width=640;bitrate=1000k"
_SMALLEST = "video/3gpp;width=176;bitrate=80k"
_ERROR_PERCENT_MAX = 15.0
_MOST = 0.95
_ELSEWHERE_SEED = 7


@dataclass(frozen=True)
class _Parameters:
    fitted_s: tuple[float, ...]
    checked_s: tuple[float, ...]
    elsewhere_s: tuple[float, ...]
    targets: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters((1, 4), (2.5,), (2,), 2, 1),
    "large": _Parameters((2, 6, 30), (4, 12, 20), (3, 8, 16), len(VIDEO_FORMATS), 5),
}


class _SomeVideos(Video):
    """From the source to some formats, and from each of these to the smallest of all."""

    def __init__(self, targets: int) -> None:
        self._targets = [
            target for target in VIDEO_FORMATS if str(target) not in (_SOURCE, _SMALLEST)
        ][-targets:]

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        """List these, which are enough to tell; all of them take five times as long."""
        source, smallest = MediaType.parse(_SOURCE), MediaType.parse(_SMALLEST)
        yield source, smallest
        for target in self._targets:
            yield source, target
            yield target, smallest


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    progress("clips")
    fitted = _samples("flight", parameters.fitted_s, [clip_mp4(s) for s in parameters.fitted_s])
    others = {
        "other lengths": _samples(
            "flight", parameters.checked_s, [clip_mp4(s) for s in parameters.checked_s]
        ),
        "another country": _samples(
            "elsewhere",
            parameters.elsewhere_s,
            [drawn_clip(s, seed=_ELSEWHERE_SEED) for s in parameters.elsewhere_s],
        ),
    }
    progress("conversions")
    with Pool(1) as pool:
        calibration = calibrate(
            fitted,
            checks=[sample for samples in others.values() for sample in samples],
            registry=Registry([_SomeVideos(parameters.targets)]),
            convert=pool.convert,
            repeat=parameters.repeats,
        )
    rows: list[tuple[Value, ...]] = []
    claims = []
    for name, samples in others.items():
        part = _checked_with(calibration, samples)
        megabytes = [sample.megabytes for sample in samples]
        for what, errors in (("sizes", part.size_errors), ("seconds", part.seconds_errors)):
            ranked = [100 * error for error in sorted(errors)]
            most = ranked[math.ceil(_MOST * len(ranked)) - 1]
            median = statistics.median(ranked)
            row = (name, min(megabytes), max(megabytes), what, len(ranked), median, most)
            rows.append((*row, ranked[-1]))
            # The few seconds that are off by more say what else the machine had to do.
            claims.append(
                Claim(f"{what}, {name}, worst error", ranked[-1], "<=", _ERROR_PERCENT_MAX, "%")
                if what == "sizes"
                else Claim(
                    f"{what}, {name}, 19 of 20 errors",
                    most,
                    "<=",
                    _ERROR_PERCENT_MAX,
                    "% of seconds",
                )
            )
    through = ", ".join(f"{sample.megabytes:.2f}" for sample in fitted)
    return Findings(
        tables=(
            Table(
                "Clips predicted by lines through others",
                "quality",
                (
                    Column("clips of"),
                    Column("MB from", 2),
                    Column("MB to", 2),
                    Column("what"),
                    Column("predictions"),
                    Column("median error %", 1),
                    Column("19 of 20 up to %", 1),
                    Column("worst error %", 1),
                ),
                tuple(rows),
                notes=(
                    f"Lines through clips of {through} MB; {len(calibration.conversions)} of the "
                    f"conversions of video, the shortest of {parameters.repeats} runs each, in "
                    "processor time. The flight of the sample clip in other lengths, and a flight "
                    "over another country, encoded with other settings."
                ),
            ),
        ),
        claims=tuple(claims),
        # What was drawn elsewhere is encoded in several threads, and never twice to the byte.
        result_hash=result_hash(
            [[item.name, *(size.mb for size in item.measured)] for item in calibration.formats]
        ),
    )


def _samples(name: str, lengths: Sequence[float], contents: Sequence[bytes]) -> list[Sample]:
    return [
        Sample(f"{name} of {seconds:g} s", content, _SOURCE)
        for seconds, content in zip(lengths, contents, strict=True)
    ]


def _checked_with(calibration: Calibration, samples: Sequence[Sample]) -> Calibration:
    """Return a calibration as if these of its checks were all."""
    kept = {sample.megabytes for sample in samples}
    return replace(
        calibration,
        formats=_only(calibration.formats, kept),
        conversions=_only(calibration.conversions, kept),
        checks=tuple(samples),
    )


def _only(items: Sequence[_Item], kept: Set[float]) -> tuple[_Item, ...]:
    return tuple(
        replace(item, checked=tuple(one for one in item.checked if one.content_mb in kept))
        for item in items
    )


STUDY = Study(
    name="video-prediction",
    about=(
        "How far a calibrated graph is off for clips that it was not fitted to: how large they "
        "become, and how long converting them takes."
    ),
    minutes=12,
    run=_run,
)
