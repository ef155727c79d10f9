"""Calibration: what every conversion really takes, and how large its results really are.

Runs every conversion of a family on samples of its source format, one at a time, and
draws a straight line through what was measured: sizes in MB and costs in seconds, each
over the megabytes of the sample. Planners read the result as an adaptation graph. Further
samples, which the lines are not drawn through, check how well these predict.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from distributary.content.media_type import MediaType
from distributary.errors import BadInput, quoted
from distributary.media.failure import ConversionFailed
from distributary.media.family import Family, families_of
from distributary.media.line_fit import Line, fit_line
from distributary.media.measurement import MEGABYTE, Duration, Size
from distributary.media.prediction import Misses, relative_error
from distributary.media.registry import Conversion, Registry
from distributary.media.result import ConversionResult

__all__ = ["Calibration", "Failure", "FormatSize", "MeasuredConversion", "Sample", "calibrate"]

_MILLISECOND = 1e-3

Convert = Callable[[bytes, MediaType, MediaType], ConversionResult]
"""Carries out one direct conversion, as the `convert` of a pool with one worker does."""
Observe = Callable[[str, int, int], None]
"""Told what is being done, how far it is, and how far it goes."""


@dataclass(frozen=True)
class Sample:
    """Content to measure with, and the listed format that it counts as."""

    name: str
    content: bytes
    format: str

    def __post_init__(self) -> None:
        if not self.content:
            raise BadInput(self.name, "is empty, so there is nothing to measure")

    @property
    def megabytes(self) -> float:
        """The size of the content, in millions of bytes."""
        return len(self.content) / MEGABYTE


@dataclass(frozen=True)
class FormatSize:
    """How large content is in a format: as a line, as measured, and on samples beside the line."""

    name: str
    line: Line
    measured: tuple[Size, ...]
    checked: tuple[Size, ...] = ()


@dataclass(frozen=True)
class MeasuredConversion:
    """How many seconds a conversion takes: as a line, as measured, and beside the line."""

    conversion: Conversion
    line: Line
    measured: tuple[Duration, ...]
    checked: tuple[Duration, ...] = ()


@dataclass(frozen=True)
class Failure:
    """A sample that could not be converted, and why."""

    conversion: Conversion
    sample: str
    reason: str


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes
    ----------
    families
        What was to be measured.
    formats, conversions
        What was, sorted by name. A conversion that failed on every sample is not there,
        nor is a format that could not be made.
    samples, checks
        What the lines were drawn through, and what they were then compared with.
    failures
        What could not be converted.
    repeat, seed
        How often each conversion ran, and the seed of the order in which they did.
    seconds
        How long it all took.
    """

    families: tuple[Family, ...]
    formats: tuple[FormatSize, ...]
    conversions: tuple[MeasuredConversion, ...]
    samples: tuple[Sample, ...]
    checks: tuple[Sample, ...]
    failures: tuple[Failure, ...]
    repeat: int
    seed: int
    seconds: float

    @property
    def proportional(self) -> tuple[str, ...]:
        """Source formats with samples of one size only: nothing of them is known as fixed."""
        sizes: dict[str, set[int]] = {}
        for sample in self.samples:
            sizes.setdefault(sample.format, set()).add(len(sample.content))
        return tuple(sorted(name for name, found in sizes.items() if len(found) == 1))

    @property
    def size_errors(self) -> tuple[float, ...]:
        """How far each size is off on the checks; the source is left out, as it is given."""
        sources = {family.source for family in self.families}
        return tuple(
            relative_error(item.line, content_mb=size.content_mb, amount=size.mb)
            for item in self.formats
            if item.name not in sources
            for size in item.checked
        )

    @property
    def seconds_errors(self) -> tuple[float, ...]:
        """How far all seconds are off on the checks; less than a millisecond counts as one."""
        return tuple(
            relative_error(
                item.line, content_mb=one.content_mb, amount=one.least, floor=_MILLISECOND
            )
            for item in self.conversions
            for one in item.checked
        )

    @property
    def size_misses(self) -> Misses | None:
        """The errors of sizes, summed up; None without checks."""
        return Misses.of(self.size_errors)

    @property
    def seconds_misses(self) -> Misses | None:
        """The errors of seconds, summed up; None without checks."""
        return Misses.of(self.seconds_errors)


def calibrate(
    samples: Sequence[Sample],
    *,
    registry: Registry,
    convert: Convert,
    families: Sequence[Family] | None = None,
    checks: Sequence[Sample] = (),
    repeat: int = 3,
    seed: int = 0,
    observe: Observe | None = None,
) -> Calibration:
    """Return what every conversion takes that is within reach of the samples' formats.

    These are the `families` of the formats unless others are given.

    Each runs `repeat` times on every sample, in an order that is drawn anew for every
    round: a slow moment of the machine then falls on conversions of all kinds, and on
    one run of each, while lines are drawn through the shortest. Whatever loads a library ran
    before.
    The same is done with `checks`, of which the lines know nothing: their formats are those
    of samples, and their sizes should be others.

    There is at least one sample, and those of one format should differ in size. `convert` must
    not answer from a cache. The seed is that of the order.
    """
    began = time.perf_counter()
    if families is None:
        families = families_of(registry, (sample.format for sample in samples))
    for check in checks:
        if check.format not in {family.source for family in families}:
            raise BadInput(check.name, f"is {quoted(check.format)}, and no sample is")
    run = _Run(samples, checks, families, convert, repeat, observe)
    run.make_formats()
    run.warm_up()
    rng = np.random.default_rng(seed)
    for _ in range(repeat):
        run.measure(rng.permutation(len(run.jobs)).tolist())
    formats, conversions = run.formats(), run.conversions()
    for family in families:
        if not any(item.conversion in family.conversions for item in conversions):
            reason = next(
                (item.reason for item in run.failures if item.conversion in family.conversions),
                "every run was interrupted",
            )
            raise BadInput("samples", f"nothing can be made from {quoted(family.source)}: {reason}")
    return Calibration(
        tuple(families),
        formats,
        conversions,
        tuple(samples),
        tuple(checks),
        tuple(run.failures),
        repeat,
        seed,
        time.perf_counter() - began,
    )


class _Run:
    """A calibration under way."""

    def __init__(
        self,
        samples: Sequence[Sample],
        checks: Sequence[Sample],
        families: Sequence[Family],
        convert: Convert,
        repeat: int,
        observe: Observe | None,
    ) -> None:
        self._samples = (*samples, *checks)
        # Lines are drawn through the first so many.
        self._fitted = len(samples)
        self._families = {family.source: family for family in families}
        self._convert = convert
        self._observe = observe
        # The content of every sample in every format, by sample and name of the format.
        self._contents = {
            (k, sample.format): sample.content for k, sample in enumerate(self._samples)
        }
        self._runs: dict[tuple[int, Conversion], list[float]] = {}
        self._failed: set[tuple[int, Conversion]] = set()
        self.jobs: list[tuple[int, Conversion]] = []
        self.failures: list[Failure] = []
        self._repeat = repeat
        self._done = 0
        self._total = sum(
            len(family.making) + repeat * len(family.conversions)
            for family in (self._families[sample.format] for sample in self._samples)
        )

    def make_formats(self) -> None:
        """Make the content of every sample in every format, and list what is to be timed."""
        for k, sample in enumerate(self._samples):
            family = self._families[sample.format]
            for conversion in family.making:
                self._count("making formats")
                if (k, conversion.source) in self._contents:
                    converted = self._converted(k, conversion)
                    if converted is not None:
                        self._contents[k, conversion.target] = converted.content
            self.jobs += [
                (k, conversion)
                for conversion in family.conversions
                if (k, conversion.source) in self._contents and (k, conversion) not in self._failed
            ]
        self._total = self._done + self._repeat * len(self.jobs)

    def warm_up(self) -> None:
        """Have every converter read and write every type once, as the first time takes longer."""
        seen = set()
        for k, conversion in self.jobs:
            kinds = (
                conversion.converter,
                MediaType.parse(conversion.source).essence,
                MediaType.parse(conversion.target).essence,
            )
            if kinds not in seen:
                seen.add(kinds)
                self._converted(k, conversion)

    def measure(self, order: Sequence[int]) -> None:
        """Run every conversion once, in this order, and note how long it took."""
        for place in order:
            k, conversion = self.jobs[place]
            self._count("measuring")
            if (k, conversion) in self._failed:
                continue
            converted = self._converted(k, conversion)
            if converted is not None:
                self._runs.setdefault((k, conversion), []).append(converted.seconds)

    def formats(self) -> tuple[FormatSize, ...]:
        """Return the size of every format that could be made."""
        found: dict[str, tuple[list[Size], list[Size]]] = {}
        for (k, name), content in self._contents.items():
            if name not in self._families[self._samples[k].format].formats:
                continue
            size = Size(self._samples[k].megabytes, len(content) / MEGABYTE)
            found.setdefault(name, ([], []))[k >= self._fitted].append(size)
        return tuple(
            FormatSize(
                name,
                # The megabytes of the source are what everything is measured by.
                Line(0.0, 1.0)
                if name in self._families
                else fit_line([(size.content_mb, size.mb) for size in measured]),
                tuple(measured),
                tuple(checked),
            )
            for name, (measured, checked) in sorted(found.items())
            if measured
        )

    def conversions(self) -> tuple[MeasuredConversion, ...]:
        """Return the cost of every conversion that worked on some sample."""
        found: dict[Conversion, tuple[list[Duration], list[Duration]]] = {}
        for (k, conversion), runs in sorted(self._runs.items(), key=lambda item: item[0][0]):
            duration = Duration.of(self._samples[k].megabytes, runs)
            found.setdefault(conversion, ([], []))[k >= self._fitted].append(duration)
        return tuple(
            MeasuredConversion(
                conversion,
                fit_line([(one.content_mb, one.least) for one in measured]),
                tuple(measured),
                tuple(checked),
            )
            for conversion, (measured, checked) in sorted(
                found.items(), key=lambda item: (item[0].source, item[0].target)
            )
            if measured
        )

    def _converted(self, k: int, conversion: Conversion) -> ConversionResult | None:
        """Carry out a conversion of a sample; None if it failed, which is remembered."""
        try:
            return self._convert(
                self._contents[k, conversion.source],
                MediaType.parse(conversion.source),
                MediaType.parse(conversion.target),
            )
        except ConversionFailed as error:
            # Somebody ended the worker, say: the next run may well work.
            if error.lasting and (k, conversion) not in self._failed:
                self._failed.add((k, conversion))
                self.failures.append(Failure(conversion, self._samples[k].name, error.reason))
            return None

    def _count(self, stage: str) -> None:
        self._done += 1
        if self._observe is not None:
            self._observe(stage, self._done, self._total)
