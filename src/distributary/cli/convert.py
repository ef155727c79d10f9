"""`distributary convert`: one file, in another format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.content_files import check_content_output, read_content, write_content
from distributary.cli.options import check_number
from distributary.cli.output import shown_path
from distributary.errors import BadInput, counted, quoted

if TYPE_CHECKING:
    from distributary.content.media_type import MediaType
    from distributary.media.failure import ConversionFailed
    from distributary.media.limits import Limits

__all__ = ["EXAMPLES", "convert"]

EXAMPLES = """\
\b
Examples:
  distributary convert map.pdf map.jpg
  distributary convert map.pdf map.webp --to "image/webp;width=640;page=2"
  distributary convert map.pdf notice.wav
  distributary convert report.pdf report.mp3 --to "audio/mpeg;item=all;language=de"
  distributary convert clip.mp4 still.jpg --to "image/jpeg;at=2.5"
  distributary convert clip.mp4 clip.3gp --to "video/3gpp;width=176;bitrate=80k"
  curl -s https://example.org/map.pdf | distributary convert - - --to text/plain
"""

_MEGABYTE = 1_000_000
_SECONDS = 60.0
_MEMORY_MB = 1000.0
_SIZE_MB = 250.0
_CACHE_MB = 1000.0
_SECONDS_MAX = 1e6
_MB_MAX = 1e9
_COUNT_MAX = 10**15

# What allows more of what a conversion had too little of.
_OPTIONS = {
    "time": "--seconds",
    "memory": "--memory",
    "crashed": "--memory",  # what many libraries do without it
    "output": "--size",
} | {kind: f"--{kind}" for kind in ("pages", "pixels", "frames")}


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file; - reads standard input.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where it goes; - is standard output.")
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="MEDIA_TYPE",
            help="The format to make, such as 'image/jpeg;width=640'; what OUT ends in unless "
            "given.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MEDIA_TYPE",
            help="The format of IN; what it looks like unless given.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Stop each conversion after this.")
    ] = _SECONDS,
    memory: Annotated[
        float, typer.Option(metavar="MB", help="Memory that a conversion may take.")
    ] = _MEMORY_MB,
    size: Annotated[
        float, typer.Option(metavar="MB", help="Largest file to read or to write.")
    ] = _SIZE_MB,
    pages: Annotated[
        int | None, typer.Option(metavar="N", help="Most pages of a document.")
    ] = None,
    pixels: Annotated[
        int | None, typer.Option(metavar="N", help="Most pixels of one picture.")
    ] = None,
    frames: Annotated[int | None, typer.Option(metavar="N", help="Most frames of a video.")] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep results in this folder, and take from it what was made before.",
        ),
    ] = None,
    cache_size: Annotated[
        float, typer.Option(metavar="MB", help="How large that folder may grow.")
    ] = _CACHE_MB,
) -> None:
    """Convert a file to another format, over several conversions if no single one does it.

    Each runs in a process of its own that has no network and is stopped at its limits. The
    result is written whole, or not at all. distributary formats lists what there is.
    """
    from distributary.content.media_type import MediaType

    for option, value, most in (
        ("--seconds", seconds, _SECONDS_MAX),
        ("--memory", memory, _MB_MAX),
        ("--size", size, _MB_MAX),
        ("--cache-size", cache_size, _MB_MAX),
    ):
        check_number(option, value, positive=True)
        if value > most:
            raise BadInput(option, f"must be at most {most:,.0f}, not {value:g}")
    asked = _target_type(to, target)
    named = None if from_ is None else MediaType.parse(from_, place="--from")
    check_content_output(target, "OUT", text=asked.type == "text")
    limits = _limits(seconds, memory, size, pages=pages, pixels=pixels, frames=frames)
    content = read_content(source, bytes_max=limits.input_bytes)
    given = named or _sniffed(source, content)

    if cache is not None and cache.exists() and not cache.is_dir():
        raise BadInput("--cache", f"{quoted(cache)} is not a directory")
    from distributary.media.cache import Cache
    from distributary.media.failure import ConversionFailed
    from distributary.media.formats import canonical
    from distributary.media.pool import Pool
    from distributary.media.registry import installed

    place = shown_path(source)
    route: tuple[MediaType, ...] = (given,)
    if canonical(given) == canonical(asked):
        _check_copied(content, asked, place)
    else:
        try:
            route = (given, *installed().route(given, asked))
        except BadInput as error:
            raise BadInput(place, error.problem, hint=error.hint) from None
    kept = None if cache is None else Cache(cache, bytes_max=max(1, int(cache_size * _MEGABYTE)))
    try:
        with Pool(1, limits=limits, cache=kept) as pool:
            result = pool.convert_along(content, given, asked)
    except ConversionFailed as failure:
        raise _named(failure, place) from None
    write_content(result.content, target, "OUT")
    print(
        f"{' -> '.join(map(str, route))}: {counted(len(content), 'byte')} -> "
        f"{counted(len(result.content), 'byte')}, {result.seconds:.3f} s"
        f"{', cached' if result.cached else ''}",
        file=sys.stderr,
    )


def _target_type(to: str | None, target: Path) -> MediaType:
    from distributary.content.media_type import MediaType
    from distributary.media.registry import installed

    if to is not None:
        return MediaType.parse(to, place="--to")
    suggested = installed().format_of_name(target.name)
    if suggested is None:
        raise BadInput(
            "OUT",
            f"{quoted(target)} does not say which format to make",
            hint="--to says it, as in --to image/jpeg; distributary formats lists them",
        )
    return suggested


def _sniffed(source: Path, content: bytes) -> MediaType:
    from distributary.media.registry import installed
    from distributary.media.sniff import sniff

    name = None if str(source) == "-" else source.name
    try:
        return sniff(content, name, format_of=installed().format_of_name)
    except BadInput as error:
        hint = "--from says what it is, as in --from image/jpeg"
        raise BadInput(shown_path(source), error.problem, hint=hint) from None


def _check_copied(content: bytes, asked: MediaType, place: str) -> None:
    """Refuse to hand on content as what it is not; no converter gets to see it.

    Of text and of what plug-ins bring, beginnings do not tell.
    """
    from distributary.content.file_types import OTHER_SUFFIX
    from distributary.media.formats import canonical, file_suffix, is_textual
    from distributary.media.sniff import sniff

    if is_textual(asked) or file_suffix(asked) == OTHER_SUFFIX:
        return
    try:
        found = sniff(content)
    except BadInput:
        raise BadInput(place, f"is not {asked}") from None
    if found.essence != canonical(asked).essence:
        raise BadInput(place, f"is {found}, not {asked}")


def _limits(seconds: float, memory_mb: float, size_mb: float, **counts: int | None) -> Limits:
    from distributary.media.limits import Limits

    for name, value in counts.items():
        if value is not None and not 1 <= value <= _COUNT_MAX:
            rule = "at least 1" if value < 1 else f"at most {_COUNT_MAX:,}"
            raise BadInput(f"--{name}", f"must be {rule}, not {value}")
    size = max(1, int(size_mb * _MEGABYTE))
    return Limits(
        seconds=seconds,
        memory_bytes=max(1, int(memory_mb * _MEGABYTE)),
        input_bytes=size,
        output_bytes=size,
        **{name: value for name, value in counts.items() if value is not None},
    )


def _named(failure: ConversionFailed, place: str) -> BadInput:
    """Return the failure as what is wrong with the file, and what may help."""
    option = _OPTIONS.get(failure.kind)
    return BadInput(place, str(failure), hint=option and f"{option} allows more")
