"""`distributary calibrate`: measure every conversion, for planners to reckon with."""

from __future__ import annotations

import shlex
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from distributary.cli.options import Seed
from distributary.cli.output import check_output, output_name, shown_path, write_document
from distributary.cli.progress import progress
from distributary.errors import BadInput, counted

if TYPE_CHECKING:
    from distributary.media.calibration import Calibration, FormatSize, MeasuredConversion, Sample
    from distributary.media.family import Family
    from distributary.media.pool import Pool
    from distributary.media.registry import Registry

__all__ = ["EXAMPLES", "calibrate"]

EXAMPLES = """\
\b
Examples:
  distributary calibrate -o graph.json
  distributary calibrate --family map --repeat 5 -o map.json
  distributary calibrate small.pdf large.pdf --check other.pdf -o reports.json
  distributary place tree.json --graph map.json --bytes 2000000
"""

_SampleFamily = Literal["map", "video", "more"]
_FAMILIES: tuple[_SampleFamily, ...] = ("map", "video")
_FAILURES_MAX = 5
# The sizes that are published: maps of 0.5 to 2 MB, clips of a quarter to four. Shorter clips
# take seconds to measure, but an encoder is still finding its bit rate then.
_MAP_PAGES, _MAP_PAGES_CHECKED = (2, 4, 8), (3, 6)
_CLIP_SECONDS, _CLIP_SECONDS_CHECKED = (2, 6, 30), (4, 12)
_NOTICES, _NOTICES_CHECKED = (3, 30, 200), (10, 100)
_COLOURS, _COLOURS_CHECKED = (8, 32, 256), (16, 64)


def calibrate(
    samples: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SAMPLES",
            help="Content to measure with, in several sizes; sample content unless given.",
        ),
    ] = None,
    family: Annotated[
        _SampleFamily | None,
        typer.Option(
            help="Which sample content to use; more is what maps and videos do not lead to.",
            show_default="map and video",
        ),
    ] = None,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SAMPLE",
            help="Content of another size, to see how well the graph predicts it; may be repeated.",
            show_default="sample content if that is measured",
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each conversion.")] = 3,
    seed: Seed = 0,
    every: Annotated[bool, typer.Option("--all", help="Print every conversion.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="GRAPH.json",
            parser=lambda given: Path(output_name(given) or "-"),
            help="Write the graph here, for place --graph; - prints it, and no tables.",
        ),
    ] = None,
) -> None:
    """Measure how long every conversion takes, and how large its results are.

    Each runs on every sample, one at a time, in a worker process of its own. The graph
    has a fixed part and a part per MB of the sample, in MB and in seconds of a processor.
    """
    printed = str(output) == "-"
    if samples and family is not None:
        raise BadInput("--family", "is for sample content, and other samples are given")
    check_output(None if printed else output, "-o")
    from distributary.media.calibration import calibrate as measure
    from distributary.media.calibration_file import calibration_document
    from distributary.media.machine import machine_document
    from distributary.media.pool import Pool
    from distributary.media.registry import installed

    registry = installed()
    chosen = _FAMILIES if family is None else (family,)
    contents = [_read(path) for path in samples] if samples else _sample_content(chosen, seed)
    others = [_read(path) for path in check or []]
    if not (samples or check):
        others = _sample_content(chosen, seed, checked=True)
    # Before the work, which is a load itself.
    machine = machine_document(registry)
    with progress() as observe, Pool(workers=1) as pool:
        identified = _identified(contents, registry, pool)
        calibration = measure(
            identified,
            registry=registry,
            families=_further(identified, registry) if family == "more" else None,
            convert=pool.convert,
            checks=_identified(others, registry, pool),
            repeat=repeat,
            seed=seed,
            observe=observe,
        )
    if output is not None:
        document = calibration_document(
            calibration,
            machine=machine,
            command=_command(samples or [], family, check or [], repeat, seed),
            made=_today(),
        )
        write_document(document, None if printed else output)
    if not printed:
        _print_formats(calibration.formats, every)
        _print_conversions(calibration.conversions, every)
        sys.stdout.flush()
    _print_warnings(calibration)
    _print_check(calibration)
    kept = "; -o GRAPH.json saves it" if output is None else f"; written to {output}"
    print(f"{_summary(calibration)}{'' if printed else kept}", file=sys.stderr)


def _read(path: Path) -> tuple[str, bytes]:
    """Return a sample's name, which the graph keeps and so has no folder, and its content."""
    from distributary.cli.content_files import read_content
    from distributary.media.limits import Limits

    try:
        content = read_content(path, bytes_max=Limits().input_bytes)
    except BadInput as error:
        # Its hint is about an option that is not ours.
        raise BadInput(error.place, error.problem) from None
    return shown_path(Path(path.name)), content


def _sample_content(
    families: Sequence[_SampleFamily], seed: int, *, checked: bool = False
) -> list[tuple[str, bytes]]:
    """Return sample content by name: that to draw lines through, or that to check them with."""
    from distributary.media.samples import clip_mp4, map_pdf, photo_gif
    from distributary.media.samples.web import page_html, readings_json, readings_xml

    pages = _MAP_PAGES_CHECKED if checked else _MAP_PAGES
    lengths = _CLIP_SECONDS_CHECKED if checked else _CLIP_SECONDS
    contents: list[tuple[str, bytes]] = []
    if {"map", "more"} & set(families):
        contents += [(f"map of {count} pages", map_pdf(count, seed=seed)) for count in pages]
    if {"video", "more"} & set(families):
        contents += [(f"clip of {seconds} s", clip_mp4(seconds, seed=seed)) for seconds in lengths]
    if "more" in families:
        for count in _NOTICES_CHECKED if checked else _NOTICES:
            contents += [
                (f"page of {count} notices", page_html(count, seed=seed)),
                (f"JSON of {count} days", readings_json(count, seed=seed)),
                (f"XML of {count} days", readings_xml(count, seed=seed)),
            ]
        for count in _COLOURS_CHECKED if checked else _COLOURS:
            contents += [(f"GIF of {count} colours", photo_gif(count, seed=seed))]
    return contents


def _identified(contents: list[tuple[str, bytes]], registry: Registry, pool: Pool) -> list[Sample]:
    from distributary.media.calibration import Sample
    from distributary.media.sample_format import sample_format

    return [
        Sample(name, content, sample_format(content, name, registry=registry, convert=pool.convert))
        for name, content in contents
    ]


def _further(samples: Sequence[Sample], registry: Registry) -> Sequence[Family]:
    from distributary.media.family import further_families

    return further_families(registry, dict.fromkeys(sample.format for sample in samples))


def _command(
    samples: Sequence[Path], family: str | None, checks: Sequence[Path], repeat: int, seed: int
) -> str:
    """Return the command that measures the same again, with no folder in it."""
    words = ["distributary", "calibrate", *(path.name for path in samples)]
    if family is not None:
        words += ["--family", family]
    for path in checks:
        words += ["--check", path.name]
    return shlex.join([*words, "--repeat", str(repeat), "--seed", str(seed)])


def _today() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()


def _print_formats(formats: Sequence[FormatSize], every: bool) -> None:
    from distributary.cli.conversion_tables import format_groups, number_range, print_table, table

    sizes = {item.name: item for item in formats}
    filled = table(["format"], ["MB, largest sample", "MB, fixed", "MB per MB"])
    for label, names in format_groups(sizes, every=every).items():
        found = [sizes[name] for name in names]
        filled.add_row(
            label,
            number_range([max(item.measured, key=lambda one: one.content_mb).mb for item in found]),
            number_range([item.line.fixed for item in found]),
            number_range([item.line.per_mb for item in found]),
        )
    print_table(filled)


def _print_conversions(conversions: Sequence[MeasuredConversion], every: bool) -> None:
    from distributary.cli.conversion_tables import (
        conversion_groups,
        number,
        number_range,
        print_table,
        table,
    )

    costs = {(item.conversion.source, item.conversion.target): item for item in conversions}
    filled = table(
        ["from", "to"], ["conversions", "s, largest sample", "spread", "s, fixed", "s per MB"]
    )
    for (source, target), pairs in conversion_groups(costs, every=every).items():
        found = [costs[pair] for pair in pairs]
        largest = [max(item.measured, key=lambda one: one.content_mb) for item in found]
        filled.add_row(
            source,
            target,
            str(len(found)),
            number_range([item.seconds for item in largest]),
            number(statistics.median(item.spread for item in largest)),
            number_range([item.line.fixed for item in found]),
            number_range([item.line.per_mb for item in found]),
        )
    print_table(filled)


def _print_warnings(calibration: Calibration) -> None:
    for source in calibration.proportional:
        print(
            f"warning: {source}: samples are of one size, so all counts as per MB; hint: samples "
            "of different sizes tell the fixed part",
            file=sys.stderr,
        )
    for failure in calibration.failures[:_FAILURES_MAX]:
        print(
            f"warning: {failure.sample}: {failure.conversion.source} was not converted to "
            f"{failure.conversion.target}: {failure.reason}",
            file=sys.stderr,
        )
    more = len(calibration.failures) - _FAILURES_MAX
    if more > 0:
        print(f"warning: {counted(more, 'more conversion')} failed", file=sys.stderr)


def _print_check(calibration: Calibration) -> None:
    sizes, seconds = calibration.size_misses, calibration.seconds_misses
    if sizes is not None and seconds is not None:
        print(
            f"{counted(len(calibration.checks), 'other sample')} predicted: sizes off by "
            f"{sizes.median:.1%} (median) and {sizes.worst:.1%} (worst), seconds by "
            f"{seconds.median:.1%} and {seconds.worst:.1%}",
            file=sys.stderr,
        )


def _summary(calibration: Calibration) -> str:
    return (
        f"{counted(len(calibration.conversions), 'conversion')} between "
        f"{counted(len(calibration.formats), 'format')} measured on "
        f"{counted(len(calibration.samples), 'sample')}, {counted(calibration.repeat, 'run')} "
        f"each, in {calibration.seconds:.1f} s, seed {calibration.seed}"
    )
