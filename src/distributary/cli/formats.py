"""`distributary formats`: what can be converted, and what it takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    from distributary.media.graphs import DefaultCosts
    from distributary.media.registry import Conversion, Registry

__all__ = ["EXAMPLES", "formats"]

EXAMPLES = """\
\b
Examples:
  distributary formats
  distributary formats --from application/pdf --bytes 5000000
  distributary formats --from 'video/*' --to video/mp4
  distributary formats --json
"""

_MEGABYTE = 1_000_000
_BYTES_MAX = 10**15

Filter = str | None


def formats(
    source: Annotated[
        Filter,
        typer.Option(
            "--from",
            metavar="MEDIA_TYPE",
            help="Only conversions from this format, as in 'image/*'.",
        ),
    ] = None,
    target: Annotated[
        Filter, typer.Option("--to", metavar="MEDIA_TYPE", help="Only conversions to this.")
    ] = None,
    content_bytes: Annotated[
        int, typer.Option("--bytes", min=0, max=_BYTES_MAX, help="How large the content is.")
    ] = _MEGABYTE,
    every: Annotated[bool, typer.Option("--all", help="Every conversion on its own line.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write data instead of tables.")] = False,
) -> None:
    """List the formats and the conversions between them, with sizes and seconds.

    They are those of the calibrated graphs that come with distributary, for content
    that is published as a PDF or as a video of so many bytes.
    """
    from distributary.media.graphs import default_costs
    from distributary.media.registry import installed

    registry = installed()
    conversions = _chosen(registry, source, target)
    costs = default_costs()
    if json:
        from distributary.cli.output import write_document

        write_document(_document(registry, conversions, costs), None)
        return
    every = every or source is not None or target is not None
    _print_formats(_names(conversions), costs, content_bytes, every)
    _print_conversions(conversions, costs, content_bytes, every)
    for name, extra in registry.missing:
        print(f'not installed: {name}; pip install "distributary[{extra}]" adds it')
    _print_summary(conversions, costs, content_bytes)
    sys.stdout.flush()


def _chosen(registry: Registry, source: Filter, target: Filter) -> list[Conversion]:
    """Return the conversions that both filters let through, or raise `BadInput`."""
    from distributary.content.media_type import MediaType
    from distributary.media.formats import canonical

    chosen = list(registry.conversions)
    for option, text, verb in (("--from", source, "reads"), ("--to", target, "writes")):
        if text is None:
            continue
        wanted = canonical(MediaType.parse(text, place=option))
        found = [
            item
            for item in registry.conversions
            if wanted.admits(MediaType.parse(item.source if option == "--from" else item.target))
        ]
        if not found:
            raise BadInput(
                option,
                f"no listed conversion {verb} {quoted(text)}",
                hint="distributary formats lists them all",
            )
        chosen = [item for item in chosen if item in found]
    if not chosen:
        raise BadInput(
            "--to",
            f"nothing converts {quoted(source)} to {quoted(target)} directly",
            hint="distributary convert finds a way in several steps, where there is one",
        )
    return chosen


def _names(conversions: list[Conversion]) -> list[str]:
    return sorted({name for item in conversions for name in (item.source, item.target)})


def _document(
    registry: Registry, conversions: list[Conversion], costs: DefaultCosts
) -> dict[str, object]:
    names = _names(conversions)
    pairs = [(item, costs.seconds.get((item.source, item.target))) for item in conversions]
    return {
        "formats": names,
        "conversions": [
            {
                "from": item.source,
                "to": item.target,
                "converter": item.converter,
                "cost": None if line is None else line.document(),
            }
            for item, line in pairs
        ],
        "sizes": {name: costs.sizes[name].document() for name in names if name in costs.sizes},
        "missing": [
            {"converter": name, "install": f"distributary[{extra}]"}
            for name, extra in registry.missing
        ],
    }


def _print_formats(names: list[str], costs: DefaultCosts, content_bytes: int, every: bool) -> None:
    from distributary.cli.conversion_tables import format_groups, number_range, print_table, table

    megabytes = content_bytes / _MEGABYTE
    filled = table(["format"], ["MB"])
    for label, found in format_groups(names, every=every).items():
        sizes = [costs.sizes[name].at(megabytes) for name in found if name in costs.sizes]
        filled.add_row(label, number_range(sizes))
    print_table(filled)


def _print_conversions(
    conversions: list[Conversion], costs: DefaultCosts, content_bytes: int, every: bool
) -> None:
    from distributary.cli.conversion_tables import (
        conversion_groups,
        number_range,
        print_table,
        table,
    )

    megabytes = content_bytes / _MEGABYTE
    converter_of = {(item.source, item.target): item.converter for item in conversions}
    filled = table(["from", "to", "converter"], ["conversions", "seconds"])
    for (source, target), pairs in conversion_groups(converter_of, every=every).items():
        seconds = [costs.seconds[pair].at(megabytes) for pair in pairs if pair in costs.seconds]
        converters = ", ".join(sorted({converter_of[pair] for pair in pairs}))
        filled.add_row(source, target, converters, str(len(pairs)), number_range(seconds))
    print_table(filled)


def _print_summary(conversions: list[Conversion], costs: DefaultCosts, content_bytes: int) -> None:
    from distributary.errors import counted

    measured = sum((item.source, item.target) in costs.seconds for item in conversions)
    without = len(conversions) - measured
    print(
        f"{counted(len(_names(conversions)), 'format')}, "
        f"{counted(len(conversions), 'conversion')}; sizes and seconds are for "
        f"{counted(content_bytes, 'byte')} of published content"
        + (f", and not known for {counted(without, 'conversion')}" if without else "")
    )
