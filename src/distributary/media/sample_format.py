"""Which listed format a file counts as, so that it can be calibrated with."""

from __future__ import annotations

from collections.abc import Callable

from distributary.content.media_type import MediaType
from distributary.errors import BadInput, quoted
from distributary.media.failure import ConversionFailed
from distributary.media.formats import canonical
from distributary.media.registry import Registry
from distributary.media.result import ConversionResult
from distributary.media.sniff import sniff

__all__ = ["sample_format"]


def sample_format(
    content: bytes,
    name: str,
    *,
    registry: Registry,
    convert: Callable[[bytes, MediaType, MediaType], ConversionResult],
) -> str:
    """Return the listed format that content counts as.

    A picture or a video counts as the widest listed format of its type that it need not
    be enlarged for. How wide it is, a converter is asked: reading hostile content is for
    workers.
    """
    found = canonical(sniff(content, name, format_of=registry.format_of_name))
    sources = {conversion.source for conversion in registry.conversions}
    if str(found) in sources:
        return str(found)
    listed = [parsed for parsed in map(MediaType.parse, sorted(sources)) if found.admits(parsed)]
    if not listed:
        raise BadInput(
            name,
            f"nothing converts {quoted(found)}",
            hint="distributary formats lists what can be converted",
        )
    if len(listed) == 1:
        return str(listed[0])
    failure: ConversionFailed | None = None
    for candidate in sorted(listed, key=_width, reverse=True):
        try:
            convert(content, found, candidate)
        except ConversionFailed as error:
            failure = error
            if error.kind != "enlarges":
                break
        else:
            return str(candidate)
    assert failure is not None
    raise BadInput(name, failure.reason)


def _width(media_type: MediaType) -> int:
    width = media_type.parameters.get("width", "0")
    return int(width) if width.isdecimal() else 0
